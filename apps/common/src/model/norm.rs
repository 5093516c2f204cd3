//! The norms of models, from their parts alone.
//!
//! ```text
//! CP      lambda^T (hadamard of A_n^T A_n) lambda
//! Tucker  <G, G x_1 U_1^T U_1 ... x_N U_N^T U_N>
//! train   the train contracted with itself, core by core
//! ```

use decompose_formats::{Matrix, Value};
use ndarray::{Array1, Array2, Array3, ArrayD, Axis};

use crate::linalg::gram;
use crate::model::{CpModel, Model};

impl<V: Value> Model<V> {
    /// Returns `||M||^2`, summed in `f64`.
    ///
    /// Time `O(sum I_n R^2)` for CP and Tucker, with `O(prod R_n sum R_n)` for the core of the
    /// latter; `O(sum I_k r^3)` for trains.
    pub fn norm_squared(&self) -> f64 {
        match self {
            Model::Cp(model) => of_cp(model),
            Model::Tucker(model) => tucker_norm_squared(model.core(), model.factors()),
            Model::Tt(model) => {
                let wide =
                    |core: &Array3<V>| core.mapv(V::to_f64).as_standard_layout().into_owned();
                train_norm_squared(&model.cores().iter().map(wide).collect::<Vec<_>>())
            }
        }
    }
}

fn of_cp<V: Value>(model: &CpModel<V>) -> f64 {
    let rank = model.rank();
    let ones = Array2::ones((rank, rank));
    let grams = model.factors().iter().fold(ones, |product, factor| product * gram(factor));
    let weights = Array1::from(model.weights().to_vec());
    weights.dot(&grams.dot(&weights))
}

/// Returns `||M||^2` of a Tucker model.  Time `O(sum I_n R_n^2 + prod R_n sum R_n)`.
///
/// # Panics
///
/// If a factor has another width than the core.
pub fn tucker_norm_squared<V: Value>(core: &ArrayD<f64>, factors: &[Matrix<V>]) -> f64 {
    let mut product = core.clone();
    for (mode, factor) in factors.iter().enumerate() {
        let gram = gram(factor);
        for mut lane in product.lanes_mut(Axis(mode)) {
            let times = gram.dot(&lane);
            lane.assign(&times);
        }
    }
    product.iter().zip(core).map(|(a, b)| a * b).sum()
}

/// Returns `||T||^2` of a train of row-major cores by contracting it with itself.
///
/// Time `O(sum I_k r^3)`.
///
/// # Panics
///
/// If neighbouring cores do not fit or one is not row-major.
pub fn train_norm_squared(cores: &[Array3<f64>]) -> f64 {
    let mut gram = Array2::<f64>::ones((1, 1));
    for core in cores {
        let (left, extent, right) = core.dim();
        let wide = core.view().into_shape_with_order((left, extent * right));
        // (gram G)(a, i, b), then summed with G over a and i.
        let half = gram.dot(&wide.expect("a row-major core"));
        let half = half.into_shape_with_order((left * extent, right)).expect("a row-major product");
        let tall = core.view().into_shape_with_order((left * extent, right));
        gram = tall.expect("a row-major core").t().dot(&half);
    }
    gram[(0, 0)]
}
