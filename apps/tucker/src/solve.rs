//! The decomposition: starts, iterations, restarts, the choice among them.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::history::{Detail, IterationRecord, Observer};
use decompose_common::init;
use decompose_common::model::TuckerModel;
use decompose_common::restarts::{self, RestartReport, seed_of};
use decompose_common::standing::{Clock, Standing};
use decompose_common::stopping::StopReason;
use decompose_formats::{Matrix, Value};
use ndarray::{ArrayD, IxDyn};

use crate::checkpoint;
use crate::config::{Method, Start, TuckerConfig};
use crate::engine::Engine;
use crate::hooi::{self, SweepSeconds};
use crate::hosvd::Truncation;
use crate::nonneg;
use crate::outcome::TuckerOutcome;
use crate::state::State;

/// Non-zeros up to which a run is compared with a HOSVD ([`solve_above`]) unless the user says otherwise: about a second at
/// ranks of 16 on two cores.  With millions it takes seconds to minutes, in part longer than the iterations.
const COMPARED_NNZ: usize = 500_000;

/// Tells whether a run may end below a HOSVD of its ranks: one by HOOI that does not `begin` from a HOSVD.
pub fn may_end_below_hosvd(method: Method, begin: Option<Truncation>) -> bool {
    // From a HOSVD the fit rises anyway.
    method == Method::Hooi && begin.is_none()
}

/// Tells whether a run on `nnz` non-zeros is compared with a HOSVD by [`solve_above`] where its user does not say.
///
/// # Example
///
/// ```
/// use decompose_tucker::{Method, Truncation, is_compared};
///
/// assert!(is_compared(Method::Hooi, None, 1000));
/// assert!(!is_compared(Method::Hooi, Some(Truncation::AtOnce), 1000));
/// assert!(!is_compared(Method::Nonnegative, None, 1000));
/// assert!(!is_compared(Method::Hooi, None, 5_000_000));
/// ```
pub fn is_compared(method: Method, begin: Option<Truncation>, nnz: usize) -> bool {
    may_end_below_hosvd(method, begin) && nnz <= COMPARED_NNZ
}

/// A run in progress.
pub(crate) struct Run<V> {
    pub(crate) state: State<V>,
    pub(crate) finished: Vec<RestartReport>,
    /// The model of the best of the finished restarts.
    pub(crate) best: Option<TuckerModel<V>>,
    pub(crate) history: Vec<IterationRecord>,
    pub(crate) norm_squared: f64,
    pub(crate) clock: Clock,
}

/// Returns the names and shapes of the details in the history of a tensor of order `order`.
pub fn history_layout(order: usize, method: Method) -> Vec<Detail> {
    match method {
        Method::Hooi | Method::Core => SweepSeconds::zeros(order).details(),
        Method::Nonnegative => nonneg::details(order),
    }
}

/// Decomposes the tensor behind `engine`.
///
/// `observer` sees every iteration as it ends.  Memory: one factor a mode for the current start, the
/// same for the best finished one, and what the plan says.  Time an iteration: the TTMcs, and a mode
/// `O(I_n P min(I_n, P))` for the subspace (`P = prod_{m != n} R_m`).
///
/// # Errors
///
/// [`SolverError`]: options that make no sense, a start that does not fit, a tensor of zeros,
/// overflow, a failed kernel, a checkpoint that cannot be read.
pub fn solve<V: Value>(
    engine: &mut Engine<V>,
    start: Start<V>,
    config: &TuckerConfig,
    observer: &mut Observer<'_>,
) -> Result<TuckerOutcome<V>, SolverError> {
    run_starts(engine, start, None, config, observer)
}

/// Does the same with HOOI, and ends with no lower fit than that of `hosvd`, orthonormal factors
/// (`I_n x R_n`) as [`hosvd`](crate::hosvd()) finds them.
///
/// From a HOSVD the fit can only rise, from another start it may end below.  The fit of `hosvd` is measured
/// first, by one TTMc; where the best of the starts ends below it, one more begins from it.  A
/// checkpoint is of the starts before that one, which a resumed run makes again.
///
/// # Errors
///
/// As [`solve`]; [`SolverError::Config`] for another method than [`Method::Hooi`].
pub fn solve_above<V: Value>(
    engine: &mut Engine<V>,
    start: Start<V>,
    hosvd: Vec<Matrix<V>>,
    config: &TuckerConfig,
    observer: &mut Observer<'_>,
) -> Result<TuckerOutcome<V>, SolverError> {
    if config.method != Method::Hooi {
        return Err(SolverError::Config("a HOSVD bounds the fit of HOOI only".into()));
    }
    check_fit(&hosvd, engine.extents(), config)?;
    run_starts(engine, start, Some(hosvd), config, observer)
}

