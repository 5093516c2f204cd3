//! Leading left singular vectors of an unfolding, without forming it or its Gram matrix.
//!
//! Subspace iteration with Rayleigh-Ritz on `S = X_(n) X_(n)^T` (`I_n x I_n`, never formed):
//!
//! ```text
//! Y = S Q;   Q^T Y = U diag(theta) U^T;   Q <- orthonormalise(Y U diag(1 / theta))
//! ```
//!
//! until the leading `theta` settle (Halko, Martinsson, Tropp, SIAM Review 53, 2011, with some
//! columns more than asked for).  One product reads each mode-n fibre twice: `z = sum v_i Q_i`,
//! then `Y_i += v_i z`.  It runs in parallel over slices of columns, so that no two threads write
//! the same number and the order of sums is fixed.

use decompose_formats::{Csf, Matrix, Value};
use ndarray::{Array1, Array2};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::error::CommonError;
use crate::init::fill_random;
use crate::linalg::{self, RowRule};
use crate::rng::MatrixRng;

/// Columns iterated beyond those asked for: they speed convergence of the last ones.
const EXTRA_COLUMNS: usize = 10;
/// The most products with `S`.
const MOST_PRODUCTS: usize = 100;
/// The eigenvalues have settled when their sum changes by less than this, relative.
const SETTLED: f64 = 1e-12;
/// Directions with an eigenvalue below this share of the largest count as zero.
const NEGLIGIBLE: f64 = 1e-13;
/// Columns of a slice: one cache line of doubles.
const SLICE: usize = 8;

/// Computes the `rank` leading eigenvectors of `X_(n) X_(n)^T` for the mode `n` that is the last
/// level of `fibres`; each column's largest entry in magnitude is positive.
///
/// Where the unfolding has fewer non-zero singular values than `rank`, the other columns are random, from
/// `seed`: orthonormal to those before as far as there are rows, and beyond uniform in `[0, 1)`, as the Tensor
/// Toolbox fills them.  Time `O(nnz * rank)` for
/// each of at most 100 products, memory three matrices of `I_n x (rank + 10)` doubles.
///
/// # Errors
///
/// [`CommonError::Format`] if there is no memory, [`CommonError::NotFinite`] on overflow.
///
/// # Panics
///
/// Never: a tree has at least one level.
pub fn nvecs<V: Value>(fibres: &Csf<V>, rank: usize, seed: u64) -> Result<Matrix<V>, CommonError> {
    let mode = *fibres.mode_order().modes().last().expect("at least one mode");
    let rows = fibres.extents()[mode] as usize;
    let rng = MatrixRng::new(seed, mode as u64);
    let mut basis = Matrix::<f64>::zeros(rows, (rank + EXTRA_COLUMNS).min(rows))?;
    fill_random(&mut basis, 0, 0, rng);
    orthonormalise(&mut basis)?;
    let (vectors, found) = iterate(fibres, basis)?;
    let orthonormal = rank.min(rows);
    let found = found.min(orthonormal);
    let mut wide = Matrix::<f64>::zeros(rows, orthonormal)?;
    for row in 0..rows {
        wide.row_mut(row)[..found].copy_from_slice(&vectors.row(row)[..found]);
    }
    make_largest_positive(&mut wide, found);
    linalg::complete(&mut wide, found, rng)?;
    let mut result = Matrix::zeros(rows, rank)?;
    for row in 0..rows {
        let pairs = result.row_mut(row).iter_mut().zip(wide.row(row));
        pairs.for_each(|(to, &from)| *to = V::from_f64(from));
    }
    fill_random(&mut result, orthonormal, 0, rng);
    Ok(result)
}

/// Iterates from an orthonormal basis; returns the vectors by falling eigenvalue, and how many of
/// the eigenvalues are not negligible.
fn iterate<V: Value>(
    fibres: &Csf<V>,
    mut basis: Matrix<f64>,
) -> Result<(Matrix<f64>, usize), CommonError> {
    let mut last = 0.0;
    for product in 1.. {
        let mut image = unfolding_gram_product(fibres, &basis)?;
        let (theta, rotation) = ritz(&basis, &image)?;
        let largest = theta.first().copied().unwrap_or(0.0);
        let found = theta.iter().filter(|&&t| t > NEGLIGIBLE * largest).count();
        let sum = theta.sum();
        if (sum - last).abs() <= SETTLED * sum || product == MOST_PRODUCTS {
            linalg::update_rows(&mut basis, &RowRule::Multiply(rotation.view()));
            return Ok((basis, found));
        }
        last = sum;
        let scale = theta.mapv(|t| if t > NEGLIGIBLE * largest { t.recip() } else { 0.0 });
        let rotation = rotation * &scale;
        linalg::update_rows(&mut image, &RowRule::Multiply(rotation.view()));
        orthonormalise(&mut image)?;
        basis = image;
    }
    unreachable!("the loop ends by its bound")
}

