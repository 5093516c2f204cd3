//! `run.json`: everything that is needed to understand and repeat a run.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_common::history::IterationRecord;
use decompose_common::machine::{self, MachineFacts};
use decompose_common::restarts::RestartReport;
use decompose_common::stopping::StopReason;
use decompose_formats::Duplicates;
use decompose_formats::io::ReadReport;
use ndarray::Array2;
use serde::Serialize;
use serde_json::Value as Json;

use crate::failure::Failure;
use crate::labels::{self, LabelRecord};
use crate::run::args::Precision;
use crate::run::memory::Forecast;
use crate::run::settings::{Codegen, RunSettings};
use crate::run::{Phases, RunFacts};

/// The file's content; fields in the order written.
#[derive(Serialize)]
struct Record<'a, O, P, R> {
    program: String,
    version: &'static str,
    command: Vec<String>,
    options: O,
    machine: MachineFacts,
    compiler: Option<String>,
    input: InputRecord<'a>,
    plan: P,
    memory: MemoryRecord,
    phases: Vec<PhaseRecord>,
    /// What the run could not do, and goes without.
    warnings: &'a [String],
    result: R,
}

/// What a command says of its run: its name, and its own parts of the record.
pub(crate) struct Parts<O, P, R> {
    /// `cp`.
    pub(crate) command: &'static str,
    /// With [`SharedOptions`] flattened into it.
    pub(crate) options: O,
    pub(crate) plan: P,
    pub(crate) result: R,
}

/// The shared options that decide a run.
#[derive(Serialize)]
pub(crate) struct SharedOptions {
    seed: u64,
    tol: f64,
    max_iters: usize,
    max_time: Option<f64>,
    restarts: usize,
    precision: Precision,
    threads: usize,
    max_memory: Option<u64>,
    codegen: Codegen,
    duplicates: Duplicates,
    checkpoint_every: Option<usize>,
    resume: Option<String>,
    out: String,
}

impl RunSettings {
    /// Returns the options as they are recorded.
    pub(crate) fn options(&self) -> SharedOptions {
        SharedOptions {
            seed: self.seed,
            tol: self.stop.tol,
            max_iters: self.stop.max_iters,
            max_time: self.stop.max_time.map(|time| time.as_secs_f64()),
            restarts: self.restarts,
            precision: self.precision,
            threads: self.threads,
            max_memory: self.max_memory,
            codegen: self.codegen,
            duplicates: self.duplicates(),
            checkpoint_every: self.checkpoint_every,
            resume: self.resume.as_deref().map(lossy),
            out: lossy(&self.folder),
        }
    }
}

impl RunSettings {
    /// Names the checkpoint that is resumed.
    pub(crate) fn checkpoint_name(&self) -> String {
        format!("checkpoint of {}", self.resume.as_deref().map(lossy).unwrap_or_default())
    }
}

/// The ends of all starts and their seconds, as the result has them.
#[derive(Serialize)]
pub(crate) struct StartsRecord<'a> {
    iterations: usize,
    stop: StopReason,
    best_start: usize,
    starts: &'a [RestartReport],
    solver_seconds: f64,
    seconds_per_iteration: Option<f64>,
}

impl StartsRecord<'_> {
    /// Records `starts`, of which that at `best` is kept, with the history and the seconds of all.
    pub(crate) fn new<'a>(
        starts: &'a [RestartReport],
        best: usize,
        history: &[IterationRecord],
        solver_seconds: f64,
    ) -> StartsRecord<'a> {
        let RestartReport { iterations, stop, .. } = starts[best];
        let seconds_per_iteration = median(history.iter().map(|record| record.seconds));
        let best_start = best + 1;
        StartsRecord { iterations, stop, best_start, starts, solver_seconds, seconds_per_iteration }
    }
}

