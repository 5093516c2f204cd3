//! Trains of cores in double precision, as the solver works on them.
//!
//! ```text
//! T(i_1, .., i_N) = G_1[:, i_1, :] G_2[:, i_2, :] ... G_N[:, i_N, :]      G_k: r_(k-1) x I_k x r_k
//! ```
//!
//! with `r_0 = r_N = 1`.  A core is *left-orthogonal* if its `r_(k-1) I_k x r_k` matrix has
//! orthonormal columns, *right-orthogonal* if its `r_(k-1) x I_k r_k` matrix has orthonormal rows.
//! If all cores before `k` are left- and all behind right-orthogonal, `k` is the *centre* and
//! `||T|| = ||G_k||`.
//!
//! Source: Oseledets, "Tensor-Train Decomposition", SIAM J. Sci. Comput. 33, 2011.

mod gauge;
mod round;
mod vectors;

use decompose_common::CommonError;
use decompose_common::model::{TtModel, train_norm_squared};
use decompose_common::rng::MatrixRng;
use decompose_formats::{ModeOrder, Unit, Value};
use ndarray::{Array, Array2, Array3, ArrayView2, ArrayView3, Dimension};

pub use round::{Bond, Cut, Rounding};

/// The cores of a train, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Train {
    cores: Vec<Array3<f64>>,
}

impl Train {
    /// Makes a train of cores of `r_(k-1) x I_k x r_k`.
    ///
    /// # Errors
    ///
    /// [`CommonError::NotAModel`] if neighbours do not fit or an end is not 1.
    pub fn new(cores: Vec<Array3<f64>>) -> Result<Train, CommonError> {
        let natural = ModeOrder::natural(cores.len());
        Ok(Train { cores: TtModel::new(cores, natural)?.into_parts().0 })
    }

    /// Takes the cores of a model, in train order.
    pub fn of_model<V: Value>(model: &TtModel<V>) -> Train {
        Train { cores: model.cores().iter().map(|core| row_major(core.mapv(V::to_f64))).collect() }
    }

    /// Makes a model in the precision `V` whose cores belong to the modes in `order`.
    ///
    /// # Errors
    ///
    /// [`CommonError::NotAModel`] if there are not as many modes as cores.
    pub fn to_model<V: Value>(&self, order: ModeOrder) -> Result<TtModel<V>, CommonError> {
        let cores = self.cores.iter().map(|core| core.mapv(V::from_f64)).collect();
        TtModel::new(cores, order)
    }

    /// Makes a train of random numbers in `[-1/2, 1/2)` determined by `seed`.
    ///
    /// # Panics
    ///
    /// If there is not one rank a bond.
    pub fn random(extents: &[u64], ranks: &[usize], seed: u64) -> Train {
        assert_eq!(ranks.len() + 1, extents.len(), "one rank a bond");
        let ends = [&[1], ranks, &[1]].concat();
        let cores = extents.iter().enumerate().map(|(k, &extent)| {
            let rng = MatrixRng::new(seed, k as u64);
            let (left, right) = (ends[k], ends[k + 1]);
            Array3::from_shape_fn((left, extent as usize, right), |(a, i, b)| {
                rng.uniform(i as u64, (a * right + b) as u64) - 0.5
            })
        });
        Train { cores: cores.collect() }
    }

    /// Returns the cores.
    pub fn cores(&self) -> &[Array3<f64>] {
        &self.cores
    }

    /// Returns the number of cores.
    pub fn order(&self) -> usize {
        self.cores.len()
    }

    /// Returns the extents, in train order.
    pub fn extents(&self) -> Vec<u64> {
        self.cores.iter().map(|core| core.shape()[1] as u64).collect()
    }

    /// Returns the ranks of the bonds, one fewer than cores.
    pub fn ranks(&self) -> Vec<usize> {
        self.cores.iter().skip(1).map(|core| core.shape()[0]).collect()
    }

    /// Returns the number of numbers in the cores.
    pub fn parameters(&self) -> usize {
        self.cores.iter().map(Array3::len).sum()
    }

    /// Replaces core `at`; the neighbours must fit, at the latest before the next use.
    pub(crate) fn set_core(&mut self, at: usize, core: Array3<f64>) {
        self.cores[at] = row_major(core);
    }

    /// Makes it the train of data of which it has the values divided by `unit`.
    pub fn scale_to(&mut self, unit: Unit) {
        if let Some(first) = self.cores.first_mut() {
            first.mapv_inplace(|x| unit.multiply(x));
        }
    }

    /// Divides every core by a power of two that leaves its largest entry between one and two; returns the product of
    /// the powers, which may be beyond the range of doubles.
    ///
    /// Sums of squares of such cores neither overflow nor vanish, and no digit is lost.
    pub(crate) fn take_unit(&mut self) -> Unit {
        let mut unit = Unit::ONE;
        for core in &mut self.cores {
            let largest = core.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
            let own = Unit::below(largest);
            core.mapv_inplace(|x| own.divide(x));
            unit = unit.times(own);
        }
        unit
    }

    /// Returns `||T||`, also where its square overflows or vanishes.  Time `O(sum I_k r^3)`.
    pub fn norm(&self) -> f64 {
        let mut train = self.clone();
        let unit = train.take_unit();
        unit.multiply(train.norm_squared().max(0.0).sqrt())
    }

    /// Returns `||T||^2` by contracting the train with itself.  Time `O(sum I_k r^3)`.
    pub fn norm_squared(&self) -> f64 {
        train_norm_squared(&self.cores)
    }

