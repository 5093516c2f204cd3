//! A space of choices in three levels: circles of groups, in them circles of choices, in them a dot a setting.
//!
//! The area of a circle follows what is in it.  Dots are as far apart in all circles.  Colours say how long a dot
//! takes, beside the fastest one.  Groups stand in rows, with their labels above and their names below all.

use decompose_formats::counted;

use crate::canvas::{Anchor, Canvas, Point, TextStyle};
use crate::error::PlotError;
use crate::legend::{Entry, draw_legend};
use crate::number::{significant, time};
use crate::save::Figure;
use crate::style::{Color, GRID, LABEL, MUTED, PALETTE, SMALL, SOFT_INK, TITLE, WHITE};

const FIGURE: &str = "bubbles";
const MARGIN: f64 = 14.0;
const SIZE: (f64, f64) = (820.0, 620.0);
/// Room for the label of a group.
const NAME: f64 = 20.0;
/// The most distance of two dots.
const MOST_PITCH: f64 = 14.0;
/// The free rim of a circle around dots, and around circles, in distances of dots.
const RIM: f64 = 0.8;

/// A space of choices.
#[derive(Clone, Debug, Default)]
pub struct Bubbles {
    /// The title.
    pub title: String,
    /// What groups, choices and dots are, one and many, for example `("template", "templates")`.
    pub kinds: [(&'static str, &'static str); 3],
    /// The groups, in the order of their circles.
    pub groups: Vec<BubbleGroup>,
}

/// A group of choices.
#[derive(Clone, Debug, Default)]
pub struct BubbleGroup {
    /// What is written above its circle, for example a number.
    pub label: String,
    /// Its name, behind the label below all circles.
    pub name: String,
    /// The seconds of each dot of each choice; `None` where nothing was measured.
    pub choices: Vec<Vec<Option<f64>>>,
}

/// How long a dot takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Fastest,
    Near,
    Double,
    Slow,
    Unknown,
}

impl Pace {
    const ALL: [Pace; 5] = [Pace::Fastest, Pace::Near, Pace::Double, Pace::Slow, Pace::Unknown];

    fn of(seconds: Option<f64>, fastest: Option<f64>) -> Pace {
        match (seconds, fastest) {
            (Some(seconds), Some(fastest)) if seconds.is_finite() => match seconds / fastest {
                ratio if ratio <= 1.0 => Pace::Fastest,
                ratio if ratio <= 1.1 => Pace::Near,
                ratio if ratio <= 2.0 => Pace::Double,
                _ => Pace::Slow,
            },
            _ => Pace::Unknown,
        }
    }

    fn color(self) -> Color {
        match self {
            Pace::Fastest => PALETTE[1],
            Pace::Near => PALETTE[0],
            Pace::Double => PALETTE[0].tint(0.55),
            Pace::Slow => PALETTE[0].tint(0.25),
            Pace::Unknown => MUTED,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Pace::Fastest => "fastest",
            Pace::Near => "up to 1.1 × its time",
            Pace::Double => "up to 2 ×",
            Pace::Slow => "longer",
            Pace::Unknown => "not measured",
        }
    }
}

/// A circle with the places of what is in it, around its centre.
struct Circle {
    radius: f64,
    places: Vec<Point>,
}

impl Circle {
    /// Packs `count` circles of one radius.
    fn packing(count: usize, radius: f64) -> Circle {
        let places = honeycomb(count, 2.0 * radius);
        let far = places.iter().map(|&(x, y)| x.hypot(y)).fold(0.0, f64::max);
        Circle { radius: far + radius + RIM, places }
    }
}

/// A group with its circles, in distances of dots.
struct Packed {
    outer: Circle,
    choices: Vec<Circle>,
}

impl Packed {
    fn of(group: &BubbleGroup) -> Packed {
        let choices: Vec<Circle> =
            group.choices.iter().map(|dots| Circle::packing(dots.len(), 0.5)).collect();
        let largest = choices.iter().map(|circle| circle.radius).fold(0.5, f64::max);
        Packed { outer: Circle::packing(choices.len(), largest + RIM / 2.0), choices }
    }
}