#[derive(Serialize)]
struct InputRecord<'a> {
    path: String,
    blake3: Option<&'a str>,
    extents: &'a [u64],
    nnz: u64,
    duplicates_merged: u64,
    read: &'a ReadReport,
    /// Of modes whose indices have names.
    labels: Vec<LabelRecord<'a>>,
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

/// Writes `run.json` with these warnings into `folder` and returns its path.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn write<O: Serialize, P: Serialize, R: Serialize>(
    facts: &RunFacts<'_>,
    phases: &Phases,
    parts: &Parts<O, P, R>,
    folder: &Path,
    warnings: &[String],
) -> Result<PathBuf, Failure> {
    let path = folder.join("run.json");
    let RunFacts { settings, tensor, forecast, .. } = *facts;
    let record = Record {
        program: format!("decompose {}", parts.command),
        version: env!("CARGO_PKG_VERSION"),
        command: std::env::args_os().map(|word| lossy(&word)).collect(),
        options: &parts.options,
        machine: MachineFacts::here(),
        compiler: settings.toolchain().compiler().ok().map(|c| c.version().to_owned()),
        input: InputRecord {
            path: lossy(&settings.input.file),
            blake3: tensor.blake3.as_deref(),
            extents: &tensor.report.extents,
            nnz: tensor.nnz,
            duplicates_merged: tensor.merged,
            read: &tensor.report,
            labels: labels::records(&tensor.labels),
        },
        plan: &parts.plan,
        memory: MemoryRecord {
            predicted: forecast,
            predicted_peak: forecast.last(),
            actual_peak: machine::peak_bytes(),
        },
        phases: phase_records(phases),
        warnings,
        result: &parts.result,
    };
    files::replace(&path, |out| {
        serde_json::to_writer_pretty(&mut *out, &record)?;
        writeln!(out)
    })?;
    Ok(path)
}

/// Returns the facts of the event `result`, with the command's own `result`.
pub(crate) fn result(facts: &RunFacts<'_>, phases: &Phases, result: &impl Serialize) -> Json {
    serde_json::json!({
        "out": lossy(&facts.settings.folder),
        "result": result,
        "phases": phase_records(phases),
        "memory_peak": machine::peak_bytes(),
        "memory_predicted": facts.forecast.last(),
    })
}

fn phase_records(phases: &Phases) -> Vec<PhaseRecord> {
    phases.0.iter().map(|&(name, seconds)| PhaseRecord { name, seconds }).collect()
}

/// Writes `restarts.csv`: how the starts ended and, if given, the score of each with each.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn restarts(
    restarts: &[RestartReport],
    scores: Option<&Array2<f64>>,
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let path = folder.join("restarts.csv");
    files::replace(&path, |out| {
        write!(out, "restart,seed,fit,relative_error,iterations,stop")?;
        let scored = scores.map_or(0, Array2::ncols);
        (1..=scored).try_for_each(|other| write!(out, ",match_{other}"))?;
        writeln!(out)?;
        for (k, start) in restarts.iter().enumerate() {
            let (fit, error, iterations) = (start.fit, start.relative_error, start.iterations);
            let stop = start.stop.key();
            write!(out, "{},{},{fit},{error:e},{iterations},{stop}", k + 1, start.seed)?;
            let row = scores.into_iter().flat_map(|scores| scores.row(k).to_vec());
            row.into_iter().try_for_each(|score| write!(out, ",{score}"))?;
            writeln!(out)?;
        }
        Ok(())
    })?;
    Ok(path)
}

/// Returns a name that may not be Unicode as text; JSON knows no other.
pub(crate) fn lossy(name: impl AsRef<OsStr>) -> String {
    name.as_ref().to_string_lossy().into_owned()
}

/// Returns the median of `values`, the upper one of an even number.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Returns the names of `paths` within their folder.
pub(crate) fn names(paths: &[PathBuf]) -> Vec<String> {
    let named = paths.iter().filter_map(|path| path.file_name());
    named.map(|name| name.to_string_lossy().into_owned()).collect()
}
