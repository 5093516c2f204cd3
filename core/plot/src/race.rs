//! Predicted against measured seconds of the schedules that a search has chosen from.
//!
//! Both axes are logarithmic and of the same range, so that a point on the diagonal is a right
//! prediction, and a point within the dotted lines one within a factor of two.  Numbers are ranks
//! by prediction.  What counts is how low the chosen point lies: the figure says how many times the
//! fastest measured candidate it takes.
use decompose_formats::counted;

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::canvas::Canvas;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::correlation::rank_correlation;
use crate::error::PlotError;
use crate::labels::PointLabels;
use crate::legend::Entry;
use crate::legend::Sign;
use crate::legend::draw_legend;
use crate::number::significant;
use crate::number::time;
use crate::save::Figure;
use crate::scale::Scale;
use crate::scale::ScaleKind;
use crate::series::Look;
use crate::series::draw_marker;
use crate::style::Color;
use crate::style::FRAME;
use crate::style::MARKER;
use crate::style::MUTED;
use crate::style::PALETTE;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TITLE;

const FIGURE: &str = "race";
const MARGIN: f64 = 14.0;

/// Candidates of a search, each predicted and measured.
///
/// Candidates with a number that is not finite or not above zero are left out and counted.
#[derive(Clone, Debug, Default)]
pub struct Race {
    /// The title.
    pub title: String,
    /// The candidates, in any order.
    pub candidates: Vec<RaceCandidate>,
    /// Which of them the search has chosen, by position.
    pub chosen: Option<usize>,
}

/// One candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RaceCandidate {
    /// What it is, for example its loop nest; written for the chosen and the fastest one.
    pub label: String,
    /// Seconds predicted.
    pub predicted_seconds: f64,
    /// Seconds measured.
    pub measured_seconds: f64,
}

impl RaceCandidate {
    fn is_shown(&self) -> bool {
        self.seconds().iter().all(|seconds| ScaleKind::Log.shows(*seconds))
    }

    fn seconds(&self) -> [f64; 2] {
        [self.predicted_seconds, self.measured_seconds]
    }
}

/// What a candidate is besides its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Other,
    Fastest,
    Chosen,
    ChosenAndFastest,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Other => "other candidates",
            Role::Fastest => "fastest measured",
            Role::Chosen => "chosen",
            Role::ChosenAndFastest => "chosen and fastest",
        }
    }

    fn color(self) -> Color {
        match self {
            Role::Other => PALETTE[0].tint(0.6),
            Role::Fastest => PALETTE[2],
            Role::Chosen | Role::ChosenAndFastest => PALETTE[1],
        }
    }

    /// Returns the number of the marker's shape.
    fn shape(self) -> usize {
        match self {
            Role::Other => 0,
            Role::Fastest => 2,
            Role::Chosen | Role::ChosenAndFastest => 3,
        }
    }

    fn radius(self, candidates: usize) -> f64 {
        match self {
            Role::Other if candidates > 300 => 0.65 * MARKER,
            Role::Other => MARKER,
            _ => 1.8 * MARKER,
        }
    }
}

impl Figure for Race {
    fn size(&self) -> (u32, u32) {
        (680, 744)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let shown = self.ranked()?;
        let seconds = shown.iter().flat_map(|at| self.candidates[*at].seconds());
        let Some(scale) = Scale::around(ScaleKind::Log, seconds) else {
            let reason = "no candidate has two finite numbers of seconds above zero; give one or \
                          more";
            return Err(PlotError::empty(FIGURE, reason));
        };
        let (width, height) = (f64::from(canvas.size.0), f64::from(canvas.size.1));
        let room = width - 2.0 * MARGIN;
        let title = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), title.fit(&self.title, room), title);
        let note = TextStyle::new(SMALL).color(SOFT_INK);
        canvas.text((MARGIN, 45.0), note.fit(&self.describe(&shown, scale), room), note);
        let top = self.draw_names(canvas, room, &shown) + 10.0;

        let area = Area { left: MARGIN, top, width: room, height: height - top - MARGIN };
        let x = Axis::new(scale, 7, "predicted time (s)");
        let y = Axis::new(scale, 7, "measured time (s)");
        let panel = Panel::draw(canvas, area, &x, &y);
        let mut places = PointLabels::new(panel.field);
        draw_diagonals(canvas, &panel, &mut places);
        self.draw_candidates(canvas, &panel, &mut places, &shown);
        Ok(())
    }
}

impl Race {
    /// Returns the candidates that can be shown, the fastest by prediction first.
    fn ranked(&self) -> Result<Vec<usize>, PlotError> {
        let count = self.candidates.len();
        if let Some(chosen) = self.chosen.filter(|chosen| *chosen >= count) {
            let reason = format!("candidate {} of {count} is chosen", chosen.saturating_add(1));
            return Err(PlotError::mismatch(FIGURE, reason));
        }
        let mut shown: Vec<usize> =
            (0..count).filter(|at| self.candidates[*at].is_shown()).collect();
        let predicted = |at: &usize| self.candidates[*at].predicted_seconds;
        shown.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
        Ok(shown)
    }

