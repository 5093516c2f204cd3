//! Predicted against measured: how well a model of costs ranks what it predicts.

use crate::plot::axes::Area;
use crate::plot::axes::Axis;
use crate::plot::axes::Panel;
use crate::plot::canvas::Canvas;
use crate::plot::canvas::Stroke;
use crate::plot::canvas::TextStyle;
use crate::plot::correlation::rank_correlation;
use crate::plot::error::PlotError;
use crate::plot::labels::PointLabels;
use crate::plot::legend::Entry;
use crate::plot::legend::Sign;
use crate::plot::legend::draw_legend;
use crate::plot::save::Figure;
use crate::plot::scale::Scale;
use crate::plot::scale::ScaleKind;
use crate::plot::series::Look;
use crate::plot::series::draw_marker;
use crate::plot::style::FRAME;
use crate::plot::style::MARKER;
use crate::plot::style::SMALL;
use crate::plot::style::SOFT_INK;
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
        let pairs: Vec<_> = shown.iter().map(|point| (point.x, point.y)).collect();
        if let Some(correlation) = rank_correlation(&pairs) {
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
        let mut places = PointLabels::new(panel.field);
        let count: usize = self.series.iter().map(|series| series.points.len()).sum();
        let radius = if count > 300 { 0.65 * MARKER } else { MARKER };
        for (at, series) in self.series.iter().enumerate() {
            for point in series.points.iter().filter(|point| point.is_shown()) {
                let centre = panel.point(point.x, point.y);
                let look = Look { color: fill_color(at), marker: Some(at) };
                draw_marker(canvas, centre, look, radius);
                places.keep_clear(centre, radius);
                labels.extend(point.label.as_ref().map(|label| (centre, label)));
            }
        }
        // Labels come after all points, whose places they must avoid.
        for (centre, label) in labels {
            places.write(canvas, (centre, radius), label);
        }
    }
}
