//! The result in a few lines, for people.

use std::fmt;

use decompose_complete::{Quality, Reg, Scores};
use decompose_formats::counted;

use crate::cli::Done;
use crate::complete::data::{Loaded, only_value};
use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::evaluate::bits;
use crate::run::Phases;
use crate::run::summary::Footer;

/// A finished run, shown by its `Display`.
pub(crate) struct Summary<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) solved: &'a Solved,
    pub(crate) loaded: &'a Loaded,
    /// Of the held-out entries, if there are any.
    pub(crate) quality: Option<Quality>,
    pub(crate) phases: &'a Phases,
    pub(crate) files: &'a [String],
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.solved.outcome;
        let best = &outcome.best;
        let name = best.train.error_name();
        writeln!(f, "{name:<20}      training    validation          test")?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, scores: [Option<Scores>; 3]| {
            write!(f, "{name:<20}")?;
            for scores in scores {
                match scores {
                    Some(scores) => write!(f, "  {:>12}", number(scores.error()))?,
                    None => write!(f, "  {:>12}", "-")?,
                }
            }
            writeln!(f)
        };
        for b in &outcome.baselines {
            row(f, &b.name, [Some(b.train), b.val, b.test])?;
        }
        row(f, "model", [Some(best.train), best.val, best.test])?;
        let judged = best.test.or(best.val).unwrap_or(best.train);
        let r2 = self.quality.and_then(|quality| quality.r2);
        let r2 = r2.map(|r2| format!(", R2 {r2:.6}")).unwrap_or_default();
        writeln!(f, "held out    RMSE {}, MAE {}{r2}", number(judged.rmse), number(judged.mae))?;
        let quality = self.quality.and_then(|quality| quality.bits);
        for (name, text) in quality.iter().flat_map(bits) {
            writeln!(f, "{name:<12}{text}")?;
        }
        let of = |b: &decompose_complete::Baseline| b.test.or(b.val).unwrap_or(b.train).error();
        let least = outcome.baselines.iter().map(of).fold(f64::INFINITY, f64::min);
        if let Some(value) = only_value(&self.loaded.parts) {
            let why = "zeros seem not to be listed, and there is nothing to learn";
            writeln!(f, "warning     every listed value is {value}: {why}")?;
        } else if judged.error() >= least {
            let remedy = match outcome.is_unfinished() {
                true => "its fit had not ended",
                false => "try another rank, or a stronger --reg",
            };
            writeln!(f, "warning     the model predicts no better than a mean; {remedy}")?;
        }
        let epochs = outcome.starts[outcome.best_start].epochs;
        writeln!(f, "epochs      {epochs}, the best {}; {}", best.epoch, outcome.stop)?;
        let best = &outcome.starts[outcome.best_start];
        let count = outcome.starts.last().map_or(0, |last| last.start + 1);
        if self.settings.restarts > 1 {
            writeln!(f, "best start  {} of {count}", best.start + 1)?;
        }
        if self.settings.reg == Reg::Chosen {
            writeln!(f, "ridge       {}", self.choice())?;
        }
        let (phases, forecast) = (self.phases, &self.loaded.forecast);
        write!(f, "{}", Footer { settings: self.settings, phases, forecast, files: self.files })
    }
}

impl Summary<'_> {
    /// Says which ridge was chosen and by what.
    fn choice(&self) -> String {
        let outcome = &self.solved.outcome;
        let ridge = number(outcome.starts[outcome.best_start].reg.first().copied().unwrap_or(0.0));
        let rounds = outcome.starts.len();
        match outcome.held_out {
            None => {
                let fits = counted(rounds, "fit", "fits");
                format!("{ridge}, chosen of {fits} by the validation error")
            }
            Some(entries) if self.solved.done == Done::Complete => format!(
                "{ridge}, chosen of {} by {entries} of the training entries, then fitted to all",
                counted(rounds - 1, "fit", "fits")
            ),
            Some(entries) => format!("{ridge}, so far, by {entries} of the training entries"),
        }
    }
}

/// Six digits, with an exponent where they would be zeros.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && !(1e-4..1e7).contains(&size) => format!("{value:.5e}"),
        size => format!("{value:.*}", 5_usize.saturating_sub(size.max(1.0).log10() as usize)),
    }
}
