//! The state of a run on disk, complete to the last bit.
//!
//! `checkpoint.npz` holds what the next iteration depends on (factors, scales, Grams, weights, fit,
//! counters), the history, the reports of finished restarts, and the options that must agree when
//! the run is resumed.  The models of finished restarts are `restart-K/model.npz`, K from 1,
//! written once.  Every file is replaced as a whole, the checkpoint last, so a run that is killed
//! at any moment can be resumed.

use std::io;
use std::path::Path;

use decompose_common::checkpoint::{self, Identity, fixed, mismatch};
use decompose_common::history::IterationRecord;
use decompose_common::model::{self, CpModel, ModelFormat};
use decompose_common::npz::{self, NpzIn};
use decompose_common::restarts::RestartReport;
use decompose_common::standing::Clock;
use decompose_common::{CommonError, SolverError};
use decompose_core::sweep::MttkrpSweep;
use decompose_formats::{Matrix, Panels, Value};

use crate::als::history_layout;
use crate::config::CpConfig;
use crate::outcome::GramReport;
use crate::solve::{Finished, Run};
use crate::state::State;

/// The layout of the arrays; a reader refuses others.
const VERSION: u64 = 2;

/// Returns the options that decide the course of a run, by name.
fn identity<V: Value>(config: &CpConfig, extents: &[u64]) -> Identity {
    let order = extents.len();
    let nonneg = (0..order).map(|mode| u64::from(config.nonneg.contains(mode)));
    vec![
        ("extents", extents.to_vec()),
        ("rank", vec![config.rank as u64]),
        ("bytes of a number", vec![V::BYTES as u64]),
        ("seed", vec![config.seed]),
        ("reg, as bits", vec![config.reg.to_bits()]),
        ("nonneg", nonneg.collect()),
        ("dimorder", config.modes(order).iter().map(|&mode| mode as u64 + 1).collect()),
    ]
}

/// Saves the model of a finished restart.
pub(crate) fn save_finished<V: Value>(
    model: &CpModel<V>,
    restart: usize,
    folder: &Path,
) -> Result<(), SolverError> {
    checkpoint::save_restart(folder, restart, |at| model::write(model, at, ModelFormat::Npz))
}

/// Saves the run between two iterations, and models of finished restarts that are not there, as where the run
/// goes on in another folder.
pub(crate) fn save<V: Value>(
    run: &Run<V>,
    config: &CpConfig,
    folder: &Path,
) -> Result<(), SolverError> {
    let state = &run.state;
    let extents: Vec<u64> = state.factors.iter().map(|factor| factor.rows() as u64).collect();
    let so_far = [run.norm_squared, run.clock.seconds(), run.gram.worst_condition];
    let updates = [run.gram.singular as u64, run.gram.ill_conditioned as u64];
    let finished: Vec<RestartReport> = run.finished.iter().map(|f| f.report).collect();
    let identity = identity::<V>(config, &extents);
    for (restart, ended) in run.finished.iter().enumerate() {
        if !checkpoint::restart_model(folder, restart).exists() {
            save_finished(&ended.model, restart, folder)?;
        }
    }
    npz::write(&checkpoint::file(folder), |out| {
        checkpoint::write_common(out, VERSION, &identity, &run.history, &finished)?;
        checkpoint::write_standing(out, &state.standing)?;
        out.numbers("iteration", &[state.standing.iteration as u64])?;
        out.numbers("run", &so_far)?;
        out.numbers("updates", &updates)?;
        out.array("weights", state.weights.view())?;
        for (mode, factor) in state.factors.iter().enumerate() {
            let name = format!("factor_{}", mode + 1);
            match factor.parts() {
                [whole] => out.matrix(&name, whole)?,
                _ => out.matrix(&name, &factor.to_matrix().map_err(io::Error::other)?)?,
            }
            out.array(&format!("gram_{}", mode + 1), state.grams[mode].view())?;
            out.array(&format!("scale_{}", mode + 1), state.scales[mode].view())?;
        }
        Ok(())
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
    Ok(checkpoint::read_history(&mut archive, &history_layout(extents.len()))?)
}

/// Checks that the run saved in `folder` is of a tensor of these extents and of these options.
///
/// # Errors
///
/// [`SolverError::Start`] with what differs; [`SolverError::Common`] if there is no readable checkpoint.
pub(crate) fn check<V: Value>(
    config: &CpConfig,
    extents: &[u64],
    folder: &Path,
) -> Result<NpzIn, SolverError> {
    checkpoint::open_same(folder, VERSION, &identity::<V>(config, extents))
}

/// Loads the run saved in `folder`, for the same tensor and options.
pub(crate) fn load<V: Value>(
    sweep: &dyn MttkrpSweep<V>,
    config: &CpConfig,
    folder: &Path,
) -> Result<Run<V>, SolverError> {
    let extents = sweep.extents();
    let mut archive = check::<V>(config, extents, folder)?;
    let state = read_state(&mut archive, extents.len(), &sweep.panels(config.rank))?;
    check_shapes(&state, extents, folder)?;
    let [norm_squared, earlier_seconds, worst_condition] = fixed::<f64, 3>(&mut archive, "run")?;
    checkpoint::check_norm(folder, norm_squared, sweep.norm_squared())?;
    let [singular, ill_conditioned] =
        fixed::<u64, 2>(&mut archive, "updates")?.map(|count| count as usize);
    let reports = checkpoint::read_finished(&mut archive, config.seed)?;
    let finished = reports.into_iter().enumerate().map(|(restart, report)| {
        let model = model::read(&checkpoint::restart_model(folder, restart))?;
        Ok(Finished { model, report })
    });
    Ok(Run {
        state,
        finished: finished.collect::<Result<_, CommonError>>()?,
        history: checkpoint::read_history(&mut archive, &history_layout(extents.len()))?,
        gram: GramReport { singular, ill_conditioned, worst_condition },
        norm_squared,
        clock: Clock::after(earlier_seconds),
        previous: Vec::new(),
        entries: None,
    })
}

fn read_state<V: Value>(
    archive: &mut NpzIn,
    order: usize,
    panels: &[usize],
) -> Result<State<V>, CommonError> {
    let [iterations] = fixed::<u64, 1>(archive, "iteration")?;
    let mut state = State {
        factors: Vec::with_capacity(order),
        grams: Vec::with_capacity(order),
        scales: Vec::with_capacity(order),
        weights: archive.array("weights")?,
        standing: checkpoint::read_standing(archive, iterations)?,
    };
    for mode in 1..=order {
        let factor: Matrix<V> = archive.matrix(&format!("factor_{mode}"))?;
        // One of another rank is refused later.
        let fits = factor.cols() == panels.iter().sum();
        state.factors.push(if fits { Panels::split(factor, panels)? } else { factor.into() });
        state.grams.push(archive.array(&format!("gram_{mode}"))?);
        state.scales.push(archive.array::<f64, ndarray::Ix1>(&format!("scale_{mode}"))?);
    }
    Ok(state)
}

fn check_shapes<V: Value>(
    state: &State<V>,
    extents: &[u64],
    folder: &Path,
) -> Result<(), SolverError> {
    let rank = state.weights.len();
    let fits = |mode: usize| {
        let factor = &state.factors[mode];
        (factor.rows() as u64, factor.cols()) == (extents[mode], rank)
            && state.grams[mode].dim() == (rank, rank)
            && state.scales[mode].len() == rank
    };
    match (0..extents.len()).find(|&mode| !fits(mode)) {
        Some(mode) => Err(mismatch(folder, format!("the arrays of mode {} do not fit", mode + 1))),
        None => Ok(()),
    }
}
