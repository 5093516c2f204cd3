//! The state of an iteration on disk, complete to the last bit.
//!
//! `checkpoint.npz` holds the cores in double precision, where the iteration stands, the history,
//! and the options that must agree when the run is resumed.

use std::path::Path;

use decompose_common::checkpoint::{self, Identity, fixed, mismatch};
use decompose_common::history::IterationRecord;
use decompose_common::npz::{self, NpzIn};
use decompose_common::standing::Clock;
use decompose_common::{CommonError, SolverError};
use decompose_formats::Value;

use crate::config::{Method, TtConfig};
use crate::kernels::Kernels;
use crate::state::{Run, State, layout};
use crate::train::Train;

/// The layout of the arrays; a reader refuses others.
const VERSION: u64 = 1;

/// Returns the options that decide the course of a run, by name.
fn identity<V: Value>(config: &TtConfig, extents: &[u64]) -> Result<Identity, SolverError> {
    let ranks = config.ranks.largest(extents)?.iter().map(|&rank| rank as u64).collect();
    Ok(vec![
        ("extents", extents.to_vec()),
        ("method", vec![config.method as u64]),
        ("ranks", ranks),
        ("eps, as bits", vec![config.ranks.bound().unwrap_or(0.0).to_bits()]),
        ("bytes of a number", vec![V::BYTES as u64]),
        ("seed", vec![config.seed]),
    ])
}

/// Returns how many kinds of contractions a sweep of `method` has.
pub(crate) fn contractions(method: Method, order: usize) -> usize {
    if method == Method::Dmrg { order - 1 } else { order }
}

/// Saves a run between two sweeps.
pub(crate) fn save<V: Value>(
    run: &Run,
    config: &TtConfig,
    folder: &Path,
) -> Result<(), SolverError> {
    let state = &run.state;
    let identity = identity::<V>(config, &state.train.extents())?;
    npz::write(&checkpoint::file(folder), |out| {
        checkpoint::write_common(out, VERSION, &identity, &run.history, &[])?;
        checkpoint::write_standing(out, &state.standing)?;
        let iterations = state.standing.iteration as u64;
        out.numbers("iteration", &[iterations, u64::from(state.ranks_changed)])?;
        out.numbers("run", &[run.norm_squared, run.clock.seconds()])?;
        let mut cores = state.train.cores().iter().zip(1..);
        cores.try_for_each(|(core, k)| out.array(&format!("core_{k}"), core.view()))
    })?;
    Ok(())
}

/// Reads the sweeps that a checkpoint's run has behind it, to continue its `history.csv`.
///
/// # Errors
///
/// [`SolverError::Common`] if there is no readable checkpoint in `folder`.
pub fn saved_history(
    folder: &Path,
    method: Method,
    order: usize,
) -> Result<Vec<IterationRecord>, SolverError> {
    let mut archive = checkpoint::open(folder, VERSION)?;
    Ok(checkpoint::read_history(&mut archive, &layout(contractions(method, order)))?)
}

/// Checks that the run saved in `folder` is of a tensor of these extents, in train order, and of these options.
///
/// # Errors
///
/// [`SolverError::Start`] with what differs; [`SolverError::Common`] if there is no readable checkpoint.
pub(crate) fn check<V: Value>(
    config: &TtConfig,
    extents: &[u64],
    folder: &Path,
) -> Result<NpzIn, SolverError> {
    checkpoint::open_same(folder, VERSION, &identity::<V>(config, extents)?)
}

/// Loads the run saved in `folder`, for the same tensor and options.
pub(crate) fn load<V: Value>(
    kernels: &Kernels<V>,
    config: &TtConfig,
    folder: &Path,
) -> Result<Run, SolverError> {
    let extents = kernels.extents();
    let mut archive = check::<V>(config, extents, folder)?;
    let [norm_squared, earlier_seconds] = fixed::<f64, 2>(&mut archive, "run")?;
    checkpoint::check_norm(folder, norm_squared, kernels.norm_squared())?;
    let [iterations, changed] = fixed::<u64, 2>(&mut archive, "iteration")?;
    let cores = (1..=extents.len()).map(|k| archive.array(&format!("core_{k}")));
    let train = Train::new(cores.collect::<Result<_, CommonError>>()?)?;
    if train.extents() != extents {
        let why = format!("cores of {:?} for extents {extents:?}", train.extents());
        return Err(mismatch(folder, why));
    }
    let layout = layout(contractions(config.method, extents.len()));
    let history = checkpoint::read_history(&mut archive, &layout)?;
    let standing = checkpoint::read_standing(&mut archive, iterations)?;
    let state = State { train, standing, ranks_changed: changed == 1 };
    let clock = Clock::after(earlier_seconds);
    Ok(Run { state, history, norm_squared, restart: 1, clock })
}
