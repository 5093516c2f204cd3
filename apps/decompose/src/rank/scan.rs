//! The fits of every rank.

use std::ops::ControlFlow;

use decompose_common::interrupt;
use decompose_common::model::{CpModel, Model};
use decompose_common::score::factor_match_score;
use decompose_complete::{CompleteOutcome, Data, Parts, Start};
use decompose_core::cost::Machine;
use decompose_core::sweep::{self, Engine, Merging, PlanOptions, Trees};
use decompose_cp::CpConfig;
use decompose_formats::{Coo, PatternCounts};

use crate::complete::settings::Settings;
use crate::failure::Failure;
use crate::pattern;
use crate::run::console::Console;

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
    /// Seconds of all starts.
    pub(crate) seconds: f64,
}

impl RankRow {
    /// Returns the error that decides.
    pub(crate) fn deciding(&self) -> f64 {
        self.val.unwrap_or(self.train)
    }
}

/// The rows of a scan, and whether the user stopped it.
pub(crate) struct Scan {
    pub(crate) rows: Vec<RankRow>,
    pub(crate) flow: ControlFlow<()>,
    /// The name of the errors.
    pub(crate) error_name: &'static str,
}

/// Fits every rank by completion of `parts`; with `whole`, fit and match are those of CP
/// decompositions of that tensor.
///
/// # Errors
///
/// If a fit fails.
pub(crate) fn scan(
    settings: &Settings,
    ranks: &[usize],
    parts: &Parts,
    whole: Option<&Coo<f64>>,
    console: &mut Console,
) -> Result<Scan, Failure> {
    interrupt::install();
    let mut scan = Scan { rows: Vec::new(), flow: ControlFlow::Continue(()), error_name: "RMSE" };
    for &rank in ranks {
        let begun = std::time::Instant::now();
        let outcomes = completions(&settings.with_rank(rank), parts)?;
        if interrupt::requested() {
            scan.flow = ControlFlow::Break(());
            break;
        }
        let mut row = row(rank, settings, &outcomes, parts)?;
        if let Some(whole) = whole {
            (row.fit, row.matched) = decomposition(settings, rank, whole)?;
        }
        row.seconds = begun.elapsed().as_secs_f64();
        scan.error_name = outcomes[0].best.train.error_name();
        console.screen.line(format!(
            "rank {rank:>4}  {} {:.6} on held-out entries, fit {:.6}, {:.2} s",
            scan.error_name,
            row.deciding(),
            row.fit,
            row.seconds
        ));
        scan.rows.push(row);
    }
    Ok(scan)
}

fn completions(settings: &Settings, parts: &Parts) -> Result<Vec<CompleteOutcome>, Failure> {
    let data = Data { train: &parts.train, val: parts.val.as_ref(), test: parts.test.as_ref() };
    let toolchain = settings.toolchain();
    let mut see = |_: &_| match interrupt::requested() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let one = |restart| {
        let config = settings.config(parts.train.order(), restart);
        let outcome = decompose_complete::solve(data, Start::Random, &config, &toolchain, &mut see);
        Ok(outcome?)
    };
    (0..settings.restarts).map(one).collect()
}

fn row(
    rank: usize,
    settings: &Settings,
    outcomes: &[CompleteOutcome],
    parts: &Parts,
) -> Result<RankRow, Failure> {
    let error = |outcome: &&CompleteOutcome| outcome.best.deciding().error();
    let by_error = |a: &&CompleteOutcome, b: &&CompleteOutcome| error(a).total_cmp(&error(b));
    let none = || Failure::internal("a rank without a start");
    let best = outcomes.iter().min_by(by_error).ok_or_else(none)?;
    let worst = outcomes.iter().max_by(by_error).ok_or_else(none)?;
    let plain = &best.baselines[0];
    let size = (parts.train.norm_squared() / parts.train.nnz() as f64).sqrt();
    let least = outcomes.iter().map(|o| o.best.train.rmse).fold(f64::INFINITY, f64::min);
    let kind = settings.with_rank(rank).kind(parts.train.order());
    let mut models = Vec::new();
    for outcome in outcomes {
        if let Model::Cp(model) = outcome.model(&kind)? {
            models.push(model);
        }
    }
    Ok(RankRow {
        rank,
        train: best.best.train.error(),
        val: best.best.val.map(|scores| scores.error()),
        test: best.best.test.map(|scores| scores.error()),
        worst: error(&worst),
        mean_of_all: plain.val.unwrap_or(plain.train).error(),
        fit: 1.0 - least / size.max(f64::MIN_POSITIVE),
        matched: matched(&models),
        seconds: 0.0,
    })
}

/// The mean factor match score of all pairs.
fn matched(models: &[CpModel<f64>]) -> Option<f64> {
    let pairs = (0..models.len()).flat_map(|a| (a + 1..models.len()).map(move |b| (a, b)));
    let scores = pairs.filter_map(|(a, b)| factor_match_score(&models[a], &models[b]));
    let scores: Vec<f64> = scores.collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// Returns the best fit of CP decompositions of `tensor` and the mean match of their starts.
fn decomposition(
    settings: &Settings,
    rank: usize,
    tensor: &Coo<f64>,
) -> Result<(f64, Option<f64>), Failure> {
    let counts = pattern::of(&PatternCounts::of(tensor));
    let config =
        CpConfig { seed: settings.seed, restarts: settings.restarts, ..CpConfig::new(rank) };
    let options = PlanOptions {
        rank,
        value_bytes: 8,
        threads: settings.threads,
        memory: None,
        sweeps: config.stop.max_iters,
        trees: Trees::Choose,
        merging: Merging::Choose,
        updates: (0..tensor.order()).collect(),
    };
    let plan = sweep::plan(tensor.extents(), &counts, &options, Machine::here())?;
    let (mut engine, _) = Engine::build(tensor.clone(), &plan, &settings.toolchain())?;
    let start = decompose_cp::Start::Random;
    let mut see = |_: &_| match interrupt::requested() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let outcome = decompose_cp::solve(&mut engine, start, &config, &mut see)?;
    let scores = &outcome.match_scores;
    let count = scores.nrows();
    let pairs = (count * count.saturating_sub(1)) as f64;
    let matched = (pairs > 0.0).then(|| (scores.sum() - count as f64) / pairs);
    Ok((outcome.best().fit, matched))
}
