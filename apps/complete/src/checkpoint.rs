//! The state of a run on disk, complete to the last bit.
//!
//! `checkpoint.npz` holds what the next epoch depends on - the blocks and what the method remembers
//! beside them - the best blocks of this start and of those before, the history, the reports of
//! finished starts, and the options that must agree when the run is resumed.  It is replaced as a
//! whole, so a run that is killed at any moment can be resumed.

use std::io;
use std::path::Path;

use decompose_common::checkpoint::{self, Identity, fixed};
use decompose_common::npz::{self, NpzIn, NpzOut};
use decompose_common::restarts::seed_of;
use decompose_common::standing::Clock;
use decompose_common::stopping::StopReason;
use decompose_common::{CommonError, SolverError};
use decompose_formats::{Coo, Matrix};
use ndarray::{Array2, ArrayView1};

use crate::config::{Biases, CompleteConfig, ModelKind, Reg};
use crate::data::Data;
use crate::loss::{Loss, Range};
use crate::mean::root_mean_square;
use crate::metrics::Scores;
use crate::outcome::{EpochRecord, StartReport};
use crate::run::Run;
use crate::stop::Watch;

/// The layout of the arrays; a reader refuses others.
const VERSION: u64 = 4;
/// Numbers of a record besides its scores.
const FIELDS: usize = 6;
/// Numbers of the scores of a part.
const SCORES: usize = 7;

/// Returns the options that decide the course of a run, by name.
fn identity(config: &CompleteConfig, data: Data<'_>) -> Identity {
    let count = |part: Option<&Coo<f64>>| part.map_or(0, |part| part.nnz() as u64);
    let (model, ranks) = match &config.model {
        ModelKind::Cp { rank } => (0, vec![*rank]),
        ModelKind::Tucker { ranks } => (1, ranks.clone()),
        ModelKind::Train { ranks } => (2, ranks.clone()),
    };
    let loss = match config.loss {
        Loss::Gaussian => 0,
        Loss::Poisson => 1,
        Loss::Bernoulli => 2,
        Loss::Huber(_) => 3,
        Loss::Gamma => 4,
    };
    let nonneg = u64::from(config.range() == Range::NonNegative);
    vec![
        ("extents", data.train.extents().to_vec()),
        ("entries", vec![data.train.nnz() as u64, count(data.val), count(data.test)]),
        ("model", vec![model]),
        ("ranks", ranks.into_iter().map(|rank| rank as u64).collect()),
        ("algorithm", vec![config.algorithm as u64]),
        ("loss", vec![loss]),
        ("nonneg", vec![nonneg]),
        ("biases", vec![u64::from(config.biases == Biases::Modes)]),
        ("passes and block", vec![config.inner as u64, config.block as u64]),
        ("seed", vec![config.seed]),
    ]
}

/// Returns the options that are fractions: the ridges, the step and the bend of the loss.
fn fractions(config: &CompleteConfig) -> Vec<f64> {
    let bend = if let Loss::Huber(bend) = config.loss { bend } else { 0.0 };
    let reg = match &config.reg {
        Reg::Given(numbers) => numbers.as_slice(),
        Reg::Chosen => &[],
    };
    reg.iter().copied().chain([config.step.unwrap_or(0.0), bend]).collect()
}

/// Returns the root mean squares of the entries, by part; they differ where the data do.
fn sizes(data: Data<'_>) -> [f64; 3] {
    let size = |part: &Coo<f64>| root_mean_square(part.values());
    [Some(data.train), data.val, data.test].map(|part| part.map_or(0.0, size))
}

/// Writes what must agree when a run is resumed: the options that decide its course, and what the data
/// are known by.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write_identity(
    out: &mut NpzOut<'_>,
    data: Data<'_>,
    config: &CompleteConfig,
) -> io::Result<()> {
    let identity = identity(config, data);
    identity.iter().try_for_each(|(name, numbers)| out.numbers(name, numbers))?;
    out.numbers("fractions", &fractions(config))?;
    out.numbers("sizes", &sizes(data))
}

