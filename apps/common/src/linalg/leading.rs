//! Leading eigenvectors of a symmetric positive semi-definite matrix, dense or known by products.
//!
//! Small matrices, or many vectors of one, go to [`eigh`].  Otherwise block Lanczos iteration with full
//! orthogonalisation and thick restarts: from an orthonormal block `Q` the basis
//!
//! ```text
//! S = orth [Q, A Q, A^2 Q, ...],   T = S^T A S = W diag(theta) W^T,   vectors = leading columns of S W
//! ```
//!
//! grows block by block until the residuals `||A q - theta q||` of the vectors asked for are rounding.
//! When it is full, the leading half of `S W` is kept, with its products, and the block that would have
//! been next.  A block is multiplied once; nothing is multiplied again.  The iteration may begin near
//! vectors that are known, those of an earlier matrix that was much like this one.  Sources: Golub,
//! Underwood, "The Block Lanczos Method for Computing Eigenvalues", 1977; Wu, Simon, "Thick-Restart
//! Lanczos Method", SIAM J. Matrix Anal. Appl. 22, 2000; Halko, Martinsson, Tropp, SIAM Review 53, 2011
//! (random start).

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::error::CommonError;
use crate::linalg::{add_cross_gram, eigh, matmul, multiply};
use crate::rng::MatrixRng;

/// Up to this size all eigenvalues are computed.
const FULL: usize = 256;
/// Columns iterated beyond those asked for: they speed convergence of the last ones.
const EXTRA_COLUMNS: usize = 8;
/// Blocks of the basis.
const BLOCKS: usize = 10;
/// Blocks of the basis of long vectors and of very long ones, to save memory.
const BLOCKS_LONG: [usize; 2] = [4, 2];
/// From these lengths on vectors are long, and very long.
const LONG: [usize; 2] = [1 << 16, 1 << 20];
/// The most restarts; then a dense matrix is decomposed in full, and of others the vectors are
/// taken as they are.
const MOST_RESTARTS: usize = 60;
/// A vector has converged when its residual is below this share of its eigenvalue ...
const SETTLED: f64 = 1e-11;
/// ... or below this share of the largest one, where only rounding is left.
const ROUNDING: f64 = 1e-15;
/// A direction this much shorter than the block it came from is rounding, and dropped.
const NEGLIGIBLE: f64 = 1e-13;
/// Blocks that the iteration multiplies in most cases, to compare it with other methods.
const USUAL_BLOCKS: f64 = 12.0;

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

/// Where an iteration begins.
#[derive(Clone, Copy, Debug)]
pub enum Guess<'a> {
    /// At random vectors of this seed.
    Random(u64),
    /// Near these vectors, one a column (`n x k`, any `k`, any lengths); others that are needed are
    /// random, of this seed.
    Near(ArrayView2<'a, f64>, u64),
}

/// Returns the `count` leading eigenpairs of the dense `a` (`n x n`); `count` at most `n`.
///
/// The result depends on the entries, the guess and the number of threads only.  Time `O(n^3)` for
/// small matrices or counts near `n`, otherwise `O(n^2 count)` for each of some dozen products.
///
/// # Errors
///
/// [`CommonError::NotFinite`] if an entry is infinite or not a number.
pub fn leading_of(
    a: ArrayView2<'_, f64>,
    count: usize,
    guess: Guess<'_>,
) -> Result<Leading, CommonError> {
    let n = a.nrows();
    if in_full(n, count) {
        return all_of(a, count);
    }
    let a = a.as_standard_layout();
    let mut product = |q: ArrayView2<'_, f64>| Ok(product_by_rows(a.view(), q));
    match iterate::<CommonError>(n, count, guess, &mut product)? {
        (found, true) => Ok(found),
        (_, false) => all_of(a.view(), count),
    }
}

/// Returns the `count` leading eigenpairs of the matrix of `n x n` that `product` multiplies by;
/// `count` at most `n`.
///
/// Memory: `n x (count + 8)` doubles, 7 to 27 times, less the longer the vectors.
///
/// # Errors
///
/// Those of `product`, and [`CommonError::NotFinite`] on overflow.
pub fn leading<E: From<CommonError>>(
    n: usize,
    count: usize,
    guess: Guess<'_>,
    product: &mut Product<'_, E>,
) -> Result<Leading, E> {
    Ok(iterate(n, count, guess, product)?.0)
}

