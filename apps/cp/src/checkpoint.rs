//! The state of a run on disk, complete to the last bit.
//!
//! `checkpoint.npz` holds what the next iteration depends on (factors, scales, Grams, weights, fit,
//! counters), the history, the reports of finished restarts, and the options that must agree when
//! the run is resumed.  The models of finished restarts are `restart-K/model.npz`, K from 1,
//! written once.  Every file is replaced as a whole, the checkpoint last, so a run that is killed
//! at any moment can be resumed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use decompose_common::CommonError;
use decompose_common::history::IterationRecord;
use decompose_common::model::{self, CpModel, ModelFormat};
use decompose_common::npz::{self, NpzIn};
use decompose_common::stopping::StopReason;
use decompose_core::sweep::MttkrpSweep;
use decompose_formats::Value;
use ndarray::{Array1, Array2};

use crate::config::CpConfig;
use crate::error::CpError;
use crate::outcome::{GramReport, RestartReport};
use crate::solve::{Finished, Run};
use crate::state::State;

/// The layout of the arrays; a reader refuses others.
const VERSION: u64 = 1;
/// Numbers of a history line besides the MTTKRP of each mode.
const HISTORY_FIELDS: usize = 8;

fn file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.npz")
}

fn model_folder(folder: &Path, restart: usize) -> PathBuf {
    folder.join(format!("restart-{}", restart + 1))
}

/// Returns the options that decide the course of a run, by name.
fn identity<V: Value>(config: &CpConfig, extents: &[u64]) -> Vec<(&'static str, Vec<u64>)> {
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
) -> Result<(), CpError> {
    let folder = model_folder(folder, restart);
    fs::create_dir_all(&folder).map_err(|source| CommonError::io("create", &folder, source))?;
    model::write(model, &folder, ModelFormat::Npz)?;
    Ok(())
}

