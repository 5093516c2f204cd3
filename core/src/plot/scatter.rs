//! Predicted against measured: how well a model of costs ranks what it predicts.

use crate::plot::axes::Area;
use crate::plot::axes::Axis;
use crate::plot::axes::Panel;
use crate::plot::canvas::Canvas;
use crate::plot::canvas::Point;
use crate::plot::canvas::Stroke;
use crate::plot::canvas::TextStyle;
use crate::plot::error::PlotError;
use crate::plot::legend::Entry;
use crate::plot::legend::Sign;
use crate::plot::legend::draw_legend;
use crate::plot::save::Figure;
use crate::plot::scale::Scale;
use crate::plot::scale::ScaleKind;
use crate::plot::series::Look;
use crate::plot::series::draw_marker;
use crate::plot::style::FRAME;
use crate::plot::style::INK;
use crate::plot::style::MARKER;
use crate::plot::style::SMALL;
use crate::plot::style::SOFT_INK;
use crate::plot::style::TINY;
use crate::plot::style::TITLE;
use crate::plot::style::fill_color;

const FIGURE: &str = "scatter";
const MARGIN: f64 = 14.0;

/// Pairs of numbers in one unit on two logarithmic axes of the same range, with the diagonal.
///
/// Pairs with a number that is not finite or not above zero are left out and counted.
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    /// The title.
    pub title: String,
    /// Name of the horizontal axis with its unit, for example `predicted time (s)`.
    pub x_name: String,
    /// Name of the vertical axis with its unit, for example `measured time (s)`.
    pub y_name: String,
    /// Sets of points.
    pub series: Vec<ScatterSeries>,
}

/// A set of points.
#[derive(Clone, Debug, Default)]
pub struct ScatterSeries {
    /// Its name; a single series may have none.
    pub name: String,
    /// Its points.
    pub points: Vec<ScatterPoint>,
}

/// A point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScatterPoint {
    /// Where it lies horizontally.
    pub x: f64,
    /// Where it lies vertically.
    pub y: f64,
    /// A text beside it, left out where it has no room.
    pub label: Option<String>,
}

impl ScatterPoint {
    fn is_shown(&self) -> bool {
        ScaleKind::Log.shows(self.x) && ScaleKind::Log.shows(self.y)
    }
}

impl Figure for Scatter {
    fn size(&self) -> (u32, u32) {
        (800, 760)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let shown: Vec<_> = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().filter(|point| point.is_shown()))
            .collect();
        let values = shown.iter().flat_map(|point| [point.x, point.y]);
        let Some(scale) = Scale::around(ScaleKind::Log, values) else {
            let reason = "no point has two finite numbers above zero; give one or more";
            return Err(PlotError::empty(FIGURE, reason));
        };
        let (width, height) = (f64::from(canvas.size.0), f64::from(canvas.size.1));
        let title = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), title.fit(&self.title, width - 2.0 * MARGIN), title);
        let note = self.describe(&shown);
        canvas.text((MARGIN, 45.0), note, TextStyle::new(SMALL).color(SOFT_INK));
        let top = self.draw_names(canvas, 56.0, width - 2.0 * MARGIN);

        let area =
            Area { left: MARGIN, top, width: width - 2.0 * MARGIN, height: height - top - MARGIN };
        let x = Axis::new(scale, 8, self.x_name.clone());
        let y = Axis::new(scale, 8, self.y_name.clone());
        let panel = Panel::draw(canvas, area, &x, &y);
        let corners = [0.0, 1.0].map(|place| panel.point(scale.value(place), scale.value(place)));
        canvas.dashes(corners[0], corners[1], Stroke { width: 1.1, color: FRAME });
        self.draw_points(canvas, &panel);
        Ok(())
    }
}

impl Scatter {
    /// Returns the line below the title.
    fn describe(&self, shown: &[&ScatterPoint]) -> String {
        let all: usize = self.series.iter().map(|series| series.points.len()).sum();
        let mut text = match shown.len() {
            1 => "1 point".to_owned(),
            points => format!("{points} points"),
        };
        if all > shown.len() {
            text += &format!(", {} left out without two numbers above zero", all - shown.len());
        }
        if let Some(correlation) = rank_correlation(shown) {
            let correlation = format!("{correlation:.2}").replace('-', "−");
            text += &format!("; rank correlation ρ = {correlation}");
        }
        text + "; dashed: equal"
    }

