//! The state of a run on disk, complete to the last bit.
//!
//! `checkpoint.npz` holds what the next iteration depends on (factors, core, fit, counters), the
//! history, the reports of finished restarts, and the options that must agree when the run is
//! resumed.  The best model of the finished restarts is `restart-K/model.npz`, K from 1, written
//! once.  Every file is replaced as a whole, the checkpoint last, so a run that is killed at any
//! moment can be resumed.

use std::path::Path;

use decompose_common::checkpoint::{self, Identity, fixed, mismatch};
use decompose_common::history::IterationRecord;
use decompose_common::model::{Model, TuckerModel};
use decompose_common::npz::{self, NpzIn};
use decompose_common::restarts;
use decompose_common::standing::Clock;
use decompose_common::{CommonError, SolverError};
use decompose_formats::Value;

use crate::config::{Method, TuckerConfig};
use crate::engine::Engine;
use crate::solve::{Run, history_layout};
use crate::state::State;

/// The layout of the arrays; a reader refuses others.
const VERSION: u64 = 1;

/// Returns the options that decide the course of a run, by name.
fn identity<V: Value>(config: &TuckerConfig, extents: &[u64]) -> Identity {
    let method = match config.method {
        Method::Hooi => 0,
        Method::Core => 1,
        Method::Nonnegative => 2,
    };
    vec![
        ("extents", extents.to_vec()),
        ("ranks", config.ranks.iter().map(|&rank| rank as u64).collect()),
        ("method", vec![method]),
        ("bytes of a number", vec![V::BYTES as u64]),
        ("seed", vec![config.seed]),
    ]
}

/// Saves the model of a finished restart.
pub(crate) fn save_finished<V: Value>(
    model: &TuckerModel<V>,
    restart: usize,
    folder: &Path,
) -> Result<(), SolverError> {
    checkpoint::save_restart(folder, restart, |at| model.write(at))
}

/// Saves the run between two iterations, and the best model of finished restarts if it is not there, as where
/// the run goes on in another folder.
pub(crate) fn save<V: Value>(
    run: &Run<V>,
    config: &TuckerConfig,
    folder: &Path,
) -> Result<(), SolverError> {
    let state = &run.state;
    let extents: Vec<u64> = state.factors.iter().map(|factor| factor.rows() as u64).collect();
    let identity = identity::<V>(config, &extents);
    if let Some(model) = &run.best {
        let best = restarts::best(&run.finished);
        if !checkpoint::restart_model(folder, best).exists() {
            save_finished(model, best, folder)?;
        }
    }
    npz::write(&checkpoint::file(folder), |out| {
        checkpoint::write_common(out, VERSION, &identity, &run.history, &run.finished)?;
        checkpoint::write_standing(out, &state.standing)?;
        out.numbers("iteration", &[state.standing.iteration as u64])?;
        out.numbers("run", &[run.norm_squared, run.clock.seconds()])?;
        out.array("core", state.core.view())?;
        let mut factors = state.factors.iter().zip(1..);
        factors.try_for_each(|(factor, mode)| out.matrix(&format!("factor_{mode}"), factor))
    })?;
    Ok(())
}

/// Reads the iterations that a checkpoint's run has behind it, to continue its `history.csv`.
///
/// # Errors
///
/// [`SolverError::Common`] if there is no readable checkpoint in `folder`.
pub fn saved_history(folder: &Path) -> Result<Vec<IterationRecord>, SolverError> {
    let mut archive = checkpoint::open(folder, VERSION)?;
    let extents: Vec<u64> = archive.numbers("extents")?;
    let [method] = fixed::<u64, 1>(&mut archive, "method")?;
    let method = if method == 2 { Method::Nonnegative } else { Method::Hooi };
    Ok(checkpoint::read_history(&mut archive, &history_layout(extents.len(), method))?)
}

/// Returns the ranks of the run saved in `folder`.
///
/// # Errors
///
/// [`SolverError::Common`] if there is no readable checkpoint in `folder`.
pub fn saved_ranks(folder: &Path) -> Result<Vec<usize>, SolverError> {
    let ranks: Vec<u64> = checkpoint::open(folder, VERSION)?.numbers("ranks")?;
    Ok(ranks.into_iter().map(|rank| rank as usize).collect())
}

/// Checks that the run saved in `folder` is of a tensor of these extents and of these options.
///
/// # Errors
///
/// [`SolverError::Start`] with what differs; [`SolverError::Common`] if there is no readable checkpoint.
pub(crate) fn check<V: Value>(
    config: &TuckerConfig,
    extents: &[u64],
    folder: &Path,
) -> Result<NpzIn, SolverError> {
    checkpoint::open_same(folder, VERSION, &identity::<V>(config, extents))
}

/// Loads the run saved in `folder`, for the same tensor and options.
pub(crate) fn load<V: Value>(
    engine: &Engine<V>,
    config: &TuckerConfig,
    folder: &Path,
) -> Result<Run<V>, SolverError> {
    let extents = engine.extents();
    let mut archive = check::<V>(config, extents, folder)?;
    let state = read_state(&mut archive, extents.len())?;
    for (mode, factor) in state.factors.iter().enumerate() {
        let wanted = (extents[mode], config.ranks[mode]);
        if (factor.rows() as u64, factor.cols()) != wanted || state.core.shape() != config.ranks {
            return Err(mismatch(folder, format!("the arrays of mode {} do not fit", mode + 1)));
        }
    }
    let [norm_squared, earlier_seconds] = fixed::<f64, 2>(&mut archive, "run")?;
    checkpoint::check_norm(folder, norm_squared, engine.norm_squared())?;
    let finished = checkpoint::read_finished(&mut archive, config.seed)?;
    let best = match finished.is_empty() {
        true => None,
        false => Some(read_best(folder, restarts::best(&finished))?),
    };
    let layout = history_layout(extents.len(), config.method);
    Ok(Run {
        state,
        finished,
        best,
        history: checkpoint::read_history(&mut archive, &layout)?,
        norm_squared,
        clock: Clock::after(earlier_seconds),
    })
}

fn read_state<V: Value>(archive: &mut NpzIn, order: usize) -> Result<State<V>, CommonError> {
    let [iterations] = fixed::<u64, 1>(archive, "iteration")?;
    let factors = (1..=order).map(|mode| archive.matrix(&format!("factor_{mode}")));
    let factors = factors.collect::<Result<_, _>>()?;
    let core = archive.array("core")?;
    Ok(State { factors, core, standing: checkpoint::read_standing(archive, iterations)? })
}

fn read_best<V: Value>(folder: &Path, restart: usize) -> Result<TuckerModel<V>, SolverError> {
    let path = checkpoint::restart_model(folder, restart);
    match Model::read(&path)? {
        Model::Tucker(model) => Ok(model),
        _ => Err(CommonError::content(&path, "not a Tucker model").into()),
    }
}
