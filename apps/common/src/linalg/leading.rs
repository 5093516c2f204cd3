//! Leading eigenvectors of a symmetric positive semi-definite matrix, dense or known by products.
//!
//! Small matrices, or many vectors of one, go to [`eigh`].  Otherwise block Krylov iteration with
//! Rayleigh-Ritz and restarts: from an orthonormal block `Q` the basis
//!
//! ```text
//! S = orth [Q, A Q, A^2 Q, ...],   T = S^T A S = W diag(theta) W^T,   Q <- leading columns of S W
//! ```
//!
//! until the residuals `||A q - theta q||` are rounding.  A basis of depth 4 converges like a
//! polynomial filter of degree 3 a restart.  Sources: Golub, Underwood, "The Block Lanczos Method
//! for Computing Eigenvalues", 1977; Halko, Martinsson, Tropp, SIAM Review 53, 2011 (random start).

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use crate::error::CommonError;
use crate::linalg::{eigh, matmul};
use crate::rng::MatrixRng;

/// Up to this size all eigenvalues are computed.
const FULL: usize = 256;
/// Columns iterated beyond those asked for: they speed convergence of the last ones.
const EXTRA_COLUMNS: usize = 8;
/// Blocks of the basis.
const DEPTH: usize = 4;
/// Blocks of the basis of long vectors, to save memory.
const DEPTH_LONG: usize = 2;
/// From this length on vectors are long.
const LONG: usize = 1 << 20;
/// The most restarts; then a dense matrix is decomposed in full, and of others the vectors are
/// taken as they are.
const MOST_RESTARTS: usize = 60;
/// A vector has converged when its residual is below this share of its eigenvalue ...
const SETTLED: f64 = 1e-11;
/// ... or below this share of the largest one, where only rounding is left.
const ROUNDING: f64 = 1e-15;
/// A direction this much shorter than the block it came from is rounding, and dropped.
const NEGLIGIBLE: f64 = 1e-13;

/// Multiplies a symmetric positive semi-definite matrix of `n x n` by a block of columns.
pub type Product<'a, E> = dyn FnMut(ArrayView2<'_, f64>) -> Result<Array2<f64>, E> + 'a;

/// Leading eigenvalues and vectors.
#[derive(Clone, Debug)]
pub struct Leading {
    /// The eigenvalues, falling; negative ones, which are rounding, as 0.
    pub values: Array1<f64>,
    /// The vectors, one a column; zero columns where there is no such direction left.
    pub vectors: Array2<f64>,
}

/// Returns the `count` leading eigenpairs of the dense `a` (`n x n`); `count` at most `n`.
///
/// The result depends on the entries and `seed` only.  Time `O(n^3)` for small matrices or counts
/// near `n`, otherwise `O(n^2 count)` for each of some dozen products.
///
/// # Errors
///
/// [`CommonError::NotFinite`] if an entry is infinite or not a number.
pub fn leading_of(a: ArrayView2<'_, f64>, count: usize, seed: u64) -> Result<Leading, CommonError> {
    let n = a.nrows();
    if n <= FULL || 4 * (count + EXTRA_COLUMNS) > n {
        return all_of(a, count);
    }
    let mut product = |q: ArrayView2<'_, f64>| Ok(matmul(a, q));
    match iterate::<CommonError>(n, count, seed, &mut product)? {
        (found, true) => Ok(found),
        (_, false) => all_of(a, count),
    }
}

/// Returns the `count` leading eigenpairs of the matrix of `n x n` that `product` multiplies by;
/// `count` at most `n`.
///
/// Memory: `n x (count + 8)` doubles, 4 to 8 times.
///
/// # Errors
///
/// Those of `product`, and [`CommonError::NotFinite`] on overflow.
pub fn leading<E: From<CommonError>>(
    n: usize,
    count: usize,
    seed: u64,
    product: &mut Product<'_, E>,
) -> Result<Leading, E> {
    Ok(iterate(n, count, seed, product)?.0)
}

