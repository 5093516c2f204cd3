//! The iteration: sweeps over all modes until a limit is met.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::history::{Detail, IterationRecord, Observer};
use decompose_common::stopping::StopReason;
use decompose_core::runtime::with_spin_wait;
use decompose_core::sweep::MttkrpSweep;
use decompose_formats::Value;

use crate::checkpoint;
use crate::config::CpConfig;
use crate::fit::relative_error;
use crate::solve::Run;
use crate::update::update_mode;

/// Iterates the current start of `run` until it stops.
pub(crate) fn iterate<V: Value>(
    sweep: &mut dyn MttkrpSweep<V>,
    run: &mut Run<V>,
    config: &CpConfig,
    observer: &mut Observer<'_>,
) -> Result<StopReason, SolverError> {
    sweep.forget();
    loop {
        if let Some(stop) = config.stop.check(&run.state.standing, run.clock.elapsed(), V::EPSILON)
        {
            return Ok(stop);
        }
        let record = sweep_modes(sweep, run, config)?;
        run.history.push(record.clone());
        if let Some(rule) = &config.checkpoint {
            let save = |folder: &Path| checkpoint::save(run, config, folder);
            rule.attempt_after(record.iteration, save);
        }
        if observer(&record) == ControlFlow::Break(()) {
            return Ok(StopReason::Interrupted);
        }
    }
}

/// Runs one iteration: an update of each mode, and the fit.
fn sweep_modes<V: Value>(
    sweep: &mut dyn MttkrpSweep<V>,
    run: &mut Run<V>,
    config: &CpConfig,
) -> Result<IterationRecord, SolverError> {
    let start = Instant::now();
    let order = run.state.factors.len();
    let mut mttkrp_seconds = vec![0.0; order];
    let mut dense_seconds = 0.0;
    let mut inner = 0.0;
    for mode in config.modes(order) {
        let Run { state, previous, gram, .. } = run;
        let update = with_spin_wait(|| update_mode(sweep, state, mode, config, previous, gram))?;
        mttkrp_seconds[mode] = update.mttkrp_seconds;
        dense_seconds += update.dense_seconds;
        inner = update.inner;
    }
    let measuring = Instant::now();
    let error = relative_error(&*sweep, run, inner)?;
    run.state.standing.advance(error);
    dense_seconds += measuring.elapsed().as_secs_f64();
    let details = details(mttkrp_seconds, dense_seconds);
    Ok(run.state.standing.record(run.finished.len() + 1, start, &run.clock, details))
}

/// Names what an iteration records of its steps: seconds of each mode's MTTKRP, and of all the
/// dense algebra - normal equations, row updates, Grams, fit.
fn details(mttkrp: Vec<f64>, dense: f64) -> Vec<Detail> {
    vec![Detail::seconds_by_mode("mttkrp", mttkrp), Detail::seconds("dense", dense)]
}

/// Returns the names and shapes of the details in the history of a tensor of order `order`.
pub fn history_layout(order: usize) -> Vec<Detail> {
    details(vec![0.0; order], 0.0)
}