impl Figure for Bubbles {
    fn size(&self) -> (u32, u32) {
        let legend = 24.0 * self.groups.len() as f64;
        (SIZE.0 as u32, (SIZE.1 + legend.min(400.0)) as u32)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        if self.groups.iter().all(|group| group.choices.iter().all(Vec::is_empty)) {
            return Err(PlotError::empty(FIGURE, "no group has a dot; give one or more"));
        }
        let (width, height) = (f64::from(canvas.size.0), f64::from(canvas.size.1));
        let room = width - 2.0 * MARGIN;
        let title = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), title.fit(&self.title, room), title);
        let note = TextStyle::new(SMALL).color(SOFT_INK);
        canvas.text((MARGIN, 45.0), note.fit(&self.describe(), room), note);
        let top = draw_legend(canvas, (MARGIN, 58.0), room, &self.paces()) + 6.0;
        let bottom = self.draw_names(canvas, room, height);
        self.draw_groups(canvas, (MARGIN, top), (room, bottom - top));
        Ok(())
    }
}

impl Bubbles {
    /// Returns the least time.
    fn fastest(&self) -> Option<f64> {
        let dots = self.groups.iter().flat_map(|group| group.choices.iter().flatten());
        dots.flatten().copied().filter(|seconds| seconds.is_finite()).reduce(f64::min)
    }

    /// Returns the line below the title.
    fn describe(&self) -> String {
        let dots = |group: &BubbleGroup| group.choices.iter().map(Vec::len).sum::<usize>();
        let counts = [
            self.groups.len(),
            self.groups.iter().map(|group| group.choices.len()).sum(),
            self.groups.iter().map(dots).sum(),
        ];
        let texts =
            counts.iter().zip(self.kinds).map(|(&count, (one, many))| counted(count, one, many));
        texts.collect::<Vec<_>>().join(", ")
    }

    /// Returns the paces that occur.
    fn paces(&self) -> Vec<Entry> {
        let fastest = self.fastest();
        let all = self.groups.iter().flat_map(|group| group.choices.iter().flatten());
        let seen: Vec<Pace> = all.map(|&seconds| Pace::of(seconds, fastest)).collect();
        let paces = Pace::ALL.into_iter().filter(|pace| seen.contains(pace));
        let entry = |pace: Pace| {
            let entry = Entry::new(pace.color(), pace.name());
            match (pace, fastest) {
                (Pace::Fastest, Some(seconds)) => Entry { note: time(seconds), ..entry },
                _ => entry,
            }
        };
        paces.map(entry).collect()
    }

    /// Writes the names of the groups at the bottom and returns the height where they begin.
    fn draw_names(&self, canvas: &mut Canvas, room: f64, height: f64) -> f64 {
        let style = TextStyle::new(SMALL);
        let line = SMALL + 6.0;
        let most = ((height - SIZE.1 + 60.0) / line).max(1.0) as usize;
        let shown = self.groups.len().min(most);
        let first = height - MARGIN - line * shown as f64;
        for (at, group) in self.groups.iter().take(shown).enumerate() {
            let best = group.choices.iter().flatten().flatten().copied().reduce(f64::min);
            let ratio = best.zip(self.fastest()).map(|(best, fastest)| best / fastest);
            let note = ratio
                .filter(|ratio| ratio.is_finite())
                .map(|ratio| format!(" — best {} × the fastest", significant(ratio, 3)));
            let text = match at + 1 == shown && shown < self.groups.len() {
                true => format!("and {} more", self.groups.len() - at),
                false => format!("{}  {}{}", group.label, group.name, note.unwrap_or_default()),
            };
            canvas.text((MARGIN, first + line * (at as f64 + 1.0)), style.fit(&text, room), style);
        }
        first - 4.0
    }

    /// Draws the groups in rows within a field, as large as fits.
    fn draw_groups(&self, canvas: &mut Canvas, corner: Point, field: (f64, f64)) {
        let packed: Vec<Packed> = self.groups.iter().map(Packed::of).collect();
        let radii: Vec<f64> = packed.iter().map(|group| group.outer.radius).collect();
        let pitch = largest_pitch(&radii, field);
        let fastest = self.fastest();
        let (rows, tall) = shelves(&radii, pitch, field.0);
        let spare = ((field.1 - tall) / 2.0).max(0.0);
        for ((group, packed), place) in self.groups.iter().zip(&packed).zip(rows) {
            let centre = (corner.0 + place.0, corner.1 + spare + place.1);
            let radius = packed.outer.radius * pitch;
            canvas.disc(centre, radius, GRID);
            let style = TextStyle::new(LABEL).anchor(Anchor::Middle);
            canvas.text(
                (centre.0, centre.1 - radius - 4.0),
                style.fit(&group.label, 2.0 * radius),
                style,
            );
            let choices = group.choices.iter().zip(&packed.choices).zip(&packed.outer.places);
            for ((dots, circle), place) in choices {
                let middle = (centre.0 + place.0 * pitch, centre.1 + place.1 * pitch);
                canvas.disc(middle, circle.radius * pitch, WHITE);
                for (&seconds, place) in dots.iter().zip(&circle.places) {
                    let dot = (middle.0 + place.0 * pitch, middle.1 + place.1 * pitch);
                    canvas.disc(dot, 0.42 * pitch, Pace::of(seconds, fastest).color());
                }
            }
        }
    }
}