/// Returns the bytes that [`leading`] works in.
pub fn leading_bytes(n: u64, count: u64) -> u64 {
    let columns = count.saturating_add(EXTRA_COLUMNS as u64);
    let depth = if n >= LONG as u64 { DEPTH_LONG } else { DEPTH } as u64;
    n.saturating_mul(columns).saturating_mul(8 * (2 * depth + 2))
}

fn all_of(a: ArrayView2<'_, f64>, count: usize) -> Result<Leading, CommonError> {
    let (values, vectors) = eigh(a)?;
    let n = values.len();
    let values = Array1::from_shape_fn(count, |k| values[n - 1 - k].max(0.0));
    let vectors = Array2::from_shape_fn((n, count), |(i, k)| vectors[(i, n - 1 - k)]);
    Ok(Leading { values, vectors })
}

/// Iterates; also tells whether all vectors have converged.
fn iterate<E: From<CommonError>>(
    n: usize,
    count: usize,
    seed: u64,
    product: &mut Product<'_, E>,
) -> Result<(Leading, bool), E> {
    let width = (count + EXTRA_COLUMNS).min(n);
    let depth = if n >= LONG { DEPTH_LONG } else { DEPTH }.min(n / width).max(1);
    let rng = MatrixRng::new(seed, u64::MAX);
    let start = Array2::from_shape_fn((n, width), |(i, k)| rng.uniform(i as u64, k as u64) - 0.5);
    let mut block = orthonormal(start, 0.0)?;
    let mut restart = 0;
    loop {
        let (basis, image) = krylov(block, depth, product)?;
        let (values, rotation) = ritz(&basis, &image, width)?;
        let vectors = matmul(basis.view(), rotation.view());
        let residual = matmul(image.view(), rotation.view()) - &vectors * &values;
        let largest = values[0];
        let settled = (0..count).all(|k| {
            let size = residual.column(k).dot(&residual.column(k)).sqrt();
            size <= (SETTLED * values[k]).max(ROUNDING * (n as f64).sqrt() * largest)
        });
        restart += 1;
        if settled || restart == MOST_RESTARTS {
            let values = values.slice(s![..count]).mapv(|value| value.max(0.0));
            return Ok((
                Leading { values, vectors: vectors.slice(s![.., ..count]).to_owned() },
                settled,
            ));
        }
        block = orthonormal(vectors, 0.0)?;
    }
}

/// Returns an orthonormal basis of `[Q, A Q, ...]` and its product with `A`.
fn krylov<E: From<CommonError>>(
    block: Array2<f64>,
    depth: usize,
    product: &mut Product<'_, E>,
) -> Result<(Array2<f64>, Array2<f64>), E> {
    let (n, width) = block.dim();
    let mut basis = Array2::zeros((n, width * depth));
    let mut image = Array2::zeros((n, width * depth));
    let mut last = block;
    for k in 0..depth {
        let columns = k * width..(k + 1) * width;
        basis.slice_mut(s![.., columns.clone()]).assign(&last);
        let next = product(last.view())?;
        image.slice_mut(s![.., columns.clone()]).assign(&next);
        if k + 1 < depth {
            let size = norm(&next);
            let known = basis.slice(s![.., ..columns.end]);
            // Twice is enough (Giraud, Langou, Rozloznik, 2005).
            let first = orthonormal(without(next, known), NEGLIGIBLE * size)?;
            last = orthonormal(without(first, known), NEGLIGIBLE)?;
        }
    }
    Ok((basis, image))
}

/// Returns the `count` leading eigenvalues of `basis^T image`, falling, and their vectors.
fn ritz(
    basis: &Array2<f64>,
    image: &Array2<f64>,
    count: usize,
) -> Result<(Array1<f64>, Array2<f64>), CommonError> {
    let small = matmul(basis.t(), image.view());
    let symmetric = (&small + &small.t()) / 2.0;
    let (values, vectors) = eigh(symmetric.view())?;
    let n = values.len();
    let falling = Array1::from_shape_fn(count, |k| values[n - 1 - k]);
    Ok((falling, Array2::from_shape_fn((n, count), |(i, k)| vectors[(i, n - 1 - k)])))
}

