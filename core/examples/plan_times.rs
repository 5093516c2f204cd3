//! Measures how long planning a sweep of MTTKRPs takes, the counts of the tensor being known.
//!
//! ```text
//! cargo run --release -p decompose-core --example plan_times -- RANK THREADS ROUNDS FILE...
//! ```
//!
//! Each tensor is read and counted once, as `decompose cp` does, and planned ROUNDS times on THREADS threads for factors of
//! RANK columns; blocks keep their estimated counts.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use decompose_core::cost::Machine;
use decompose_core::kernels::mode_index;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{
    Merging, PlanOptions, Trees, blockings, estimate_blocks, panel_columns, plan,
};
use decompose_formats::dense::padded;
use decompose_formats::io::{Progress, ReadOptions, Source, read};
use decompose_formats::{Coo, PatternCounts};

const VALUE_BYTES: usize = 8;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at)?.parse().ok().filter(|&number: &usize| number > 0);
    let numbers = number(0).zip(number(1)).zip(number(2));
    let Some(((rank, threads), rounds)) = numbers.filter(|_| words.len() > 3) else {
        eprintln!("usage: plan_times RANK THREADS ROUNDS FILE..., numbers above 0");
        return ExitCode::from(2);
    };
    match table((rank, threads, rounds), &words[3..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a row for each tensor.
fn table(
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
        let mut planned = None;
        for _ in 0..rounds {
            let start = Instant::now();
            planned = Some(plan(counts.extents(), &pattern, &options, Machine::here())?);
            milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        }
        milliseconds.sort_by(f64::total_cmp);
        let (median, least) = (milliseconds[rounds / 2], milliseconds[0]);
        let plan = planned.ok_or("no rounds")?;
        let (partitions, seconds) = (plan.considered, plan.seconds());
        writeln!(
            out,
            "{file},{order},{rank},{threads},{median:.2},{least:.2},{partitions},{seconds:.4e}"
        )?;
    }
    Ok(())
}