    /// Returns the fastest measured candidate; of equal ones, the one predicted faster.
    fn fastest(&self, shown: &[usize]) -> Option<usize> {
        let measured = |at: usize| self.candidates[at].measured_seconds;
        shown.iter().copied().min_by(|a, b| measured(*a).total_cmp(&measured(*b)))
    }

    fn role(&self, at: usize, fastest: Option<usize>) -> Role {
        match (self.chosen == Some(at), fastest == Some(at)) {
            (true, true) => Role::ChosenAndFastest,
            (true, false) => Role::Chosen,
            (false, true) => Role::Fastest,
            (false, false) => Role::Other,
        }
    }

    /// Returns the line below the title.
    fn describe(&self, shown: &[usize], scale: Scale) -> String {
        let mut text = counted(shown.len(), "candidate", "candidates");
        let left_out = self.candidates.len() - shown.len();
        if left_out > 0 {
            text += &format!(", {left_out} left out without two times");
        }
        let pairs: Vec<_> = shown.iter().map(|at| self.candidates[*at].seconds().into()).collect();
        if let Some(correlation) = rank_correlation(&pairs) {
            text += &format!("; rank correlation ρ = {correlation:.2}").replace('-', "−");
        }
        text += "; numbers: rank by prediction; dashed: equal";
        if has_double(scale) { text + "; dotted: twice and half" } else { text }
    }

    /// Draws the legend and returns the position below.
    fn draw_names(&self, canvas: &mut Canvas, width: f64, shown: &[usize]) -> f64 {
        let fastest = self.fastest(shown);
        let mut special: Vec<usize> = self.chosen.into_iter().chain(fastest).collect();
        special.dedup();
        let others = shown.iter().any(|at| self.role(*at, fastest) == Role::Other);
        let entry = |role: Role| Entry {
            sign: Sign::Marker(role.shape()),
            ..Entry::new(role.color(), role.name())
        };
        let mut entries: Vec<Entry> = special
            .into_iter()
            .map(|at| {
                let role = self.role(at, fastest);
                let label = &self.candidates[at].label;
                let colon = if label.is_empty() { "" } else { ": " };
                let name = format!("{}{colon}{label}", role.name());
                Entry { name, note: self.times(at, fastest), ..entry(role) }
            })
            .collect();
        entries.extend(others.then(|| entry(Role::Other)));
        draw_legend(canvas, (MARGIN, 58.0), width, &entries)
    }

    /// Returns the times of a candidate in words.
    fn times(&self, at: usize, fastest: Option<usize>) -> String {
        let [predicted, measured] = self.candidates[at].seconds();
        let mut text = format!("{} predicted, {} measured", time(predicted), time(measured));
        let best = fastest.filter(|best| *best != at && self.candidates[at].is_shown());
        if let Some(best) = best {
            let ratio = measured / self.candidates[best].measured_seconds;
            text += &format!(", {} × the fastest", significant(ratio, 3));
        }
        text
    }

    /// Draws the candidates, the chosen and the fastest one above the others, and their ranks.
    fn draw_candidates(
        &self,
        canvas: &mut Canvas,
        panel: &Panel,
        places: &mut PointLabels,
        shown: &[usize],
    ) {
        let fastest = self.fastest(shown);
        let mut points: Vec<_> = shown
            .iter()
            .enumerate()
            .map(|(rank, at)| {
                let [x, y] = self.candidates[*at].seconds();
                (self.role(*at, fastest), rank + 1, panel.point(x, y))
            })
            .collect();
        // Special ones first, since the first labels find room; drawn last, on top.
        points.sort_by_key(|(role, rank, _)| (*role == Role::Other, *rank));
        for (role, _, centre) in points.iter().rev() {
            let radius = role.radius(shown.len());
            let look = Look { color: role.color(), marker: Some(role.shape()) };
            draw_marker(canvas, *centre, look, radius);
            places.keep_clear(*centre, radius);
        }
        for (role, rank, centre) in &points {
            places.write(canvas, (*centre, role.radius(shown.len())), &rank.to_string());
        }
    }
}

/// Returns whether a scale has values of which one is twice the other.
fn has_double(scale: Scale) -> bool {
    2.0 * scale.value(0.0) < scale.value(1.0)
}

/// Draws the lines of a measured time equal to, twice and half the predicted one, and keeps labels
/// out of them.
fn draw_diagonals(canvas: &mut Canvas, panel: &Panel, places: &mut PointLabels) {
    let (low, high) = (panel.x.value(0.0), panel.x.value(1.0));
    let (from, to) = (panel.point(low, low), panel.point(high, high));
    canvas.dashes(from, to, Stroke { width: 1.1, color: FRAME });
    places.keep_line_clear(from, to);
    if !has_double(panel.x) {
        return;
    }
    let twice = (panel.point(low, 2.0 * low), panel.point(high / 2.0, high));
    let half = (panel.point(2.0 * low, low), panel.point(high, high / 2.0));
    for (from, to) in [twice, half] {
        canvas.dots(from, to, Stroke { width: 1.1, color: MUTED });
        places.keep_line_clear(from, to);
    }
}
