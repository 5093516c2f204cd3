//! The reference fits of `acceptance.csv`, with the planned and compiled kernels.

use std::fs;

use decompose_cp::{CpConfig, Start, StopRule};

use crate::common;

/// Non-zeros times rank times starts times sweeps below which a row runs.
const MOST_WORK: usize = 20_000_000_000;

/// How a row is to be met.
enum Goal {
    /// From one start, to 1e-5.
    Exactly,
    /// By the best of ten starts, less this much.
    BestOfTen(f64),
    /// By some of twenty starts.
    SomeOfTwenty(f64),
    /// By none of twenty starts.
    NoneOfTwenty(f64),
}

fn goal(how: &str) -> Option<Goal> {
    if how.starts_with("|fit - value| <= 1e-5") {
        return Some(Goal::Exactly);
    }
    if how.starts_with("some start of 20 reaches fit >= 1-1e-4") {
        return Some(Goal::SomeOfTwenty(1.0 - 1e-4));
    }
    if how.starts_with("no start exceeds 0.70") {
        return Some(Goal::NoneOfTwenty(0.70));
    }
    let rest = how.strip_prefix("best of 10 starts >= value - ")?;
    rest.split_whitespace().next()?.parse().ok().map(Goal::BestOfTen)
}

/// Splits a line at commas outside quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

fn number_after(text: &str, mark: &str) -> Option<usize> {
    let rest = &text[text.find(mark)? + mark.len()..];
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Checks one row; `None` if it is not for this test.
fn check(line: &str) -> Option<()> {
    let fields = fields(line);
    let [set, name, task, settings, _, value, _, how] = fields.first_chunk::<8>()?;
    if task != "CP least squares" {
        return None;
    }
    let (rank, sweeps) = (number_after(settings, "R=")?, number_after(settings, "up to ")?);
    let (value, goal): (f64, Goal) = (value.parse().ok()?, goal(how)?);
    let starts = match goal {
        Goal::Exactly => 1,
        Goal::BestOfTen(_) => 10,
        Goal::SomeOfTwenty(_) | Goal::NoneOfTwenty(_) => 20,
    };
    let tensor = common::shared(set, name)?;
    if tensor.entries.len() * rank * starts * sweeps > MOST_WORK {
        eprintln!("skipped: {name} at rank {rank} takes minutes");
        return None;
    }
    let mut config = CpConfig::new(rank);
    config.stop = StopRule { tol: 1e-9, max_iters: sweeps, max_time: None };
    config.restarts = starts;
    let fit = common::run_compiled(&tensor, Start::Random, &config).best().fit;
    eprintln!("{name} at rank {rank}: fit {fit:.8}, reference {value:.8}");
    match goal {
        Goal::Exactly => assert!((fit - value).abs() <= 1e-5, "{name} {rank}: {fit} {value}"),
        Goal::BestOfTen(slack) => assert!(fit >= value - slack, "{name} {rank}: {fit} {value}"),
        Goal::SomeOfTwenty(least) => assert!(fit >= least, "{name} {rank}: {fit}"),
        Goal::NoneOfTwenty(most) => assert!(fit <= most, "{name} {rank}: {fit}"),
    }
    Some(())
}

#[test]
fn reference_fits_are_met() {
    let path = common::root().join("../shared/data/reference/acceptance.csv");
    let Ok(table) = fs::read_to_string(&path) else {
        eprintln!("skipped: no {}", path.display());
        return;
    };
    let met = table.lines().skip(1).filter_map(check).count();
    assert!(met > 0, "no row of {} was checked", path.display());
}
