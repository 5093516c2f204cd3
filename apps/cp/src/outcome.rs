//! What a decomposition returns.

use decompose_common::SolverError;
use decompose_common::history::IterationRecord;
use decompose_common::model::CpModel;
use decompose_common::restarts::RestartReport;
use decompose_formats::{Unit, Value, counted};
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

impl<V: Value> CpOutcome<V> {
    /// Returns the outcome for data of which the solver saw the values divided by `unit`.
    ///
    /// # Errors
    ///
    /// [`SolverError::NotFinite`] for a weight beyond the range of the precision.
    pub fn in_unit(self, unit: Unit) -> Result<CpOutcome<V>, SolverError> {
        let model = self.model.in_unit(unit);
        let beyond = |&weight: &f64| !V::from_f64(weight).to_f64().is_finite();
        match model.weights().iter().position(beyond) {
            Some(at) => Err(SolverError::overflow(format!("the weight of component {}", at + 1))),
            None => Ok(CpOutcome { model, ..self }),
        }
    }

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
    /// Updates whose matrix had a condition number that leaves less than a quarter of the digits - beyond 5e11 in
    /// double precision, 2e5 in single -, the singular ones included.
    pub ill_conditioned: usize,
    /// The largest condition number met (of the matrix scaled to unit diagonal).
    pub worst_condition: f64,
}

/// The part of a number's digits of which fewer can be trusted in an ill-conditioned solution.
const DIGITS_LEFT: f64 = 0.25;

impl GramReport {
    /// Counts one update: rank and condition number of its `R x R` matrix, solved for numbers rounded to `epsilon`.
    pub(crate) fn count(&mut self, deficient: Deficiency, condition: f64, epsilon: f64) {
        self.singular += usize::from(deficient == Deficiency::Singular);
        self.ill_conditioned += usize::from(condition > epsilon.powf(DIGITS_LEFT - 1.0));
        self.worst_condition = self.worst_condition.max(condition);
    }

    /// Returns one warning if an update was ill-conditioned.
    pub fn warning(&self) -> Option<String> {
        if self.ill_conditioned == 0 {
            return None;
        }
        Some(format!(
            "the normal equations were ill-conditioned in {}, of which {} {} singular and \
             solved by pseudo-inverse (worst condition number {:.1e}): components are nearly \
             collinear; consider a lower rank or a ridge (reg)",
            counted(self.ill_conditioned, "update", "updates"),
            self.singular,
            if self.singular == 1 { "was" } else { "were" },
            self.worst_condition
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
