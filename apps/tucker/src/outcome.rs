//! What a decomposition returns.

use decompose_common::SolverError;
use decompose_common::history::IterationRecord;
use decompose_common::model::TuckerModel;
use decompose_common::restarts::RestartReport;
use decompose_formats::{Unit, Value};

/// The best model of a run and how it came about.
pub struct TuckerOutcome<V> {
    /// The model: orthonormal factors and an all-orthogonal core; of nonnegative models, columns of
    /// 2-norm 1.
    pub model: TuckerModel<V>,
    /// The number of its restart, counted from 0, in `restarts`.
    pub best: usize,
    /// Every start, in order; last the one from a HOSVD, if all others ended below it.
    pub restarts: Vec<RestartReport>,
    /// Every iteration of every restart.
    pub history: Vec<IterationRecord>,
    /// The fit of the HOSVD below which the run does not end, if one was given beside the start.
    pub hosvd_fit: Option<f64>,
    /// Seconds of the solver, with the part before a resumption.
    pub seconds: f64,
}

impl<V: Value> TuckerOutcome<V> {
    /// Returns the outcome for data of which the solver saw the values divided by `unit`.
    ///
    /// # Errors
    ///
    /// [`SolverError::NotFinite`] for a core beyond the range of doubles.
    pub fn in_unit(self, unit: Unit) -> Result<TuckerOutcome<V>, SolverError> {
        let model = self.model.in_unit(unit);
        match model.core().iter().all(|g| g.is_finite()) {
            true => Ok(TuckerOutcome { model, ..self }),
            false => Err(SolverError::overflow("the core")),
        }
    }

    /// Returns the report of the start that gave the model.
    pub fn best(&self) -> &RestartReport {
        &self.restarts[self.best]
    }
}
