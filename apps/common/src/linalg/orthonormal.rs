//! Orthonormal columns of long matrices: made from given ones, and completed where those are too few.

use decompose_formats::{Matrix, Value};
use ndarray::Array2;
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use crate::error::CommonError;
use crate::linalg::{RowRule, cross_gram, eigh, gram, matmul, update_rows};
use crate::rng::MatrixRng;

/// Squared lengths below this share of the largest are rounding.
const NEGLIGIBLE: f64 = 1e-13;
/// The most passes that make columns orthonormal.
const MOST_PASSES: usize = 4;
/// Passes that a completion takes at least: rounding of the first is seen by the second.
const LEAST_PASSES: usize = 2;

/// Makes the columns of `factor`, whose Gram matrix is `gram`, orthonormal, zero columns excepted;
/// returns the matrix by which they were multiplied.
///
/// By `U (U^T U)^-1/2` until `U^T U` is the identity to rounding.  Time `O(I R^2)` a pass.
///
/// # Errors
///
/// [`CommonError::NotFinite`] if an entry is infinite or not a number.
pub fn orthonormalise<V: Value>(
    factor: &mut Matrix<V>,
    gram: Array2<f64>,
) -> Result<Array2<f64>, CommonError> {
    let mut gram = gram;
    let mut turned = Array2::eye(factor.cols());
    for _ in 0..MOST_PASSES {
        if defect(&gram) <= 4.0 * V::EPSILON {
            break;
        }
        let (values, vectors) = eigh(gram.view())?;
        let largest = values.last().copied().unwrap_or(0.0);
        let roots = values.mapv(|e| if e > NEGLIGIBLE * largest { e.sqrt().recip() } else { 0.0 });
        let root = matmul((&vectors * &roots).view(), vectors.t());
        gram = update_rows(factor, &RowRule::Multiply(root.view())).gram;
        turned = matmul(turned.view(), root.view());
    }
    Ok(turned)
}

/// Returns how far columns with this Gram matrix are from orthonormal, zero columns excepted.
fn defect(gram: &Array2<f64>) -> f64 {
    let apart = gram.indexed_iter().map(|((r, s), &g)| {
        let want = if r == s && g > 0.0 { 1.0 } else { 0.0 };
        (g - want).abs()
    });
    apart.fold(0.0, f64::max)
}

/// Replaces the columns of `factor` from `kept` on by random ones of `rng` that make all orthonormal, where those
/// before are.
///
/// The result depends on the columns kept and `rng` only.  Time `O(I R^2)`.
///
/// # Errors
///
/// [`CommonError::Format`] if there is no memory, [`CommonError::NotFinite`] on overflow.
///
/// # Panics
///
/// If there are more columns than rows: so many cannot be orthonormal.
pub fn complete<V: Value>(
    factor: &mut Matrix<V>,
    kept: usize,
    rng: MatrixRng,
) -> Result<(), CommonError> {
    let (rows, cols) = (factor.rows(), factor.cols());
    if kept >= cols {
        return Ok(());
    }
    assert!(cols <= rows, "{cols} orthonormal columns of {rows} rows");
    let mut fresh = Matrix::<V>::zeros(rows, cols - kept)?;
    fill_centred(&mut fresh, kept, rng);
    for pass in 0..MOST_PASSES {
        let share = cross_gram(factor, &fresh);
        let known = (0..kept).flat_map(|k| (0..cols - kept).map(move |col| (k, col)));
        let apart = known.map(|at| share[at].abs()).fold(0.0, f64::max);
        if pass >= LEAST_PASSES && apart.max(defect(&gram(&fresh))) <= 8.0 * V::EPSILON {
            break;
        }
        subtract(&mut fresh, factor, kept, &share);
        let gram = gram(&fresh);
        orthonormalise(&mut fresh, gram)?;
    }
    for (mut to, from) in factor.view_mut().rows_mut().into_iter().zip(fresh.view().rows()) {
        to.iter_mut().skip(kept).zip(from).for_each(|(to, &from)| *to = from);
    }
    Ok(())
}

/// Subtracts from `fresh` the first `kept` columns of `factor` times `share`.
fn subtract<V: Value>(fresh: &mut Matrix<V>, factor: &Matrix<V>, kept: usize, share: &Array2<f64>) {
    let (stride, width) = (fresh.stride(), fresh.cols());
    let view = factor.view();
    fresh.as_mut_slice().par_chunks_mut(stride).enumerate().for_each(|(row, values)| {
        for (col, value) in values[..width].iter_mut().enumerate() {
            let known = view.row(row);
            let part: f64 = (0..kept).map(|k| known[k].to_f64() * share[(k, col)]).sum();
            *value = V::from_f64(value.to_f64() - part);
        }
    });
}

/// Fills a matrix with numbers in `[-0.5, 0.5)`, those of the columns from `first` on.
pub(crate) fn fill_centred<V: Value>(matrix: &mut Matrix<V>, first: usize, rng: MatrixRng) {
    let (stride, cols) = (matrix.stride(), matrix.cols());
    matrix.as_mut_slice().par_chunks_mut(stride).enumerate().for_each(|(row, values)| {
        for (col, value) in values[..cols].iter_mut().enumerate() {
            *value = V::from_f64(rng.uniform(row as u64, (first + col) as u64) - 0.5);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest entry of `U^T U - 1`, summed here.
    fn off<V: Value>(factor: &Matrix<V>) -> f64 {
        let dot = |r: usize, s: usize| -> f64 {
            (0..factor.rows()).map(|i| factor.row(i)[r].to_f64() * factor.row(i)[s].to_f64()).sum()
        };
        let pairs = (0..factor.cols()).flat_map(|r| (0..=r).map(move |s| (r, s)));
        pairs.map(|(r, s)| (dot(r, s) - f64::from(u8::from(r == s))).abs()).fold(0.0, f64::max)
    }

    fn completed<V: Value>((rows, cols): (usize, usize), kept: usize, seed: u64) -> Matrix<V> {
        let rng = MatrixRng::new(seed, 1);
        let mut known = Matrix::<V>::zeros(rows, kept).unwrap();
        fill_centred(&mut known, 0, rng);
        if kept > 0 {
            let gram = gram(&known);
            orthonormalise(&mut known, gram).unwrap();
        }
        let mut factor = Matrix::zeros(rows, cols).unwrap();
        for row in 0..rows {
            factor.row_mut(row)[..kept].copy_from_slice(known.row(row));
        }
        complete(&mut factor, kept, rng).unwrap();
        for row in 0..rows {
            assert_eq!(factor.row(row)[..kept], known.row(row)[..], "known columns stay");
        }
        factor
    }

    #[test]
    fn completed_columns_are_orthonormal_and_repeat() {
        for (rows, cols) in [(1, 1), (2, 2), (7, 7), (9, 4), (40, 40), (300, 20)] {
            for kept in [0, 1, cols / 2, cols - 1, cols] {
                for seed in 0..3 {
                    let kept = kept.min(cols);
                    let wide = completed::<f64>((rows, cols), kept, seed);
                    assert!(off(&wide) < 1e-14, "{rows} {cols} {kept}: {}", off(&wide));
                    let narrow = completed::<f32>((rows, cols), kept, seed);
                    assert!(off(&narrow) < 4e-6, "{rows} {cols} {kept}: {}", off(&narrow));
                    let again = completed::<f64>((rows, cols), kept, seed);
                    assert_eq!(wide.as_slice(), again.as_slice());
                }
            }
        }
    }
}
