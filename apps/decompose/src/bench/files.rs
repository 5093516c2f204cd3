//! The files of a run.

use std::io::Write;
use std::path::PathBuf;

use decompose_common::files;
use decompose_common::machine::MachineFacts;
use decompose_common::progress::{Screen, Verbosity};
use decompose_core::cost::Machine;
use serde_json::{Value as Json, json};

use crate::bench::ablation::{self, Ablation};
use crate::bench::figure;
use crate::bench::record::BenchRecord;
use crate::bench::settings::{Settings, Without};
use crate::bench::summary::Line;
use crate::cli::Done;
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::run::figures::Sketches;

/// Writes raw.csv, summary.csv, bench.json and the figures where they wait for the end; returns their paths.
///
/// # Errors
///
/// If a file cannot be written.
pub(crate) fn write(
    settings: &Settings,
    record: &BenchRecord,
    lines: &[Line],
    ablation: &[Ablation],
    done: Done,
) -> Result<Vec<PathBuf>, Failure> {
    let folder = settings.folder.work();
    let mut written =
        ["raw.csv", "summary.csv", "bench.json"].map(|name| folder.join(name)).to_vec();
    let whole = whole(settings, record, lines, ablation, done);
    files::replace(&written[0], |out| {
        write_raw(out, settings, record).map_err(files::table_error)
    })?;
    files::replace(&written[1], |out| {
        write_summary(out, settings, lines).map_err(files::table_error)
    })?;
    files::replace(&written[2], |out| {
        serde_json::to_writer_pretty(&mut *out, &whole)?;
        writeln!(out)
    })?;
    let mut sketches = Sketches::new(&settings.plots);
    if let Some(bars) = figure::of(settings, lines) {
        sketches.add("bench", || Ok(bars));
    }
    if let Some(ratios) = ablation::figure(ablation) {
        sketches.add("ablation", || Ok(ratios));
    }
    written.extend(sketches.write(folder));
    let screen = Screen::new(Verbosity::Normal);
    sketches.warnings.iter().for_each(|warning| screen.warn(warning));
    Ok(written)
}

fn precision(settings: &Settings) -> &'static str {
    match settings.precision {
        Precision::F64 => "f64",
        Precision::F32 => "f32",
    }
}

/// Writes a number of an optional rank.
fn rank(rank: Option<usize>) -> String {
    rank.map_or_else(String::new, |rank| rank.to_string())
}

fn write_raw(out: impl Write, settings: &Settings, record: &BenchRecord) -> csv::Result<()> {
    let mut file = csv::Writer::from_writer(out);
    file.write_record([
        "round", "program", "tensor", "rank", "threads", "precision", "quantity", "value", "unit",
        "share", "counts",
    ])?;
    for sample in &record.samples {
        let key = &sample.key;
        file.write_record([
            &sample.round.to_string(),
            &key.program,
            &key.tensor,
            &rank(key.rank),
            &key.threads.to_string(),
            precision(settings),
            &key.quantity,
            &format!("{:e}", sample.seconds),
            "s",
            &format!("{:.3}", sample.share),
            &String::from(if sample.counts { "yes" } else { "no" }),
        ])?;
    }
    Ok(file.flush()?)
}

fn write_summary(out: impl Write, settings: &Settings, lines: &[Line]) -> csv::Result<()> {
    let mut file = csv::Writer::from_writer(out);
    file.write_record([
        "program", "tensor", "rank", "threads", "precision", "quantity", "median", "lowest",
        "highest", "rounds", "unit",
    ])?;
    for line in lines {
        let key = &line.key;
        file.write_record([
            &key.program,
            &key.tensor,
            &rank(key.rank),
            &key.threads.to_string(),
            precision(settings),
            &key.quantity,
            &format!("{:e}", line.median),
            &format!("{:e}", line.lowest),
            &format!("{:e}", line.highest),
            &line.rounds.to_string(),
            "s",
        ])?;
    }
    Ok(file.flush()?)
}

/// Everything in one object.
fn whole(
    settings: &Settings,
    record: &BenchRecord,
    lines: &[Line],
    ablation: &[Ablation],
    done: Done,
) -> Json {
    let machine = Machine::here();
    let limits =
        record.limits.iter().map(|(rank, limits)| json!({ "rank": rank, "limits": limits }));
    let threads: Vec<usize> = settings.pools.iter().map(|(threads, _)| *threads).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "options": {
            "what": settings.what,
            "kernels": settings.kernels,
            "ranks": settings.ranks,
            "threads": threads,
            "rounds": settings.rounds,
            "patience_seconds": settings.patience.as_secs_f64(),
            "precision": precision(settings),
            "without": settings.without.each(),
            "ablation": settings.without == Without::EachAndAll,
            "peer": settings.peer_file,
        },
        "disturbances": record.disturbances,
        "complete": done == Done::Complete,
        "machine": MachineFacts::here(),
        "caches": {
            "l1_bytes": machine.l1_bytes,
            "l2_bytes": machine.l2_bytes,
            "l3_bytes": machine.l3_bytes,
        },
        "limits": limits.collect::<Vec<_>>(),
        "tensors": record.tensors,
        "results": lines.iter().map(result).collect::<Vec<_>>(),
        "ablation": ablation,
        "peers": settings.peers,
        "plans": record.plans,
    })
}

fn result(line: &Line) -> Json {
    json!({
        "program": line.key.program,
        "tensor": line.key.tensor,
        "rank": line.key.rank,
        "threads": line.key.threads,
        "quantity": line.key.quantity,
        "median_seconds": line.median,
        "lowest_seconds": line.lowest,
        "highest_seconds": line.highest,
        "rounds": line.rounds,
        "work": line.work,
        "gflops": line.gflops(),
        "gigabytes_per_second": line.gigabytes(),
        "bound": line.bound,
        "ratio": line.ratio(),
    })
}
