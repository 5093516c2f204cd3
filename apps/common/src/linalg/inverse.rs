//! The inverse of a Gram matrix, robust against singular ones.
//!
//! 1. Scale to unit diagonal, `S = D^-1 G D^-1` with `D = diag(G)^1/2`: within a factor R of the
//!    best diagonal scaling for the condition number (van der Sluis, Numer. Math. 14, 1969).  A
//!    zero on the diagonal (a dead component) keeps `D = 1`.
//! 2. Cholesky; its smallest pivot bounds the condition number from below.
//! 3. If a pivot fails or is tiny: eigenvalues, dropping those below `R * eps * largest`, where `eps` is the
//!    rounding of what is multiplied by the inverse, not that of doubles: right-hand sides summed in single precision
//!    have nothing but noise along directions that are weaker.  This is the pseudo-inverse of `S`, hence a generalised inverse of `G` and a least-squares solution
//!    for every right-hand side in the range of `G`, as those of alternating least squares are.

use ndarray::{Array1, Array2, ArrayView2, Zip};

use crate::error::CommonError;
use crate::linalg::backend;

/// Below this pivot of the unit-diagonal matrix eigenvalues take over from Cholesky, where numbers are rounded to
/// doubles: a third of their digits are left, enough for either; the eigenvalues also tell the condition.
const SMALLEST_PIVOT: f64 = 1e-10;

/// Returns the same for numbers rounded to `epsilon`.
fn smallest_pivot(epsilon: f64) -> f64 {
    SMALLEST_PIVOT * (epsilon / f64::EPSILON).powf(2.0 / 3.0)
}

/// A generalised inverse and how far to trust it.
#[derive(Clone, Debug)]
pub struct Inverse {
    /// The inverse, `R x R`, symmetric.
    pub matrix: Array2<f64>,
    /// The condition number of the unit-diagonal matrix: exact when it is large, a lower bound
    /// when the matrix is well conditioned, infinite when it is singular.
    pub condition: f64,
    /// The number of eigenvalues kept; R unless the matrix is numerically singular.
    pub rank: usize,
}

/// Inverts the symmetric positive semi-definite `gram` (`R x R`) as the module says, for right-hand sides that
/// are rounded to `epsilon`, as [`Value::EPSILON`](decompose_formats::Value::EPSILON).
///
/// Time `O(R^3)`.  Never yields a value that is not a number.
///
/// # Errors
///
/// [`CommonError::NotFinite`] if an entry of `gram` is infinite or not a number.
///
/// # Example
///
/// ```
/// let ones = ndarray::Array2::<f64>::ones((2, 2)); // singular
/// let inverse = decompose_common::linalg::invert_spd(ones.view(), f64::EPSILON).expect("finite entries");
/// assert_eq!(inverse.rank, 1);
/// assert!((inverse.matrix[(0, 1)] - 0.25).abs() < 1e-15);
/// ```
pub fn invert_spd(gram: ArrayView2<'_, f64>, epsilon: f64) -> Result<Inverse, CommonError> {
    if gram.iter().any(|x| !x.is_finite()) {
        return Err(CommonError::NotFinite("Gram matrix"));
    }
    let n = gram.nrows();
    let scale: Array1<f64> = gram.diag().mapv(|x| if x > 0.0 { x.sqrt().recip() } else { 1.0 });
    let rescale = |mut matrix: Array2<f64>| {
        Zip::from(matrix.rows_mut()).and(&scale).for_each(|row, one| {
            // One after the other: their product may overflow.
            Zip::from(row).and(&scale).for_each(|x, other| *x = *x * one * other);
        });
        matrix
    };
    let unit = rescale(gram.to_owned());
    let (matrix, condition, rank) = match backend::cholesky_inverse(unit.view()) {
        Some((inverse, pivot)) if pivot > smallest_pivot(epsilon) => (inverse, pivot.recip(), n),
        _ => pseudo_inverse(unit.view(), epsilon)?,
    };
    Ok(Inverse { matrix: rescale(matrix), condition, rank })
}