/// Checks that `archive`, which [`write_identity`] wrote to, is of a run on the same data with the same
/// options.
///
/// # Errors
///
/// [`SolverError::Start`] with the first that differs, [`SolverError::Common`] if an array is
/// missing.
pub fn check_identity(
    archive: &mut NpzIn,
    data: Data<'_>,
    config: &CompleteConfig,
) -> Result<(), SolverError> {
    let mut why = checkpoint::difference(archive, &identity(config, data))?;
    let (saved, now): (Vec<f64>, _) = (archive.numbers("fractions")?, fractions(config));
    if why.is_none() && saved != now {
        why = Some(format!("reg, step, huber-delta: saved {saved:?}, now {now:?}"));
    }
    let saved = fixed::<f64, 3>(archive, "sizes")?;
    let differing = saved.into_iter().zip(sizes(data)).find(|(saved, now)| saved != now);
    let why = why.or_else(|| {
        let (saved, now) = differing?;
        Some(format!("root mean square of the entries: saved {saved}, now {now}"))
    });
    match why {
        Some(why) => {
            let what = archive.path().display().to_string();
            Err(SolverError::Start { what, why })
        }
        None => Ok(()),
    }
}

/// Saves the run between two epochs.
pub(crate) fn save(
    run: &Run,
    data: Data<'_>,
    config: &CompleteConfig,
    folder: &Path,
) -> Result<(), SolverError> {
    npz::write(&checkpoint::file(folder), |out| {
        out.numbers("version", &[VERSION])?;
        write_identity(out, data, config)?;
        out.array("history", table(&run.history).view())?;
        out.array("finished", finished_table(run).view())?;
        out.array("ridges", ridges(run).view())?;
        out.numbers("watch", &run.watch.to_numbers())?;
        out.numbers("seconds", &[run.clock.seconds()])?;
        write_blocks(out, "block", &run.blocks)?;
        write_blocks(out, "best", &run.best)?;
        write_blocks(out, "kept", &run.kept)?;
        run.method.save(out)
    })?;
    Ok(())
}

/// Reads the epochs that a checkpoint's run has behind it, to continue its `history.csv`.
///
/// # Errors
///
/// [`SolverError::Common`] if there is no readable checkpoint in `folder`.
pub fn saved_history(folder: &Path) -> Result<Vec<EpochRecord>, SolverError> {
    read_history(&mut checkpoint::open(folder, VERSION)?)
}

/// Opens the checkpoint in `folder` if it is of a run on the same data with the same options.
pub(crate) fn open(
    data: Data<'_>,
    config: &CompleteConfig,
    folder: &Path,
) -> Result<NpzIn, SolverError> {
    let mut archive = checkpoint::open(folder, VERSION)?;
    check_identity(&mut archive, data, config)?;
    Ok(archive)
}

/// Takes the state in `archive` into `run`, whose method belongs to the start that was saved.
pub(crate) fn load(run: &mut Run, archive: &mut NpzIn) -> Result<(), SolverError> {
    let count = run.blocks.len();
    let shape = |block: &Matrix<f64>| (block.rows(), block.cols());
    for (name, kept) in [("block", &mut run.blocks), ("best", &mut run.best)] {
        let read = read_blocks(archive, name, count)?;
        if !read.iter().map(shape).eq(kept.iter().map(shape)) {
            let why = format!("the arrays `{name}_...` do not fit");
            return Err(CommonError::content(archive.path(), why).into());
        }
        *kept = read;
    }
    if !run.finished.is_empty() {
        run.kept = read_blocks(archive, "kept", count)?;
    }
    run.watch = Watch::from_numbers(fixed(archive, "watch")?);
    let [earlier] = fixed(archive, "seconds")?;
    run.clock = Clock::after(earlier);
    run.method.load(archive)
}

/// Reads the history and the reports of finished rounds.
pub(crate) fn read_course(
    archive: &mut NpzIn,
    seed: u64,
) -> Result<(Vec<EpochRecord>, Vec<StartReport>), SolverError> {
    let history = read_history(archive)?;
    let table: Array2<u64> = archive.array("finished")?;
    let ridges: Array2<f64> = archive.array("ridges")?;
    let report = |(round, line): (usize, ArrayView1<'_, u64>)| {
        let [start, best, epochs, stop] = line.to_vec().try_into().ok()?;
        let start = start as usize;
        Some(StartReport {
            start,
            seed: seed_of(seed, start),
            reg: (round < ridges.nrows()).then(|| ridges.row(round).to_vec())?,
            best: history.get(best as usize)?.clone(),
            epochs: epochs as usize,
            stop: StopReason::of_number(stop)?,
        })
    };
    let finished: Option<Vec<StartReport>> =
        table.rows().into_iter().enumerate().map(report).collect();
    let broken = || CommonError::content(archive.path(), "array `finished` does not fit `history`");
    let finished = finished.ok_or_else(broken)?;
    Ok((history, finished))
}

