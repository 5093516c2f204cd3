//! The iterations, watched.

use std::path::PathBuf;

use decompose_common::output::OutputFolder;
use decompose_common::stopping::StopReason;
use decompose_formats::{Matrix, Value};
use decompose_tucker::{
    Engine, Start, TuckerConfig, TuckerOutcome, history_layout, saved_history, solve_above,
};

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::journal::{self, Course};
use crate::tucker::settings::Settings;

/// The end of the iterations.
pub(crate) struct Solved<V: Value> {
    pub(crate) outcome: TuckerOutcome<V>,
    /// The files of the kernels, by step of the plan; `None` where interpreted.
    pub(crate) sources: Vec<Option<PathBuf>>,
    /// Seconds of every run of each kernel, in the same order.
    pub(crate) kernel_seconds: Vec<Vec<f64>>,
    /// Seconds of this process in the solver.
    pub(crate) seconds: f64,
    pub(crate) done: Done,
}

/// The engine, the start, the factors of a HOSVD to end above, and the ranks.
type Parts<V> = (Engine<V>, Start<V>, Option<Vec<Matrix<V>>>, Vec<usize>);

/// Runs the solver.
///
/// # Errors
///
/// As [`journal::watch`].
pub(crate) fn solve<V: Value>(
    settings: &Settings,
    (mut engine, start, floor, ranks): Parts<V>,
    folder: Option<&OutputFolder>,
    console: &mut Console,
) -> Result<Solved<V>, Failure> {
    let method = settings.solver();
    let config = TuckerConfig {
        method,
        seed: settings.seed,
        stop: settings.stop,
        restarts: settings.restarts,
        checkpoint: settings.checkpoint(),
        ..TuckerConfig::new(ranks)
    };
    let earlier = settings.resume.as_deref().map(saved_history).transpose()?.unwrap_or_default();
    let course = Course { layout: history_layout(engine.extents().len(), method), earlier };
    let (outcome, seconds) =
        journal::watch(settings, folder, course, console, |observer| match floor {
            Some(hosvd) => solve_above(&mut engine, (start, hosvd), &config, observer),
            None => decompose_tucker::solve(&mut engine, start, &config, observer),
        })?;
    let interrupted = outcome.restarts.iter().any(|start| start.stop == StopReason::Interrupted);
    let done = if interrupted { Done::Interrupted } else { Done::Complete };
    let sources =
        engine.kernels().map(|kernel| kernel.origin().map(|o| o.source.clone())).collect();
    let kernel_seconds = engine.seconds().map(<[f64]>::to_vec).collect();
    Ok(Solved { outcome, sources, kernel_seconds, seconds, done })
}
