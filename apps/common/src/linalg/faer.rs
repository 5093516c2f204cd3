//! The facade on faer.

use ::faer::linalg::matmul::matmul;
use ::faer::linalg::solvers::{DenseSolveCore, Llt, Qr, SelfAdjointEigen, Svd};
use ::faer::{Accum, MatMut, MatRef, Par, Side, set_global_parallelism};
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};

use crate::error::CommonError;
use crate::linalg;
use crate::linalg::space::roomy;

/// Decomposes the symmetric `a = V diag(w) V^T`: eigenvalues `w` ascending, vectors in the columns
/// of `V`.  Only the lower triangle is read.  Time `O(R^3)`.
///
/// # Errors
///
/// [`CommonError::NotFinite`] if an entry is infinite or not a number.
///
/// # Panics
///
/// If `a` is not square.
pub fn eigh(a: ArrayView2<'_, f64>) -> Result<(Array1<f64>, Array2<f64>), CommonError> {
    assert_eq!(a.nrows(), a.ncols(), "eigenvalues of a matrix that is not square");
    if a.iter().any(|x| !x.is_finite()) {
        return Err(CommonError::NotFinite("matrix to decompose"));
    }
    roomy(|| eigh_of(a))
}

fn eigh_of(a: ArrayView2<'_, f64>) -> Result<(Array1<f64>, Array2<f64>), CommonError> {
    set_global_parallelism(Par::Seq);
    let n = a.nrows();
    let a = a.as_standard_layout();
    let eigen = SelfAdjointEigen::new(view(a.view()), Side::Lower)
        .map_err(|_| CommonError::NotFinite("eigenvalue iteration"))?;
    let values = eigen.S().column_vector();
    let vectors = eigen.U();
    let values = Array1::from_shape_fn(n, |i| values[i]);
    Ok((values, Array2::from_shape_fn((n, n), |(i, j)| vectors[(i, j)])))
}

/// Decomposes `a = Q R` (`m x n`) by Householder reflections: `Q` of `m x k` with orthonormal
/// columns to rounding, whatever the rank of `a`, and `R` of `k x n`, upper trapezoidal, with
/// `k = min(m, n)`.  Time `O(m n k)`.
pub fn qr(a: ArrayView2<'_, f64>) -> (Array2<f64>, Array2<f64>) {
    roomy(|| {
        let qr = factored(a);
        (owned(qr.compute_thin_Q().as_ref()), owned(qr.thin_R()))
    })
}

/// Returns the `R` of [`qr`] alone.
pub fn qr_r(a: ArrayView2<'_, f64>) -> Array2<f64> {
    roomy(|| owned(factored(a).thin_R()))
}

/// Decomposes a copy; another is made only of a matrix that is neither row- nor column-major.
fn factored(a: ArrayView2<'_, f64>) -> Qr<f64> {
    set_global_parallelism(Par::Seq);
    match a.t().to_slice() {
        Some(columns) => Qr::new(MatRef::from_column_major_slice(columns, a.nrows(), a.ncols())),
        None => Qr::new(view(a.as_standard_layout().view())),
    }
}

/// Decomposes `a = U diag(s) V^T` (`m x n`): `U` of `m x k`, `s` falling, `V^T` of `k x n`, with
/// `k = min(m, n)`.  Time `O(m n k)`.
///
/// # Errors
///
/// [`CommonError::NotFinite`] if an entry is infinite or not a number.
pub fn svd(a: ArrayView2<'_, f64>) -> Result<linalg::Svd, CommonError> {
    if a.iter().any(|x| !x.is_finite()) {
        return Err(CommonError::NotFinite("matrix to decompose"));
    }
    roomy(|| svd_of(a))
}

fn svd_of(a: ArrayView2<'_, f64>) -> Result<linalg::Svd, CommonError> {
    set_global_parallelism(Par::Seq);
    let a = a.as_standard_layout();
    let svd = Svd::new_thin(view(a.view()))
        .map_err(|_| CommonError::NotFinite("singular value iteration"))?;
    let values = svd.S().column_vector();
    let values = Array1::from_shape_fn(values.nrows(), |i| values[i]);
    Ok((owned(svd.U()), values, owned(svd.V().transpose())))
}

