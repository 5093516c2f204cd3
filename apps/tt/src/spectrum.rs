//! The leading singular vectors of a matrix, by a method that its size and the accuracy allow.
//!
//! | method | accuracy of the singular values | time for `m x n`, `m <= n` |
//! |---|---|---|
//! | exact | rounding of the largest | `O(m^2 n)`, a large constant |
//! | Gram  | the square root of rounding of the largest | `O(m^2 n)`, a matrix product |
//!
//! The Gram matrix `A A^T` has the squares of the singular values: those below about 1e-8 of the
//! largest drown in rounding.  Where a bound on the error is asked for that is coarser, or only the
//! leading vectors matter, this is as good and several times faster.

use decompose_common::CommonError;
use decompose_common::linalg::{eigh, qr, svd};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use crate::train::Cut;

/// Multiply-adds up to which singular values are computed exactly: a few seconds.
const EXACT_WORK: f64 = 2e10;

/// What is dropped below this relative to the largest singular value is rounding: of an exact
/// decomposition, and of one by a Gram matrix.
const EXACT_NOISE: f64 = f64::EPSILON;
const GRAM_NOISE: f64 = 3e-8;

/// How singular values are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Accuracy {
    /// From orthogonal transformations: exact up to rounding.
    Exact,
    /// From the Gram matrix.
    Gram,
}

impl Accuracy {
    /// Chooses for a matrix of `m x n` and norm `norm` that is cut by `cut`.
    pub(crate) fn choose(m: usize, n: usize, cut: &Cut, norm: f64) -> Accuracy {
        let least = m.min(n) as f64;
        let work = 4.0 * m as f64 * n as f64 * least;
        // A tail that the noise of the Gram matrix would reach needs the exact way, however long.
        let fine = cut.tail > 0.0 && cut.tail < 100.0 * GRAM_NOISE * norm;
        if fine || work <= EXACT_WORK { Accuracy::Exact } else { Accuracy::Gram }
    }

    /// Returns the relative size of singular values that are rounding.
    pub(crate) fn noise(self) -> f64 {
        match self {
            Accuracy::Exact => EXACT_NOISE,
            Accuracy::Gram => GRAM_NOISE,
        }
    }
}

/// A matrix `A` (`m x n`) split at its leading singular vectors: `A ~ U diag(s) V^T`.
pub(crate) struct Split {
    /// `U`, `m x r`, orthonormal columns.
    pub(crate) left: Array2<f64>,
    /// All singular values, falling.
    pub(crate) spectrum: Vec<f64>,
    /// `V^T`, `r x n`, orthonormal rows.
    pub(crate) right: Array2<f64>,
}

impl Split {
    /// Returns the number of vectors kept.
    pub(crate) fn rank(&self) -> usize {
        self.left.ncols()
    }

    /// Returns `U diag(s)`.
    pub(crate) fn weighted_left(&self) -> Array2<f64> {
        &self.left * &Array1::from(self.spectrum[..self.rank()].to_vec())
    }

    /// Returns `diag(s) V^T`.
    pub(crate) fn weighted_right(&self) -> Array2<f64> {
        &self.right * &Array1::from(self.spectrum[..self.rank()].to_vec()).insert_axis(Axis(1))
    }

    /// Returns the squared norm of what was kept.
    pub(crate) fn energy(&self) -> f64 {
        self.spectrum[..self.rank()].iter().rev().map(|x| x * x).sum()
    }
}

/// Returns the bytes that a [`split`] of `m x n` numbers works in beside them, where at most `rank` vectors are
/// kept.
pub(crate) fn split_bytes(m: u64, n: u64, rank: u64, accuracy: Accuracy) -> u64 {
    let (least, most) = (m.min(n), m.max(n));
    let (square, whole) = (least.saturating_mul(least), least.saturating_mul(most));
    let kept = rank.min(least).saturating_mul(most);
    let numbers = match accuracy {
        // Both kinds of vectors, and their copies; those of the short side are square.  Of a long matrix a
        // triangle is made first.
        Accuracy::Exact if most > 2 * least => {
            whole.saturating_mul(3).saturating_add(square.saturating_mul(6))
        }
        Accuracy::Exact => whole.saturating_mul(3).saturating_add(square.saturating_mul(5)),
        // The Gram matrix and its decomposition; then projected rows, made orthonormal.
        Accuracy::Gram => {
            let projected = square.saturating_add(kept.saturating_mul(5));
            square.saturating_mul(EIGEN_MATRICES + 1).max(projected)
        }
    };
    numbers.saturating_mul(8)
}

/// Square matrices that the eigenvalues of one are found in: vectors, two of work, and the vectors copied.
pub(crate) const EIGEN_MATRICES: u64 = 4;

