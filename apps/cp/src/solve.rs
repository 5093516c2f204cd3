//! The decomposition: starts, restarts, the choice among them.

use decompose_common::SolverError;
use decompose_common::factor_match::factor_match_score;
use decompose_common::history::{IterationRecord, Observer};
use decompose_common::init;
use decompose_common::linalg;
use decompose_common::model::CpModel;
use decompose_common::restarts::{self, RestartReport, seed_of};
use decompose_common::standing::Clock;
use decompose_common::stopping::StopReason;
use decompose_core::sweep::MttkrpSweep;
use decompose_formats::{Coo, Csf, ModeOrder, Panels, Value};
use ndarray::Array2;

use crate::als;
use crate::checkpoint;
use crate::config::{CpConfig, Start};
use crate::outcome::{CpOutcome, GramReport};
use crate::state::State;

/// A run in progress.
pub(crate) struct Run<V: Value> {
    pub(crate) state: State<V>,
    pub(crate) finished: Vec<Finished<V>>,
    pub(crate) history: Vec<IterationRecord>,
    pub(crate) gram: GramReport,
    pub(crate) norm_squared: f64,
    pub(crate) clock: Clock,
    /// Room for the old rows of a non-negative mode, by panel.
    pub(crate) previous: Vec<Vec<V>>,
    /// The tensor as a list, once a residual had to be measured at its cells.
    pub(crate) entries: Option<Coo<V>>,
}

/// A start that has ended.
pub(crate) struct Finished<V> {
    pub(crate) model: CpModel<V>,
    pub(crate) report: RestartReport,
}

/// Decomposes the tensor behind `sweep`.
///
/// `observer` sees every iteration as it ends.  Memory: one factor a mode for the current start,
/// the same again for each finished restart, and the rows of the longest non-negative mode once
/// more.  Time an iteration: the MTTKRPs and `O(sum I_n * R^2 + N R^3)`.
///
/// # Errors
///
/// [`SolverError`]: options that make no sense, a start that does not fit, a tensor of zeros,
/// overflow, a failed kernel, a checkpoint that cannot be read.
pub fn solve<V: Value>(
    sweep: &mut dyn MttkrpSweep<V>,
    start: Start<V>,
    config: &CpConfig,
    observer: &mut Observer<'_>,
) -> Result<CpOutcome<V>, SolverError> {
    config.check(sweep.extents().len())?;
    if sweep.norm_squared() <= 0.0 {
        return Err(SolverError::ZeroTensor);
    }
    let mut run = begin(sweep, start, config)?;
    loop {
        let stop = als::iterate(sweep, &mut run, config, observer)?;
        let cut_short = stop.is_cut_short();
        let done = cut_short || run.finished.len() + 1 >= config.restarts;
        if done {
            if let Some(rule) = &config.checkpoint {
                rule.attempt(|folder| checkpoint::save(&run, config, folder));
            }
            return conclude(run, stop, config);
        }
        let number = run.finished.len();
        let (panels, seed) = (sweep.panels(config.rank), seed_of(config.seed, number + 1));
        let factors = init::random_panels(sweep.extents(), &panels, seed)?;
        let next = State::new(factors, &config.nonneg);
        let ended = std::mem::replace(&mut run.state, next);
        run.finished.push(finish(ended, stop, number, config)?);
        if let Some(rule) = &config.checkpoint {
            let model = &run.finished[number].model;
            rule.attempt(|folder| checkpoint::save_finished(model, number, folder));
        }
    }
}

/// Returns the bytes of the `R x R` matrices of a decomposition of rank `rank` on `threads` threads, and of the
/// rows that passes over the factors of `extents` work on; saturates.
///
/// There is a Gram matrix a mode, their product, what its inverse is made in, the inverse packed, and the sums
/// of the pass over a factor, some of them waiting for those of other rows.
pub fn square_bytes(extents: &[u64], rank: usize, config: &CpConfig, threads: usize) -> u64 {
    let (rank, modes) = (rank as u64, extents.len() as u64);
    let longest = extents.iter().copied().max().unwrap_or(0);
    let inverted = (0..extents.len()).any(|mode| !config.nonneg.contains(mode));
    let inverse = if inverted { INVERSE_MATRICES } else { 0 };
    let scores = if config.restarts > 1 { 3 } else { 0 };
    let sums = linalg::most_sums(longest, rank, threads);
    let matrices = modes + PASS_MATRICES + (inverse + sums).max(scores + sums);
    let rows = linalg::scratch_rows(rank).saturating_mul(3 * sums.min(threads as u64));
    let numbers = rank.saturating_mul(rank).saturating_mul(matrices);
    numbers.saturating_add(rows.saturating_mul(rank)).saturating_mul(8)
}

