//! `run.json`: everything that is needed to understand and repeat a run.

use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::machine::{self, MachineFacts};
use decompose_common::{files, model::ModelFormat};
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::{Step, Trees};
use decompose_cp::{Arrangement, GramReport, NonNegModes, RestartReport};
use decompose_formats::io::ReadReport;
use decompose_formats::{Duplicates, Value};
use serde::Serialize;
use serde_json::Value as Json;

use crate::cp::args::{Init, Precision};
use crate::cp::compat::{Compat, StartRange};
use crate::cp::memory::Forecast;
use crate::cp::prepare::Facts;
use crate::cp::settings::{Codegen, Settings, StartFrom};
use crate::cp::solve::Solved;
use crate::failure::Failure;

/// The file's content; fields in the order written.
#[derive(Serialize)]
struct Record<'a> {
    program: &'static str,
    version: &'static str,
    command: Vec<String>,
    options: Options<'a>,
    machine: MachineFacts,
    compiler: Option<String>,
    input: InputRecord<'a>,
    plan: PlanRecord,
    memory: MemoryRecord,
    phases: Vec<PhaseRecord>,
    result: ResultRecord<'a>,
}

/// All that decides a run; modes count from 1.
#[derive(Serialize)]
pub(crate) struct Options<'a> {
    rank: usize,
    seed: u64,
    tol: f64,
    max_iters: usize,
    max_time: Option<f64>,
    reg: f64,
    nonneg: Json,
    init: String,
    start_range: StartRange,
    restarts: usize,
    dimorder: Option<String>,
    arrange: bool,
    precision: Precision,
    threads: usize,
    max_memory: Option<u64>,
    trees: Vec<String>,
    codegen: Codegen,
    duplicates: Duplicates,
    checkpoint_every: Option<usize>,
    compat: Option<Compat>,
    out: &'a Path,
    out_formats: Vec<&'static str>,
}

#[derive(Serialize)]
struct InputRecord<'a> {
    path: &'a Path,
    blake3: Option<&'a str>,
    extents: &'a [u64],
    nnz: u64,
    duplicates_merged: u64,
    read: &'a ReadReport,
}

#[derive(Serialize)]
struct PlanRecord {
    trees: Vec<String>,
    considered: usize,
    tree_bytes: u64,
    private_bytes: u64,
    kernels_compiled: usize,
    kernels_cached: usize,
    kernels_interpreted: Option<String>,
    modes: Vec<StepRecord>,
}

#[derive(Serialize)]
struct StepRecord {
    mode: usize,
    tree: String,
    expression: String,
    schedule: String,
    flops: f64,
    predicted_seconds: f64,
    measured_seconds: Option<f64>,
    source: Option<PathBuf>,
}

#[derive(Serialize)]
struct MemoryRecord {
    predicted: Forecast,
    predicted_peak: u64,
    actual_peak: Option<u64>,
}

#[derive(Serialize)]
struct PhaseRecord {
    name: &'static str,
    seconds: f64,
}

#[derive(Serialize)]
struct ResultRecord<'a> {
    fit: f64,
    relative_error: f64,
    iterations: usize,
    stop: decompose_cp::StopReason,
    best_start: usize,
    starts: &'a [RestartReport],
    match_scores: Vec<Vec<f64>>,
    weights: &'a [f64],
    normal_equations: GramReport,
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
    let name = "run.json";
    let record = Record {
        program: "decompose cp",
        version: env!("CARGO_PKG_VERSION"),
        command: std::env::args().collect(),
        options: options(settings),
        machine: MachineFacts::here(),
        compiler: match settings.toolchain() {
            Toolchain::Native(compiler) => Some(compiler.version().to_owned()),
            Toolchain::Interpreter(_) => None,
        },
        input: InputRecord {
            path: &settings.input.file,
            blake3: facts.blake3.as_deref(),
            extents: &facts.report.extents,
            nnz: facts.nnz,
            duplicates_merged: facts.merged,
            read: &facts.report,
        },
        plan: plan(solved, facts),
        memory: MemoryRecord {
            predicted: facts.forecast,
            predicted_peak: facts.forecast.peak,
            actual_peak: machine::peak_bytes(),
        },
        phases: phases(facts),
        result: result_record(solved),
    };
    files::replace(&folder.join(name), |out| {
        serde_json::to_writer_pretty(&mut *out, &record)?;
        writeln!(out)
    })?;
    Ok(name.into())
}