/// Subtracts from `block` its part in the span of the orthonormal `known`.
fn without(block: Array2<f64>, known: ArrayView2<'_, f64>) -> Array2<f64> {
    let share = matmul(known.t(), block.view());
    block - matmul(known, share.view())
}

/// Returns orthonormal columns with the span of `block`; directions not longer than `least` become
/// zero columns.
fn orthonormal(block: Array2<f64>, least: f64) -> Result<Array2<f64>, CommonError> {
    let mut block = block;
    let mut least = least;
    for _ in 0..2 {
        let gram = matmul(block.t(), block.view());
        let (values, vectors) = eigh(gram.view())?;
        let largest = values.last().copied().unwrap_or(0.0);
        let cutoff = (least * least).max(f64::EPSILON * largest);
        let scale = values.mapv(|value| if value > cutoff { value.sqrt().recip() } else { 0.0 });
        block = matmul(block.view(), (&vectors * &scale).view());
        least = 0.5;
    }
    Ok(block)
}

fn norm(block: &Array2<f64>) -> f64 {
    block.lanes(Axis(1)).into_iter().map(|row| row.dot(&row)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `V diag(values) V^T` for a fixed orthogonal `V`.
    fn matrix(values: &[f64]) -> (Array2<f64>, Array2<f64>) {
        let n = values.len();
        let rng = MatrixRng::new(3, 3);
        let random = Array2::from_shape_fn((n, n), |(i, j)| rng.uniform(i as u64, j as u64) - 0.5);
        let v = orthonormal(random, 0.0).unwrap();
        let spectrum = Array1::from(values.to_vec());
        (matmul((&v * &spectrum).view(), v.t()), v)
    }

    #[test]
    fn leading_pairs_agree_with_the_full_decomposition() {
        let slow: Vec<f64> = (0..400).map(|k| 1.0 / (1.0 + k as f64)).collect();
        let fast: Vec<f64> = (0..400).map(|k| 0.5_f64.powi(k)).collect();
        let flat: Vec<f64> = (0..400).map(|k| if k < 12 { 1.0 } else { 0.3 }).collect();
        for values in [slow, fast, flat] {
            let (a, v) = matrix(&values);
            for count in [1, 5, 12] {
                let found = leading_of(a.view(), count, 1).unwrap();
                for (k, value) in values.iter().enumerate().take(count) {
                    let error = (found.values[k] - value).abs();
                    assert!(error < 1e-12, "value {k}: {error}");
                }
                // The span: cosines of the angles to the true one, where there is a gap.
                if values[count - 1] - values[count] > 1e-9 {
                    let cross = matmul(v.slice(s![.., ..count]).t(), found.vectors.view());
                    let kept = norm(&cross).powi(2);
                    assert!((kept - count as f64).abs() < 1e-12, "{count}: {kept}");
                }
            }
        }
    }

    #[test]
    fn directions_beyond_the_rank_are_zero_or_null() {
        let mut values = vec![0.0; 300];
        values[..3].copy_from_slice(&[3.0, 2.0, 1.0]);
        let (a, _) = matrix(&values);
        let found = leading_of(a.view(), 6, 0).unwrap();
        assert!((found.values[2] - 1.0).abs() < 1e-13);
        assert!(found.values.iter().skip(3).all(|&value| value < 1e-13), "{}", found.values);
        assert!(found.vectors.iter().all(|x| x.is_finite()));
        let zero = leading_of(Array2::zeros((300, 300)).view(), 2, 0).unwrap();
        assert!(zero.values.iter().all(|&value| value == 0.0));
    }
}