/// Returns the pseudo-inverse by eigenvalues, the condition number and the rank.
fn pseudo_inverse(
    a: ArrayView2<'_, f64>,
    epsilon: f64,
) -> Result<(Array2<f64>, f64, usize), CommonError> {
    let n = a.nrows();
    let (values, vectors) = backend::eigh(a)?;
    let largest = values.iter().copied().fold(0.0, f64::max);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let cutoff = n as f64 * epsilon * largest;
    let kept: Vec<usize> = (0..n).filter(|&k| values[k] > cutoff).collect();
    let mut inverse = Array2::zeros((n, n));
    for &k in &kept {
        let v = vectors.column(k);
        for i in 0..n {
            inverse.row_mut(i).scaled_add(v[i] / values[k], &v);
        }
    }
    let condition = if smallest > cutoff { largest / smallest } else { f64::INFINITY };
    Ok((inverse, condition, kept.len()))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;

    fn close(a: &Array2<f64>, b: &Array2<f64>, tol: f64) -> bool {
        a.iter().zip(b).all(|(x, y)| (x - y).abs() <= tol * (1.0 + y.abs()))
    }

    #[test]
    fn a_regular_matrix_is_inverted() {
        let a = array![[4.0, 1.0, 0.0], [1.0, 3e6, -1.0], [0.0, -1.0, 2e-6]];
        let inverse = invert_spd(a.view(), f64::EPSILON).unwrap();
        assert_eq!(inverse.rank, 3);
        assert!(close(&a.dot(&inverse.matrix), &Array2::eye(3), 1e-9), "{:?}", inverse.matrix);
    }

    #[test]
    fn singular_matrices_get_a_generalised_inverse() {
        let b = array![[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0], [3.0, 1.0, 0.0, 3.0]];
        let a = b.t().dot(&b); // rank 2: a zero column and a repeated one
        let inverse = invert_spd(a.view(), f64::EPSILON).unwrap();
        assert_eq!(inverse.rank, 2);
        assert!(inverse.condition.is_infinite());
        assert!(close(&a.dot(&inverse.matrix).dot(&a), &a, 1e-12));
    }

    #[test]
    fn ill_conditioned_matrices_report_their_condition() {
        let c: f64 = 1.0 - 1e-12;
        let inverse = invert_spd(array![[1.0, c], [c, 1.0]].view(), f64::EPSILON).unwrap();
        assert_eq!(inverse.rank, 2);
        assert!((inverse.condition / 2e12 - 1.0).abs() < 1e-2, "{}", inverse.condition);
    }

    #[test]
    fn directions_that_single_precision_cannot_tell_are_dropped() {
        let c: f64 = 1.0 - 1e-9;
        let narrow = f64::from(f32::EPSILON);
        let nearly = array![[1.0, c], [c, 1.0]];
        assert_eq!(invert_spd(nearly.view(), f64::EPSILON).unwrap().rank, 2);
        let inverse = invert_spd(nearly.view(), narrow).unwrap();
        assert_eq!((inverse.rank, inverse.condition), (1, f64::INFINITY));
        assert!(inverse.matrix.iter().all(|x| (x - 0.25).abs() < 1e-8), "{:?}", inverse.matrix);
        let sound = array![[1.0, 0.9], [0.9, 1.0]];
        assert_eq!(invert_spd(sound.view(), narrow).unwrap().rank, 2);
    }

    #[test]
    fn extremes_stay_finite() {
        for a in [
            Array2::zeros((3, 3)),
            Array2::from_elem((1, 1), 1e-300),
            Array2::ones((5, 5)),
            Array2::eye(2) * 1e-307,
        ] {
            let inverse = invert_spd(a.view(), f64::EPSILON).unwrap();
            assert!(inverse.matrix.iter().all(|x| x.is_finite()), "{a:?}");
        }
        let bad = Array2::from_elem((2, 2), f64::NAN);
        assert!(matches!(invert_spd(bad.view(), f64::EPSILON), Err(CommonError::NotFinite(_))));
    }
}