    /// Draws the names of series, if there are any, and returns the position below.
    fn draw_names(&self, canvas: &mut Canvas, top: f64, width: f64) -> f64 {
        let named = self.series.iter().enumerate().filter(|(_, series)| !series.name.is_empty());
        let entries: Vec<_> = named
            .map(|(at, series)| Entry {
                sign: Sign::Marker(at),
                ..Entry::new(fill_color(at), &series.name)
            })
            .collect();
        if entries.is_empty() {
            top
        } else {
            draw_legend(canvas, (MARGIN, top), width, &entries) + 8.0
        }
    }

    fn draw_points(&self, canvas: &mut Canvas, panel: &Panel) {
        let mut labels = Vec::new();
        let mut taken = Vec::new();
        let count: usize = self.series.iter().map(|series| series.points.len()).sum();
        let radius = if count > 300 { 0.65 * MARKER } else { MARKER };
        for (at, series) in self.series.iter().enumerate() {
            for point in series.points.iter().filter(|point| point.is_shown()) {
                let centre = panel.point(point.x, point.y);
                let look = Look { color: fill_color(at), marker: Some(at) };
                draw_marker(canvas, centre, look, radius);
                taken.push(Frame::around(centre, radius));
                labels.extend(point.label.as_ref().map(|label| (centre, label)));
            }
        }
        // Labels come after all points, whose places they must avoid.
        for (centre, label) in labels {
            place_label(canvas, panel, &mut taken, centre, label);
        }
    }
}

/// A rectangle that further texts keep out of.
#[derive(Clone, Copy)]
struct Frame {
    from: Point,
    to: Point,
}

impl Frame {
    fn around((x, y): Point, radius: f64) -> Frame {
        Frame { from: (x - radius, y - radius), to: (x + radius, y + radius) }
    }

    fn touches(&self, other: &Frame) -> bool {
        self.from.0 < other.to.0
            && other.from.0 < self.to.0
            && self.from.1 < other.to.1
            && other.from.1 < self.to.1
    }
}

/// Writes a label right, left, above or below its point, where it first meets nothing.
fn place_label(
    canvas: &mut Canvas,
    panel: &Panel,
    taken: &mut Vec<Frame>,
    (x, y): Point,
    label: &str,
) {
    let style = TextStyle::new(TINY).color(INK);
    let width = style.width(label);
    let gap = MARKER + 4.0;
    let starts = [
        (x + gap, y + 3.5),
        (x - gap - width, y + 3.5),
        (x - width / 2.0, y - gap - 2.0),
        (x - width / 2.0, y + gap + TINY),
    ];
    for start in starts {
        let frame = Frame { from: (start.0, start.1 - TINY), to: (start.0 + width, start.1 + 2.0) };
        let field = panel.field;
        let inside = frame.from.0 > field.left
            && frame.to.0 < field.left + field.width
            && frame.from.1 > field.top
            && frame.to.1 < field.top + field.height;
        if inside && !taken.iter().any(|other| other.touches(&frame)) {
            canvas.text(start, label, style);
            taken.push(frame);
            return;
        }
    }
}

/// Returns Spearman's rank correlation; `None` for fewer than three points or equal values only.
fn rank_correlation(points: &[&ScatterPoint]) -> Option<f64> {
    let x = ranks(&points.iter().map(|point| point.x).collect::<Vec<_>>());
    let y = ranks(&points.iter().map(|point| point.y).collect::<Vec<_>>());
    let mean = (points.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = (product(&x, &x) * product(&y, &y)).sqrt();
    (points.len() > 2 && spread > 0.0).then(|| product(&x, &y) / spread)
}

/// Returns the rank of each value from 0; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut done = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = done as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|at| ranks[*at] = rank);
        done += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::ScatterPoint;
    use super::rank_correlation;
    use super::ranks;

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
    }

    #[test]
    fn monotone_pairs_correlate_fully() {
        let point = |x: f64, y: f64| ScatterPoint { x, y, label: None };
        let points = [point(1.0, 10.0), point(2.0, 500.0), point(9.0, 501.0)];
        let shown: Vec<_> = points.iter().collect();
        assert_eq!(rank_correlation(&shown), Some(1.0));
        assert_eq!(rank_correlation(&shown[..2]), None);
    }
}
