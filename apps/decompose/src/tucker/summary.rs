//! The result in a few lines, for people.

use std::fmt;

use decompose_formats::Value;

use crate::run::Phases;
use crate::run::summary::Footer;
use crate::tucker::prepare::Facts;
use crate::tucker::settings::{Settings, times};
use crate::tucker::solve::Solved;

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
        writeln!(f, "fit         {:.9} (relative error {:.3e})", best.fit, best.relative_error)?;
        if let Some(bound) = self.facts.bound {
            writeln!(
                f,
                "bound       relative error at most {bound:.3e}, by the singular values left out"
            )?;
        }
        let followed = outcome.restarts.len() > self.settings.restarts;
        if let Some(fit) = outcome.hosvd_fit {
            let how = if followed {
                "all starts ended below, so it was continued from"
            } else {
                "less than the fit"
            };
            writeln!(f, "HOSVD       fit {fit:.9}; {how}")?;
        }
        if outcome.model.core().iter().all(|&g| g == 0.0) {
            let why = "no nonnegative model is nearer to this tensor";
            writeln!(f, "zero        the model is zero everywhere: {why}")?;
        }
        let cells = outcome.model.extents().iter().map(|&e| e as f64).product::<f64>();
        let numbers = outcome.model.core().len() as f64
            + outcome.model.factors().iter().map(|u| (u.rows() * u.cols()) as f64).sum::<f64>();
        let (ranks, nnz) = (times(&self.facts.ranks), self.facts.tensor.nnz as f64);
        writeln!(
            f,
            "model       ranks {ranks}: {numbers:.0} numbers for {nnz:.0} non-zeros of {cells:.3e} cells",
        )?;
        let count = outcome.restarts.len();
        if count > 1 {
            let number = outcome.best + 1;
            let from =
                if followed { "from the HOSVD".into() } else { format!("seed {}", best.seed) };
            writeln!(f, "best start  {number} of {count}, {from}")?;
        }
        writeln!(f, "iterations  {}; {}", best.iterations, best.stop)?;
        let (phases, forecast) = (self.phases, &self.facts.forecast);
        write!(f, "{}", Footer { settings: self.settings, phases, forecast, files: self.files })
    }
}
