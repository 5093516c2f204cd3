//! Where the time went: by phase of the whole run, and by component of its iterations.

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::canvas::Canvas;
use crate::canvas::TextStyle;
use crate::error::PlotError;
use crate::number::TimeUnit;
use crate::save::Figure;
use crate::scale::Scale;
use crate::scale::is_drawable;
use crate::stack::Stack;
use crate::stack::draw_stacks;
use crate::style::LABEL;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TITLE;
use crate::style::fill_color;

const FIGURE: &str = "timing";
const WIDTH: u32 = 800;
const MARGIN: f64 = 14.0;
/// Most bars in the panel of iterations; of more iterations, each bar is the mean of several.
const MOST_BARS: usize = 120;

/// The time of one run, or of several to compare.
///
/// Times that are negative or not finite count as zero.  Parts of the same name share a colour
/// and a place in the bars of all runs.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// What was decomposed and how, for example `nell-2, CP-ALS, rank 16`.
    pub title: String,
    /// The runs.
    pub runs: Vec<TimingRun>,
}

/// The time of one run.
#[derive(Clone, Debug, Default)]
pub struct TimingRun {
    /// The name shown beside its bar; may be empty for a single run.
    pub name: String,
    /// Seconds by phase, in order: read, sort, plan, ....
    pub phases: Vec<TimingPhase>,
    /// Seconds by component of an iteration: the MTTKRP of each mode, solve, fit, ....
    pub components: Vec<TimingComponent>,
}

/// A phase of a run.
#[derive(Clone, Debug, Default)]
pub struct TimingPhase {
    /// Its name.
    pub name: String,
    /// Its wall time in seconds.
    pub seconds: f64,
}

/// A component of each iteration.
#[derive(Clone, Debug, Default)]
pub struct TimingComponent {
    /// Its name.
    pub name: String,
    /// Its wall time in seconds in each iteration; a single value may be a mean of all.
    pub seconds: Vec<f64>,
}

impl Figure for Timing {
    fn size(&self) -> (u32, u32) {
        // The height follows from the layout, so lay out once without keeping the result.
        let bottom = self.lay_out(&mut Canvas::new((WIDTH, 0))).unwrap_or(100.0);
        (WIDTH, (bottom + MARGIN).ceil() as u32)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        self.lay_out(canvas).map(drop)
    }
}

impl Timing {
    /// Draws everything and returns the position below.
    fn lay_out(&self, canvas: &mut Canvas) -> Result<f64, PlotError> {
        let phases = merge(self.runs.iter().map(|run| (&run.name, run.phase_seconds())));
        let means = merge(self.runs.iter().map(|run| (&run.name, run.mean_seconds())));
        if phases.0.is_empty() && means.0.is_empty() {
            let reason = "no run has a phase or a component; give one run with its times";
            return Err(PlotError::empty(FIGURE, reason));
        }
        let title = TextStyle::new(TITLE).bold();
        let room = f64::from(WIDTH) - 2.0 * MARGIN;
        canvas.text((MARGIN, 26.0), title.fit(&self.title, room), title);
        let mut top = 52.0;
        for (heading, axis, (parts, stacks)) in [
            ("Whole run", "wall time", phases),
            ("Mean iteration", "wall time of an iteration", means),
        ] {
            if !parts.is_empty() {
                draw_heading(canvas, top, heading, "");
                let area = Area { left: MARGIN, top: top + 6.0, width: room, height: 0.0 };
                top = draw_stacks(canvas, area, axis, &parts, &stacks) + 26.0;
            }
        }
        if let [run] = self.runs.as_slice() {
            top = draw_iterations(canvas, top, run);
        }
        Ok(top - 22.0)
    }
}

impl TimingRun {
    fn phase_seconds(&self) -> Vec<(&str, f64)> {
        self.phases.iter().map(|phase| (phase.name.as_str(), sane(phase.seconds))).collect()
    }

    fn mean_seconds(&self) -> Vec<(&str, f64)> {
        let parts = self.components.iter().filter(|part| !part.seconds.is_empty());
        parts.map(|part| (part.name.as_str(), mean(&part.seconds))).collect()
    }