/// Returns the bytes that [`leading`] works in.
pub fn leading_bytes(n: u64, count: u64) -> u64 {
    let columns = count.saturating_add(EXTRA_COLUMNS as u64);
    let blocks = most_blocks(usize::try_from(n).unwrap_or(usize::MAX)) as u64;
    let blocks = blocks.min(n.div_ceil(columns));
    // The basis and its products; of the leading half the blocks, while the products are still there; the
    // next block and the vectors found.
    n.saturating_mul(columns).saturating_mul(8 * (2 * blocks + blocks.div_ceil(2) + 2))
}

/// Returns the multiplications and additions that [`leading_of`] is expected to take for `count`
/// vectors of a dense matrix of `n x n`.
pub fn leading_of_flops(n: usize, count: usize) -> f64 {
    let size = n as f64;
    // Reduction to tridiagonal form, its decomposition, and the vectors brought back.
    if in_full(n, count) { 9.0 * size.powi(3) } else { leading_columns(count) * 2.0 * size * size }
}

/// Returns how many columns [`leading`] is expected to multiply for `count` vectors.
pub fn leading_columns(count: usize) -> f64 {
    USUAL_BLOCKS * (count + EXTRA_COLUMNS) as f64
}

/// Tells whether a dense matrix is better decomposed in full.
fn in_full(n: usize, count: usize) -> bool {
    n <= FULL || 4 * (count + EXTRA_COLUMNS) > n
}

fn most_blocks(n: usize) -> usize {
    match n {
        _ if n >= LONG[1] => BLOCKS_LONG[1],
        _ if n >= LONG[0] => BLOCKS_LONG[0],
        _ => BLOCKS,
    }
}

fn all_of(a: ArrayView2<'_, f64>, count: usize) -> Result<Leading, CommonError> {
    let (values, vectors) = eigh(a)?;
    let n = values.len();
    let values = Array1::from_shape_fn(count, |k| values[n - 1 - k].max(0.0));
    let vectors = Array2::from_shape_fn((n, count), |(i, k)| vectors[(i, n - 1 - k)]);
    Ok(Leading { values, vectors })
}

/// Returns `a q`, each thread a range of rows.
fn product_by_rows(a: ArrayView2<'_, f64>, q: ArrayView2<'_, f64>) -> Array2<f64> {
    let (n, q) = (a.nrows(), q.as_standard_layout());
    let share = n.div_ceil(rayon::current_num_threads()).max(1);
    let mut out = Array2::zeros((n, q.ncols()));
    let parts = out.axis_chunks_iter_mut(Axis(0), share).into_par_iter();
    parts
        .zip(a.axis_chunks_iter(Axis(0), share).into_par_iter())
        .for_each(|(out, a)| multiply(a, q.view(), out));
    out
}

/// Iterates; also tells whether all vectors have converged.
fn iterate<E: From<CommonError>>(
    n: usize,
    count: usize,
    guess: Guess<'_>,
    product: &mut Product<'_, E>,
) -> Result<(Leading, bool), E> {
    let width = (count + EXTRA_COLUMNS).min(n);
    let most = most_blocks(n).min(n.div_ceil(width));
    let mut basis = Basis::default();
    let mut block = first_block(n, width, guess)?;
    let mut restarts = 0;
    loop {
        let image = product(block.view())?;
        let next = basis.extend(block, image)?;
        let full = basis.blocks.len() >= most;
        // A look at the vectors costs about as much as a product of a small matrix.
        if full || basis.blocks.len().is_multiple_of(2) {
            let (values, rotation) = basis.ritz()?;
            let (found, settled) = basis.look(&values, &rotation, count);
            restarts += usize::from(full);
            if settled || restarts == MOST_RESTARTS {
                return Ok((found, settled));
            }
            if full {
                basis = basis.keep((most / 2).max(1), &values, &rotation);
            }
        }
        block = next;
    }
}