/// Inverts the symmetric positive definite `a` by Cholesky's `L L^T`; also returns the smallest
/// diagonal entry of `L`, squared.  `None` if a pivot is not positive.  Time `O(R^3)`.
pub(super) fn cholesky_inverse(a: ArrayView2<'_, f64>) -> Option<(Array2<f64>, f64)> {
    roomy(|| cholesky_inverse_of(a))
}

fn cholesky_inverse_of(a: ArrayView2<'_, f64>) -> Option<(Array2<f64>, f64)> {
    set_global_parallelism(Par::Seq);
    let n = a.nrows();
    let a = a.as_standard_layout();
    let llt = Llt::new(view(a.view()), Side::Lower).ok()?;
    let l = llt.L();
    let pivot = (0..n).map(|i| l[(i, i)] * l[(i, i)]).fold(f64::INFINITY, f64::min);
    let inverse = llt.inverse();
    let mut rows = Array2::zeros((n, n));
    // It is symmetric, and its columns are contiguous.
    for (mut row, column) in rows.rows_mut().into_iter().zip(inverse.col_iter()) {
        row.iter_mut().zip(column.iter()).for_each(|(to, from)| *to = *from);
    }
    Some((rows, pivot))
}

/// Computes `out = a b`, all row-major and contiguous.
///
/// # Panics
///
/// If they are not, or the sizes do not fit.
pub fn multiply(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) {
    let (a, b, out) = (view(a), view(b), view_mut(out));
    roomy(|| matmul(out, Accum::Replace, a, b, 1.0, Par::Seq));
}

/// Columns of a Gram matrix that are computed at once, from the diagonal down: on AVX-512 the triangle of faer takes
/// as long at rank 16, 1.2 to 1.4 times as long at 32 to 200, 1.1 times at 300 to 1000.  Rows up to the diagonal, eight at
/// once, are faster at 50 (by 1.15) and slower from 300 on (by up to 1.5).
const GRAM_COLUMNS: usize = 16;

/// Adds the lower triangle of `a^T a` to that of `gram`; the other triangle is left undefined.
///
/// # Panics
///
/// If they are not row-major and contiguous, or the sizes do not fit.
pub fn add_gram(a: ArrayView2<'_, f64>, gram: ArrayViewMut2<'_, f64>) {
    let (a, mut gram) = (view(a), view_mut(gram));
    let rank = a.ncols();
    roomy(|| {
        for first in (0..rank).step_by(GRAM_COLUMNS) {
            let (below, wide) = (rank - first, GRAM_COLUMNS.min(rank - first));
            let columns = gram.as_mut().submatrix_mut(first, first, below, wide);
            let left = a.subcols(first, below).transpose();
            matmul(columns, Accum::Add, left, a.subcols(first, wide), 1.0, Par::Seq);
        }
    });
}

/// Adds `a^T b` to `out`, all row-major and contiguous.
///
/// # Panics
///
/// If they are not, or the sizes do not fit.
pub fn add_cross_gram(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) {
    let (a, b, out) = (view(a).transpose(), view(b), view_mut(out));
    roomy(|| matmul(out, Accum::Add, a, b, 1.0, Par::Seq));
}

fn owned(a: MatRef<'_, f64>) -> Array2<f64> {
    Array2::from_shape_fn((a.nrows(), a.ncols()), |(i, j)| a[(i, j)])
}

fn view(a: ArrayView2<'_, f64>) -> MatRef<'_, f64> {
    let (rows, cols) = a.dim();
    MatRef::from_row_major_slice(a.to_slice().expect("row-major and contiguous"), rows, cols)
}

fn view_mut(a: ArrayViewMut2<'_, f64>) -> MatMut<'_, f64> {
    let (rows, cols) = a.dim();
    let slice = a.into_slice().expect("row-major and contiguous");
    MatMut::from_row_major_slice_mut(slice, rows, cols)
}