fn run_starts<V: Value>(
    engine: &mut Engine<V>,
    start: Start<V>,
    hosvd: Option<Vec<Matrix<V>>>,
    config: &TuckerConfig,
    observer: &mut Observer<'_>,
) -> Result<TuckerOutcome<V>, SolverError> {
    config.check(engine.extents())?;
    if engine.norm_squared() <= 0.0 {
        return Err(SolverError::ZeroTensor);
    }
    let mut run = begin(engine, start, config)?;
    let floor = hosvd.map(|factors| measured(engine, factors, config)).transpose()?;
    let floor_fit = floor.as_ref().map(|floor| floor.standing.fit);
    loop {
        let stop = iterate(engine, &mut run, config, observer)?;
        let cut_short = stop.is_cut_short();
        let number = run.finished.len();
        if cut_short || number + 1 >= config.restarts {
            if let Some(rule) = &config.checkpoint {
                rule.attempt(|folder| checkpoint::save(&run, config, folder));
            }
            let stop = rise_above(engine, &mut run, floor, stop, config, observer)?;
            return Ok(TuckerOutcome { hosvd_fit: floor_fit, ..conclude(run, stop, config)? });
        }
        let next = random_state(engine.extents(), config, number + 1)?;
        let ended = std::mem::replace(&mut run.state, next);
        finish(&mut run, ended, stop, config)?;
        if let (Some(rule), Some(model)) = (&config.checkpoint, &run.best)
            && restarts::best(&run.finished) == number
        {
            rule.attempt(|folder| checkpoint::save_finished(model, number, folder));
        }
    }
}

/// Makes a state of factors with their core and fit, no iteration done.
fn measured<V: Value>(
    engine: &mut Engine<V>,
    factors: Vec<Matrix<V>>,
    config: &TuckerConfig,
) -> Result<State<V>, SolverError> {
    engine.forget();
    let mut state = state_of(factors, None, config);
    hooi::sweep(engine, &mut state, Method::Core, config.seed)?;
    state.standing = Standing { iteration: 0, change: f64::INFINITY, ..state.standing };
    Ok(state)
}

/// Continues from `floor` where all starts of `run` ended below it; returns why the last start stopped.
fn rise_above<V: Value>(
    engine: &mut Engine<V>,
    run: &mut Run<V>,
    floor: Option<State<V>>,
    stop: StopReason,
    config: &TuckerConfig,
    observer: &mut Observer<'_>,
) -> Result<StopReason, SolverError> {
    let fits = run.finished.iter().map(|start| start.fit);
    let best = fits.fold(run.state.standing.fit, f64::max);
    let Some(floor) = floor.filter(|floor| floor.standing.fit > best) else { return Ok(stop) };
    let ended = std::mem::replace(&mut run.state, floor);
    finish(run, ended, stop, config)?;
    if stop == StopReason::Interrupted {
        return Ok(stop);
    }
    let config = TuckerConfig { checkpoint: None, ..config.clone() };
    iterate(engine, run, &config, observer)
}