    fn iterations(&self) -> usize {
        self.components.iter().map(|part| part.seconds.len()).max().unwrap_or(0)
    }
}

/// Brings the parts of all runs into one order, that of first mention.
fn merge<'a>(
    runs: impl Iterator<Item = (&'a String, Vec<(&'a str, f64)>)>,
) -> (Vec<String>, Vec<Stack>) {
    let runs: Vec<_> = runs.collect();
    let mut parts: Vec<String> = Vec::new();
    for (name, _) in runs.iter().flat_map(|(_, parts)| parts) {
        if !parts.iter().any(|part| part == name) {
            parts.push((*name).to_owned());
        }
    }
    let seconds_of = |measured: &[(&str, f64)], part: &String| {
        measured.iter().filter(|(name, _)| name == part).map(|(_, seconds)| seconds).sum()
    };
    let stacks = runs
        .iter()
        .map(|(name, measured)| Stack {
            name: (*name).clone(),
            seconds: parts.iter().map(|part| seconds_of(measured, part)).collect(),
        })
        .collect();
    (parts, stacks)
}

fn draw_heading(canvas: &mut Canvas, top: f64, heading: &str, note: &str) {
    let style = TextStyle::new(LABEL).bold();
    canvas.text((MARGIN, top), heading, style);
    let at = (MARGIN + style.width(heading) + 10.0, top);
    canvas.text(at, note, TextStyle::new(SMALL).color(SOFT_INK));
}

/// Draws one vertical bar an iteration, in the colours of the mean, and returns the place below;
/// draws nothing for fewer than two iterations, of which the mean says it all.
fn draw_iterations(canvas: &mut Canvas, top: f64, run: &TimingRun) -> f64 {
    let iterations = run.iterations();
    if iterations < 2 {
        return top;
    }
    let per_bar = iterations.div_ceil(MOST_BARS);
    let bars: Vec<Vec<f64>> = (0..iterations)
        .step_by(per_bar)
        .map(|first| run.components.iter().map(|part| bucket(part, first, per_bar)).collect())
        .collect();
    let slowest = bars.iter().map(|bar| bar.iter().sum()).fold(0.0, f64::max);
    let unit = TimeUnit::suiting(slowest);

    let note = if per_bar > 1 { format!("means of {per_bar} iterations") } else { String::new() };
    draw_heading(canvas, top, "Each iteration", &note);
    let width = f64::from(WIDTH) - 2.0 * MARGIN;
    let area = Area { left: MARGIN, top: top + 8.0, width, height: 190.0 };
    let half = 0.5;
    let scale = Scale::span(half, bars.len() as f64 * per_bar as f64 + half);
    let x = Axis::whole(scale, 10, "iteration");
    let y = Axis::new(
        Scale::from_zero([slowest / unit.seconds]),
        5,
        format!("wall time ({})", unit.symbol),
    );
    let panel = Panel::draw(canvas, area, &x, &y);
    let pitch = panel.field.width / bars.len() as f64;
    let thick = (0.82 * pitch).min(40.0);
    for (at, bar) in bars.iter().enumerate() {
        let left = panel.field.left + pitch * (at as f64 + 0.5) - thick / 2.0;
        let mut done = 0.0;
        for (part, seconds) in bar.iter().enumerate() {
            let low = panel.y_at(done / unit.seconds);
            done += seconds;
            let high = panel.y_at(done / unit.seconds);
            canvas.rect((left, high), (thick, low - high), fill_color(part));
        }
    }
    top + 8.0 + area.height + 26.0
}

/// Returns the mean time of `count` iterations from `first` on.
fn bucket(part: &TimingComponent, first: usize, count: usize) -> f64 {
    let last = (first + count).min(part.seconds.len());
    part.seconds.get(first..last).map_or(0.0, mean)
}

fn mean(seconds: &[f64]) -> f64 {
    seconds.iter().copied().map(sane).sum::<f64>() / seconds.len().max(1) as f64
}

fn sane(seconds: f64) -> f64 {
    if is_drawable(seconds) { seconds.max(0.0) } else { 0.0 }
}
