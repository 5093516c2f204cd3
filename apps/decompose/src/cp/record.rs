//! What CP-ALS writes into `run.json`.

use decompose_common::model::ModelFormat;
use decompose_core::optimisation::Optimisation;
use decompose_cp::{Arrangement, GramReport, NonNegModes};
use decompose_formats::Value;
use serde::Serialize;
use serde_json::Value as Json;

use crate::cp::args::Init;
use crate::cp::compat::{Compat, StartRange};
use crate::cp::prepare::Facts;
use crate::cp::settings::{Settings, StartFrom};
use crate::cp::solve::Solved;
use crate::run::kernels::{BuildRecord, KernelRecord};
use crate::run::plan::{merging_typed, trees_typed};
use crate::run::record::{Parts, SharedOptions, StartsRecord, lossy};

/// All that decides a run; modes count from 1.
#[derive(Serialize)]
pub(crate) struct Options {
    rank: usize,
    #[serde(flatten)]
    shared: SharedOptions,
    reg: f64,
    nonneg: Json,
    init: String,
    start_range: StartRange,
    dimorder: Option<String>,
    arrange: bool,
    trees: Vec<String>,
    plan: String,
    /// Optimisations that were left out.
    without: Vec<Optimisation>,
    compat: Option<Compat>,
    out_formats: Vec<&'static str>,
}

#[derive(Serialize)]
struct PlanRecord {
    /// Sets of modes taken as one.
    merged: Vec<String>,
    /// Columns of each panel in which factors are stored.
    panels: Vec<usize>,
    /// Trees of the tensor over these and the other modes.
    trees: Vec<String>,
    partitions_considered: usize,
    seconds_without_merging: Option<f64>,
    #[serde(flatten)]
    kernels: BuildRecord,
    steps: Vec<StepRecord>,
}

#[derive(Serialize)]
struct StepRecord {
    name: String,
    runs_per_iteration: usize,
    tree: String,
    #[serde(flatten)]
    kernel: KernelRecord,
}

#[derive(Serialize)]
struct ResultRecord<'a> {
    fit: f64,
    relative_error: f64,
    #[serde(flatten)]
    starts: StartsRecord<'a>,
    match_scores: Vec<Vec<f64>>,
    weights: &'a [f64],
    /// The numbers of the components of weight zero, from 1.
    zero_components: Vec<usize>,
    normal_equations: GramReport,
}

/// Returns what `run.json` says of the run.
pub(crate) fn parts<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
) -> Parts<impl Serialize, impl Serialize, impl Serialize> {
    Parts {
        command: "cp",
        options: options(settings),
        plan: plan(solved, facts),
        result: result(solved),
    }
}

/// Returns the options of a run as they are recorded.
pub(crate) fn options(settings: &Settings) -> Options {
    let config = &settings.config;
    Options {
        rank: config.rank,
        shared: settings.options(),
        reg: config.reg,
        nonneg: match &config.nonneg {
            NonNegModes::None => Json::Null,
            NonNegModes::All => "all".into(),
            NonNegModes::Listed(modes) => modes.iter().map(|mode| mode + 1).collect(),
        },
        init: match &settings.start {
            StartFrom::Init(Init::Random) => "random".into(),
            StartFrom::Init(Init::Nvecs) => "nvecs".into(),
            StartFrom::Init(Init::File(path)) => lossy(path),
            StartFrom::Checkpoint(_) => settings.checkpoint_name(),
        },
        start_range: settings.range,
        dimorder: config.update_order.as_ref().map(ToString::to_string),
        arrange: config.arrangement == Arrangement::Sorted,
        trees: trees_typed(&settings.trees),
        plan: merging_typed(&settings.merging),
        without: settings.optimisations.left_out().collect(),
        compat: settings.compat,
        out_formats: settings.formats.iter().map(|&format| format_name(format)).collect(),
    }
}

fn format_name(format: ModelFormat) -> &'static str {
    match format {
        ModelFormat::Npz => "npz",
        ModelFormat::Splatt => "splatt",
        ModelFormat::Ttb => "ttb",
        ModelFormat::Csv => "csv",
        _ => "other",
    }
}

fn plan<V: Value>(solved: &Solved<V>, facts: &Facts) -> PlanRecord {
    let (plan, build) = (&facts.plan, &facts.build);
    let parts = plan.parts().flat_map(|part| part.steps.iter().map(move |step| (part, step)));
    let names = plan.steps().map(|(name, _)| name);
    let steps = parts.zip(names).zip(&solved.kernels);
    let steps = steps.map(|(((part, step), name), runs)| StepRecord {
        name,
        runs_per_iteration: step.runs,
        tree: part.trees[step.tree].to_string(),
        kernel: KernelRecord::new(step, runs),
    });
    PlanRecord {
        merged: plan.merged(),
        panels: plan.panels.clone(),
        trees: plan.kernels.trees.iter().map(ToString::to_string).collect(),
        partitions_considered: plan.considered,
        seconds_without_merging: Some(plan.plain_seconds).filter(|seconds| seconds.is_finite()),
        kernels: BuildRecord::new(build),
        steps: steps.collect(),
    }
}

/// Returns the result of a run.
fn result<V: Value>(solved: &Solved<V>) -> ResultRecord<'_> {
    let outcome = &solved.outcome;
    let best = outcome.best();
    let starts =
        StartsRecord::new(&outcome.restarts, outcome.best, &outcome.history, outcome.seconds);
    ResultRecord {
        fit: best.fit,
        relative_error: best.relative_error,
        starts,
        match_scores: outcome.match_scores.rows().into_iter().map(|row| row.to_vec()).collect(),
        weights: outcome.model.weights(),
        zero_components: outcome.model.zero_components().iter().map(|r| r + 1).collect(),
        normal_equations: outcome.gram,
    }
}
