//! The decomposition: a start, sweeps until a limit is met, the verification.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::history::{Detail, IterationRecord, Observer};
use decompose_common::restarts::{RestartReport, best, seed_of};
use decompose_common::stopping::StopReason;
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::TreeLayout;
use decompose_formats::{Coo, Csf, PatternCounts, Value};

use crate::bonds;
use crate::checkpoint;
use crate::config::{Method, Start, TtConfig};
use crate::kernels::{BondSizes, Kernels};
use crate::outcome::{FoundTrain, TtOutcome};
use crate::state::{Run, State};
use crate::svd::{tree_order, tt_svd};
use crate::train::{Cut, Train};
use crate::{als, dmrg};

/// The ranks from which `dmrg` starts: small, as they grow by what the tensor asks for.
const DMRG_START: usize = 4;

/// Decomposes the tensor of `kernels` by `als` or `dmrg`.
///
/// `observer` sees every sweep as it ends.  Time a sweep: `2 N - 2` TTTcs and `O(sum I_k r^3)` for
/// `als`; for `dmrg` `2 N - 3` contractions and singular value decompositions of
/// `r I_k x I_(k+1) r`.
///
/// # Errors
///
/// [`SolverError`]: options that make no sense, a start that does not fit, a tensor of zeros,
/// overflow, no memory, a failed kernel, a checkpoint that cannot be read.
pub fn solve<V: Value>(
    kernels: &mut Kernels<V>,
    start: Start,
    config: &TtConfig,
    observer: &mut Observer<'_>,
) -> Result<TtOutcome, SolverError> {
    config.check(kernels.extents())?;
    if kernels.norm_squared() <= 0.0 {
        return Err(SolverError::ZeroTensor);
    }
    let adapting = config.method == Method::Dmrg;
    kernels.set_sizes(if adapting { BondSizes::Coarse } else { BondSizes::Exact });
    let mut run = begin(kernels, start, config)?;
    let mut restarts = Vec::<RestartReport>::new();
    let mut kept: Option<Train> = None;
    loop {
        let stop = iterate(kernels, &mut run, config, observer)?;
        if let Some(rule) = &config.checkpoint {
            rule.attempt(|folder| checkpoint::save::<V>(&run, config, folder));
        }
        restarts.push(run.state.standing.report(seed_of(config.seed, restarts.len()), stop));
        let next = random_start(kernels.extents(), config, seed_of(config.seed, restarts.len()))?;
        let ended = std::mem::replace(&mut run.state, State::new(next)).train;
        if best(&restarts) + 1 == restarts.len() {
            kept = Some(ended);
        }
        let cut_short = stop.is_cut_short();
        if cut_short || restarts.len() >= config.restarts {
            break;
        }
        run.restart += 1;
    }
    let seconds = run.clock.seconds();
    let train = kept.unwrap_or(run.state.train);
    let found = FoundTrain { train, spectra: None, restarts, history: run.history, seconds };
    TtOutcome::conclude(kernels, found, config.ranks.bound())
}

/// Decomposes `coo`, sorted or not, without duplicates, by truncated singular value
/// decompositions; also returns its tree with the kernel that verified the error.
///
/// `observer` sees every bond as it is cut; `Break` cuts the others to rank 1, so that there is a
/// train all the same.
///
/// # Errors
///
/// As [`solve`].
pub fn solve_svd<V: Value>(
    coo: Coo<V>,
    counts: PatternCounts,
    config: &TtConfig,
    toolchain: Toolchain,
    observer: &mut Observer<'_>,
) -> Result<(TtOutcome, Kernels<V>), SolverError> {
    let extents = coo.extents().to_vec();
    config.check(&extents)?;
    let square = coo.norm_squared();
    if square <= 0.0 {
        return Err(SolverError::ZeroTensor);
    }
    let layout = TreeLayout::new(tree_order(extents.len()), 1);
    let tree = Arc::new(Csf::build(coo, &layout.order)?);
    let cuts = cuts(config, &extents, square.sqrt())?;
    let (start, mut history) = (Instant::now(), Vec::<IterationRecord>::new());
    let mut dropped = 0.0;
    let found = tt_svd(&tree, &cuts, config.memory, &mut |bond, cut| {
        dropped += cut.dropped().powi(2);
        let before = history.last().map_or((1.0, 0.0), |last| (last.fit, last.total_seconds));
        let fit = 1.0 - (dropped / square).sqrt();
        let total_seconds = start.elapsed().as_secs_f64();
        history.push(IterationRecord {
            restart: 1,
            iteration: bond + 1,
            fit,
            change: (fit - before.0).abs(),
            relative_error: 1.0 - fit,
            seconds: total_seconds - before.1,
            total_seconds,
            details: svd_details(cut.rank),
        });
        observer(&history[bond])
    })?;
    let mut kernels = Kernels::of_trees(vec![(layout, tree)], square, counts, toolchain);
    let stop = if found.interrupted { StopReason::Interrupted } else { StopReason::Complete };
    let last = history.last().map_or((1.0, 0), |last| (last.fit, last.iteration));
    let report = RestartReport {
        seed: config.seed,
        fit: last.0,
        relative_error: 1.0 - last.0,
        iterations: last.1,
        stop,
    };
    let found = FoundTrain {
        train: found.train,
        restarts: vec![report],
        spectra: Some(found.bonds.into_iter().map(|bond| bond.spectrum).collect()),
        seconds: start.elapsed().as_secs_f64(),
        history,
    };
    let outcome = TtOutcome::conclude(&mut kernels, found, config.ranks.bound())?;
    Ok((outcome, kernels))
}

