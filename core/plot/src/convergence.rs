//! The convergence of runs: fit against iterations and seconds, and how much it still changes.

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::error::PlotError;
use crate::number::TimeUnit;
use crate::number::scientific;
use crate::number::significant;
use crate::number::time;
use crate::save::Figure;
use crate::scale::Scale;
use crate::scale::ScaleKind;
use crate::scale::is_drawable;
use crate::series::Look;
use crate::series::draw_marker;
use crate::series::draw_series;
use crate::style::INK;
use crate::style::MARKER;
use crate::style::MUTED;
use crate::style::PALETTE;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TITLE;

const FIGURE: &str = "convergence";

/// Fit against iterations and seconds, for one run or several.
///
/// The seven runs of best final fit have a colour and a line in the list, others are grey.
/// Points whose numbers are not finite are left out, and so are changes of fit within the
/// rounding of `f64`, which mean nothing and would stretch the logarithmic axis.
#[derive(Clone, Debug, Default)]
pub struct Convergence {
    /// What was decomposed and how, for example `nell-2, CP-ALS, rank 16`.
    pub title: String,
    /// The change of fit below which a run stops, if there is one.
    pub tolerance: Option<f64>,
    /// The runs.
    pub runs: Vec<ConvergenceRun>,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct ConvergenceRun {
    /// The name shown, for example `restart 3`.
    pub name: String,
    /// The measured fits, in order of iterations.
    pub points: Vec<ConvergencePoint>,
    /// Why the run ended, for example `change of fit below tolerance`; may be empty.
    pub stop: String,
}

/// The fit at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvergencePoint {
    /// Iterations done.
    pub iteration: u64,
    /// Seconds since the solver began.
    pub seconds: f64,
    /// Fit: 1 is exact.
    pub fit: f64,
}

/// A run and how it looks.
type Ranked<'a> = (&'a ConvergenceRun, Look);

impl ConvergenceRun {
    /// Returns the points that can be drawn.
    fn shown(&self) -> impl DoubleEndedIterator<Item = &ConvergencePoint> {
        self.points.iter().filter(|point| is_drawable(point.fit) && is_drawable(point.seconds))
    }

    fn last(&self) -> Option<&ConvergencePoint> {
        self.shown().next_back()
    }

    /// Returns the iterations and the changes of fit of each, leaving out mere rounding.
    fn changes(&self) -> Vec<(f64, f64)> {
        let points: Vec<_> = self.shown().collect();
        points
            .windows(2)
            .map(|pair| {
                let steps = pair[1].iteration.saturating_sub(pair[0].iteration).max(1);
                let change = (pair[1].fit - pair[0].fit).abs() / steps as f64;
                (pair[1].iteration as f64, change)
            })
            .filter(|(_, change)| *change > f64::EPSILON)
            .collect()
    }
}

impl Figure for Convergence {
    fn size(&self) -> (u32, u32) {
        (800, 560)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let runs = self.ranked()?;
        let title = TextStyle::new(TITLE).bold();
        canvas.text((14.0, 26.0), title.fit(&self.title, 772.0), title);
        let fit = fit_axis(&runs)?;
        let change = self.change_axis(&runs);
        // Both panels at the left leave the same room for labels, so that iterations align.
        let widths = [Some(&fit), change.as_ref()].into_iter().flatten().map(Axis::labels_width);
        let label_room = widths.fold(0.0, f64::max);
        let top = Area { left: 14.0, top: 42.0, width: 384.0, height: 250.0 };
        draw_fits(canvas, top, &runs, &Axis { label_room, ..fit });
        let below = Area { left: 14.0, top: 318.0, width: 384.0, height: 230.0 };
        match change {
            Some(change) => {
                self.draw_changes(canvas, below, &runs, &Axis { label_room, ..change });
            }
            None => draw_no_change(canvas, below),
        }
        draw_list(canvas, Area { left: 424.0, top: 314.0, width: 362.0, height: 230.0 }, &runs);
        Ok(())
    }
}

