//! The small panel of one profile: stems, bars, a line, or a band, by what it is and how long.

use crate::axes::Area;
use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Point;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::components::ModeLook;
use crate::number::count;
use crate::number::significant;
use crate::profile::Profile;
use crate::scale::Scale;
use crate::scale::range;
use crate::style::FRAME;
use crate::style::GRID;
use crate::style::PALETTE;
use crate::style::SOFT_INK;
use crate::style::THIN_LINE;
use crate::style::TINY;

/// Most points that are drawn as stems; more are joined by a line.
const MOST_STEMS: usize = 60;
/// Least width of a step of a band: thinner spikes could not be seen.
const LEAST_STEP: f64 = 0.9;
/// Share of the largest magnitude from which on an entry of a band gets a dot.
const DOT_FROM: f64 = 0.1;
/// The text of the panel.
const STYLE: TextStyle = TextStyle::new(TINY).color(SOFT_INK);

/// A drawn panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProfilePanel {
    field: Area,
    y: Scale,
    points: usize,
}

impl ProfilePanel {
    /// Draws a profile in `area`, of which the left `room` is for the labels of its values.
    pub(crate) fn draw(
        canvas: &mut Canvas,
        area: Area,
        profile: &Profile,
        look: ModeLook,
        room: f64,
    ) -> ProfilePanel {
        let (low, high) = bounds(profile);
        let y = if low < high { Scale::span(low, high) } else { Scale::span(0.0, 1.0) };
        let field = Area { left: area.left + room, width: area.width - room, ..area };
        let panel = ProfilePanel { field, y, points: profile.low.len() };
        let line = |color| Stroke { width: THIN_LINE, color };
        let (right, bottom) = (field.left + field.width, field.top + field.height);
        for level in [field.top, bottom] {
            canvas.line(vec![(field.left, level), (right, level)], line(GRID));
        }
        let zero = panel.y_at(0.0);
        canvas.line(vec![(field.left, field.top), (field.left, bottom)], line(FRAME));
        canvas.line(vec![(field.left, zero), (right, zero)], line(FRAME));
        for mark in panel.marks(low, high) {
            let at = (field.left - 4.0, panel.y_at(mark));
            canvas.text_centred(at, significant(mark, 2), STYLE.anchor(Anchor::End));
        }
        match look {
            _ if profile.low != profile.high => panel.draw_band(canvas, profile),
            ModeLook::Bars => panel.draw_bars(canvas, profile),
            ModeLook::Plain if panel.points <= MOST_STEMS => panel.draw_stems(canvas, profile),
            _ if panel.points == 1 => panel.draw_stems(canvas, profile),
            ModeLook::Plain | ModeLook::Lines => panel.draw_line(canvas, profile),
        }
        panel
    }

    /// Writes below the field what its `ends` stand for, or the first and last index.
    pub(crate) fn draw_ends(
        &self,
        canvas: &mut Canvas,
        extent: usize,
        ends: Option<&(String, String)>,
    ) {
        let y = self.field.top + self.field.height + TINY + 7.0;
        if let Some((first, last)) = ends {
            let (left, right) = (self.field.left, self.field.left + self.field.width);
            let room = (right - left) / 2.0 - 5.0;
            canvas.text((left, y), STYLE.fit(first, room), STYLE);
            let last = if extent > 1 { STYLE.fit(last, room) } else { String::new() };
            canvas.text((right, y), last, STYLE.anchor(Anchor::End));
            return;
        }
        let middle = STYLE.anchor(Anchor::Middle);
        let last = count(extent as f64);
        // The labels of stems are below these, others at the ends of the field.
        let inset = if self.points <= MOST_STEMS { 0.5 } else { 0.0 };
        let (from, to) = (self.x_at(inset), self.x_at(self.points as f64 - inset));
        canvas.text((from, y), "1", middle);
        if extent > 1 {
            let half = STYLE.width(&last) / 2.0;
            let to = to.min(self.field.left + self.field.width + 8.0 - half);
            canvas.text((to, y), last, middle);
            let index = STYLE.width("index");
            if to - half - from > index + 24.0 {
                canvas.text(((from + to - half) / 2.0, y), "index", middle);
            }
        }
    }

