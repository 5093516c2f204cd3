//! Candidates beside each other.

use std::fmt::Write;

use crate::schedule::choose::{How, Pick, Selection};

/// Returns the first `top` candidates of `plan`, those predicted to be faster first.
pub(crate) fn ranked(plan: &Selection, top: usize) -> String {
    let mut text = String::new();
    let race = match &plan.how {
        How::Measured(race) => Some(race),
        _ => None,
    };
    let measured = if race.is_some() { "  measured  runs" } else { "" };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:>4}  {:>9}{measured}  {:>9}  {:>9}  {:>9}  {:>9}  {:>7}  {:<9}  schedule",
        "rank", "seconds", "one core", "flops", "gathered", "streamed", "buffers", "tree"
    );
    for (at, pick) in plan.picks.iter().enumerate().take(top) {
        let time = race.map_or(String::new(), |race| match race.times.get(at).copied().flatten() {
            Some(time) => format!("  {:>8.2e}  {:>4}", time.median_seconds, time.runs),
            None => format!("  {:>8}  {:>4}", "-", 0),
        });
        let Pick { cost, seconds, .. } = pick;
        let mark = if at == plan.chosen { "*" } else { " " };
        let _ = writeln!(
            text,
            "{:>3}{mark}  {seconds:>9.3e}{time}  {:>9.3e}  {:>9.3e}  {:>9.3e}  {:>9.3e}  {:>7}  {:<9}  {}",
            at + 1,
            cost.seconds,
            cost.flops,
            cost.gathered_bytes,
            cost.streamed_bytes,
            cost.buffer_elements,
            pick.trees_typed(),
            label(pick)
        );
    }
    if plan.picks.len() > top {
        let _ = writeln!(text, "      {} more; --top K lists more", plan.picks.len() - top);
    }
    text
}

/// Returns splits, path and nest of a candidate in one line, and what it says of the size of tasks and of vectors.
pub(crate) fn label(pick: &Pick) -> String {
    let text = pick.schedule.text(&pick.problem.expr);
    let sized = pick.schedule.parallel.is_some_and(|parallel| parallel.tasks.is_some());
    let shown = text.lines().filter_map(|line| {
        let (key, rest) = line.split_once(' ')?;
        match key {
            "path" | "nest" => Some(rest.trim().to_owned()),
            "parallel" if !sized => None,
            "split" | "divide" | "parallel" | "vectorize" => Some(format!("{key} {}", rest.trim())),
            _ => None,
        }
    });
    shown.collect::<Vec<String>>().join("; ")
}
