//! The norms of models, from their parts alone.
//!
//! ```text
//! CP      lambda^T (hadamard of A_n^T A_n) lambda
//! Tucker  <G, G x_1 U_1^T U_1 ... x_N U_N^T U_N>
//! train   the train contracted with itself, core by core
//! ```

use decompose_formats::{Matrix, Value};
use ndarray::{Array, Array1, Array2, Array3, ArrayD, ArrayView, Axis, Dimension};

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

impl<V: Value> Model<V> {
    /// Returns `||M||`, also where its square overflows or vanishes.
    ///
    /// Time and memory: twice [`Model::norm_squared`], and copies of the parts, where it does.
    pub fn norm(&self) -> f64 {
        let square = self.norm_squared();
        if square.is_normal() {
            return square.sqrt();
        }
        match self {
            Model::Cp(model) => of_cp_of_any_size(model),
            Model::Tucker(model) => {
                let (core, size) = to_one(&model.core().view());
                let (mut size, mut product) = (size, core.clone());
                for (mode, factor) in model.factors().iter().enumerate() {
                    let (factor, more) = to_one(&factor.view());
                    size *= more;
                    times_gram(&mut product, mode, &factor.t().dot(&factor));
                }
                size * product.iter().zip(&core).map(|(a, b)| a * b).sum::<f64>().max(0.0).sqrt()
            }
            Model::Tt(model) => {
                let (cores, sizes): (Vec<_>, Vec<f64>) =
                    model.cores().iter().map(|core| to_one(&core.view())).unzip();
                sizes.iter().product::<f64>() * train_norm_squared(&cores).max(0.0).sqrt()
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

/// The norm of a CP model from columns and weights whose largest entries are one.
fn of_cp_of_any_size<V: Value>(model: &CpModel<V>) -> f64 {
    let mut weights = Array1::from(model.weights().to_vec());
    let mut grams = Array2::ones((model.rank(), model.rank()));
    for factor in model.factors() {
        let mut factor = factor.view().mapv(V::to_f64);
        for (mut column, weight) in factor.columns_mut().into_iter().zip(&mut weights) {
            let (scaled, size) = to_one(&column.view());
            column.assign(&scaled);
            *weight *= size;
        }
        grams *= &factor.t().dot(&factor);
    }
    let (weights, size) = to_one(&weights.view());
    size * weights.dot(&grams.dot(&weights)).max(0.0).sqrt()
}

/// Returns an array, row-major, divided by its largest entry in magnitude, and that entry; zeros stay.
fn to_one<V: Value, D: Dimension>(array: &ArrayView<'_, V, D>) -> (Array<f64, D>, f64) {
    let size = array.iter().fold(0.0, |most: f64, x| most.max(x.to_f64().abs()));
    let divisor = if size > 0.0 { size } else { 1.0 };
    (array.mapv(|x| x.to_f64() / divisor).as_standard_layout().into_owned(), size)
}

/// Multiplies `product` in `mode` by `gram`.
fn times_gram(product: &mut ArrayD<f64>, mode: usize, gram: &Array2<f64>) {
    for mut lane in product.lanes_mut(Axis(mode)) {
        let times = gram.dot(&lane);
        lane.assign(&times);
    }
}

/// Returns `||M||^2` of a Tucker model.  Time `O(sum I_n R_n^2 + prod R_n sum R_n)`.
///
/// # Panics
///
/// If a factor has another width than the core.
pub fn tucker_norm_squared<V: Value>(core: &ArrayD<f64>, factors: &[Matrix<V>]) -> f64 {
    let mut product = core.clone();
    for (mode, factor) in factors.iter().enumerate() {
        times_gram(&mut product, mode, &gram(factor));
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

#[cfg(test)]
mod tests {
    use decompose_formats::{Matrix, ModeOrder};
    use ndarray::{Array3, ArrayD, IxDyn};

    use crate::model::{CpModel, Model, TtModel, TuckerModel};

    fn matrix(rows: &[&[f64]], scale: f64) -> Matrix<f64> {
        let mut matrix = Matrix::zeros(rows.len(), rows[0].len()).unwrap();
        for (at, row) in rows.iter().enumerate() {
            let to = matrix.row_mut(at).iter_mut();
            to.zip(*row).for_each(|(to, from)| *to = scale * from);
        }
        matrix
    }

    /// Models of each kind whose cells are `scale` times those of `scale` 1.
    fn models(scale: f64) -> [Model<f64>; 3] {
        // One factor carries the scale of the second component, a weight that of the first.
        let mut a = matrix(&[&[1.0, 2.0], &[-3.0, 0.5]], 1.0);
        (0..2).for_each(|row| a.row_mut(row)[1] *= scale);
        let b = || matrix(&[&[0.5, 1.0], &[2.0, -1.0], &[1.0, 4.0]], 1.0);
        let cp = CpModel::new(vec![2.0 * scale, 3.0], vec![a, b()]).unwrap();
        let core =
            ArrayD::from_shape_fn(IxDyn(&[2, 2]), |at| scale * (1 + at[0] + 3 * at[1]) as f64);
        let tucker = TuckerModel::new(core, vec![matrix(&[&[1.0, 2.0], &[0.0, 1.0]], 1.0), b()]);
        let first = Array3::from_shape_fn((1, 2, 2), |(_, i, r)| scale * (1 + i + 2 * r) as f64);
        let last = Array3::from_shape_fn((2, 3, 1), |(r, i, _)| (1 + i) as f64 - 2.0 * r as f64);
        let train = TtModel::new(vec![first, last], ModeOrder::natural(2));
        [Model::Cp(cp), Model::Tucker(tucker.unwrap()), Model::Tt(train.unwrap())]
    }

    #[test]
    fn norms_have_any_size() {
        for (one, norm) in models(1.0).iter().map(|model| (model.kind(), model.norm())) {
            for scale in [1e-200, 1e200] {
                let other = models(scale).into_iter().find(|model| model.kind() == one).unwrap();
                let relative = other.norm() / scale / norm - 1.0;
                assert!(relative.abs() < 1e-14, "{one:?} {scale}: {relative}");
            }
        }
        assert!(models(0.0)[1].norm() == 0.0 && models(0.0)[2].norm() == 0.0);
    }
}