/// The known vectors, and random ones beside them, orthonormal.
fn first_block(n: usize, width: usize, guess: Guess<'_>) -> Result<Array2<f64>, CommonError> {
    let (near, seed) = match guess {
        Guess::Random(seed) => (None, seed),
        Guess::Near(near, seed) => (Some(near), seed),
    };
    let rng = MatrixRng::new(seed, u64::MAX);
    let mut start =
        Array2::from_shape_fn((n, width), |(i, k)| rng.uniform(i as u64, k as u64) - 0.5);
    for (k, column) in near.iter().flat_map(|near| near.columns()).take(width).enumerate() {
        let size = column.dot(&column).sqrt();
        if size > 0.0 && size.is_finite() {
            // As long as the random ones.
            let scale = (n as f64 / 12.0).sqrt() / size;
            start.column_mut(k).assign(&(&column * scale));
        }
    }
    orthonormal(start, 0.0)
}

/// An orthonormal basis in blocks, its products, and what it makes of the matrix.
#[derive(Default)]
struct Basis {
    /// `n x width` each.
    blocks: Vec<Array2<f64>>,
    /// `A` times each.
    images: Vec<Array2<f64>>,
    /// `T = S^T A S`.
    small: Array2<f64>,
}

impl Basis {
    /// Adds a block with its product; returns the next one: what the product has that the basis has
    /// not.
    fn extend(
        &mut self,
        block: Array2<f64>,
        image: Array2<f64>,
    ) -> Result<Array2<f64>, CommonError> {
        let (known, width) = (self.small.nrows(), block.ncols());
        let mut small = Array2::zeros((known + width, known + width));
        small.slice_mut(s![..known, ..known]).assign(&self.small);
        let size = norm(&image);
        let mut rest = image.clone();
        self.blocks.push(block);
        for (at, block) in self.blocks.iter().enumerate() {
            let share = cross(block, &image);
            let rows = at * width..(at + 1) * width;
            small.slice_mut(s![rows.clone(), known..]).assign(&share);
            small.slice_mut(s![known.., rows]).assign(&share.t());
            rest -= &matmul(block.view(), share.view());
        }
        let corner = small.slice(s![known.., known..]);
        let corner = (&corner + &corner.t()) / 2.0;
        small.slice_mut(s![known.., known..]).assign(&corner);
        self.images.push(image);
        self.small = small;
        // Twice is enough (Giraud, Langou, Rozloznik, 2005).
        let first = orthonormal(rest, NEGLIGIBLE * size)?;
        orthonormal(self.without(first), 0.5)
    }

    /// Subtracts from `block` its part in the span of the basis.
    fn without(&self, mut block: Array2<f64>) -> Array2<f64> {
        for known in &self.blocks {
            let share = cross(known, &block);
            block -= &matmul(known.view(), share.view());
        }
        block
    }

    /// Returns the eigenvalues of `T`, falling, and its vectors.
    fn ritz(&self) -> Result<(Array1<f64>, Array2<f64>), CommonError> {
        let (values, vectors) = eigh(self.small.view())?;
        let (values, vectors) = (values.slice(s![..;-1]), vectors.slice(s![.., ..;-1]));
        Ok((values.to_owned(), vectors.as_standard_layout().into_owned()))
    }

    /// Returns the `count` leading vectors, and whether all are exact to rounding.
    fn look(&self, values: &Array1<f64>, rotation: &Array2<f64>, count: usize) -> (Leading, bool) {
        let vectors = combined(&self.blocks, rotation, 0..count);
        let values = values.slice(s![..count]);
        let residual = combined(&self.images, rotation, 0..count) - &vectors * &values;
        let rounding = ROUNDING * (vectors.nrows() as f64).sqrt() * values[0];
        let sizes = residual.columns().into_iter().map(|column| column.dot(&column).sqrt());
        let settled =
            sizes.zip(values).all(|(size, value)| size <= (SETTLED * value).max(rounding));
        (Leading { values: values.mapv(|value| value.max(0.0)), vectors }, settled)
    }

