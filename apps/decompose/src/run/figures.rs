//! The figures of every solver: convergence and timing.

use std::path::{Path, PathBuf};

use decompose_common::history::{Detail, IterationRecord, Measure};
use decompose_common::restarts::RestartReport;
use decompose_core::plot::{
    self, Convergence, ConvergencePoint, ConvergenceRun, Timing, TimingComponent, TimingPhase,
    TimingRun,
};

use crate::failure::Failure;
use crate::run::Phases;

/// Draws how the starts went, as figures of convergence and timing, into `folder`; returns their files.
/// `what` names a single start: `rank 10`.
///
/// # Errors
///
/// If a figure has nothing to show or cannot be written.
pub(crate) fn course(
    (restarts, tolerance): (&[RestartReport], f64),
    history: &[IterationRecord],
    (title, what): (&str, &str),
    phases: &Phases,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let figure = convergence(restarts, history, (title, what), tolerance);
    let (one, other) = rayon::join(
        || plot::save(&figure, folder, "convergence"),
        || plot::save(&timing(history, phases, title), folder, "timing"),
    );
    Ok([one?, other?].concat())
}

/// Returns the figure of fits by iteration and time.
fn convergence(
    restarts: &[RestartReport],
    history: &[IterationRecord],
    (title, what): (&str, &str),
    tolerance: f64,
) -> Convergence {
    let runs = restarts.iter().zip(1..).map(|(start, number)| {
        let records = history.iter().filter(|record| record.restart == number);
        let name = match restarts.len() {
            1 => format!("{what}, seed {}", start.seed),
            _ => format!("start {number}, seed {}", start.seed),
        };
        ConvergenceRun { name, points: points(records), stop: start.stop.to_string() }
    });
    let tolerance = Some(tolerance).filter(|tol| *tol > 0.0);
    Convergence { title: title.to_owned(), tolerance, runs: runs.collect() }
}

/// Returns the fits of one start, timed from its own beginning.
fn points<'a>(records: impl Iterator<Item = &'a IterationRecord>) -> Vec<ConvergencePoint> {
    let mut began = None;
    let point = |record: &IterationRecord| {
        let began = *began.get_or_insert(record.total_seconds - record.seconds);
        ConvergencePoint {
            iteration: record.iteration as u64,
            seconds: record.total_seconds - began,
            fit: record.fit,
        }
    };
    records.map(point).collect()
}

/// Returns the figure of seconds by phase, and by step and iteration.
pub(crate) fn timing(history: &[IterationRecord], phases: &Phases, title: &str) -> Timing {
    let phases = phases.0.iter().map(|&(name, seconds)| TimingPhase { name: name.into(), seconds });
    let layout = history.first().map_or(&[][..], |record| &record.details);
    let steps = layout.iter().filter(|detail| !matches!(detail.value, Measure::Number(_)));
    let component = |detail: &Detail, at: usize| TimingComponent {
        name: match detail.value {
            Measure::SecondsByMode(_) => step_name(detail.name, Some(at + 1)),
            _ => step_name(detail.name, None),
        },
        seconds: history.iter().map(|record| record.detail(detail.name)[at]).collect(),
    };
    let components = steps
        .flat_map(|detail| (0..detail.numbers().len()).map(move |at| component(detail, at)))
        .collect();
    let run = TimingRun { name: String::new(), phases: phases.collect(), components };
    Timing { title: title.to_owned(), runs: vec![run] }
}

/// Returns the name for people of a step of the history, and of its mode, counted from 1.
pub(crate) fn step_name(step: &str, mode: Option<usize>) -> String {
    let known = [
        ("mttkrp", "MTTKRP"),
        ("ttmc", "TTMc"),
        ("tttp", "TTTP"),
        ("tttc", "TTTc"),
        ("dense", "dense algebra"),
        ("subspace", "leading subspace"),
    ];
    let known = known.iter().find(|(name, _)| *name == step).map(|(_, known)| (*known).to_owned());
    let name = known.unwrap_or_else(|| step.replace('_', " "));
    mode.map(|mode| format!("{name}, mode {mode}")).unwrap_or(name)
}
