//! What a tensor train writes into `run.json`.

use decompose_tt::{KernelNote, Method, Ranks, TrainOrder, Verified};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::run::record::{Parts, SharedOptions, StartsRecord, lossy};
use crate::tt::args::Init;
use crate::tt::prepare::Facts;
use crate::tt::settings::Settings;
use crate::tt::solve::Solved;

/// All that decides a run; modes count from 1.
#[derive(Serialize)]
pub(crate) struct Options {
    method: Method,
    ranks: Json,
    eps: Option<f64>,
    max_rank: Option<usize>,
    order: String,
    init: String,
    #[serde(flatten)]
    shared: SharedOptions,
}

#[derive(Serialize)]
struct PlanRecord<'a> {
    mode_order: String,
    trees: Vec<String>,
    tree_bytes: u64,
    private_bytes: u64,
    predicted_seconds: Option<f64>,
    kernels: &'a [KernelNote],
}

#[derive(Serialize)]
struct ResultRecord<'a> {
    fit: f64,
    relative_error: f64,
    bound: Option<f64>,
    keeps_bound: Option<bool>,
    verified: Verified,
    ranks: Vec<usize>,
    mode_order: String,
    parameters: usize,
    compression: f64,
    #[serde(flatten)]
    starts: StartsRecord<'a>,
}

/// Returns what `run.json` says of the run.
pub(crate) fn parts(
    settings: &Settings,
    solved: &Solved,
    facts: &Facts,
) -> Parts<impl Serialize, impl Serialize, impl Serialize> {
    let plan = PlanRecord {
        mode_order: facts.ordering.order.to_string(),
        trees: facts.plan.trees.iter().map(ToString::to_string).collect(),
        tree_bytes: facts.forecast.trees,
        private_bytes: facts.forecast.copies,
        predicted_seconds: facts.plan.seconds,
        kernels: &solved.kernels,
    };
    Parts { command: "tt", options: options(settings), plan, result: result(solved, facts) }
}

/// Returns the options of a run as they are recorded.
pub(crate) fn options(settings: &Settings) -> Options {
    let ranks = &settings.config.ranks;
    Options {
        method: settings.config.method,
        ranks: match ranks {
            Ranks::Uniform(rank) => json!(rank),
            Ranks::Each(ranks) => json!(ranks),
            Ranks::Error { .. } => Json::Null,
        },
        eps: ranks.bound(),
        max_rank: match ranks {
            Ranks::Error { max_rank, .. } => *max_rank,
            Ranks::Uniform(_) | Ranks::Each(_) => None,
        },
        order: match &settings.order {
            None | Some(TrainOrder::Natural) => "natural".into(),
            Some(TrainOrder::Fewest) => "auto".into(),
            Some(TrainOrder::Given(order)) => order.to_string(),
        },
        init: match (&settings.resume, &settings.init) {
            (Some(_), _) => settings.checkpoint_name(),
            (None, Init::Random) => "random".into(),
            (None, Init::File(path)) => lossy(path),
        },
        shared: settings.options(),
    }
}

/// Returns the result of a run.
fn result<'a>(solved: &'a Solved, facts: &Facts) -> ResultRecord<'a> {
    let outcome = &solved.outcome;
    let starts =
        StartsRecord::new(&outcome.restarts, outcome.best, &outcome.history, outcome.seconds);
    ResultRecord {
        fit: 1.0 - outcome.verified.relative_error,
        relative_error: outcome.verified.relative_error,
        bound: outcome.bound,
        keeps_bound: outcome.keeps_bound(),
        verified: outcome.verified,
        ranks: outcome.train.ranks(),
        mode_order: facts.ordering.order.to_string(),
        parameters: outcome.train.parameters(),
        compression: outcome.compression(),
        starts,
    }
}
