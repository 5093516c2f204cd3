//! What a completion writes into `run.json`.

use decompose_complete::{
    Algorithm, Baseline, Biases, CompleteConfig, EpochRecord, ModelKind, Quality, Range, Reg,
    StartReport, StopReason, root_mean_square,
};
use decompose_formats::io::Missing;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::complete::data::Loaded;
use crate::complete::settings::{HeldOut, Settings};
use crate::complete::solve::Solved;
use crate::run::record::{Parts, SharedOptions, lossy, median};

/// All that decides a run; modes count from 1.
#[derive(Serialize)]
pub(crate) struct Options {
    model: ModelKind,
    algorithm: Algorithm,
    loss: Json,
    /// As typed: numbers, or `auto`.
    reg: Json,
    nonneg: bool,
    biases: Biases,
    patience: usize,
    step: Option<f64>,
    ccd_inner: usize,
    ccd_block: usize,
    held_out: Json,
    mask: Option<String>,
    missing: Missing,
    #[serde(flatten)]
    shared: SharedOptions,
}

/// Facts about the data and the kernels.
#[derive(Serialize)]
struct PlanRecord {
    train_entries: usize,
    val_entries: usize,
    test_entries: usize,
    unseen_slices: Vec<u64>,
    parameters: u64,
    kernels_interpreted: Option<String>,
    build_seconds: f64,
}

#[derive(Serialize)]
struct ResultRecord<'a> {
    fit: f64,
    relative_error: f64,
    iterations: usize,
    stop: StopReason,
    /// How far the model is from a stationary point: 0 at one.
    imbalance: Option<f64>,
    best_start: usize,
    /// The ridge of the model, by block.
    reg: &'a [f64],
    /// Training entries that chose the ridge before the model was fitted to all.
    held_out_to_choose: Option<usize>,
    best: &'a EpochRecord,
    /// Of the test entries or, without them, the validation entries.
    held_out: Option<Quality>,
    offset: f64,
    baselines: &'a [Baseline],
    starts: Vec<StartRecord>,
    solver_seconds: f64,
    seconds_per_epoch: Option<f64>,
}

/// The end of one round: of a start or, where the ridge is chosen, of a start at one ridge.
#[derive(Serialize)]
struct StartRecord {
    seed: u64,
    reg: Vec<f64>,
    fit: f64,
    relative_error: f64,
    iterations: usize,
    stop: StopReason,
    error: f64,
}

/// Returns what `run.json` says of the run.
pub(crate) fn parts(
    settings: &Settings,
    solved: &Solved,
    loaded: &Loaded,
    quality: Option<Quality>,
) -> Parts<impl Serialize, impl Serialize, impl Serialize> {
    Parts {
        command: "complete",
        options: options(settings, loaded.parts.train.order()),
        plan: plan(solved, loaded),
        result: result(solved, loaded, quality),
    }
}

/// Returns the options of a run as they are recorded.
pub(crate) fn options(settings: &Settings, order: usize) -> Options {
    let CompleteConfig { model, algorithm, loss, reg, patience, step, inner, block, .. } =
        settings.config(order, 0);
    let config = settings.config(order, 0);
    Options {
        model,
        algorithm,
        loss: json!(loss),
        reg: match reg {
            Reg::Given(numbers) => json!(numbers),
            Reg::Chosen => json!("auto"),
        },
        nonneg: config.range() == Range::NonNegative,
        biases: config.biases,
        patience: patience.epochs,
        step,
        ccd_inner: inner,
        ccd_block: block,
        held_out: match &settings.held_out {
            HeldOut::Split(share, rule) => json!({ "split": share, "by": rule }),
            HeldOut::Files { val, test } => {
                json!({ "val": val.as_ref().map(lossy), "test": test.as_ref().map(lossy) })
            }
        },
        mask: settings.mask.as_deref().map(lossy),
        missing: settings.input.missing(),
        shared: settings.options(),
    }
}

fn plan(solved: &Solved, loaded: &Loaded) -> PlanRecord {
    let outcome = &solved.outcome;
    let count = |part: &Option<decompose_formats::Coo<f64>>| part.as_ref().map_or(0, |p| p.nnz());
    PlanRecord {
        train_entries: loaded.parts.train.nnz(),
        val_entries: count(&loaded.parts.val),
        test_entries: count(&loaded.parts.test),
        unseen_slices: outcome.unseen.clone(),
        parameters: outcome.network.parameters(),
        kernels_interpreted: outcome.interpreted.clone(),
        build_seconds: outcome.build_seconds,
    }
}

/// Returns the result of a run.
fn result<'a>(solved: &'a Solved, loaded: &Loaded, held_out: Option<Quality>) -> ResultRecord<'a> {
    let outcome = &solved.outcome;
    let size = root_mean_square(loaded.parts.train.values()).max(f64::MIN_POSITIVE);
    let relative = |best: &EpochRecord| best.train.rmse / size;
    let start = |start: &StartReport| StartRecord {
        seed: start.seed,
        reg: start.reg.clone(),
        fit: 1.0 - relative(&start.best),
        relative_error: relative(&start.best),
        iterations: start.epochs,
        stop: start.stop,
        error: start.best.deciding().error(),
    };
    ResultRecord {
        fit: 1.0 - relative(&outcome.best),
        relative_error: relative(&outcome.best),
        iterations: outcome.starts[outcome.best_start].epochs,
        stop: outcome.stop,
        imbalance: outcome.imbalance,
        best_start: outcome.best_start + 1,
        reg: &outcome.starts[outcome.best_start].reg,
        held_out_to_choose: outcome.held_out,
        best: &outcome.best,
        held_out,
        offset: outcome.offset,
        baselines: &outcome.baselines,
        starts: outcome.starts.iter().map(start).collect(),
        solver_seconds: outcome.seconds,
        seconds_per_epoch: median(outcome.course().skip(1).map(|record| record.seconds)),
    }
}
