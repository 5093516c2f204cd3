//! Measures every schedule of partition templates, and what searches by Thompson sampling would have found.
//!
//! ```text
//! cargo run --release -p decompose-core --example sampling_times -- THREADS ROUNDS EXPR EXTENTS FILE...
//! ```
//!
//! `EXTENTS` names those of indices that no file has, as `k=128,l=64`, or is `-`.  The first operand of `EXPR` is read
//! from `FILE`.  Each round runs every schedule once, after a run that does not count.  Prints
//! `round,program,tensor,rank,threads,precision,quantity,value,unit`, a line a run; programs are schedules, named by
//! split schedule, template and setting.
//!
//! With 0 rounds nothing runs: such lines are read from the standard input.
//!
//! Searches are then replayed with the medians of the rounds, 300 seeds each.  To the standard error go, for each file,
//!
//! - what a search takes whose measurements are a tenth of the schedules, beside the best of all schedules;
//! - how many measurements, and seconds of runs, a search needs until it meets a schedule of 1.1 times the best time;
//! - the same without the split schedule of the most schedules, if it has none of those.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;

use decompose_core::autoschedule::partition::{Arms, BanditConfig, Listing, Point, thompson};
use decompose_core::autoschedule::{SearchLimits, storages};
use decompose_core::contract::{Request, Sampling, sample};
use decompose_core::cost::Machine;
use decompose_core::einsum::{Expr, Index};
use decompose_core::runtime::Toolchain;
use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, PatternCounts};

/// Searches of each kind.
const SEEDS: u64 = 300;

/// A time near the best.
const NEAR: f64 = 1.1;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [threads, rounds, expr, extents, files @ ..] = words.as_slice() else {
        return Err("sampling_times THREADS ROUNDS EXPR EXTENTS FILE...".into());
    };
    let (threads, rounds) = (threads.parse()?, rounds.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let expr: Expr = expr.parse()?;
    let known = match rounds {
        0 => runs_read()?,
        _ => Vec::new(),
    };
    for file in files {
        let read = io::read::<f64>(&Source::new(file), &ReadOptions::default(), &Progress::new());
        let mut list = read?.0;
        list.sum_duplicates()?;
        let listing = listing(&expr, extents, &list, threads)?;
        let mut seconds = measured(&listing, (file, extents, threads), list, rounds)?;
        if rounds == 0 {
            seconds = medians(known.iter().filter(|run| run.0 == *file).map(|run| (run.1, run.2)));
        }
        replay(file, &listing.arms().0, &seconds)?;
    }
    Ok(())
}

/// Lists the schedules of `expr` on `list`.
fn listing(
    expr: &Expr,
    extents: &str,
    list: &Coo<f64>,
    threads: usize,
) -> Result<Listing, Box<dyn Error>> {
    let mut known: BTreeMap<Index, u64> = BTreeMap::new();
    for word in extents.split(',').filter(|word| *word != "-") {
        let (index, extent) = word.split_once('=').ok_or("EXTENTS are written as k=128,l=64")?;
        let letter = index.chars().next().ok_or("an extent without an index")?;
        known.insert(Index::new(letter).ok_or("an index is a letter")?, extent.parse()?);
    }
    known.extend(expr.inputs[0].indices.iter().copied().zip(list.extents().iter().copied()));
    let mut shapes = vec![Vec::new()];
    for input in &expr.inputs[1..] {
        let extent = |index| known.get(index).copied().ok_or(format!("{index} has no extent"));
        shapes.push(input.indices.iter().map(extent).collect::<Result<Vec<u64>, String>>()?);
    }
    let base = Request::new(expr.clone(), 0, &PatternCounts::of(list), &shapes)?.problem_on(&[]);
    let machine = Machine { threads, ..Machine::here().clone() };
    Ok(Listing::on_best_storage(&base, &storages(&base), &machine, &SearchLimits::all())?)
}

/// Runs all schedules in `rounds` rounds, prints the times, and returns their medians.
fn measured(
    listing: &Listing,
    (file, extents, threads): (&str, &str, usize),
    list: Coo<f64>,
    rounds: usize,
) -> Result<BTreeMap<Point, f64>, Box<dyn Error>> {
    let mut all: BTreeMap<Point, Vec<f64>> = BTreeMap::new();
    let tensors = [(0, list)];
    let config = BanditConfig { finalists: 0, ..BanditConfig::default() };
    let mut out = std::io::stdout().lock();
    let (_, listed) = listing.arms();
    for round in 1..=rounds {
        let toolchain = Toolchain::detect();
        let how = (&config, Sampling::Exhaustive);
        let sampled = sample(&tensors, listing, &toolchain, how, &|| false)?;
        for (point, runs) in sampled.runs {
            let Some(&seconds) = runs.first() else { continue };
            let Point { split, template, setting } = point;
            let name = format!("{}.{}.{}", split + 1, template + 1, setting + 1);
            let rank = extents.replace(',', " ");
            let rest = format!("{name},{file},{rank},{threads},f64");
            if round == 1 {
                let predicted = listed(point).seconds;
                writeln!(out, "0,{rest},predicted,{predicted:.5e},s")?;
            }
            writeln!(out, "{round},{rest},run,{seconds:.5e},s")?;
            all.entry(point).or_default().push(seconds);
        }
    }
    Ok(medians(
        all.into_iter().flat_map(|(point, all)| all.into_iter().map(move |one| (point, one))),
    ))
}

