//! The result in a few lines, for people.

use std::fmt;

use decompose_formats::stats::grouped;
use decompose_tt::{Measured, Ranks, TtOutcome};

use crate::run::Phases;
use crate::run::summary::Footer;
use crate::tt::prepare::Facts;
use crate::tt::settings::{Settings, joined};
use crate::tt::solve::Solved;

/// A finished run, shown by its `Display`.
pub(crate) struct Summary<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) solved: &'a Solved,
    pub(crate) facts: &'a Facts,
    pub(crate) phases: &'a Phases,
    pub(crate) files: &'a [String],
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.solved.outcome;
        let best = outcome.best();
        writeln!(f, "error       {}", error(outcome))?;
        let (order, ranks) = (&self.facts.ordering.order, joined(&outcome.train.ranks(), "-"));
        writeln!(f, "train       ranks {ranks}, modes {order}; {}", numbers(outcome))?;
        if outcome.restarts.len() > 1 {
            let (number, count) = (outcome.best + 1, outcome.restarts.len());
            writeln!(f, "best start  {number} of {count}, seed {}", best.seed)?;
        }
        writeln!(f, "iterations  {}; {}", best.iterations, best.stop)?;
        let (phases, forecast) = (self.phases, &self.facts.forecast);
        write!(f, "{}", Footer { settings: self.settings, phases, forecast, files: self.files })
    }
}

/// The measured error, how it was measured, and the bound asked for.
fn error(outcome: &TtOutcome) -> String {
    let verified = &outcome.verified;
    let how = match verified.measured {
        Measured::InnerProduct => "measured by <X,T> over the non-zeros",
        Measured::Cells => "measured cell by cell",
        Measured::Entries => "at most, measured at the non-zeros",
    };
    let error = match verified.relative_error < verified.floor {
        true => format!("under {:.1e}", verified.floor),
        false => format!("{:.6e}", verified.relative_error),
    };
    let bound = match (outcome.bound, outcome.keeps_bound()) {
        (Some(bound), Some(true)) => format!("; the bound {bound:e} is kept"),
        (Some(bound), _) => format!("; the bound {bound:e} is NOT kept"),
        (None, _) => String::new(),
    };
    format!("{error} of ||X||, {how}{bound}")
}

fn numbers(outcome: &TtOutcome) -> String {
    let numbers = grouped(outcome.train.parameters() as u64);
    format!("{numbers} numbers, {} times fewer than cells", times(outcome.compression()))
}

/// Writes a ratio with three digits.
pub(crate) fn times(ratio: f64) -> String {
    if ratio >= 1e5 { format!("{ratio:.2e}") } else { format!("{ratio:.1}") }
}

/// Returns what was asked of the ranks.
pub(crate) fn asked(ranks: &Ranks) -> String {
    match ranks {
        Ranks::Uniform(rank) => format!("rank {rank}"),
        Ranks::Each(ranks) => format!("ranks {}", joined(ranks, "-")),
        Ranks::Error { eps, max_rank: None } => format!("error under {eps:e}"),
        Ranks::Error { eps, max_rank: Some(rank) } => {
            format!("error under {eps:e} with ranks up to {rank}")
        }
    }
}