/// What an inverse is made in: the matrix scaled, its factors, the inverse of these and its rows.
const INVERSE_MATRICES: u64 = 5;
/// The product of the Gram matrices, and the small matrix of a pass, packed.
const PASS_MATRICES: u64 = 3;

/// Sorts `coo` once for each mode but the first updated and makes the leading left singular
/// vectors of the unfoldings a start (`nvecs` of the Tensor Toolbox).
///
/// The first updated mode's factor is random, as its values do not matter.  Memory: a copy of the
/// list as a tree, and what [`init::nvecs`] takes.
///
/// # Errors
///
/// [`SolverError::Format`] or [`SolverError::Common`] if there is no memory or numbers overflow.
pub fn nvecs_start<V: Value>(coo: &Coo<V>, config: &CpConfig) -> Result<Start<V>, SolverError> {
    let order = coo.order();
    config.check(order)?;
    let mut factors = init::random(coo.extents(), config.rank, config.seed)?;
    for &mode in &config.modes(order)[1..] {
        let others = (0..order).filter(|&m| m != mode);
        let modes = others.chain(std::iter::once(mode)).collect();
        let fibres = ModeOrder::new(modes).map(|modes| Csf::build(coo.clone(), &modes));
        if let Some(fibres) = fibres.transpose()? {
            factors[mode] = init::nvecs(&fibres, config.rank, config.seed)?;
        }
    }
    Ok(Start::Given(CpModel::new(vec![1.0; config.rank], factors)?))
}

/// Checks that a run with these options, of a tensor of these extents, can begin with `start`.
///
/// # Errors
///
/// [`SolverError::Start`] with what does not fit; [`SolverError::Common`] if a checkpoint cannot be read.
pub fn check_start<V: Value>(
    start: &Start<V>,
    config: &CpConfig,
    extents: &[u64],
) -> Result<(), SolverError> {
    match start {
        Start::Random => Ok(()),
        Start::Checkpoint(folder) => checkpoint::check::<V>(config, extents, folder).map(drop),
        Start::Given(model) => {
            let (have, want) = (model.extents(), extents);
            if have == want && model.rank() == config.rank {
                return Ok(());
            }
            let why = format!(
                "it has rank {} and extents {have:?}, wanted are rank {} and extents {want:?}",
                model.rank(),
                config.rank
            );
            Err(SolverError::Start { what: "the given model".into(), why })
        }
    }
}

fn begin<V: Value>(
    sweep: &dyn MttkrpSweep<V>,
    start: Start<V>,
    config: &CpConfig,
) -> Result<Run<V>, SolverError> {
    check_start(&start, config, sweep.extents())?;
    let panels = sweep.panels(config.rank);
    let factors = match start {
        Start::Checkpoint(folder) => return checkpoint::load(sweep, config, &folder),
        Start::Random => init::random_panels(sweep.extents(), &panels, config.seed)?,
        Start::Given(model) => {
            let factors = model.into_parts().1.into_iter();
            factors.map(|factor| Panels::split(factor, &panels)).collect::<Result<_, _>>()?
        }
    };
    Ok(Run {
        state: State::new(factors, &config.nonneg),
        finished: Vec::new(),
        history: Vec::new(),
        gram: GramReport::default(),
        norm_squared: sweep.norm_squared(),
        clock: Clock::after(0.0),
        previous: Vec::new(),
        entries: None,
    })
}

fn finish<V: Value>(
    state: State<V>,
    stop: StopReason,
    restart: usize,
    config: &CpConfig,
) -> Result<Finished<V>, SolverError> {
    let report = state.standing.report(seed_of(config.seed, restart), stop);
    let mut model = state.into_model()?;
    model.arrange(config.arrangement);
    Ok(Finished { model, report })
}

/// Ends the last start and picks the best; of equal fits, the earliest.
fn conclude<V: Value>(
    run: Run<V>,
    stop: StopReason,
    config: &CpConfig,
) -> Result<CpOutcome<V>, SolverError> {
    let seconds = run.clock.seconds();
    let mut finished = run.finished;
    finished.push(finish(run.state, stop, finished.len(), config)?);
    let count = finished.len();
    let mut match_scores = Array2::eye(count);
    for a in 0..count {
        for b in a + 1..count {
            let score = factor_match_score(&finished[a].model, &finished[b].model);
            match_scores[(a, b)] = score.unwrap_or(0.0);
            match_scores[(b, a)] = match_scores[(a, b)];
        }
    }
    let restarts: Vec<RestartReport> = finished.iter().map(|f| f.report).collect();
    let best = restarts::best(&restarts);
    Ok(CpOutcome {
        model: finished.swap_remove(best).model,
        best,
        restarts,
        match_scores,
        history: run.history,
        gram: run.gram,
        seconds,
    })
}
