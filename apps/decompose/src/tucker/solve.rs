//! The iterations, watched.

use decompose_common::run_folder::RunFolder;
use decompose_formats::Value;
use decompose_tucker::{Engine, TuckerOutcome, history_layout, saved_history, solve_above};

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::journal::{self, Course};
use crate::run::kernels::{self, KernelRuns};
use crate::tucker::prepare::{Beginning, Facts};
use crate::tucker::settings::Settings;

/// The end of the iterations.
pub(crate) struct Solved<V: Value> {
    pub(crate) outcome: TuckerOutcome<V>,
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
    from: Beginning<V>,
    facts: &Facts,
    folder: Option<&RunFolder>,
    console: &mut Console,
) -> Result<Solved<V>, Failure> {
    let config = settings.config(facts.ranks.clone());
    let method = config.method;
    let earlier = settings.saved.as_deref().map(saved_history).transpose()?.unwrap_or_default();
    let layout = history_layout(engine.extents().len(), method);
    let course = Course { layout, earlier, checkpoint: config.checkpoint.clone() };
    let Beginning { start, floor } = from;
    let outcome = journal::watch(settings, folder, course, console, |observer| match floor {
        Some(hosvd) => solve_above(engine, start, hosvd, &config, observer),
        None => decompose_tucker::solve(engine, start, &config, observer),
    })?;
    let outcome = outcome.in_unit(facts.unit)?;
    let done = Done::after(&outcome.restarts);
    Ok(Solved { outcome, kernels: kernels::runs(engine.kernels(), engine.seconds()), done })
}