/// A line for each finished round: its start, where its best epoch stands in the history, its epochs,
/// and why it stopped.
fn finished_table(run: &Run) -> Array2<u64> {
    let mut table = Array2::zeros((run.finished.len(), 4));
    for (mut line, report) in table.rows_mut().into_iter().zip(&run.finished) {
        let place = |record: &EpochRecord| {
            (record.restart, record.epoch) == (report.best.restart, report.best.epoch)
        };
        let best = run.history.iter().position(place).unwrap_or(0);
        let stop = report.stop.number();
        let fields = [report.start as u64, best as u64, report.epochs as u64, stop];
        line.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    }
    table
}

/// The ridge of each finished round, by block.
fn ridges(run: &Run) -> Array2<f64> {
    let all = run.finished.iter().map(|report| &report.reg);
    let blocks = all.clone().next().map_or(0, Vec::len);
    let mut table = Array2::zeros((run.finished.len(), blocks));
    for (mut line, reg) in table.rows_mut().into_iter().zip(all) {
        line.iter_mut().zip(reg).for_each(|(to, from)| *to = *from);
    }
    table
}

/// A line for each epoch; what is not known is no number, and a part without entries is none.
fn table(history: &[EpochRecord]) -> Array2<f64> {
    let mut table = Array2::zeros((history.len(), FIELDS + 3 * SCORES));
    for (mut line, record) in table.rows_mut().into_iter().zip(history) {
        let fields = [
            record.restart as f64,
            record.epoch as f64,
            record.objective,
            record.seconds,
            record.judge_seconds,
            record.total_seconds,
        ];
        let parts = [Some(record.train), record.val, record.test].map(|part| {
            part.map_or([0.0; SCORES], |s| {
                let optional = [s.log_loss, s.auc, s.deviance, s.huber];
                let [log_loss, auc, deviance, huber] = optional.map(|n| n.unwrap_or(f64::NAN));
                [s.entries as f64, s.rmse, s.mae, log_loss, auc, deviance, huber]
            })
        });
        let numbers = fields.iter().chain(parts.as_flattened());
        line.iter_mut().zip(numbers).for_each(|(to, from)| *to = *from);
    }
    table
}

fn read_history(archive: &mut NpzIn) -> Result<Vec<EpochRecord>, SolverError> {
    let table: Array2<f64> = archive.array("history")?;
    if table.ncols() != FIELDS + 3 * SCORES {
        let why = format!("array `history` has {} columns", table.ncols());
        return Err(CommonError::content(archive.path(), why).into());
    }
    let scores = |line: &ArrayView1<'_, f64>, part: usize| {
        let at = |n: usize| line[FIELDS + part * SCORES + n];
        let optional = |n: usize| Some(at(n)).filter(|number| !number.is_nan());
        Scores {
            entries: at(0) as usize,
            rmse: at(1),
            mae: at(2),
            log_loss: optional(3),
            auc: optional(4),
            deviance: optional(5),
            huber: optional(6),
        }
    };
    let record = |line: ArrayView1<'_, f64>| {
        let held_out = |part| Some(scores(&line, part)).filter(|scores| scores.entries > 0);
        EpochRecord {
            restart: line[0] as usize,
            epoch: line[1] as usize,
            objective: line[2],
            train: scores(&line, 0),
            val: held_out(1),
            test: held_out(2),
            seconds: line[3],
            judge_seconds: line[4],
            total_seconds: line[5],
        }
    };
    Ok(table.rows().into_iter().map(record).collect())
}

/// Writes blocks as `NAME_1`, `NAME_2`, ...
///
/// # Errors
///
/// If the file cannot be written.
pub(crate) fn write_blocks(
    out: &mut NpzOut<'_>,
    name: &str,
    blocks: &[Matrix<f64>],
) -> io::Result<()> {
    let mut numbered = blocks.iter().zip(1..);
    numbered.try_for_each(|(block, at)| out.matrix(&format!("{name}_{at}"), block))
}

/// Reads what [`write_blocks`] wrote.
///
/// # Errors
///
/// If an array is missing or of another type.
pub(crate) fn read_blocks(
    archive: &mut NpzIn,
    name: &str,
    count: usize,
) -> Result<Vec<Matrix<f64>>, SolverError> {
    let blocks = (1..=count).map(|at| archive.matrix(&format!("{name}_{at}")));
    Ok(blocks.collect::<Result<_, _>>()?)
}