/// Saves the run between two iterations.
pub(crate) fn save<V: Value>(
    run: &Run<V>,
    config: &CpConfig,
    folder: &Path,
) -> Result<(), CpError> {
    let state = &run.state;
    let extents: Vec<u64> = state.factors.iter().map(|factor| factor.rows() as u64).collect();
    let measures = [state.fit, state.change, state.relative_error];
    let so_far = [run.norm_squared, run.seconds(), run.gram.worst_condition];
    let updates = [run.gram.singular as u64, run.gram.ill_conditioned as u64];
    npz::write(&file(folder), |out| {
        out.numbers("version", &[VERSION])?;
        for (name, numbers) in identity::<V>(config, &extents) {
            out.numbers(name, &numbers)?;
        }
        out.numbers("measures", &measures)?;
        out.numbers("iteration", &[state.iteration as u64])?;
        out.numbers("run", &so_far)?;
        out.numbers("updates", &updates)?;
        out.array("history", history_table(&run.history, extents.len()).view())?;
        out.array("finished", finished_table(&run.finished).view())?;
        out.array("weights", state.weights.view())?;
        for (mode, factor) in state.factors.iter().enumerate() {
            out.matrix(&format!("factor_{}", mode + 1), factor)?;
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
/// [`CpError::Common`] if there is no readable checkpoint in `folder`.
pub fn saved_history(folder: &Path) -> Result<Vec<IterationRecord>, CpError> {
    Ok(read_history(&mut open(folder)?)?)
}

/// Loads the run saved in `folder`, for the same tensor and options.
pub(crate) fn load<V: Value>(
    sweep: &dyn MttkrpSweep<V>,
    config: &CpConfig,
    folder: &Path,
) -> Result<Run<V>, CpError> {
    let mut archive = open(folder)?;
    for (name, wanted) in identity::<V>(config, sweep.extents()) {
        let saved: Vec<u64> = archive.numbers(name)?;
        if saved != wanted {
            return Err(mismatch(folder, format!("{name}: saved {saved:?}, now {wanted:?}")));
        }
    }
    let state = read_state(&mut archive, sweep.extents().len())?;
    check_shapes(&state, sweep.extents(), folder)?;
    let [norm_squared, earlier_seconds, worst_condition] = fixed::<f64, 3>(&mut archive, "run")?;
    // Another number of threads may add the squares in another order.
    if (sweep.norm_squared() / norm_squared - 1.0).abs() > 1e-9 {
        let (saved, now) = (norm_squared.sqrt(), sweep.norm_squared().sqrt());
        return Err(mismatch(folder, format!("norm of the tensor: saved {saved}, now {now}")));
    }
    let [singular, ill_conditioned] =
        fixed::<u64, 2>(&mut archive, "updates")?.map(|count| count as usize);
    Ok(Run {
        state,
        finished: read_finished(&mut archive, config, folder)?,
        history: read_history(&mut archive)?,
        gram: GramReport { singular, ill_conditioned, worst_condition },
        norm_squared,
        clock: Instant::now(),
        earlier_seconds,
        previous: Vec::new(),
    })
}

fn read_state<V: Value>(archive: &mut NpzIn, order: usize) -> Result<State<V>, CommonError> {
    let [fit, change, relative_error] = fixed::<f64, 3>(archive, "measures")?;
    let [iteration] = fixed::<u64, 1>(archive, "iteration")?;
    let mut state = State {
        factors: Vec::with_capacity(order),
        grams: Vec::with_capacity(order),
        scales: Vec::with_capacity(order),
        weights: archive.array("weights")?,
        iteration: iteration as usize,
        fit,
        change,
        relative_error,
    };
    for mode in 1..=order {
        state.factors.push(archive.matrix(&format!("factor_{mode}"))?);
        state.grams.push(archive.array(&format!("gram_{mode}"))?);
        state.scales.push(archive.array::<f64, ndarray::Ix1>(&format!("scale_{mode}"))?);
    }
    Ok(state)
}

fn open(folder: &Path) -> Result<NpzIn, CommonError> {
    let mut archive = NpzIn::open(&file(folder))?;
    let version: Vec<u64> = archive.numbers("version")?;
    if version != [VERSION] {
        let why = format!("checkpoint layout {version:?}; this program reads {VERSION}");
        return Err(CommonError::content(archive.path(), why));
    }
    Ok(archive)
}

fn mismatch(folder: &Path, why: String) -> CpError {
    CpError::Start { what: file(folder).display().to_string(), why }
}

fn fixed<A: Copy + ndarray_npy::ReadableElement, const N: usize>(
    archive: &mut NpzIn,
    name: &str,
) -> Result<[A; N], CommonError> {
    let numbers: Vec<A> = archive.numbers(name)?;
    let count = numbers.len();
    let why = format!("array `{name}` has {count} numbers for {N}");
    numbers.try_into().map_err(|_| CommonError::content(archive.path(), why))
}

fn check_shapes<V: Value>(state: &State<V>, extents: &[u64], folder: &Path) -> Result<(), CpError> {
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

fn history_table(history: &[IterationRecord], order: usize) -> Array2<f64> {
    let mut table = Array2::zeros((history.len(), HISTORY_FIELDS + order));
    for (mut line, record) in table.rows_mut().into_iter().zip(history) {
        let fields = [
            record.restart as f64,
            record.iteration as f64,
            record.fit,
            record.change,
            record.relative_error,
            record.seconds,
            record.total_seconds,
            record.dense_seconds,
        ];
        let all = fields.iter().chain(&record.mttkrp_seconds);
        line.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
    }
    table
}

fn read_history(archive: &mut NpzIn) -> Result<Vec<IterationRecord>, CommonError> {
    let table: Array2<f64> = archive.array("history")?;
    if table.ncols() < HISTORY_FIELDS {
        let why = format!("array `history` has {} columns", table.ncols());
        return Err(CommonError::content(archive.path(), why));
    }
    let record = |line: ndarray::ArrayView1<'_, f64>| IterationRecord {
        restart: line[0] as usize,
        iteration: line[1] as usize,
        fit: line[2],
        change: line[3],
        relative_error: line[4],
        seconds: line[5],
        total_seconds: line[6],
        dense_seconds: line[7],
        mttkrp_seconds: line.slice(ndarray::s![HISTORY_FIELDS..]).to_vec(),
    };
    Ok(table.rows().into_iter().map(record).collect())
}

fn finished_table<V>(finished: &[Finished<V>]) -> Array2<f64> {
    let mut table = Array2::zeros((finished.len(), 4));
    for (mut line, Finished { report, .. }) in table.rows_mut().into_iter().zip(finished) {
        let stop = StopReason::ALL.iter().position(|&stop| stop == report.stop).unwrap_or(0);
        let fields = [report.fit, report.relative_error, report.iterations as f64, stop as f64];
        line.assign(&Array1::from(fields.to_vec()));
    }
    table
}

fn read_finished<V: Value>(
    archive: &mut NpzIn,
    config: &CpConfig,
    folder: &Path,
) -> Result<Vec<Finished<V>>, CommonError> {
    let table: Array2<f64> = archive.array("finished")?;
    let restart = |(restart, line): (usize, ndarray::ArrayView1<'_, f64>)| {
        let fields: [f64; 4] = line.to_vec().try_into().unwrap_or_default();
        let [fit, relative_error, iterations, stop] = fields;
        let path = model_folder(folder, restart).join("model.npz");
        let report = RestartReport {
            seed: config.seed.wrapping_add(restart as u64),
            fit,
            relative_error,
            iterations: iterations as usize,
            stop: StopReason::ALL.get(stop as usize).copied().unwrap_or(StopReason::Converged),
        };
        Ok(Finished { model: model::read(&path)?, report })
    };
    table.rows().into_iter().enumerate().map(restart).collect()
}
