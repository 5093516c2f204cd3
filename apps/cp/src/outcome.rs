//! What a decomposition returns.

use decompose_common::history::IterationRecord;
use decompose_common::model::CpModel;
use decompose_common::restarts::RestartReport;
use ndarray::Array2;

/// The best model of a run and how it came about.
pub struct CpOutcome<V> {
    /// The model: unit columns, weights not negative, arranged as asked.
    pub model: CpModel<V>,
    /// The number of its restart, counted from 0, in `restarts`.
    pub best: usize,
    /// Every start, in order.
    pub restarts: Vec<RestartReport>,
    /// The factor match scores between the models of the restarts, a symmetric matrix.
    pub match_scores: Array2<f64>,
    /// Every iteration of every restart.
    pub history: Vec<IterationRecord>,
    /// How the normal equations behaved.
    pub gram: GramReport,
    /// Seconds of the solver, with the part before a resumption.
    pub seconds: f64,
}

impl<V> CpOutcome<V> {
    /// Returns the report of the start that gave the model.
    pub fn best(&self) -> &RestartReport {
        &self.restarts[self.best]
    }
}

/// How the normal equations behaved, over all updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct GramReport {
    /// Updates whose matrix was numerically singular and was pseudo-inverted.
    pub singular: usize,
    /// Updates whose matrix had a condition number beyond 1e12, the singular ones included.
    pub ill_conditioned: usize,
    /// The largest condition number met (of the matrix scaled to unit diagonal).
    pub worst_condition: f64,
}

/// From this condition number on fewer than four digits of a solution can be trusted.
const ILL_CONDITIONED: f64 = 1e12;

impl GramReport {
    /// Counts one update: rank and condition number of its `R x R` matrix.
    pub(crate) fn count(&mut self, deficient: Deficiency, condition: f64) {
        self.singular += usize::from(deficient == Deficiency::Singular);
        self.ill_conditioned += usize::from(condition > ILL_CONDITIONED);
        self.worst_condition = self.worst_condition.max(condition);
    }

    /// Returns one warning if an update was ill-conditioned.
    pub fn warning(&self) -> Option<String> {
        if self.ill_conditioned == 0 {
            return None;
        }
        Some(format!(
            "the normal equations were ill-conditioned in {} updates, of which {} singular and \
             solved by pseudo-inverse (worst condition number {:.1e}): components are nearly \
             collinear; consider a lower rank or a ridge (reg)",
            self.ill_conditioned, self.singular, self.worst_condition
        ))
    }
}

/// Whether a matrix has full rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deficiency {
    /// It has.
    Regular,
    /// It has not, numerically.
    Singular,
}
