//! One fit: round after round until the error on held-out entries settles.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::memory;
use decompose_common::restarts::seed_of;
use decompose_common::standing::Clock;
use decompose_common::stopping::StopReason;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Matrix};

use crate::algorithm::method;
use crate::checkpoint;
use crate::config::{CompleteConfig, Start};
use crate::data::{Data, check};
use crate::entries::Entries;
use crate::mean::root_mean_square;
use crate::memory::{fit_bytes, kept_bytes};
use crate::method::Progress;
use crate::network::Network;
use crate::outcome::{CompleteOutcome, Observer};
use crate::problem::objective;
use crate::rounds::Rounds;
use crate::run::{Run, copies, seeded};
use crate::scaling::EntryUnit;
use crate::start;
use crate::stop::Watch;

/// Runs all rounds on entries as they are given.
///
/// # Errors
///
/// As [`crate::solve`].
pub(crate) fn fit(
    data: Data<'_>,
    start: Start,
    config: &CompleteConfig,
    toolchain: &Toolchain,
    observer: &mut Observer<'_>,
) -> Result<CompleteOutcome, SolverError> {
    let begun = Instant::now();
    let mut run = begin(data, start, config, toolchain)?;
    let build_seconds = begun.elapsed().as_secs_f64();
    run.clock.restart();
    loop {
        let stop = iterate(&mut run, data, config, observer)?;
        let report = run.report(stop, config)?;
        let next = run.rounds.after(run.finished.iter().chain([&report]));
        if stop.is_cut_short() || next.start >= config.restarts {
            if let Some(rule) = &config.checkpoint {
                rule.attempt(|folder| checkpoint::save(&run, data, config, folder));
            }
            run.finish(report)?;
            return run.conclude(data, config, build_seconds);
        }
        run.finish(report)?;
        run.begin_round(next, data.train, config, toolchain)?;
    }
}

/// Begins a fit, or takes up one that was saved.
fn begin(
    data: Data<'_>,
    start: Start,
    config: &CompleteConfig,
    toolchain: &Toolchain,
) -> Result<Run, SolverError> {
    config.check(data.train.extents())?;
    check(data, config.loss)?;
    foresee(data, config)?;
    let mut archive = match &start {
        Start::Checkpoint(folder) => Some(checkpoint::open(data, config, folder)?),
        Start::Random | Start::Given(_) => None,
    };
    let course = archive.as_mut().map(|archive| checkpoint::read_course(archive, config.seed));
    let (history, finished) = course.transpose()?.unwrap_or_default();
    let unit = EntryUnit::of(config.loss, data.train.values(), config.biases);
    let measured = CompleteConfig { loss: unit.loss(config.loss), ..config.clone() };
    let train = unit.measured(data.train);
    let mut objective = objective(&train, &measured, toolchain)?;
    let rounds = Rounds::new(config, &mut objective);
    let round = rounds.after(finished.iter());
    objective.set_reg(rounds.ridge(round));
    let seed = seed_of(config.seed, round.start);
    let judge = |part: Option<&Coo<f64>>| {
        let make = |part| Entries::new(&unit.measured(part), objective.network(), toolchain);
        part.map(make).transpose()
    };
    let judges = [judge(data.val)?, judge(data.test)?];
    // What the search for kernels left is held now.
    let kept = kept_bytes(data.train.extents(), counts(data), config);
    memory::foresee(kept, || "the lists of the entries".into(), REMEDY)?;
    let method = method(&seeded(config, seed), &train, &objective, toolchain)?;
    drop(train);
    let blocks = match start {
        Start::Given(blocks) => {
            let mut blocks = fitting(blocks, objective.network())?;
            unit.measure(&mut blocks);
            blocks
        }
        Start::Random | Start::Checkpoint(_) => {
            start::random(&mut objective, seed, config.range())?
        }
    };
    let best = copies(&blocks)?;
    let size = root_mean_square(data.train.values());
    let (kept, watch, clock) = (Vec::new(), Watch::new(), Clock::after(0.0));
    let mut run = Run {
        objective,
        method,
        judges,
        blocks,
        best,
        kept,
        history,
        finished,
        watch,
        rounds,
        round,
        unit,
        size,
        clock,
    };
    if let Some(archive) = &mut archive {
        checkpoint::load(&mut run, archive)?;
    }
    Ok(run)
}

/// Runs epochs until this round ends.
fn iterate(
    run: &mut Run,
    data: Data<'_>,
    config: &CompleteConfig,
    observer: &mut Observer<'_>,
) -> Result<StopReason, SolverError> {
    let mut epoch = run.last().map_or(0, |record| record.epoch);
    let mut flow = ControlFlow::Continue(());
    if run.last().is_none() {
        flow = observer(run.judge(0, 0.0, config)?);
    }
    loop {
        let Some(record) = run.last() else { return Ok(StopReason::Interrupted) };
        if let Some(stop) = run.stop(record, config) {
            return Ok(stop);
        }
        if flow.is_break() {
            return Ok(StopReason::Interrupted);
        }
        let (before, value) = (Instant::now(), record.objective);
        let progress = run.method.epoch(&mut run.objective, &mut run.blocks, value)?;
        if progress == Progress::Stationary {
            return Ok(StopReason::Stationary);
        }
        epoch += 1;
        run.judge(epoch, before.elapsed().as_secs_f64(), config)?;
        if let Some(rule) = &config.checkpoint {
            let save = |folder: &Path| checkpoint::save(run, data, config, folder);
            rule.attempt_after(epoch, save);
        }
        flow = run.last().map_or(flow, &mut *observer);
    }
}

/// Returns `blocks` if they are of the network's shapes.
fn fitting(blocks: Vec<Matrix<f64>>, network: &Network) -> Result<Vec<Matrix<f64>>, SolverError> {
    let have: Vec<(usize, usize)> = blocks.iter().map(|b| (b.rows(), b.cols())).collect();
    let want: Vec<(usize, usize)> = network.blocks().iter().map(|b| b.matrix()).collect();
    if have == want {
        return Ok(blocks);
    }
    let why = format!("its blocks are {have:?}, wanted are {want:?}");
    Err(SolverError::Start { what: "the given model".into(), why })
}

/// Foresees the memory of a fit.
fn foresee(data: Data<'_>, config: &CompleteConfig) -> Result<(), SolverError> {
    let threads = rayon::current_num_threads();
    let bytes = fit_bytes(data.train.extents(), counts(data), config, threads);
    memory::search(data.train.order())?;
    memory::foresee(bytes, || "the fit".into(), REMEDY)
}

/// Training, validation and test entries.
fn counts(data: Data<'_>) -> [usize; 3] {
    let count = |part: Option<&Coo<f64>>| part.map_or(0, Coo::nnz);
    [data.train.nnz(), count(data.val), count(data.test)]
}

/// What to do about a fit that does not fit memory.
const REMEDY: &str = "lower the rank, or use lbfgs";
