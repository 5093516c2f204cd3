//! The memory of loop nests against their time: their iterations, or measured seconds.
//!
//! Both axes are logarithmic.  Numbers are the places of the nests in the list, from 1.  The chosen one is marked, and written
//! out as the legend.

use decompose_formats::counted;

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::canvas::Canvas;
use crate::canvas::TextStyle;
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
use crate::style::MARKER;
use crate::style::PALETTE;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TITLE;

const FIGURE: &str = "frontier";
const MARGIN: f64 = 14.0;

/// Where nests without a buffer are drawn: a scalar one has one element.
const NO_BUFFER: f64 = 0.5;

/// The axis of elements spans this ratio at least.
const DECADE: f64 = 10.0;

/// What the time of a loop nest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FrontierTime {
    /// The iterations of all terms; the points are rows of a frontier.
    #[default]
    Iterations,
    /// Seconds as measured; the points are any nests.
    Seconds,
}

impl FrontierTime {
    fn axis(self) -> &'static str {
        match self {
            FrontierTime::Iterations => "iterations of all terms",
            FrontierTime::Seconds => "measured time (s)",
        }
    }

    fn write(self, value: f64) -> String {
        match self {
            FrontierTime::Iterations => format!("{} iterations", significant(value, 3)),
            FrontierTime::Seconds => time(value),
        }
    }

    fn counted(self, count: usize) -> String {
        match self {
            FrontierTime::Iterations => {
                counted(count, "pair of time and memory", "pairs of time and memory")
            }
            FrontierTime::Seconds => counted(count, "loop nest", "loop nests"),
        }
    }
}

/// Costs of loop nests.
///
/// Points with a number that is not finite, or without time, are left out and counted.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    /// The title.
    pub title: String,
    /// What their time is.
    pub time: FrontierTime,
    /// The costs, in the order of their numbers.
    pub marks: Vec<FrontierMark>,
    /// Which of them is chosen, by position.
    pub chosen: Option<usize>,
}

/// The cost of a loop nest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrontierMark {
    /// The nest; written for the chosen one.
    pub label: String,
    /// Elements of all buffers.
    pub elements: f64,
    /// Its time.
    pub time: f64,
}

impl FrontierMark {
    fn is_shown(&self) -> bool {
        self.elements.is_finite()
            && ScaleKind::Log.shows(self.time)
            && ScaleKind::Log.shows(self.height())
    }

    fn height(&self) -> f64 {
        self.elements.max(NO_BUFFER)
    }
}

impl Figure for Frontier {
    fn size(&self) -> (u32, u32) {
        (680, 560)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let shown = self.ranked()?;
        let times = shown.iter().map(|at| self.marks[*at].time);
        let heights = || shown.iter().map(|at| self.marks[*at].height());
        // Within a decade ticks would stand at fractions of elements.
        let decade = heights().fold(f64::INFINITY, f64::min) * DECADE;
        let scales = Scale::around(ScaleKind::Log, times)
            .zip(Scale::around(ScaleKind::Log, heights().chain([decade])));
        let Some((x, y)) = scales else {
            let reason = "no cost has a finite time above zero; give one or more";
            return Err(PlotError::empty(FIGURE, reason));
        };
        let (width, height) = (f64::from(canvas.size.0), f64::from(canvas.size.1));
        let room = width - 2.0 * MARGIN;
        let title = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), title.fit(&self.title, room), title);
        let note = TextStyle::new(SMALL).color(SOFT_INK);
        canvas.text((MARGIN, 45.0), note.fit(&self.describe(&shown), room), note);
        let top = self.draw_names(canvas, room, &shown) + 10.0;
        let area = Area { left: MARGIN, top, width: room, height: height - top - MARGIN };
        let x = Axis::new(x, 7, self.time.axis());
        let y = Axis::new(y, 7, "elements of all buffers");
        let panel = Panel::draw(canvas, area, &x, &y);
        self.draw_marks(canvas, &panel, &shown);
        Ok(())
    }
}

impl Frontier {
    /// Returns the marks that can be shown, the least time first.
    fn ranked(&self) -> Result<Vec<usize>, PlotError> {
        let count = self.marks.len();
        if let Some(chosen) = self.chosen.filter(|chosen| *chosen >= count) {
            let reason = format!("cost {} of {count} is chosen", chosen.saturating_add(1));
            return Err(PlotError::mismatch(FIGURE, reason));
        }
        let mut shown: Vec<usize> = (0..count).filter(|at| self.marks[*at].is_shown()).collect();
        let time = |at: &usize| self.marks[*at].time;
        shown.sort_by(|a, b| time(a).total_cmp(&time(b)));
        Ok(shown)
    }

    fn look(&self, at: usize) -> (Color, usize, f64) {
        match self.chosen == Some(at) {
            true => (PALETTE[1], 3, 1.8 * MARKER),
            false => (PALETTE[0].tint(0.6), 0, MARKER),
        }
    }

    /// Returns the line below the title.
    fn describe(&self, shown: &[usize]) -> String {
        let mut text = self.time.counted(shown.len());
        let left_out = self.marks.len() - shown.len();
        if left_out > 0 {
            text += &format!(", {left_out} left out without numbers");
        }
        if shown.iter().any(|at| self.marks[*at].elements < NO_BUFFER) {
            text += &format!("; no buffer is drawn at {NO_BUFFER}");
        }
        text
    }

    /// Draws the legend and returns the position below.
    fn draw_names(&self, canvas: &mut Canvas, width: f64, shown: &[usize]) -> f64 {
        let entry = |at: usize, name: String, note: String| {
            let (color, shape, _) = self.look(at);
            Entry { sign: Sign::Marker(shape), note, ..Entry::new(color, &name) }
        };
        let chosen = self.chosen.filter(|at| shown.contains(at)).map(|at| {
            let mark = &self.marks[at];
            let (time, memory) = (self.time.write(mark.time), significant(mark.elements, 3));
            let note = format!("{time}, {memory} elements");
            entry(at, format!("chosen: {}", mark.label), note)
        });
        let other = shown.iter().find(|at| self.chosen != Some(**at));
        let other = other.map(|&at| entry(at, "other nests".to_owned(), String::new()));
        let entries: Vec<Entry> = chosen.into_iter().chain(other).collect();
        draw_legend(canvas, (MARGIN, 58.0), width, &entries)
    }

    /// Draws the points, the chosen one above the others, and their numbers.
    fn draw_marks(&self, canvas: &mut Canvas, panel: &Panel, shown: &[usize]) {
        let mut places = PointLabels::new(panel.field);
        let point = |at: usize| panel.point(self.marks[at].time, self.marks[at].height());
        let mut order = shown.to_vec();
        order.sort_by_key(|at| self.chosen == Some(*at));
        for &at in &order {
            let (color, shape, radius) = self.look(at);
            draw_marker(canvas, point(at), Look { color, marker: Some(shape) }, radius);
            places.keep_clear(point(at), radius);
        }
        // The first labels find room.
        for &at in order.iter().rev() {
            places.write(canvas, (point(at), self.look(at).2), &(at + 1).to_string());
        }
    }
}