    /// Keeps as many blocks of the leading vectors, with their products.
    fn keep(self, count: usize, values: &Array1<f64>, rotation: &Array2<f64>) -> Basis {
        let width = self.blocks.first().map_or(0, Array2::ncols);
        // Each list is given up before the next is combined.
        let columns = |of: Vec<Array2<f64>>| -> Vec<Array2<f64>> {
            (0..count).map(|at| combined(&of, rotation, at * width..(at + 1) * width)).collect()
        };
        let small = Array2::from_diag(&values.slice(s![..count * width]));
        let Basis { blocks, images, .. } = self;
        Basis { blocks: columns(blocks), images: columns(images), small }
    }
}

/// Returns the blocks, side by side, times the columns `columns` of `rotation`.
fn combined(
    blocks: &[Array2<f64>],
    rotation: &Array2<f64>,
    columns: std::ops::Range<usize>,
) -> Array2<f64> {
    let (n, width) = blocks.first().map_or((0, 1), Array2::dim);
    let mut sum = Array2::zeros((n, columns.len()));
    for (at, block) in blocks.iter().enumerate() {
        let rows = at * width..(at + 1) * width;
        sum += &matmul(block.view(), rotation.slice(s![rows, columns.clone()]));
    }
    sum
}

/// Returns `a^T b`.
fn cross(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.ncols(), b.ncols()));
    add_cross_gram(a.view(), b.view(), out.view_mut());
    out
}

/// Returns orthonormal columns with the span of `block`; directions not longer than `least` become
/// zero columns.
fn orthonormal(block: Array2<f64>, least: f64) -> Result<Array2<f64>, CommonError> {
    let mut block = block;
    let mut least = least;
    for _ in 0..2 {
        let gram = cross(&block, &block);
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
                let found = leading_of(a.view(), count, Guess::Random(1)).unwrap();
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
        let found = leading_of(a.view(), 6, Guess::Random(0)).unwrap();
        assert!((found.values[2] - 1.0).abs() < 1e-13);
        assert!(found.values.iter().skip(3).all(|&value| value < 1e-13), "{}", found.values);
        assert!(found.vectors.iter().all(|x| x.is_finite()));
        let zero = leading_of(Array2::zeros((300, 300)).view(), 2, Guess::Random(0)).unwrap();
        assert!(zero.values.iter().all(|&value| value == 0.0));
    }

    #[test]
    fn near_vectors_save_products_and_change_no_result() {
        let values: Vec<f64> = (0..600).map(|k| 1.0 / (1.0 + k as f64).powf(0.3)).collect();
        let (a, v) = matrix(&values);
        let run = |guess: Guess<'_>| {
            let mut columns = 0;
            let found = leading::<CommonError>(600, 5, guess, &mut |q| {
                columns += q.ncols();
                Ok(product_by_rows(a.view(), q))
            });
            (found.unwrap(), columns)
        };
        let near = v.slice(s![.., ..5]).mapv(|x| 7.0 * x + 1e-6);
        let (far, many) = run(Guess::Random(2));
        let (close, few) = run(Guess::Near(near.view(), 2));
        assert!(few < many, "{few} {many}");
        for found in [far, close] {
            // Gaps of 3 % and more: the vectors hold to 1e-11 / 0.03.
            let kept = norm(&matmul(v.slice(s![.., ..5]).t(), found.vectors.view())).powi(2);
            assert!((kept - 5.0).abs() < 1e-12, "{kept}");
        }
    }

    #[test]
    fn a_block_may_be_more_than_half_of_the_matrix_or_all_of_it() {
        let values: Vec<f64> = (0..30).map(|k| 30.0 - k as f64).collect();
        let (a, _) = matrix(&values);
        for count in [12, 25, 30] {
            let found = leading::<CommonError>(30, count, Guess::Random(0), &mut |q| {
                Ok(product_by_rows(a.view(), q))
            });
            let found = found.unwrap();
            let error = (0..count).map(|k| (found.values[k] - values[k]).abs());
            assert!(error.fold(0.0, f64::max) < 1e-12, "{count}: {}", found.values);
        }
    }
}
