//! What a Tucker decomposition writes into `run.json`.

use std::path::{Path, PathBuf};

use decompose_core::sweep::Step;
use decompose_formats::Value;
use decompose_tucker::{Forming, RestartReport, StopReason};
use serde::Serialize;

use crate::failure::Failure;
use crate::run::record::{self, Parts, SharedOptions, median};
use crate::tucker::args::MethodName;
use crate::tucker::prepare::Facts;
use crate::tucker::settings::{RanksFrom, Settings, StartFrom};
use crate::tucker::solve::Solved;

/// All that decides a run; modes count from 1.
#[derive(Serialize)]
pub(crate) struct Options<'a> {
    ranks: Vec<usize>,
    eps: Option<f64>,
    method: MethodName,
    nonneg: bool,
    init: String,
    #[serde(flatten)]
    shared: SharedOptions<'a>,
}

#[derive(Serialize)]
struct PlanRecord {
    trees: Vec<String>,
    considered: usize,
    tree_bytes: u64,
    private_bytes: u64,
    work_bytes: u64,
    kernels_compiled: usize,
    kernels_cached: usize,
    kernels_interpreted: Option<String>,
    modes: Vec<StepRecord>,
}

#[derive(Serialize)]
struct StepRecord {
    /// The mode; one more than there are for the core of a nonnegative model.
    mode: usize,
    tree: String,
    forming: Option<Forming>,
    expression: String,
    schedule: String,
    flops: f64,
    predicted_seconds: f64,
    measured_seconds: Option<f64>,
    source: Option<PathBuf>,
}

/// The result of a run.
#[derive(Serialize)]
pub(crate) struct ResultRecord<'a> {
    fit: f64,
    relative_error: f64,
    ranks: &'a [usize],
    hosvd_bound: Option<f64>,
    iterations: usize,
    stop: StopReason,
    best_start: usize,
    starts: &'a [RestartReport],
    solver_seconds: f64,
    seconds_per_iteration: Option<f64>,
}

/// Writes `run.json` into `folder` and returns its name.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn write<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    folder: &Path,
) -> Result<String, Failure> {
    let parts = Parts {
        command: "tucker",
        options: options(settings),
        plan: plan(solved, facts),
        result: result(solved, facts),
    };
    record::write(settings, (&facts.tensor, facts.forecast, &facts.phases), parts, folder)
}

/// Returns the options of a run as they are recorded.
pub(crate) fn options(settings: &Settings) -> Options<'_> {
    let (ranks, eps) = match &settings.ranks {
        RanksFrom::All(rank) => (vec![*rank], None),
        RanksFrom::Each(ranks) => (ranks.clone(), None),
        RanksFrom::Error(eps) => (Vec::new(), Some(*eps)),
    };
    Options {
        ranks,
        eps,
        method: settings.method,
        nonneg: settings.nonneg,
        init: match &settings.start {
            StartFrom::Random => "random".into(),
            StartFrom::Hosvd(_) => "hosvd".into(),
            StartFrom::File(path) => path.display().to_string(),
            StartFrom::Checkpoint(folder) => format!("checkpoint of {}", folder.display()),
        },
        shared: settings.options(),
    }
}

fn plan<V: Value>(solved: &Solved<V>, facts: &Facts) -> PlanRecord {
    let (plan, build) = (&facts.plan.kernels, &facts.build);
    let history = &solved.outcome.history;
    let step = |(at, step): (usize, &Step)| StepRecord {
        mode: step.mode + 1,
        tree: plan.trees[step.tree].to_string(),
        forming: facts.plan.forming.get(step.mode).copied(),
        expression: step.problem.expr.to_string(),
        schedule: step.candidate.schedule.text(&step.problem.expr),
        flops: step.candidate.cost.flops,
        predicted_seconds: step.seconds,
        measured_seconds: median(
            history.iter().filter_map(|record| record.detail("ttmc").get(step.mode).copied()),
        ),
        source: solved.sources.get(at).cloned().flatten(),
    };
    PlanRecord {
        trees: plan.trees.iter().map(ToString::to_string).collect(),
        considered: plan.considered,
        tree_bytes: build.tree_bytes,
        private_bytes: build.side_bytes,
        work_bytes: facts.plan.work_bytes,
        kernels_compiled: build.compiled,
        kernels_cached: build.cached,
        kernels_interpreted: build.interpreted.clone(),
        modes: plan.steps.iter().enumerate().map(step).collect(),
    }
}

/// Returns the result of a run.
pub(crate) fn result<'a, V: Value>(solved: &'a Solved<V>, facts: &'a Facts) -> ResultRecord<'a> {
    let outcome = &solved.outcome;
    let best = outcome.best();
    ResultRecord {
        fit: best.fit,
        relative_error: best.relative_error,
        ranks: &facts.ranks,
        hosvd_bound: facts.bound,
        iterations: best.iterations,
        stop: best.stop,
        best_start: outcome.best + 1,
        starts: &outcome.restarts,
        solver_seconds: outcome.seconds,
        seconds_per_iteration: median(outcome.history.iter().map(|record| record.seconds)),
    }
}