/// Returns the median of the seconds of each schedule.
fn medians(runs: impl Iterator<Item = (Point, f64)>) -> BTreeMap<Point, f64> {
    let mut all: BTreeMap<Point, Vec<f64>> = BTreeMap::new();
    for (point, seconds) in runs {
        all.entry(point).or_default().push(seconds);
    }
    all.into_iter().map(|(point, seconds)| (point, median(seconds))).collect()
}

/// A run: file, schedule, seconds.
type Run = (String, Point, f64);

/// Reads the lines of runs from the standard input.
fn runs_read() -> Result<Vec<Run>, Box<dyn Error>> {
    let mut runs = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(',').collect();
        let [_, name, file, _, _, _, "run", seconds, _] = words.as_slice() else { continue };
        let places: Vec<usize> = name.split('.').map(str::parse).collect::<Result<_, _>>()?;
        let [split, template, setting] = places.as_slice() else { continue };
        let point = Point { split: split - 1, template: template - 1, setting: setting - 1 };
        runs.push(((*file).to_owned(), point, seconds.parse()?));
    }
    Ok(runs)
}

/// What searches needed.
struct Needed {
    measurements: f64,
    seconds: f64,
}

/// Replays searches and tells what they find and need.
fn replay(file: &str, arms: &Arms, seconds: &BTreeMap<Point, f64>) -> Result<(), Box<dyn Error>> {
    let time = |point: Point| seconds.get(&point).copied().unwrap_or(f64::INFINITY);
    let best = seconds.values().copied().fold(f64::INFINITY, f64::min);
    let count = seconds.len();
    let tenth = (count / 10).max(1);
    let mut err = std::io::stderr().lock();
    let found = |seed: u64| {
        let config = BanditConfig {
            seed,
            max_measurements: tenth,
            budget_seconds: f64::INFINITY,
            ..BanditConfig::default()
        };
        let mut clock = |point, runs: usize| Ok::<f64, ()>(time(point) * runs as f64);
        let report = thompson(arms, &config, &mut clock).unwrap_or_else(|()| unreachable!());
        report.best.map_or(f64::INFINITY, |best| best.seconds)
    };
    let mut ratios: Vec<f64> = (0..SEEDS).map(|seed| found(seed) / best).collect();
    ratios.sort_by(f64::total_cmp);
    let (middle, high) = (ratios[ratios.len() / 2], ratios[ratios.len() * 9 / 10]);
    writeln!(
        err,
        "{file}: {count} schedules, best {best:.3e} s; {tenth} measurements find {middle:.3} of it, \
         nine of ten searches {high:.3}"
    )?;
    let all = needed(arms, &time, best);
    let of = |needed: &Needed| {
        format!("{} measurements, {:.3e} s of runs", needed.measurements, needed.seconds)
    };
    writeln!(err, "{file}: {} until {NEAR} times the best", of(&all))?;
    let schedules = |split: usize| arms.splits[split].iter().map(Vec::len).sum::<usize>();
    let Some(largest) = (0..arms.splits.len()).max_by_key(|&split| schedules(split)) else {
        return Ok(());
    };
    let own = seconds.iter().filter(|(point, _)| point.split == largest);
    let least = own.map(|(_, &seconds)| seconds).fold(f64::INFINITY, f64::min);
    let hole = format!("split schedule {} of {} schedules", largest + 1, schedules(largest));
    if least <= NEAR * best {
        return Ok(writeln!(err, "{file}: {hole} takes {:.3} of the best", least / best)?);
    }
    let mut rest = arms.clone();
    rest.splits[largest].clear();
    let without = needed(&rest, &time, best);
    Ok(writeln!(
        err,
        "{file}: {} without {hole}, which takes {:.3} of the best: {:.3} of the measurements and {:.3} of the seconds",
        of(&without),
        least / best,
        all.measurements / without.measurements,
        all.seconds / without.seconds
    )?)
}

/// Returns the medians of what searches need until they meet a time near `best`.
fn needed(arms: &Arms, time: &dyn Fn(Point) -> f64, best: f64) -> Needed {
    let one = |seed: u64| {
        let config = BanditConfig {
            seed,
            max_measurements: usize::MAX,
            budget_seconds: f64::INFINITY,
            ..BanditConfig::default()
        };
        let (mut measurements, mut spent) = (0.0, 0.0);
        let mut clock = |point: Point, _: usize| {
            measurements += 1.0;
            spent += time(point);
            if time(point) > NEAR * best { Ok(time(point)) } else { Err(()) }
        };
        // It ends where it meets one.
        let _ = thompson(arms, &config, &mut clock);
        (measurements, spent)
    };
    let (measurements, seconds): (Vec<f64>, Vec<f64>) = (0..SEEDS).map(one).unzip();
    Needed { measurements: median(measurements), seconds: median(seconds) }
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