/// What `svd` records of a bond beside the error so far.
fn svd_details(rank: usize) -> Vec<Detail> {
    vec![Detail::number("rank", rank as f64)]
}

/// Returns the names and shapes of the details in the history of a run on a tensor of `order`.
pub fn history_layout(method: Method, order: usize) -> Vec<Detail> {
    match method {
        Method::Svd => svd_details(0),
        _ => crate::state::layout(checkpoint::contractions(method, order)),
    }
}

/// Makes one cut a bond of what `config` asks for, for a tensor of norm `norm`.
fn cuts(config: &TtConfig, extents: &[u64], norm: f64) -> Result<Vec<Cut>, SolverError> {
    let eps = config.ranks.bound().unwrap_or(0.0);
    let ranks = config.ranks.largest(extents)?;
    Ok(ranks.into_iter().map(|rank| Cut::within(eps, norm, extents.len(), rank)).collect())
}

/// Checks that a run with these options, of a tensor of these extents in train order, can begin with `start`.
///
/// # Errors
///
/// [`SolverError::Start`] with what does not fit; [`SolverError::Common`] if a checkpoint cannot be read.
pub fn check_start<V: Value>(
    start: &Start,
    config: &TtConfig,
    extents: &[u64],
) -> Result<(), SolverError> {
    match start {
        Start::Random => Ok(()),
        Start::Checkpoint(folder) => checkpoint::check::<V>(config, extents, folder).map(drop),
        Start::Given(train) => {
            let ranks = random_start(extents, config, config.seed)?.ranks();
            let fits = config.method == Method::Dmrg || train.ranks() == ranks;
            if train.extents() == extents && fits {
                return Ok(());
            }
            let (have, bonds) = (train.extents(), train.ranks());
            let why = format!(
                "it has ranks {bonds:?} and extents {have:?} in train order, wanted are ranks {ranks:?} and \
                 extents {extents:?}"
            );
            Err(SolverError::Start { what: "the given train".into(), why })
        }
    }
}

fn begin<V: Value>(
    kernels: &Kernels<V>,
    start: Start,
    config: &TtConfig,
) -> Result<Run, SolverError> {
    let extents = kernels.extents();
    check_start::<V>(&start, config, extents)?;
    let train = match start {
        Start::Checkpoint(folder) => return checkpoint::load(kernels, config, &folder),
        Start::Random => random_start(extents, config, config.seed)?,
        Start::Given(train) => train,
    };
    Ok(Run::new(State::new(train), kernels.norm_squared()))
}

/// Makes a train of random numbers with the ranks from which the method starts.
fn random_start(extents: &[u64], config: &TtConfig, seed: u64) -> Result<Train, SolverError> {
    let mut ranks = config.ranks.largest(extents)?;
    if config.method == Method::Dmrg {
        ranks.iter_mut().for_each(|rank| *rank = (*rank).min(DMRG_START));
        ranks = bonds::possible(&ranks, extents);
    }
    Ok(Train::random(extents, &ranks, seed))
}

fn iterate<V: Value>(
    kernels: &mut Kernels<V>,
    run: &mut Run,
    config: &TtConfig,
    observer: &mut Observer<'_>,
) -> Result<StopReason, SolverError> {
    let cuts = cuts(config, kernels.extents(), kernels.norm_squared().sqrt())?;
    let (bound, memory) = (config.ranks.bound(), config.memory);
    let rounding = 4.0 * V::EPSILON;
    let goal = dmrg::Goal { bound, cuts: &cuts, memory, rounding };
    loop {
        let standing = run.state.standing;
        let growing =
            run.state.ranks_changed && bound.is_some_and(|bound| standing.relative_error > bound);
        match config.stop.check(&standing, run.clock.elapsed(), V::EPSILON) {
            Some(StopReason::Converged) if growing => {}
            Some(stop) => return Ok(stop),
            None => {}
        }
        match config.method {
            Method::Dmrg => dmrg::sweep(kernels, run, &goal)?,
            _ => als::sweep(kernels, run)?,
        }
        if let Some(rule) = &config.checkpoint {
            let save = |folder: &Path| checkpoint::save::<V>(run, config, folder);
            rule.attempt_after(run.state.standing.iteration, save);
        }
        if let Some(record) = run.history.last()
            && observer(record) == ControlFlow::Break(())
        {
            return Ok(StopReason::Interrupted);
        }
    }
}
