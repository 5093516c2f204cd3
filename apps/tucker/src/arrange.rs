//! The normal form of a Tucker model with orthonormal factors.
//!
//! A rotation of a factor and its inverse in the core leave the model as it is.  Of all equal
//! models we take that with an *all-orthogonal* core: its slices are orthogonal in every mode and
//! sorted by falling norm, the mode's singular values (De Lathauwer, De Moor, Vandewalle, SIAM J.
//! Matrix Anal. Appl. 21, 2000).  The entry of every column that is largest in magnitude, the first
//! of several, is positive.

use decompose_common::SolverError;
use decompose_common::linalg::{self, RowRule};
use decompose_formats::{Matrix, Value};
use ndarray::{Array2, ArrayD};

use crate::dense::{mode_product, unfold};

/// Brings a core and orthonormal factors to normal form.  Time `O(sum I_n R_n^2)` and that of one
/// eigenvalue decomposition of `R_n x R_n` a mode.
///
/// # Errors
///
/// If a number is not finite.
pub(crate) fn arrange<V: Value>(
    core: &mut ArrayD<f64>,
    factors: &mut [Matrix<V>],
) -> Result<(), SolverError> {
    for (mode, factor) in factors.iter_mut().enumerate() {
        let gram = {
            let unfolded = unfold(core, mode);
            linalg::matmul(unfolded.view(), unfolded.t())
        };
        let (_, vectors) = linalg::eigh(gram.view())?;
        let n = vectors.nrows();
        let falling = Array2::from_shape_fn((n, n), |(i, k)| vectors[(i, n - 1 - k)]);
        linalg::update_rows(factor, &RowRule::Multiply(falling.view()));
        let signs = signs(factor);
        let turn = Array2::from_shape_fn((n, n), |(k, i)| falling[(i, k)] * signs[k]);
        *core = mode_product(core, mode, turn.view());
        for row in 0..factor.rows() {
            for (value, sign) in factor.row_mut(row).iter_mut().zip(&signs) {
                *value = V::from_f64(value.to_f64() * sign);
            }
        }
    }
    Ok(())
}

/// Returns the sign of the extreme entry of every column.
fn signs<V: Value>(factor: &Matrix<V>) -> Vec<f64> {
    let mut extremes = vec![0.0_f64; factor.cols()];
    for row in 0..factor.rows() {
        for (extreme, value) in extremes.iter_mut().zip(factor.row(row)) {
            if value.to_f64().abs() > extreme.abs() {
                *extreme = value.to_f64();
            }
        }
    }
    extremes.iter().map(|&extreme| if extreme < 0.0 { -1.0 } else { 1.0 }).collect()
}
