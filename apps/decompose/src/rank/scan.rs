//! The fits of every rank.

use std::ops::ControlFlow;

use decompose_common::factor_match::factor_match_score;
use decompose_common::interrupt;
use decompose_common::memory;
use decompose_common::model::{CpModel, Model};
use decompose_complete::{
    CompleteOutcome, Data, ModelKind, Parts, Scores, Start, root_mean_square,
};
use decompose_core::sweep::Engine;
use decompose_cp::{CpConfig, PlanRequest, Planner, square_bytes};
use decompose_formats::{Coo, PatternCounts};

use crate::complete::data;
use crate::complete::settings::Settings;
use crate::failure::Failure;
use crate::rank::checkpoint::{self, Signature, State};
use crate::run::console::Console;
use crate::run::memory::Forecast;

/// What was found at one rank: errors are those of the start with the least deciding error.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct RankRow {
    pub(crate) rank: usize,
    pub(crate) train: f64,
    pub(crate) val: Option<f64>,
    pub(crate) test: Option<f64>,
    /// The deciding error of the worst start.
    pub(crate) worst: f64,
    /// The deciding error of the mean of all training entries.
    pub(crate) mean_of_all: f64,
    /// The best fit: `1 - ||X - M|| / ||X||`, over the training entries or, for cp, all entries.
    pub(crate) fit: f64,
    /// The mean factor match score between starts; none for one start.
    pub(crate) matched: Option<f64>,
    /// How many starts reached the least error, to 1% of what it gains.
    pub(crate) reached: usize,
    /// The mean factor match score between these; none for one.
    pub(crate) agreement: Option<f64>,
    /// Seconds of all starts.
    pub(crate) seconds: f64,
}

impl RankRow {
    /// Returns the error that decides.
    pub(crate) fn deciding(&self) -> f64 {
        self.val.unwrap_or(self.train)
    }

    /// Returns its numbers, for a checkpoint; what there is not is no number.
    pub(crate) fn to_numbers(&self) -> [f64; 11] {
        let optional = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let [val, test] = [self.val, self.test].map(optional);
        let [matched, agreement] = [self.matched, self.agreement].map(optional);
        let (rank, reached) = (self.rank as f64, self.reached as f64);
        let RankRow { train, worst, mean_of_all, fit, seconds, .. } = *self;
        [rank, train, val, test, worst, mean_of_all, fit, matched, reached, agreement, seconds]
    }

    /// Reads what [`RankRow::to_numbers`] made.
    pub(crate) fn from_numbers(numbers: [f64; 11]) -> RankRow {
        let [rank, train, val, test, worst, mean_of_all, fit, matched, reached, agreement, seconds] =
            numbers;
        let [val, test, matched, agreement] = [val, test, matched, agreement].map(known);
        let (rank, reached) = (rank as usize, reached as usize);
        RankRow {
            rank,
            train,
            val,
            test,
            worst,
            mean_of_all,
            fit,
            matched,
            reached,
            agreement,
            seconds,
        }
    }
}

fn known(number: f64) -> Option<f64> {
    Some(number).filter(|number| !number.is_nan())
}

/// The rows of a scan, and whether the user stopped it.
pub(crate) struct Scan {
    pub(crate) rows: Vec<RankRow>,
    pub(crate) flow: ControlFlow<()>,
    /// The name of the errors.
    pub(crate) error_name: &'static str,
}

/// What a scan keeps of a fit.
pub(crate) struct Fitted {
    train: f64,
    val: Option<f64>,
    test: Option<f64>,
    /// The RMSE on the training entries, whatever the loss.
    rmse: f64,
    mean_of_all: f64,
    seconds: f64,
    pub(crate) model: CpModel<f64>,
}

impl Fitted {
    fn of(outcome: &CompleteOutcome, kind: &ModelKind, seconds: f64) -> Result<Fitted, Failure> {
        let Model::Cp(model) = outcome.model(kind)? else {
            return Err(Failure::internal("ranks are of CP models"));
        };
        let (best, plain) = (&outcome.best, &outcome.baselines[0]);
        Ok(Fitted {
            train: best.train.error(),
            val: best.val.map(|scores| scores.error()),
            test: best.test.map(|scores| scores.error()),
            rmse: best.train.rmse,
            mean_of_all: plain.val.unwrap_or(plain.train).error(),
            seconds,
            model,
        })
    }

    /// Returns the error that decides.
    fn deciding(&self) -> f64 {
        self.val.unwrap_or(self.train)
    }