fn iterate<V: Value>(
    engine: &mut Engine<V>,
    run: &mut Run<V>,
    config: &TuckerConfig,
    observer: &mut Observer<'_>,
) -> Result<StopReason, SolverError> {
    engine.forget();
    loop {
        if let Some(stop) = stop(run, config) {
            return Ok(stop);
        }
        let begun = Instant::now();
        let seed = seed_of(config.seed, run.finished.len());
        let details = match config.method {
            Method::Nonnegative => nonneg::sweep(engine, &mut run.state)?,
            method => hooi::sweep(engine, &mut run.state, method, seed)?,
        };
        let (standing, restart) = (run.state.standing, run.finished.len() + 1);
        let record = standing.record(restart, begun, &run.clock, details);
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

/// Decides whether to stop; given factors need no second look.
fn stop<V: Value>(run: &Run<V>, config: &TuckerConfig) -> Option<StopReason> {
    if config.method == Method::Core && run.state.standing.iteration > 0 {
        return Some(StopReason::Converged);
    }
    config.stop.check(&run.state.standing, run.clock.elapsed(), V::EPSILON)
}

/// Checks that a run with these options, of a tensor of these extents, can begin with `start`.
///
/// # Errors
///
/// [`SolverError::Start`] with what does not fit; [`SolverError::Common`] if a checkpoint cannot be read.
pub fn check_start<V: Value>(
    start: &Start<V>,
    config: &TuckerConfig,
    extents: &[u64],
) -> Result<(), SolverError> {
    match start {
        Start::Random => Ok(()),
        Start::Checkpoint(folder) => checkpoint::check::<V>(config, extents, folder).map(drop),
        Start::Factors(factors) => check_fit(factors, extents, config),
        Start::Given(model) => check_fit(model.factors(), extents, config),
    }
}

fn begin<V: Value>(
    engine: &Engine<V>,
    start: Start<V>,
    config: &TuckerConfig,
) -> Result<Run<V>, SolverError> {
    let extents = engine.extents();
    check_start(&start, config, extents)?;
    let state = match start {
        Start::Checkpoint(folder) => return checkpoint::load(engine, config, &folder),
        Start::Random => random_state(extents, config, 0)?,
        Start::Factors(factors) => state_of(factors, None, config),
        Start::Given(model) => {
            let (core, factors) = model.into_parts();
            state_of(factors, Some(core), config)
        }
    };
    Ok(Run {
        state,
        finished: Vec::new(),
        best: None,
        history: Vec::new(),
        norm_squared: engine.norm_squared(),
        clock: Clock::after(0.0),
    })
}

fn check_fit<V: Value>(
    factors: &[Matrix<V>],
    extents: &[u64],
    config: &TuckerConfig,
) -> Result<(), SolverError> {
    let have: Vec<(u64, usize)> = factors.iter().map(|f| (f.rows() as u64, f.cols())).collect();
    let want: Vec<(u64, usize)> =
        extents.iter().copied().zip(config.ranks.iter().copied()).collect();
    if have == want {
        return Ok(());
    }
    let why = format!("its factors have rows and columns {have:?}, wanted are {want:?}");
    Err(SolverError::Start { what: "the given model".into(), why })
}

fn state_of<V: Value>(
    factors: Vec<Matrix<V>>,
    core: Option<ArrayD<f64>>,
    config: &TuckerConfig,
) -> State<V> {
    match config.method {
        Method::Nonnegative => nonneg::begin(factors, core, config.seed),
        Method::Hooi | Method::Core => State::new(factors, ArrayD::zeros(IxDyn(&config.ranks))),
    }
}

fn random_state<V: Value>(
    extents: &[u64],
    config: &TuckerConfig,
    restart: usize,
) -> Result<State<V>, SolverError> {
    let seed = seed_of(config.seed, restart);
    if config.method != Method::Nonnegative {
        let factors = init::orthonormal(extents, &config.ranks, seed)?;
        return Ok(state_of(factors, None, config));
    }
    let modes = extents.iter().zip(&config.ranks).zip(0_u64..);
    let factors = modes.map(|((&extent, &rank), mode)| {
        // A stream of its own for each mode.
        let seed = seed.wrapping_add(mode << 32);
        let mut factors = init::random(&[extent], rank, seed)?;
        Ok(factors.remove(0))
    });
    Ok(nonneg::begin(factors.collect::<Result<_, SolverError>>()?, None, seed))
}

/// Takes a start that has ended into the run's reports, and its model if it is the best.
fn finish<V: Value>(
    run: &mut Run<V>,
    state: State<V>,
    stop: StopReason,
    config: &TuckerConfig,
) -> Result<(), SolverError> {
    let number = run.finished.len();
    run.finished.push(state.standing.report(seed_of(config.seed, number), stop));
    if restarts::best(&run.finished) == number {
        run.best = Some(state.into_model(config.method)?);
    }
    Ok(())
}

/// Ends the last start and returns the best; of equal fits, the earliest.
fn conclude<V: Value>(
    mut run: Run<V>,
    stop: StopReason,
    config: &TuckerConfig,
) -> Result<TuckerOutcome<V>, SolverError> {
    let seconds = run.clock.seconds();
    let empty = State::new(Vec::new(), ArrayD::zeros(IxDyn(&[])));
    let state = std::mem::replace(&mut run.state, empty);
    finish(&mut run, state, stop, config)?;
    let model = run.best.ok_or(SolverError::ZeroTensor)?;
    let best = restarts::best(&run.finished);
    let (restarts, history) = (run.finished, run.history);
    Ok(TuckerOutcome { model, best, restarts, history, hosvd_fit: None, seconds })
}
