//! The result in a few lines, for people.

use std::fmt;

use decompose_common::machine::{peak_bytes, size};
use decompose_formats::Value;

use crate::cp::prepare::Facts;
use crate::cp::settings::Settings;
use crate::cp::solve::Solved;

/// A finished run, shown by its `Display`.
pub(crate) struct Summary<'a, V: Value> {
    pub(crate) settings: &'a Settings,
    pub(crate) solved: &'a Solved<V>,
    pub(crate) facts: &'a Facts,
    pub(crate) files: &'a [String],
}

impl<V: Value> fmt::Display for Summary<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.solved.outcome;
        let best = outcome.best();
        let count = outcome.restarts.len();
        writeln!(f, "fit         {:.9} (relative error {:.3e})", best.fit, best.relative_error)?;
        if count > 1 {
            let number = outcome.best + 1;
            writeln!(f, "best start  {number} of {count}, seed {}", best.seed)?;
            let scores = &outcome.match_scores;
            let others = (0..count).filter(|&k| k != outcome.best);
            let close = others.filter(|&k| scores[(outcome.best, k)] >= SAME).count();
            let rest = count - 1;
            writeln!(f, "stability   {close} of {rest} other starts found the same components")?;
        }
        writeln!(f, "iterations  {}; {}", best.iterations, best.stop)?;
        let phases = self.facts.phases.0.iter().filter(|(_, seconds)| *seconds >= 0.0005);
        let phases: Vec<String> =
            phases.map(|(name, seconds)| format!("{name} {seconds:.3}")).collect();
        writeln!(f, "seconds     {}", phases.join(", "))?;
        if let Some(actual) = peak_bytes() {
            let predicted = size(self.facts.forecast.peak);
            writeln!(f, "memory      {} at the peak, {predicted} expected", size(actual))?;
        }
        if self.files.is_empty() {
            return write!(f, "files       none (--nowrite)");
        }
        write!(f, "files       {}/: {}", self.settings.folder.display(), self.files.join(" "))
    }
}

/// A factor match score from which two models count as the same: 0.99 in each of three modes.
const SAME: f64 = 0.97;