/// Splits `matrix` by `cut`.
///
/// # Errors
///
/// [`CommonError::NotFinite`] if an entry is infinite or not a number.
pub(crate) fn split(matrix: ArrayView2<'_, f64>, cut: &Cut) -> Result<Split, CommonError> {
    let (m, n) = matrix.dim();
    let norm = matrix.iter().map(|x| x * x).sum::<f64>().sqrt();
    match Accuracy::choose(m, n, cut, norm) {
        Accuracy::Exact => {
            let (u, values, vt) = svd(matrix)?;
            let rank = cut.rank(values.as_slice().unwrap_or(&[]), EXACT_NOISE);
            let left = u.slice(s![.., ..rank]).to_owned();
            Ok(Split {
                left,
                spectrum: values.to_vec(),
                right: vt.slice(s![..rank, ..]).to_owned(),
            })
        }
        Accuracy::Gram if m <= n => split_wide(matrix, cut),
        Accuracy::Gram => {
            let Split { left, spectrum, right } = split_wide(matrix.t(), cut)?;
            Ok(Split { left: right.reversed_axes(), spectrum, right: left.reversed_axes() })
        }
    }
}

/// Splits a matrix with no more rows than columns by its Gram matrix.
fn split_wide(matrix: ArrayView2<'_, f64>, cut: &Cut) -> Result<Split, CommonError> {
    let gram = matrix.dot(&matrix.t());
    let (spectrum, vectors) = of_gram(gram.view())?;
    let rank = cut.rank(&spectrum, GRAM_NOISE);
    let left = vectors.slice(s![.., ..rank]).to_owned();
    // The rows of U^T A have the lengths of the singular values to rounding; their directions are
    // made orthonormal, and what little that turns goes to the left.
    let (q, rest) = qr(left.t().dot(&matrix).t());
    let (turn, values, vt) = svd(rest.t())?;
    let mut all = spectrum;
    all.iter_mut().zip(&values).for_each(|(to, &from)| *to = from);
    Ok(Split { left: left.dot(&turn), spectrum: all, right: vt.dot(&q.t()) })
}

/// Returns the singular values, falling, and left singular vectors that belong to a Gram matrix.
pub(crate) fn of_gram(gram: ArrayView2<'_, f64>) -> Result<(Vec<f64>, Array2<f64>), CommonError> {
    let (values, vectors) = eigh(gram)?;
    let spectrum = values.iter().rev().map(|&value| value.max(0.0).sqrt()).collect();
    Ok((spectrum, vectors.slice(s![.., ..;-1]).to_owned()))
}

#[cfg(test)]
mod tests {
    use decompose_common::rng::MatrixRng;

    use super::*;

    fn example(m: usize, n: usize) -> Array2<f64> {
        let rng = MatrixRng::new(3, 1);
        let scale = |j: usize| 0.5_f64.powi(j as i32);
        let factor = |rows: usize, stream: u64| {
            Array2::from_shape_fn((rows, m.min(n)), |(i, j)| {
                scale(j).sqrt() * (rng.uniform(i as u64 + stream, j as u64) - 0.5)
            })
        };
        factor(m, 0).dot(&factor(n, 1000).t())
    }

    #[test]
    fn both_ways_agree_on_values_and_vectors() {
        for (m, n) in [(12, 40), (40, 12), (9, 9)] {
            let matrix = example(m, n);
            let cut = Cut::at(5);
            let exact = split(matrix.view(), &cut).unwrap();
            let gram = match m <= n {
                true => split_wide(matrix.view(), &cut).unwrap(),
                false => {
                    let other = split_wide(matrix.t(), &cut).unwrap();
                    let (left, right) = (other.right.reversed_axes(), other.left.reversed_axes());
                    Split { left, spectrum: other.spectrum, right }
                }
            };
            for split in [&exact, &gram] {
                assert_eq!(split.rank(), 5);
                let product = split.weighted_left().dot(&split.right);
                let again = split.left.dot(&split.weighted_right());
                let same = product.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-14);
                let eye = split.right.dot(&split.right.t()) - Array2::<f64>::eye(5);
                assert!(same && eye.iter().all(|x| x.abs() < 1e-13), "{m} {n}");
                let error = (&matrix - &product).iter().map(|x| x * x).sum::<f64>().sqrt();
                let tail = exact.spectrum[5..].iter().map(|x| x * x).sum::<f64>().sqrt();
                assert!((error / tail - 1.0).abs() < 1e-9, "{m} {n}: {error} {tail}");
                let norm: f64 = product.iter().map(|x| x * x).sum();
                assert!((split.energy() / norm - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_fine_bound_needs_the_exact_way() {
        let choose = |tail| Accuracy::choose(5000, 50_000, &Cut { tail, ..Cut::at(9) }, 1.0);
        assert_eq!(
            [choose(1e-8), choose(1e-3), choose(0.0)].map(Accuracy::noise).map(|x| x > 1e-9),
            [false, true, true]
        );
        let small = Accuracy::choose(50, 500, &Cut { tail: 1e-3, ..Cut::at(9) }, 1.0);
        assert_eq!(small, Accuracy::Exact);
    }
}
