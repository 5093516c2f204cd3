//! The fits of every rank.

use std::ops::ControlFlow;

use decompose_common::interrupt;
use decompose_common::memory;
use decompose_complete::{Data, Parts, RankFit, RankRow, Scores, Start};
use decompose_core::sweep::Engine;
use decompose_cp::{CpConfig, CpOutcome, PlanRequest, Planner, square_bytes};
use decompose_formats::{Coo, PatternCounts};

use crate::complete::settings::Settings;
use crate::failure::Failure;
use crate::rank::checkpoint::{self, Signature, State};
use crate::run::console::Console;
use crate::run::memory::Forecast;

/// The rows of a scan, and whether the user stopped it.
pub(crate) struct Scan {
    pub(crate) rows: Vec<RankRow>,
    pub(crate) flow: ControlFlow<()>,
    /// The name of the errors.
    pub(crate) error_name: &'static str,
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
        let mut row = RankRow::of(rank, &state.fits, &task.parts.train)?;
        if let Some(whole) = task.whole {
            let outcome = decomposition(settings, rank, whole)?;
            let fits: Vec<f64> = outcome.restarts.iter().map(|start| start.fit).collect();
            row.decomposed(&fits, &outcome.match_scores);
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
            state.fits.push(RankFit::of(&outcome, rank, seconds)?);
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

/// Decomposes `tensor` from every start.
fn decomposition(
    settings: &Settings,
    rank: usize,
    tensor: &Coo<f64>,
) -> Result<CpOutcome<f64>, Failure> {
    let counts = PatternCounts::of(tensor);
    let config =
        CpConfig { seed: settings.seed, restarts: settings.restarts, ..CpConfig::new(rank) };
    let request = PlanRequest::new::<f64>(&config, tensor.order());
    let mut planner = Planner::new(tensor, &counts, &request);
    let plan = planner.plan(&request.options)?;
    let list = tensor.bytes();
    let held = Forecast { list, ..Forecast::default() };
    let built = held.with_trees(tensor, planner.pattern(), &plan.kernels.trees, plan.side_bytes());
    let building = if plan.merges.is_empty() { built.building } else { list + plan.tree_bytes() };
    let fitted = square_bytes(tensor.extents(), rank, &config, settings.threads)
        .saturating_add(plan.tree_bytes() + plan.side_bytes());
    let what = || format!("the CP decompositions of rank {rank}");
    memory::foresee(building.max(fitted), what, "lower --ranks, or use --method complete")?;
    let (mut engine, _) = Engine::build(tensor.clone(), &plan, &settings.toolchain())?;
    let start = decompose_cp::Start::Random;
    Ok(decompose_cp::solve(&mut engine, start, &config, &mut watch)?)
}