/// Returns the `count` points of a honeycomb that are nearest to its middle, moved so that their mean is zero.
fn honeycomb(count: usize, pitch: f64) -> Vec<Point> {
    let reach = ((count as f64).sqrt() as i32) + 2;
    let row = 0.75_f64.sqrt();
    let mut places: Vec<Point> = (-reach..=reach)
        .flat_map(|y| {
            let shift = if y % 2 == 0 { 0.0 } else { 0.5 };
            (-reach..=reach).map(move |x| (f64::from(x) + shift, f64::from(y) * row))
        })
        .collect();
    let far = |place: &Point| place.0.hypot(place.1);
    places.sort_by(|a, b| {
        far(a).total_cmp(&far(b)).then(a.1.total_cmp(&b.1)).then(a.0.total_cmp(&b.0))
    });
    places.truncate(count);
    let mean = |of: fn(&Point) -> f64| places.iter().map(of).sum::<f64>() / count.max(1) as f64;
    let (x, y) = (mean(|place| place.0), mean(|place| place.1));
    places.into_iter().map(|place| ((place.0 - x) * pitch, (place.1 - y) * pitch)).collect()
}

/// Returns the centres of circles in rows of a width, and the height of all rows.
fn shelves(radii: &[f64], pitch: f64, width: f64) -> (Vec<Point>, f64) {
    let space = 10.0;
    let mut centres = Vec::new();
    let (mut top, mut from) = (0.0, 0);
    while from < radii.len() {
        let mut to = from;
        let mut long = 0.0;
        while to < radii.len() && (to == from || long + 2.0 * radii[to] * pitch <= width) {
            long += 2.0 * radii[to] * pitch + space;
            to += 1;
        }
        let tall = radii[from..to].iter().fold(0.0, |most, &radius| f64::max(most, radius * pitch));
        let mut left = (width - long + space) / 2.0;
        for radius in &radii[from..to] {
            let radius = radius * pitch;
            centres.push((left + radius, top + NAME + tall));
            left += 2.0 * radius + space;
        }
        top += NAME + 2.0 * tall + space;
        from = to;
    }
    (centres, top)
}

/// Returns the largest distance of dots with which all rows fit a field.
fn largest_pitch(radii: &[f64], field: (f64, f64)) -> f64 {
    let widest = radii.iter().copied().fold(0.5, f64::max);
    let (mut low, mut high) = (0.0, MOST_PITCH.min(field.0 / (2.0 * widest)));
    if shelves(radii, high, field.0).1 <= field.1 {
        return high;
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        match shelves(radii, middle, field.0).1 <= field.1 {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::{honeycomb, largest_pitch, shelves};

    #[test]
    fn dots_keep_their_distance() {
        for count in [1, 2, 7, 100] {
            let places = honeycomb(count, 2.0);
            assert_eq!(places.len(), count);
            for (at, a) in places.iter().enumerate() {
                for b in &places[..at] {
                    assert!((a.0 - b.0).hypot(a.1 - b.1) > 1.999);
                }
            }
        }
    }

    #[test]
    fn rows_of_circles_fit_their_field_and_do_not_meet() {
        let radii = [3.0, 30.0, 8.0, 20.0, 1.0, 60.0];
        let field = (700.0, 400.0);
        let pitch = largest_pitch(&radii, field);
        let (centres, tall) = shelves(&radii, pitch, field.0);
        assert!(pitch > 0.5 && tall <= field.1);
        for (at, a) in centres.iter().enumerate() {
            assert!(a.0 - radii[at] * pitch >= -1e-9 && a.0 + radii[at] * pitch <= field.0 + 1e-9);
            for (b, radius) in centres.iter().zip(radii).take(at) {
                let apart = (a.0 - b.0).hypot(a.1 - b.1);
                assert!(apart >= (radii[at] + radius) * pitch);
            }
        }
    }
}