/// Returns the result as one JSON object.
pub(crate) fn result<V: Value>(settings: &Settings, solved: &Solved<V>, facts: &Facts) -> Json {
    serde_json::json!({
        "out": settings.folder,
        "result": result_record(solved),
        "phases": phases(facts),
        "memory_peak": machine::peak_bytes(),
        "memory_predicted": facts.forecast.peak,
    })
}

/// Returns the options of a run as they are recorded.
pub(crate) fn options(settings: &Settings) -> Options<'_> {
    let config = &settings.config;
    Options {
        rank: config.rank,
        seed: config.seed,
        tol: config.stop.tol,
        max_iters: config.stop.max_iters,
        max_time: config.stop.max_time.map(|time| time.as_secs_f64()),
        reg: config.reg,
        nonneg: match &config.nonneg {
            NonNegModes::None => Json::Null,
            NonNegModes::All => "all".into(),
            NonNegModes::Listed(modes) => modes.iter().map(|mode| mode + 1).collect(),
        },
        init: match &settings.start {
            StartFrom::Init(Init::Random) => "random".into(),
            StartFrom::Init(Init::Nvecs) => "nvecs".into(),
            StartFrom::Init(Init::File(path)) => path.display().to_string(),
            StartFrom::Checkpoint(folder) => format!("checkpoint of {}", folder.display()),
        },
        start_range: settings.range,
        restarts: config.restarts,
        dimorder: config.update_order.as_ref().map(ToString::to_string),
        arrange: config.arrangement == Arrangement::Sorted,
        precision: settings.precision,
        threads: settings.threads,
        max_memory: settings.max_memory,
        trees: match &settings.trees {
            Trees::Choose => vec!["choose".into()],
            Trees::Given(orders) => orders.iter().map(ToString::to_string).collect(),
        },
        codegen: settings.codegen,
        duplicates: settings.duplicates(),
        checkpoint_every: config.checkpoint.as_ref().map(|rule| rule.every),
        compat: settings.compat,
        out: &settings.folder,
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
    let step = |step: &Step| StepRecord {
        mode: step.mode + 1,
        tree: plan.trees[step.tree].to_string(),
        expression: step.problem.expr.to_string(),
        schedule: step.candidate.schedule.text(&step.problem.expr),
        flops: step.candidate.cost.flops,
        predicted_seconds: step.seconds,
        measured_seconds: median(
            solved.outcome.history.iter().map(|record| record.mttkrp_seconds[step.mode]),
        ),
        source: solved.sources.get(step.mode).cloned().flatten(),
    };
    PlanRecord {
        trees: plan.trees.iter().map(ToString::to_string).collect(),
        considered: plan.considered,
        tree_bytes: build.tree_bytes,
        private_bytes: build.side_bytes,
        kernels_compiled: build.compiled,
        kernels_cached: build.cached,
        kernels_interpreted: build.interpreted.clone(),
        modes: plan.steps.iter().map(step).collect(),
    }
}

fn phases(facts: &Facts) -> Vec<PhaseRecord> {
    let phases = facts.phases.0.iter();
    phases.map(|&(name, seconds)| PhaseRecord { name, seconds }).collect()
}

fn result_record<V: Value>(solved: &Solved<V>) -> ResultRecord<'_> {
    let outcome = &solved.outcome;
    let best = outcome.best();
    ResultRecord {
        fit: best.fit,
        relative_error: best.relative_error,
        iterations: best.iterations,
        stop: best.stop,
        best_start: outcome.best + 1,
        starts: &outcome.restarts,
        match_scores: outcome.match_scores.rows().into_iter().map(|row| row.to_vec()).collect(),
        weights: outcome.model.weights(),
        normal_equations: outcome.gram,
        solver_seconds: outcome.seconds,
        seconds_per_iteration: median(outcome.history.iter().map(|record| record.seconds)),
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
