//! One small symmetric system a row: the normal equations of row-wise least squares.

use decompose_formats::simd;
use ndarray::ArrayView2;

use crate::error::CommonError;
use crate::linalg::invert_spd;

/// A pivot below this share of its diagonal element is rounding: eigenvalues take over.
const SMALLEST_PIVOT: f64 = 1e-12;

/// Solves `A x = b` for the symmetric positive semi-definite `A` (`n x n`, row-major); `b` becomes
/// `x`, and `scratch` is memory that calls share.
///
/// By Cholesky, `A = U^T U`; a numerically singular matrix gets a generalised inverse, which yields
/// a least-squares solution where `b` is in its range ([`invert_spd`]).  Time `n^3 / 3` multiply-adds.
///
/// # Errors
///
/// [`CommonError::NotFinite`] if `A` has an entry that is infinite or not a number.
///
/// # Example
///
/// ```
/// let (a, mut b) = ([4.0, 2.0, 2.0, 5.0], [8.0, 8.0]);
/// decompose_common::linalg::solve_spd(&a, &mut b, &mut Vec::new()).expect("finite entries");
/// assert!((b[0] - 1.5).abs() < 1e-15 && (b[1] - 1.0).abs() < 1e-15);
/// ```
pub fn solve_spd(a: &[f64], b: &mut [f64], scratch: &mut Vec<f64>) -> Result<(), CommonError> {
    let n = b.len();
    scratch.clear();
    scratch.extend_from_slice(a);
    match simd::run(|| factorise(scratch, a, n)) {
        Pivots::Sound => simd::run(|| substitute(scratch, b)),
        Pivots::Tiny => {
            let view = ArrayView2::from_shape((n, n), a);
            let view = view.map_err(|e| CommonError::NotAModel(e.to_string()))?;
            let inverse = invert_spd(view, f64::EPSILON)?.matrix;
            let rows = inverse.rows().into_iter();
            let x: Vec<f64> =
                rows.map(|row| row.iter().zip(&*b).map(|(a, b)| a * b).sum()).collect();
            b.copy_from_slice(&x);
        }
    }
    Ok(())
}

/// Improves `x >= 0` for `min x^T A x - 2 b^T x` with the symmetric `A` (`n x n`) by cyclic
/// coordinate descent until a pass moves it by less than `1e-8`, relative; `b` is overwritten by the
/// gradient `b - A x`.
///
/// Every step minimises exactly over one coordinate, so the objective never rises.
pub fn descend_nonneg(a: &[f64], b: &mut [f64], x: &mut [f64]) {
    let n = x.len();
    for (r, row) in a.chunks_exact(n).enumerate() {
        b[r] -= row.iter().zip(&*x).map(|(a, x)| a * x).sum::<f64>();
    }
    super::nonneg::descend(a, b, x, MOST_PASSES, SETTLED);
}

/// The most passes over the coordinates of a row.
const MOST_PASSES: usize = 200;
/// A row is done when a pass moves it by less than this, relative, squared.
const SETTLED: f64 = 1e-16;

/// Whether a factorisation can be trusted.
enum Pivots {
    Sound,
    Tiny,
}

/// Overwrites the upper triangle of `u`, a copy of `a`, by `U`.
#[inline(always)]
fn factorise(u: &mut [f64], a: &[f64], n: usize) -> Pivots {
    for k in 0..n {
        let (above, below) = u.split_at_mut((k + 1) * n);
        let row = &mut above[k * n..];
        let pivot = row[k];
        if !(pivot > SMALLEST_PIVOT * a[k * n + k] && pivot.is_finite()) {
            return Pivots::Tiny;
        }
        let scale = pivot.sqrt().recip();
        row[k..].iter_mut().for_each(|u| *u *= scale);
        for (i, other) in below.chunks_exact_mut(n).enumerate() {
            let i = k + 1 + i;
            let factor = row[i];
            for (to, u) in other[i..].iter_mut().zip(&row[i..]) {
                *to -= factor * u;
            }
        }
    }
    Pivots::Sound
}

/// Solves `U^T U x = b`.
#[inline(always)]
fn substitute(u: &[f64], b: &mut [f64]) {
    let n = b.len();
    for k in 0..n {
        let row = &u[k * n..][..n];
        b[k] /= row[k];
        let y = b[k];
        for (to, u) in b[k + 1..].iter_mut().zip(&row[k + 1..]) {
            *to -= y * u;
        }
    }
    for k in (0..n).rev() {
        let row = &u[k * n..][..n];
        let known: f64 = row[k + 1..].iter().zip(&b[k + 1..]).map(|(u, x)| u * x).sum();
        b[k] = (b[k] - known) / row[k];
    }
}

#[cfg(test)]
mod tests {
    use super::{descend_nonneg, solve_spd};

    /// `B^T B` for a fixed `B` of `rows x n`, row-major.
    fn gram(rows: usize, n: usize) -> Vec<f64> {
        let b = |i: usize, r: usize| ((i * 7 + r * 3 + 1) as f64).sin();
        let dot = |r, s| (0..rows).map(|i| b(i, r) * b(i, s)).sum();
        (0..n * n).map(|k| dot(k / n, k % n)).collect()
    }

    fn times(a: &[f64], x: &[f64]) -> Vec<f64> {
        a.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }

    #[test]
    fn regular_systems_are_solved() {
        for n in [1, 2, 5, 16, 33] {
            let a = gram(3 * n, n);
            let x: Vec<f64> = (0..n).map(|r| (r as f64).cos()).collect();
            let mut b = times(&a, &x);
            solve_spd(&a, &mut b, &mut Vec::new()).unwrap();
            // sin of multiples is nearly periodic, so the larger matrices are ill-conditioned:
            // the residual is what Cholesky keeps small.
            let back = times(&a, &b);
            let want = times(&a, &x);
            assert!(back.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-9), "{n}");
        }
    }

    #[test]
    fn singular_systems_get_a_least_squares_solution() {
        let a = gram(2, 4); // rank 2
        let want = times(&a, &[1.0, -2.0, 0.5, 3.0]);
        let mut b = want.clone();
        solve_spd(&a, &mut b, &mut Vec::new()).unwrap();
        assert!(times(&a, &b).iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-10));
        let mut nothing = [0.0, 0.0];
        solve_spd(&[0.0; 4], &mut nothing, &mut Vec::new()).unwrap();
        assert_eq!(nothing, [0.0, 0.0]);
        assert!(solve_spd(&[f64::NAN; 1], &mut [1.0], &mut Vec::new()).is_err());
    }

    #[test]
    fn nonnegative_solutions_meet_the_optimality_conditions() {
        let mut a = gram(12, 4);
        (0..4).for_each(|r| a[5 * r] += 1.0);
        let c = [1.0, -2.0, 0.5, 3.0];
        let (mut gradient, mut x) = (c, [1.0; 4]);
        descend_nonneg(&a, &mut gradient, &mut x);
        let ax = times(&a, &x);
        for r in 0..4 {
            let g = ax[r] - c[r];
            assert!(x[r] >= 0.0 && g > -1e-6 && (x[r] * g).abs() < 1e-6, "{r}: {x:?}");
        }
    }
}