    /// Returns the values at all tuples of coordinates of the first `k` cores, the last fastest:
    /// `prod_(j<k) I_j x r_k`.
    ///
    /// # Panics
    ///
    /// If there are not `k` cores.
    pub fn head(&self, k: usize) -> Array2<f64> {
        self.cores[..k].iter().fold(Array2::ones((1, 1)), |head, core| {
            let product = head.dot(&right_matrix(core.view()));
            let shape = (product.len() / core.shape()[2], core.shape()[2]);
            product.into_shape_with_order(shape).expect("row-major numbers")
        })
    }

    /// Returns the values at all tuples of coordinates of the cores from `k` on, the last fastest:
    /// `r_k x prod_(j>=k) I_j`.
    ///
    /// # Panics
    ///
    /// If there are not `k` cores.
    pub fn tail(&self, k: usize) -> Array2<f64> {
        self.cores[k..].iter().rev().fold(Array2::ones((1, 1)), |tail, core| {
            let product = left_matrix(core.view()).dot(&tail);
            let shape = (core.shape()[0], product.len() / core.shape()[0]);
            product.into_shape_with_order(shape).expect("row-major numbers")
        })
    }
}

/// Views a core as its `r_(k-1) I_k x r_k` matrix.
pub(crate) fn left_matrix(core: ArrayView3<'_, f64>) -> ArrayView2<'_, f64> {
    let (left, extent, right) = core.dim();
    core.into_shape_with_order((left * extent, right)).expect("cores are row-major")
}

/// Views a core as its `r_(k-1) x I_k r_k` matrix.
pub(crate) fn right_matrix(core: ArrayView3<'_, f64>) -> ArrayView2<'_, f64> {
    let (left, extent, right) = core.dim();
    core.into_shape_with_order((left, extent * right)).expect("cores are row-major")
}

/// Makes a core of a matrix with as many numbers.
pub(crate) fn core_of(matrix: Array2<f64>, shape: (usize, usize, usize)) -> Array3<f64> {
    row_major(matrix).into_shape_with_order(shape).expect("as many numbers as the core")
}

fn row_major<D: Dimension>(array: Array<f64, D>) -> Array<f64, D> {
    if array.is_standard_layout() { array } else { array.as_standard_layout().into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_tails_and_norms_agree() {
        let train = Train::random(&[4, 3, 5, 2], &[3, 4, 2], 7);
        let whole = train.head(4);
        for k in 0..=4 {
            let product = train.head(k).dot(&train.tail(k));
            let close = product.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-14);
            assert!(close && product.len() == 120, "{k}");
        }
        let norm: f64 = whole.iter().map(|x| x * x).sum();
        // Two orders of about a hundred roundings.
        assert!((train.norm_squared() / norm - 1.0).abs() < 1e-13);
        assert_eq!((train.parameters(), train.ranks()), (12 + 36 + 40 + 4, vec![3, 4, 2]));
    }

    #[test]
    fn trains_of_any_size_are_rounded_and_measured() {
        let train = Train::random(&[4, 5, 6, 3], &[3, 4, 2], 5);
        let spectra = train.spectra().unwrap();
        let vectors = train.mode_vectors(2).unwrap();
        // Powers of two change no digit; the last is spread over cores whose product is ordinary.
        for exponents in [[660, 0, 0, 0], [0, 0, -660, 0], [900, -900, 0, 0], [-400, 400, 660, 0]] {
            let power = |exponent: i32| move |x: f64| scaled_by(x, exponent);
            let cores = train.cores().iter().zip(exponents);
            let scaled = Train::new(cores.map(|(core, e)| core.mapv(power(e))).collect()).unwrap();
            let size = |x: f64| scaled_by(x, exponents.iter().sum());
            let close = |a: f64, b: f64| (a / size(b) - 1.0).abs() < 1e-11;
            assert!(close(scaled.norm(), train.norm()), "{exponents:?}");
            for (values, wanted) in scaled.spectra().unwrap().iter().zip(&spectra) {
                assert!(values.iter().zip(wanted).all(|(&a, &b)| close(a, b)), "{values:?}");
            }
            for (found, wanted) in scaled.mode_vectors(2).unwrap().iter().zip(&vectors) {
                assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9));
            }
            let cut = |train: &Train| Cut::within(0.4, train.norm(), 4, usize::MAX);
            let rounded = scaled.clone().round(&[cut(&scaled); 3]).unwrap();
            let wanted = train.clone().round(&[cut(&train); 3]).unwrap();
            assert_eq!(rounded.train.ranks(), wanted.train.ranks());
            assert!(close(rounded.train.norm(), wanted.train.norm()));
            let dropped =
                rounded.bonds.iter().zip(&wanted.bonds).map(|(a, b)| (a.dropped(), b.dropped()));
            assert!(
                dropped.into_iter().all(|(a, b)| (a - size(b)).abs() <= 1e-11 * size(train.norm()))
            );
        }
    }

    /// `x` times a power of two, in two steps.
    fn scaled_by(x: f64, exponent: i32) -> f64 {
        x * f64::from(exponent / 2).exp2() * f64::from(exponent - exponent / 2).exp2()
    }

    #[test]
    fn models_keep_cores_and_precision() {
        let train = Train::random(&[4, 3], &[2], 1);
        let order = ModeOrder::new(vec![1, 0]).unwrap();
        let model = train.to_model::<f64>(order.clone()).unwrap();
        assert_eq!((Train::of_model(&model), model.extents()), (train.clone(), vec![3, 4]));
        let single = Train::of_model(&train.to_model::<f32>(order).unwrap());
        let off = |(a, b): (&f64, &f64)| (a - b).abs() / a.abs();
        let worst = single.cores()[0].iter().zip(&train.cores()[0]).map(off).fold(0.0, f64::max);
        assert!(worst > 0.0 && worst < 1e-7, "{worst}");
        assert!(Train::new(vec![Array3::zeros((1, 2, 2)), Array3::zeros((3, 2, 1))]).is_err());
    }
}
