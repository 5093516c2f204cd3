//! What one start carries from iteration to iteration.

use decompose_common::SolverError;
use decompose_common::memory;
use decompose_common::model::TuckerModel;
use decompose_common::standing::Standing;
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
    pub(crate) standing: Standing,
}

impl<V: Value> State<V> {
    /// Starts from factors and a core.
    pub(crate) fn new(factors: Vec<Matrix<V>>, core: ArrayD<f64>) -> State<V> {
        State { factors, core, standing: Standing::BEGIN }
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
