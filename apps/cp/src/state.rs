//! The state of alternating least squares between two updates.
//!
//! Normalising a factor would be a pass over it, so factors are normalised in the books only: the
//! factor of mode `n` that the mathematics speaks of is
//!
//! ```text
//! A_n = B_n diag(1 / s_n)
//! ```
//!
//! with `B_n` in memory and `s_n` (R numbers) beside it.  Grams follow as
//! `A_n^T A_n = diag(1/s_n) (B_n^T B_n) diag(1/s_n)`, and whatever multiplies rows of `B_n` next
//! takes the scales along.

use decompose_common::SolverError;
use decompose_common::linalg;
use decompose_common::model::CpModel;
use decompose_common::standing::Standing;
use decompose_formats::{Matrix, Panels, Value};
use ndarray::{Array1, Array2, Zip};

use crate::config::NonNegModes;

/// Everything that one start of the iteration carries from update to update.
pub(crate) struct State<V> {
    /// `B_n`, `I_n x R`.
    pub(crate) factors: Vec<Panels<V>>,
    /// `B_n^T B_n`, `R x R`.
    pub(crate) grams: Vec<Array2<f64>>,
    /// `s_n`, never zero.
    pub(crate) scales: Vec<Array1<f64>>,
    /// `lambda`, set by the latest update.
    pub(crate) weights: Array1<f64>,
    pub(crate) standing: Standing,
}

impl<V: Value> State<V> {
    /// Starts from factors taken as they are, but with absolute values in the modes of `nonneg`.
    pub(crate) fn new(mut factors: Vec<Panels<V>>, nonneg: &NonNegModes) -> State<V> {
        for (mode, factor) in factors.iter_mut().enumerate() {
            if nonneg.contains(mode) {
                for value in factor.parts_mut().iter_mut().flat_map(Matrix::as_mut_slice) {
                    *value = V::from_f64(value.to_f64().abs());
                }
            }
        }
        let rank = factors.first().map_or(0, Panels::cols);
        let grams = factors.iter().map(|factor| linalg::gram_of_panels(factor.parts())).collect();
        State {
            grams,
            scales: vec![Array1::ones(rank); factors.len()],
            weights: Array1::ones(rank),
            factors,
            standing: Standing::BEGIN,
        }
    }

    /// Multiplies `product` by `A_n^T A_n`, entry by entry.
    fn multiply_by_gram(&self, mode: usize, product: &mut Array2<f64>) {
        let scales = self.scales[mode].mapv(f64::recip);
        let rows = Zip::from(product.rows_mut()).and(self.grams[mode].rows()).and(&scales);
        rows.for_each(|row, gram, scale| {
            Zip::from(row).and(gram).and(&scales).for_each(|x, g, other| *x *= g * scale * other);
        });
    }

    /// Returns the Hadamard product of `A_m^T A_m` over all modes `m` that `keep` accepts.
    pub(crate) fn hadamard(&self, keep: impl Fn(usize) -> bool) -> Array2<f64> {
        let rank = self.weights.len();
        let mut product = Array2::ones((rank, rank));
        let kept = (0..self.factors.len()).filter(|&mode| keep(mode));
        kept.for_each(|mode| self.multiply_by_gram(mode, &mut product));
        product
    }

    /// Returns the weights that belong to the factors in memory.
    pub(crate) fn stored_weights(&self) -> Array1<f64> {
        let ones = Array1::<f64>::ones(self.weights.len());
        &self.weights / &self.scales.iter().fold(ones, |product, scale| product * scale)
    }

    /// Makes the model, with the weights and scales that belong to the factors in memory.
    pub(crate) fn into_model(self) -> Result<CpModel<V>, SolverError> {
        let weights = self.stored_weights().to_vec();
        let factors = self.factors.into_iter().map(Panels::join).collect::<Result<_, _>>()?;
        Ok(CpModel::new(weights, factors)?)
    }
}