/// Returns the eigenvalues, falling, and eigenvectors of `basis^T image`.
fn ritz(
    basis: &Matrix<f64>,
    image: &Matrix<f64>,
) -> Result<(Array1<f64>, Array2<f64>), CommonError> {
    let (values, vectors) = linalg::eigh(linalg::cross_gram(basis, image).view())?;
    let n = values.len();
    let falling = Array1::from_shape_fn(n, |k| values[n - 1 - k]);
    Ok((falling, Array2::from_shape_fn((n, n), |(i, k)| vectors[(i, n - 1 - k)])))
}

/// Makes the columns orthonormal (Loewdin: `A (A^T A)^-1/2`), twice for full accuracy; columns
/// beyond the numerical rank come out as zero combinations.
fn orthonormalise(matrix: &mut Matrix<f64>) -> Result<(), CommonError> {
    for _ in 0..2 {
        let (values, vectors) = linalg::eigh(linalg::gram(matrix).view())?;
        let largest = values.last().copied().unwrap_or(0.0);
        let roots = values.mapv(|e| if e > NEGLIGIBLE * largest { e.sqrt().recip() } else { 0.0 });
        let inverse_root = (&vectors * &roots).dot(&vectors.t());
        linalg::update_rows(matrix, &RowRule::Multiply(inverse_root.view()));
    }
    Ok(())
}

/// Returns `S Q` (`I_n x R`) for the mode `n` that is the last level of `fibres` and `q` of
/// `I_n x R`: the Gram matrix of the unfolding times a block of vectors.
///
/// Time `O(nnz * R)` in parallel, memory twice the result.
///
/// # Errors
///
/// [`CommonError::Format`] if there is no memory.
pub fn unfolding_gram_product<V: Value>(
    fibres: &Csf<V>,
    q: &Matrix<f64>,
) -> Result<Matrix<f64>, CommonError> {
    let mut result = Matrix::zeros(q.rows(), q.cols())?;
    let slices: Vec<Vec<[f64; SLICE]>> = (0..q.cols().div_ceil(SLICE))
        .into_par_iter()
        .map(|slice| multiply_slice(fibres, &columns(q, slice * SLICE)))
        .collect();
    for (slice, columns) in slices.iter().enumerate() {
        for (row, values) in columns.iter().enumerate() {
            for (to, from) in result.row_mut(row)[slice * SLICE..].iter_mut().zip(values) {
                *to = *from;
            }
        }
    }
    Ok(result)
}

fn columns(q: &Matrix<f64>, first: usize) -> Vec<[f64; SLICE]> {
    let row = |i| {
        let mut values = [0.0; SLICE];
        for (to, from) in values.iter_mut().zip(&q.row(i)[first..]) {
            *to = *from;
        }
        values
    };
    (0..q.rows()).map(row).collect()
}

fn multiply_slice<V: Value>(fibres: &Csf<V>, q: &[[f64; SLICE]]) -> Vec<[f64; SLICE]> {
    let levels = fibres.levels();
    let (leaves, values) = (&levels[levels.len() - 1].coords, fibres.values());
    let mut result = vec![[0.0; SLICE]; q.len()];
    let mut fibre = |start: usize, end: usize| {
        let mut z = [0.0; SLICE];
        for (p, value) in (start..end).zip(&values[start..end]) {
            add_scaled(&mut z, value.to_f64(), &q[leaves.get(p) as usize]);
        }
        for (p, value) in (start..end).zip(&values[start..end]) {
            add_scaled(&mut result[leaves.get(p) as usize], value.to_f64(), &z);
        }
    };
    match levels.len().checked_sub(2).map(|parent| &levels[parent].pointers) {
        None => fibre(0, values.len()),
        Some(starts) => {
            for f in 1..starts.len() {
                fibre(starts.get(f - 1) as usize, starts.get(f) as usize);
            }
        }
    }
    result
}

fn add_scaled(to: &mut [f64; SLICE], scale: f64, from: &[f64; SLICE]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += scale * from;
    }
}

