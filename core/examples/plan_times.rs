//! Measures how long planning a sweep of MTTKRPs or of TTMcs takes, the counts of the tensor being known.
//!
//! ```text
//! cargo run --release -p decompose-core --example plan_times -- mttkrp|ttmc RANK THREADS ROUNDS FILE...
//! ```
//!
//! Each tensor is read and counted once, as `decompose cp` does, and planned ROUNDS times on THREADS threads for factors of
//! RANK columns, fewer where a mode is shorter; blocks keep their estimated counts.  Of TTMcs both their own trees and merges
//! are planned, as for results that are formed whole.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use decompose_core::cost::Machine;
use decompose_core::einsum::Extents;
use decompose_core::error::CoreError;
use decompose_core::kernels::mode_index;
use decompose_core::kernels::{mode_rank_index, ttmc};
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{
    Merging, PlanOptions, SearchedKernels, Trees, TtmcSweep, blockings, estimate_blocks,
    panel_columns, plan, plan_ttmc_merges, posed,
};
use decompose_formats::dense::padded;
use decompose_formats::io::{Progress, ReadOptions, Source, read};
use decompose_formats::{Coo, PatternCounts};

const VALUE_BYTES: usize = 8;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let kernel = if words.is_empty() { String::new() } else { words.remove(0) };
    let planned = match kernel.as_str() {
        "mttkrp" => Some(mttkrps as Planning),
        "ttmc" => Some(ttmcs as Planning),
        _ => None,
    };
    let number = |at: usize| words.get(at)?.parse().ok().filter(|&number: &usize| number > 0);
    let numbers = number(0).zip(number(1)).zip(number(2));
    let Some((planned, ((rank, threads), rounds))) =
        planned.zip(numbers).filter(|_| words.len() > 3)
    else {
        eprintln!("usage: plan_times mttkrp|ttmc RANK THREADS ROUNDS FILE..., numbers above 0");
        return ExitCode::from(2);
    };
    match table(planned, (rank, threads, rounds), &words[3..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Plans a sweep over a tensor of some extents; returns how many partitions of its modes were considered, and the
/// predicted seconds.
type Planning = fn(&[u64], &Pattern, &PlanOptions) -> Result<(usize, f64), CoreError>;

fn mttkrps(
    extents: &[u64],
    pattern: &Pattern,
    options: &PlanOptions,
) -> Result<(usize, f64), CoreError> {
    let plan = plan(extents, pattern, options, Machine::here())?;
    Ok((plan.considered, plan.seconds()))
}

fn ttmcs(
    extents: &[u64],
    pattern: &Pattern,
    options: &PlanOptions,
) -> Result<(usize, f64), CoreError> {
    let modes: Vec<usize> = (0..extents.len()).collect();
    let rank = |&extent: &u64| options.rank.min(usize::try_from(extent).unwrap_or(usize::MAX));
    let ranks: Vec<usize> = extents.iter().map(rank).collect();
    let mut all: Extents = modes.iter().map(|&mode| (mode_index(mode), extents[mode])).collect();
    for &mode in &modes {
        all.set(mode_rank_index(modes.len(), mode), ranks[mode] as u64);
    }
    let problem = |&mode: &usize| {
        posed(ttmc(modes.len(), Some(mode)), all.clone(), pattern.clone(), VALUE_BYTES)
    };
    let problems: Vec<_> = modes.iter().map(problem).collect();
    let kernels = SearchedKernels::new(extents, &problems, options, Machine::here())?;
    let plain = kernels.plan(&modes)?;
    let sweep = TtmcSweep { extents, pattern, ranks: &ranks, modes: &modes };
    let (merges, considered) = plan_ttmc_merges(&sweep, &plain.steps, options, Machine::here())?;
    let merged = |mode: &usize| merges.iter().any(|merge| merge.modes.contains(mode));
    let alone: Vec<usize> = modes.iter().copied().filter(|mode| !merged(mode)).collect();
    let own = if alone.is_empty() { 0.0 } else { kernels.plan(&alone)?.seconds() };
    Ok((considered, own + merges.iter().map(|merge| merge.seconds()).sum::<f64>()))
}

/// Prints a row for each tensor.
fn table(
    planned: Planning,
    (rank, threads, rounds): (usize, usize, usize),
    files: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let mut out = io::stdout();
    writeln!(out, "file,order,rank,threads,median_ms,least_ms,partitions,predicted_seconds")?;
    for file in files {
        let source = Source::Path(file.into());
        let (coo, _): (Coo<f64>, _) = read(&source, &ReadOptions::default(), &Progress::new())?;
        let (order, counts) = (coo.order(), PatternCounts::of(&coo));
        drop(coo);
        let modes: Vec<_> = (0..order).map(mode_index).collect();
        let mut pattern = Pattern::of(&counts, &modes);
        let row = padded(panel_columns(rank, VALUE_BYTES), VALUE_BYTES) * VALUE_BYTES;
        let found = blockings(&counts, row as u64, Machine::here());
        estimate_blocks(&mut pattern, counts.extents(), found);
        let options = PlanOptions {
            rank,
            value_bytes: VALUE_BYTES,
            panels: None,
            threads,
            memory: None,
            sweeps: 50,
            trees: Trees::Choose,
            merging: Merging::Choose,
            updates: (0..order).collect(),
        };
        let mut milliseconds = Vec::with_capacity(rounds);
        let mut found = (0, 0.0);
        for _ in 0..rounds {
            let start = Instant::now();
            found = planned(counts.extents(), &pattern, &options)?;
            milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        }
        milliseconds.sort_by(f64::total_cmp);
        let (median, least) = (milliseconds[rounds / 2], milliseconds[0]);
        let (partitions, seconds) = found;
        writeln!(
            out,
            "{file},{order},{rank},{threads},{median:.2},{least:.2},{partitions},{seconds:.4e}"
        )?;
    }
    Ok(())
}
