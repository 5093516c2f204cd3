//! The result in a few lines, for people.

use std::fmt;

use decompose_formats::Value;

use crate::cp::prepare::Facts;
use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::run::Phases;
use crate::run::summary::Footer;

/// A finished run, shown by its `Display`.
pub(crate) struct Summary<'a, V: Value> {
    pub(crate) settings: &'a Settings,
    pub(crate) solved: &'a Solved<V>,
    pub(crate) facts: &'a Facts,
    pub(crate) phases: &'a Phases,
    pub(crate) files: &'a [String],
}

impl<V: Value> fmt::Display for Summary<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.solved.outcome;
        let best = outcome.best();
        let count = outcome.restarts.len();
        writeln!(f, "fit         {:.9} (relative error {:.3e})", best.fit, best.relative_error)?;
        let zero: Vec<String> =
            outcome.model.zero_components().iter().map(|r| (r + 1).to_string()).collect();
        if !zero.is_empty() {
            let (dead, rank) = (zero.len(), outcome.model.rank());
            let are = if dead == 1 { "is" } else { "are" };
            writeln!(f, "zero        {dead} of {rank} components {are} zero: {}", zero.join(", "))?;
        }
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
        let (phases, forecast) = (self.phases, &self.facts.forecast);
        write!(f, "{}", Footer { settings: self.settings, phases, forecast, files: self.files })
    }
}

/// A factor match score from which two models count as the same: 0.99 in each of three modes.
const SAME: f64 = 0.97;