fn make_largest_positive(matrix: &mut Matrix<f64>, columns: usize) {
    let mut extreme = vec![0.0_f64; columns];
    for row in 0..matrix.rows() {
        for (extreme, value) in extreme.iter_mut().zip(matrix.row(row)) {
            if value.abs() > extreme.abs() {
                *extreme = *value;
            }
        }
    }
    for row in 0..matrix.rows() {
        for (value, extreme) in matrix.row_mut(row).iter_mut().zip(&extreme) {
            if *extreme < 0.0 {
                *value = -*value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use decompose_formats::{Coo, ModeOrder};

    use super::*;

    /// Returns a pseudo-random tensor of a few hundred non-zeros and its first unfolding.
    fn example(extents: [u64; 3]) -> (Coo<f64>, Array2<f64>) {
        let rng = MatrixRng::new(5, 0);
        let mut coords = vec![Vec::<u32>::new(); 3];
        let mut values = Vec::new();
        let mut unfolding =
            Array2::zeros((extents[0] as usize, (extents[1] * extents[2]) as usize));
        for cell in 0..extents.iter().product::<u64>() {
            if rng.uniform(cell, 0) < 0.4 {
                let at = [
                    cell / (extents[1] * extents[2]),
                    cell / extents[2] % extents[1],
                    cell % extents[2],
                ];
                coords.iter_mut().zip(at).for_each(|(coords, i)| coords.push(i as u32));
                values.push(rng.uniform(cell, 1) - 0.3);
                unfolding[(at[0] as usize, (at[1] * extents[2] + at[2]) as usize)] =
                    values[values.len() - 1];
            }
        }
        let coords = coords.into_iter().map(Into::into).collect();
        (Coo::new(extents.to_vec(), coords, values).unwrap(), unfolding)
    }

    #[test]
    fn they_are_the_eigenvectors_of_the_dense_gram() {
        for extents in [[30, 8, 7], [5, 20, 6], [1, 4, 4]] {
            let (coo, unfolding) = example(extents);
            let order = ModeOrder::new(vec![1, 2, 0]).unwrap();
            let fibres = Csf::build(coo, &order).unwrap();
            let rank = 4.min(extents[0] as usize);
            let vectors = nvecs(&fibres, rank, 1).unwrap();
            let (values, dense) = linalg::eigh(unfolding.dot(&unfolding.t()).view()).unwrap();
            for r in 0..rank {
                let dense = dense.column(values.len() - 1 - r);
                let cosine = vectors.view().column(r).dot(&dense);
                assert!((cosine.abs() - 1.0).abs() < 1e-9, "{extents:?} {r}: {cosine}");
                let extreme = vectors
                    .view()
                    .column(r)
                    .fold(0.0_f64, |a, &x| if x.abs() > a.abs() { x } else { a });
                assert!(extreme > 0.0);
            }
        }
    }

    #[test]
    fn a_rank_beyond_that_of_the_unfolding_is_completed_to_an_orthonormal_basis() {
        // One rank-one tensor: every unfolding has rank 1.
        let cells: Vec<[u32; 3]> = (0..24).map(|c| [c / 4, c % 4 / 2, c % 2]).collect();
        let column = |m: usize| cells.iter().map(|at| at[m]).collect::<Vec<u32>>().into();
        let value = |at: &[u32; 3]| f64::from((at[0] + 1) * (at[1] + 2) * (3 - at[2]));
        let coo = Coo::new(
            vec![6, 2, 2],
            (0..3).map(column).collect(),
            cells.iter().map(value).collect::<Vec<f64>>(),
        );
        let fibres = Csf::build(coo.unwrap(), &ModeOrder::new(vec![1, 2, 0]).unwrap()).unwrap();
        for rank in [1, 4, 6, 8] {
            let vectors = nvecs(&fibres, rank, 1).unwrap();
            for (r, s) in (0..rank.min(6)).flat_map(|r| (0..=r).map(move |s| (r, s))) {
                let dot = vectors.view().column(r).dot(&vectors.view().column(s));
                assert!(
                    (dot - f64::from(u8::from(r == s))).abs() < 1e-14,
                    "{rank}: {r} {s}: {dot}"
                );
            }
            let first = vectors.row(5)[0] / vectors.row(0)[0];
            assert!((first - 6.0).abs() < 1e-12, "{first}");
        }
    }

    #[test]
    fn a_rank_beyond_the_extent_is_filled_with_random_columns() {
        let (coo, _) = example([3, 8, 7]);
        let fibres = Csf::build(coo, &ModeOrder::new(vec![1, 2, 0]).unwrap()).unwrap();
        let vectors = nvecs(&fibres, 6, 1).unwrap();
        let lengths: Vec<f64> = vectors.view().columns().into_iter().map(|c| c.dot(&c)).collect();
        assert!(lengths[..3].iter().all(|x| (x - 1.0).abs() < 1e-9), "{lengths:?}");
        assert_eq!(vectors.row(0)[4], MatrixRng::new(1, 0).uniform(0, 4));
    }
}
