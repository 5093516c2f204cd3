//! What a Tucker decomposition writes into `run.json`.

use decompose_formats::Value;
use decompose_tucker::{Forming, Role};
use serde::Serialize;

use crate::run::kernels::{BuildRecord, KernelRecord};
use crate::run::plan::{merging_typed, trees_typed};
use crate::run::record::{Parts, SharedOptions, StartsRecord, lossy};
use crate::tucker::args::{AboveHosvd, MethodName};
use crate::tucker::prepare::Facts;
use crate::tucker::settings::{RanksFrom, Settings, StartFrom};
use crate::tucker::solve::Solved;

/// All that decides a run; modes count from 1.
#[derive(Serialize)]
pub(crate) struct Options {
    ranks: Vec<usize>,
    eps: Option<f64>,
    method: MethodName,
    nonneg: bool,
    init: String,
    above_hosvd: AboveHosvd,
    trees: Vec<String>,
    plan: String,
    #[serde(flatten)]
    shared: SharedOptions,
}

#[derive(Serialize)]
struct PlanRecord {
    /// Sets of modes taken as one.
    merged: Vec<String>,
    /// Trees of the tensor itself, for the other modes.
    trees: Vec<String>,
    considered: usize,
    partitions_considered: usize,
    seconds_without_merging: f64,
    work_bytes: u64,
    #[serde(flatten)]
    kernels: BuildRecord,
    steps: Vec<StepRecord>,
}

#[derive(Serialize)]
struct StepRecord {
    name: String,
    /// The mode that is updated.
    mode: Option<usize>,
    runs_per_iteration: usize,
    tree: String,
    forming: Option<Forming>,
    #[serde(flatten)]
    kernel: KernelRecord,
}

#[derive(Serialize)]
struct ResultRecord<'a> {
    fit: f64,
    relative_error: f64,
    ranks: &'a [usize],
    hosvd_bound: Option<f64>,
    /// The fit of the HOSVD that the starts were compared with.
    hosvd_fit: Option<f64>,
    #[serde(flatten)]
    starts: StartsRecord<'a>,
}

/// Returns what `run.json` says of the run.
pub(crate) fn parts<'a, V: Value>(
    settings: &'a Settings,
    solved: &'a Solved<V>,
    facts: &'a Facts,
) -> Parts<impl Serialize, impl Serialize, impl Serialize> {
    Parts {
        command: "tucker",
        options: options(settings),
        plan: plan(solved, facts),
        result: result(solved, facts),
    }
}

/// Returns the options of a run as they are recorded.
pub(crate) fn options(settings: &Settings) -> Options {
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
            StartFrom::File(path) => lossy(path),
            StartFrom::Checkpoint(_) => settings.checkpoint_name(),
        },
        above_hosvd: settings.above_hosvd,
        trees: trees_typed(&settings.trees),
        plan: merging_typed(&settings.merging),
        shared: settings.options(),
    }
}

fn plan<V: Value>(solved: &Solved<V>, facts: &Facts) -> PlanRecord {
    let (plan, build) = (&facts.plan.kernels, &facts.build);
    let steps = facts.plan.steps().zip(&solved.kernels).map(|((role, step, tree), runs)| {
        let mode = if let Role::Mode(mode) = role { Some(mode) } else { None };
        let forming = mode.and_then(|mode| facts.plan.forming.get(mode).copied());
        // Windows are computed for the Gram matrix and again for the projection.
        let times = if matches!(forming, Some(Forming::Windows(_))) { 2 } else { 1 };
        StepRecord {
            name: role.to_string(),
            mode: mode.map(|mode| mode + 1),
            runs_per_iteration: step.runs * times,
            tree: tree.to_string(),
            forming,
            kernel: KernelRecord::new(step, runs),
        }
    });
    PlanRecord {
        merged: facts.plan.merged(),
        trees: plan.trees.iter().map(ToString::to_string).collect(),
        considered: plan.considered,
        partitions_considered: facts.plan.considered,
        seconds_without_merging: facts.plan.plain_seconds,
        work_bytes: facts.plan.work_bytes,
        kernels: BuildRecord::new(build),
        steps: steps.collect(),
    }
}

/// Returns the result of a run.
fn result<'a, V: Value>(solved: &'a Solved<V>, facts: &'a Facts) -> ResultRecord<'a> {
    let outcome = &solved.outcome;
    let best = outcome.best();
    let starts =
        StartsRecord::new(&outcome.restarts, outcome.best, &outcome.history, outcome.seconds);
    ResultRecord {
        fit: best.fit,
        relative_error: best.relative_error,
        ranks: &facts.ranks,
        hosvd_bound: facts.bound,
        hosvd_fit: outcome.hosvd_fit,
        starts,
    }
}