    /// Returns the values to label: the ends, and zero between them where it touches neither.
    fn marks(&self, low: f64, high: f64) -> Vec<f64> {
        let mut marks = vec![low];
        let apart = (self.y_at(low) - self.y_at(0.0)).min(self.y_at(0.0) - self.y_at(high));
        if apart > TINY + 2.0 {
            marks.push(0.0);
        }
        if high > low {
            marks.push(high);
        }
        marks
    }

    fn x_at(&self, at: f64) -> f64 {
        self.field.left + self.field.width * at / self.points.max(1) as f64
    }

    fn y_at(&self, value: f64) -> f64 {
        self.field.top + (1.0 - self.y.place(value)) * self.field.height
    }

    fn draw_line(&self, canvas: &mut Canvas, profile: &Profile) {
        let tips = profile.high.iter().enumerate();
        let tips = tips.map(|(at, value)| (self.x_at(at as f64 + 0.5), self.y_at(*value)));
        canvas.line(tips.collect(), Stroke { width: 1.1, color: PALETTE[0] });
    }

    fn draw_bars(&self, canvas: &mut Canvas, profile: &Profile) {
        let zero = self.y_at(0.0);
        let width = (0.8 * self.field.width / self.points.max(1) as f64).min(16.0);
        for (at, value) in profile.high.iter().enumerate() {
            let (x, y) = (self.x_at(at as f64 + 0.5), self.y_at(*value));
            let corner = (x - width / 2.0, y.min(zero));
            canvas.rect(corner, (width, (y - zero).abs()), PALETTE[0]);
        }
    }

    fn draw_stems(&self, canvas: &mut Canvas, profile: &Profile) {
        let width = (0.5 * self.field.width / self.points.max(1) as f64).clamp(0.8, 2.0);
        for (at, value) in profile.high.iter().enumerate() {
            let tip = (self.x_at(at as f64 + 0.5), self.y_at(*value));
            let stroke = Stroke { width, color: PALETTE[0] };
            canvas.line(vec![(tip.0, self.y_at(0.0)), tip], stroke);
            canvas.disc(tip, 1.1 * width, PALETTE[0]);
        }
    }

    /// Fills the range of values along the profile, and dots the largest.
    fn draw_band(&self, canvas: &mut Canvas, profile: &Profile) {
        // Some ink even where all values of a stretch are the same.
        const HALF_INK: f64 = 0.4;
        let joined = (LEAST_STEP * self.points as f64 / self.field.width).ceil().max(1.0) as usize;
        let steps = |values: &[f64], pick: fn(f64, f64) -> f64, shift: f64| -> Vec<Point> {
            let step = |(at, values): (usize, &[f64])| {
                let value = values.iter().copied().reduce(pick).unwrap_or(0.0);
                let level = self.y_at(value) + shift;
                let (from, to) = (at * joined, (at * joined + values.len()));
                [(self.x_at(from as f64), level), (self.x_at(to as f64), level)]
            };
            values.chunks(joined).enumerate().flat_map(step).collect()
        };
        let mut outline = steps(&profile.high, f64::max, -HALF_INK);
        outline.extend(steps(&profile.low, f64::min, HALF_INK).into_iter().rev());
        canvas.polygon(outline, PALETTE[0]);

        let largest = profile.largest.first().map_or(0.0, |entry| entry.value.abs());
        for entry in profile.largest.iter().filter(|e| e.value.abs() >= DOT_FROM * largest) {
            let holds =
                |at: &usize| profile.high[*at] == entry.value || profile.low[*at] == entry.value;
            if let Some(at) = (0..self.points).find(holds) {
                canvas.disc((self.x_at(at as f64 + 0.5), self.y_at(entry.value)), 1.9, PALETTE[1]);
            }
        }
    }
}

/// Returns the room that the labels of a profile need.
pub(crate) fn label_room(profile: &Profile) -> f64 {
    let (low, high) = bounds(profile);
    let width = |value: f64| STYLE.width(&significant(value, 2));
    width(low).max(width(high)) + 4.0
}

/// Returns the range of values with zero.
fn bounds(profile: &Profile) -> (f64, f64) {
    let values = profile.low.iter().chain(&profile.high).copied();
    range(values.chain([0.0])).unwrap_or((0.0, 0.0))
}