    /// Returns all but the model, for a checkpoint; what there is not is no number.
    pub(crate) fn to_numbers(&self) -> [f64; 6] {
        let optional = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let Fitted { train, val, test, rmse, mean_of_all, seconds, .. } = self;
        [*train, optional(*val), optional(*test), *rmse, *mean_of_all, *seconds]
    }

    /// Reads what [`Fitted::to_numbers`] made.
    pub(crate) fn from_numbers(numbers: [f64; 6], model: CpModel<f64>) -> Fitted {
        let [train, val, test, rmse, mean_of_all, seconds] = numbers;
        Fitted { train, val: known(val), test: known(test), rmse, mean_of_all, seconds, model }
    }
}

/// A scan: its options and data, and where its state is saved.
pub(crate) struct ScanTask<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) parts: &'a Parts,
    /// The tensor whose CP decompositions give fit and match, if that is what is compared.
    pub(crate) whole: Option<&'a Coo<f64>>,
    pub(crate) signature: Signature<'a>,
}

/// Fits every rank by completion, from where `state` stands; each fit is one of the checkpoint's
/// iterations.
///
/// # Errors
///
/// If a fit fails.
pub(crate) fn scan(
    task: &ScanTask<'_>,
    ranks: &[usize],
    mut state: State,
    console: &mut Console,
) -> Result<Scan, Failure> {
    interrupt::install();
    let settings = task.settings;
    let error_name = Scores::of_means(settings.loss(), &[], &[]).error_name();
    let mut scan = Scan { rows: Vec::new(), flow: ControlFlow::Continue(()), error_name };
    for &rank in ranks {
        if let Some(row) = state.rows.iter().find(|row| row.rank == rank) {
            scan.rows.push(row.clone());
            continue;
        }
        scan.flow = task.fit_starts(rank, &mut state, console)?;
        if scan.flow.is_break() {
            break;
        }
        let begun = std::time::Instant::now();
        let mut row = row(rank, &state.fits, task.parts)?;
        if let Some(whole) = task.whole {
            let starts = decomposition(settings, rank, whole)?;
            (row.fit, row.matched) = (starts.fit, starts.matched);
            (row.reached, row.agreement) = (starts.reached, starts.agreement);
        }
        // An interrupt cut the decompositions short; the fits are kept.
        if interrupt::requested() && task.whole.is_some() {
            scan.flow = ControlFlow::Break(());
            break;
        }
        row.seconds += begun.elapsed().as_secs_f64();
        console.screen.line(format!(
            "rank {rank:>4}  {error_name} {} on held-out entries, fit {:.6}, {:.2} s",
            crate::complete::figures::number(row.deciding()),
            row.fit,
            row.seconds
        ));
        state.rows.push(row.clone());
        scan.rows.push(row);
        (state.rank, state.fits) = (0, Vec::new());
    }
    if let Some(rule) = settings.checkpoint()
        && let Err(failure) = checkpoint::save(&state, &task.signature, &rule.folder)
    {
        console.trouble(&failure);
    }
    Ok(scan)
}

