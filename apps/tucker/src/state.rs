//! What one start carries from iteration to iteration.

use decompose_common::SolverError;
use decompose_common::memory;
use decompose_common::model::TuckerModel;
use decompose_formats::{Matrix, Value};
use ndarray::ArrayD;

use crate::arrange::arrange;
use crate::config::Method;
use crate::dense::core_bytes;

/// A model in the making.
pub(crate) struct State<V> {
    /// `I_n x R_n`.
    pub(crate) factors: Vec<Matrix<V>>,
    /// `R_1 x ... x R_N`; zero before the first iteration of HOOI.
    pub(crate) core: ArrayD<f64>,
    /// Iterations done.
    pub(crate) iteration: usize,
    /// `1 - ||X - M|| / ||X||`; 0 before the first iteration.
    pub(crate) fit: f64,
    /// The absolute change of the fit in the last iteration.
    pub(crate) change: f64,
    /// `||X - M|| / ||X||`; 1 before the first iteration.
    pub(crate) relative_error: f64,
}

impl<V: Value> State<V> {
    /// Starts from factors and a core.
    pub(crate) fn new(factors: Vec<Matrix<V>>, core: ArrayD<f64>) -> State<V> {
        State { factors, core, iteration: 0, fit: 0.0, change: f64::INFINITY, relative_error: 1.0 }
    }

    /// Takes in the relative error at the end of an iteration.
    pub(crate) fn record(&mut self, relative_error: f64) {
        let fit = 1.0 - relative_error;
        self.change = (fit - self.fit).abs();
        self.fit = fit;
        self.relative_error = relative_error;
        self.iteration += 1;
    }

    /// Makes the model, in normal form.
    pub(crate) fn into_model(mut self, method: Method) -> Result<TuckerModel<V>, SolverError> {
        if method != Method::Nonnegative {
            memory::note(core_bytes(self.core.shape()));
            arrange(&mut self.core, &mut self.factors)?;
        }
        Ok(TuckerModel::new(self.core, self.factors)?)
    }
}