impl Convergence {
    /// Returns the runs with something to show and their looks, best final fit first.
    fn ranked(&self) -> Result<Vec<Ranked<'_>>, PlotError> {
        let mut runs: Vec<_> =
            self.runs.iter().filter_map(|run| Some((run, run.last()?.fit))).collect();
        if runs.is_empty() {
            let reason = "no run has a finite fit; give runs of one iteration or more";
            return Err(PlotError::empty(FIGURE, reason));
        }
        runs.sort_by(|a, b| b.1.total_cmp(&a.1));
        let look = |rank: usize| Look {
            color: PALETTE.get(rank).copied().unwrap_or(MUTED),
            marker: (rank < PALETTE.len()).then_some(rank),
        };
        Ok(runs.into_iter().enumerate().map(|(rank, (run, _))| (run, look(rank))).collect())
    }

    /// Returns the axis of changes, if there is a change to show.
    fn change_axis(&self, runs: &[Ranked<'_>]) -> Option<Axis> {
        let changes: Vec<f64> =
            runs.iter().flat_map(|(run, _)| run.changes()).map(|(_, change)| change).collect();
        let tolerance = self.tolerance.filter(|_| !changes.is_empty());
        let scale = Scale::around(ScaleKind::Log, changes.into_iter().chain(tolerance))?;
        Some(Axis::new(scale, 5, "change of fit per iteration"))
    }

    fn draw_changes(&self, canvas: &mut Canvas, area: Area, runs: &[Ranked<'_>], change: &Axis) {
        let panel = Panel::draw(canvas, area, &iteration_axis(runs), change);
        for (run, look) in runs.iter().rev() {
            let changes = run.changes();
            let points: Vec<_> = changes.iter().map(|(x, y)| panel.point(*x, *y)).collect();
            draw_series(canvas, &points, *look);
        }
        if let Some(tolerance) = self.tolerance.filter(|t| ScaleKind::Log.shows(*t)) {
            let stroke = Stroke { width: 1.2, color: INK };
            let (left, y) = (panel.field.left, panel.y_at(tolerance));
            let right = left + panel.field.width;
            canvas.dashes((left, y), (right, y), stroke);
            // Named above the field, where no data can be covered.
            let above = area.top - 7.0;
            canvas.dashes((left, above - 4.0), (left + 26.0, above - 4.0), stroke);
            let text = format!("tolerance {}", scientific(tolerance, 2));
            canvas.text((left + 32.0, above), text, TextStyle::SMALL);
        }
    }
}

/// Returns the axis of all fits.
fn fit_axis(runs: &[Ranked<'_>]) -> Result<Axis, PlotError> {
    let fits = runs.iter().flat_map(|(run, _)| run.shown()).map(|point| point.fit);
    let scale = Scale::around(ScaleKind::Linear, fits)
        .ok_or_else(|| PlotError::empty(FIGURE, "the fits are too far apart for one axis"))?;
    Ok(Axis::new(scale, 6, "fit"))
}

/// Returns the axis of iterations, which begins at zero.
fn iteration_axis(runs: &[Ranked<'_>]) -> Axis {
    let points = runs.iter().flat_map(|(run, _)| run.shown());
    let scale = Scale::from_zero(points.map(|point| point.iteration as f64));
    Axis::whole(scale, 7, "iteration")
}

/// Draws fit against iterations in `area`, and against seconds in one of the same size beside it.
fn draw_fits(canvas: &mut Canvas, area: Area, runs: &[Ranked<'_>], fit: &Axis) {
    let times = runs.iter().flat_map(|(run, _)| run.shown()).map(|point| point.seconds);
    let slowest = times.fold(0.0, f64::max);
    let unit = TimeUnit::suiting(slowest);
    let seconds = Scale::from_zero([slowest / unit.seconds]);
    let seconds = Axis::new(seconds, 6, format!("time ({})", unit.symbol));

    let left = Panel::draw(canvas, area, &iteration_axis(runs), fit);
    let beside = Area { left: area.left + area.width + 12.0, width: 376.0, ..area };
    let unnamed = Axis { name: String::new(), ..fit.clone() };
    let right = Panel::draw(canvas, beside, &seconds, &unnamed);
    // The best run is drawn last, on top.
    for (run, look) in runs.iter().rev() {
        let by_iteration = run.shown().map(|p| left.point(p.iteration as f64, p.fit));
        draw_series(canvas, &by_iteration.collect::<Vec<_>>(), *look);
        let by_time = run.shown().map(|p| right.point(p.seconds / unit.seconds, p.fit));
        draw_series(canvas, &by_time.collect::<Vec<_>>(), *look);
    }
}

fn draw_no_change(canvas: &mut Canvas, area: Area) {
    let at = (area.left + area.width / 2.0, area.top + area.height / 2.0);
    let style = TextStyle::SMALL.color(SOFT_INK).anchor(Anchor::Middle);
    canvas.text(at, "the fit does not change between two measured iterations", style);
}

/// Lists the coloured runs with their final fits and why they stopped.
fn draw_list(canvas: &mut Canvas, area: Area, runs: &[Ranked<'_>]) {
    let line = SMALL + 3.0;
    let named = runs.len().min(PALETTE.len());
    let gap = ((area.height - 2.0 * line * named as f64 - line) / named as f64).clamp(1.0, 10.0);
    let mut y = area.top + SMALL;
    for (run, look) in &runs[..named] {
        let Some(last) = run.last() else { continue };
        let mark = (area.left + 5.0, y - 4.0);
        draw_marker(canvas, mark, *look, MARKER + 0.6);
        let fit = format!("fit {}", significant(last.fit, 6));
        let room = area.width - 24.0 - TextStyle::SMALL.bold().width(&fit);
        let bold = TextStyle::SMALL.bold();
        canvas.text((area.left + 16.0, y), bold.fit(&run.name, room), bold);
        canvas.text((area.left + area.width, y), fit, bold.anchor(Anchor::End));
        let plural = if last.iteration == 1 { "" } else { "s" };
        let counts = format!("{} iteration{plural}, {}", last.iteration, time(last.seconds));
        let soft = TextStyle::SMALL.color(SOFT_INK);
        let facts = if run.stop.is_empty() { counts } else { format!("{counts}: {}", run.stop) };
        canvas.text((area.left + 16.0, y + line), soft.fit(&facts, area.width - 16.0), soft);
        y += 2.0 * line + gap;
    }
    if runs.len() > named {
        let text = format!("and {} runs of lower fit, in grey", runs.len() - named);
        canvas.text((area.left + 16.0, y), text, TextStyle::SMALL.color(SOFT_INK));
    }
}
