//! The iterations of CP-ALS, watched.

use decompose_common::run_folder::RunFolder;
use decompose_core::sweep::{Engine, MttkrpSweep};
use decompose_cp::{CpConfig, CpOutcome, Start, history_layout, saved_history};
use decompose_formats::{Unit, Value};

use crate::cli::Done;
use crate::cp::settings::Settings;
use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::journal::{self, Course};
use crate::run::kernels::{self, KernelRuns};

/// The end of the iterations.
pub(crate) struct Solved<V: Value> {
    pub(crate) outcome: CpOutcome<V>,
    /// In the order of the plan's steps.
    pub(crate) kernels: Vec<KernelRuns>,
    pub(crate) done: Done,
}

/// Runs the solver on values divided by a unit, which the model gets back.
///
/// # Errors
///
/// As [`journal::watch`].
pub(crate) fn solve<V: Value>(
    settings: &Settings,
    engine: &mut Engine<V>,
    start: Start<V>,
    unit: Unit,
    folder: Option<&RunFolder>,
    console: &mut Console,
) -> Result<Solved<V>, Failure> {
    let earlier = settings.saved.as_deref().map(saved_history).transpose()?.unwrap_or_default();
    let config = CpConfig { checkpoint: settings.checkpoint(), ..settings.config.clone() };
    let layout = history_layout(engine.extents().len());
    let course = Course { layout, earlier, checkpoint: config.checkpoint.clone() };
    let outcome = journal::watch(settings, folder, course, console, |observer| {
        decompose_cp::solve(engine, start, &config, observer)
    })?;
    let outcome = outcome.in_unit(unit)?;
    let done = Done::after(&outcome.restarts);
    Ok(Solved { outcome, kernels: kernels::runs(engine.kernels(), engine.seconds()), done })
}