impl ScanTask<'_> {
    /// Fits the starts of `rank` that are not in `state`, and saves it as often as is asked for.
    fn fit_starts(
        &self,
        rank: usize,
        state: &mut State,
        console: &Console,
    ) -> Result<ControlFlow<()>, Failure> {
        let settings = self.settings.with_rank(rank);
        let Parts { train, val, test } = self.parts;
        let data = Data { train, val: val.as_ref(), test: test.as_ref() };
        let toolchain = settings.toolchain();
        if state.rank != rank {
            (state.rank, state.fits) = (rank, Vec::new());
        }
        for restart in state.fits.len()..settings.restarts {
            let begun = std::time::Instant::now();
            let config = settings.config(train.order(), restart);
            let start = Start::Random;
            let outcome = decompose_complete::solve(data, start, &config, &toolchain, &mut watch)?;
            if interrupt::requested() {
                return Ok(ControlFlow::Break(()));
            }
            let seconds = begun.elapsed().as_secs_f64();
            if let (Some(why), true, 0) = (&outcome.interpreted, state.rows.is_empty(), restart) {
                console
                    .screen
                    .warn(format!("kernels run in the interpreter, many times slower: {why}"));
            }
            state.fits.push(Fitted::of(&outcome, &config.model, seconds)?);
            let done = state.rows.len() * settings.restarts + state.fits.len();
            if let Some(rule) = settings.checkpoint().filter(|rule| done.is_multiple_of(rule.every))
                && let Err(failure) = checkpoint::save(state, &self.signature, &rule.folder)
            {
                console.screen.warn(format!("no checkpoint was saved: {}", failure.message()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Stops a fit when the user asks for it.
fn watch<T>(_: &T) -> ControlFlow<()> {
    match interrupt::requested() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

fn row(rank: usize, fits: &[Fitted], parts: &Parts) -> Result<RankRow, Failure> {
    let by_error = |a: &&Fitted, b: &&Fitted| a.deciding().total_cmp(&b.deciding());
    let none = || Failure::internal("a rank without a start");
    let best = fits.iter().min_by(by_error).ok_or_else(none)?;
    let worst = fits.iter().max_by(by_error).ok_or_else(none)?;
    let size = root_mean_square(parts.train.values());
    let least = fits.iter().map(|fit| fit.rmse).fold(f64::INFINITY, f64::min);
    let models: Vec<&CpModel<f64>> = fits.iter().map(|fit| &fit.model).collect();
    let bound = nearly(best.deciding(), best.mean_of_all);
    let reaching = fits.iter().filter(|fit| fit.deciding() <= bound);
    let reaching: Vec<&CpModel<f64>> = reaching.map(|fit| &fit.model).collect();
    Ok(RankRow {
        rank,
        train: best.train,
        val: best.val,
        test: best.test,
        worst: worst.deciding(),
        mean_of_all: best.mean_of_all,
        fit: 1.0 - least / size.max(f64::MIN_POSITIVE),
        matched: matched(&models),
        reached: reaching.len(),
        agreement: matched(&reaching),
        seconds: fits.iter().map(|fit| fit.seconds).sum(),
    })
}

/// Returns up to which error 99% of what `least` gains over `none` is gained.
pub(crate) fn nearly(least: f64, none: f64) -> f64 {
    least + 0.01 * (none - least).max(0.0)
}

/// The mean factor match score of all pairs.
fn matched(models: &[&CpModel<f64>]) -> Option<f64> {
    let pairs = (0..models.len()).flat_map(|a| (a + 1..models.len()).map(move |b| (a, b)));
    let scores = pairs.filter_map(|(a, b)| factor_match_score(models[a], models[b]));
    let scores: Vec<f64> = scores.collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// Compares the starts of CP decompositions of `tensor`.
fn decomposition(settings: &Settings, rank: usize, tensor: &Coo<f64>) -> Result<Starts, Failure> {
    let counts = PatternCounts::of(tensor);
    let config =
        CpConfig { seed: settings.seed, restarts: settings.restarts, ..CpConfig::new(rank) };
    let request = PlanRequest::new::<f64>(&config, tensor.order());
    let mut planner = Planner::new(tensor, &counts, &request);
    let plan = planner.plan(&request.options)?;
    let list = data::list_bytes(tensor);
    let held = Forecast { list, ..Forecast::default() };
    let built = held.with_trees(tensor, planner.pattern(), &plan.kernels.trees, plan.side_bytes());
    let building = if plan.merges.is_empty() { built.building } else { list + plan.tree_bytes() };
    let fitted = square_bytes(tensor.extents(), rank, &config, settings.threads)
        .saturating_add(plan.tree_bytes() + plan.side_bytes());
    let what = || format!("the CP decompositions of rank {rank}");
    memory::foresee(building.max(fitted), what, "lower --ranks, or use --method complete")?;
    let (mut engine, _) = Engine::build(tensor.clone(), &plan, &settings.toolchain())?;
    let start = decompose_cp::Start::Random;
    let outcome = decompose_cp::solve(&mut engine, start, &config, &mut watch)?;
    let best = outcome.best().fit;
    let bound = nearly(1.0 - best, 1.0);
    let starts = outcome.restarts.iter().enumerate();
    let reaching = starts.filter(|(_, start)| 1.0 - start.fit <= bound).map(|(at, _)| at);
    let reaching: Vec<usize> = reaching.collect();
    let all: Vec<usize> = (0..outcome.match_scores.nrows()).collect();
    let mean = |starts: &[usize]| {
        let pairs = starts.iter().flat_map(|&a| starts.iter().map(move |&b| (a, b)));
        let scores = pairs.filter(|(a, b)| a < b).map(|pair| outcome.match_scores[pair]);
        let scores: Vec<f64> = scores.collect();
        (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
    };
    Ok(Starts {
        fit: best,
        matched: mean(&all),
        reached: reaching.len(),
        agreement: mean(&reaching),
    })
}

/// What the starts of CP decompositions of a tensor found, as in a [`RankRow`].
struct Starts {
    fit: f64,
    matched: Option<f64>,
    reached: usize,
    agreement: Option<f64>,
}
