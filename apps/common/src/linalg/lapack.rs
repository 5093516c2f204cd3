//! The facade on LAPACK and BLAS: OpenBLAS through ndarray-linalg.

use std::sync::Once;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};
use ndarray_linalg::{Cholesky, Eigh, Inverse, JobSvd, QR, SVDDC, UPLO};

use crate::error::CommonError;
use crate::linalg;

#[expect(unsafe_code, reason = "the library has no safe binding for its number of threads")]
mod threads {
    // SAFETY: the signature is that of OpenBLAS's `cblas.h`; the call only stores a number.
    unsafe extern "C" {
        pub(super) safe fn openblas_set_num_threads(threads: std::ffi::c_int);
    }
}

/// Keeps OpenBLAS on the calling thread: its own threads would fight those over the row blocks,
/// and slow matrices of this size down.
fn one_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| threads::openblas_set_num_threads(1));
}

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
    one_thread();
    // A column-major copy: for row-major input the library reads the other triangle.
    let mut columns = Array2::zeros(ndarray::ShapeBuilder::f(a.dim()));
    columns.assign(&a);
    columns.eigh(UPLO::Lower).map_err(|_| CommonError::NotFinite("eigenvalue iteration"))
}

/// Decomposes `a = Q R` (`m x n`) by Householder reflections: `Q` of `m x k` with orthonormal
/// columns to rounding, whatever the rank of `a`, and `R` of `k x n`, upper trapezoidal, with
/// `k = min(m, n)`.  Time `O(m n k)`.
///
/// # Panics
///
/// Never: the library refuses no finite or infinite matrix.
pub fn qr(a: ArrayView2<'_, f64>) -> (Array2<f64>, Array2<f64>) {
    one_thread();
    a.to_owned().qr().expect("a matrix of any shape")
}

/// Returns the `R` of [`qr`] alone.
pub fn qr_r(a: ArrayView2<'_, f64>) -> Array2<f64> {
    qr(a).1
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
    one_thread();
    let failed = || CommonError::NotFinite("singular value iteration");
    let (u, s, vt) = a.to_owned().svddc(JobSvd::Some).map_err(|_| failed())?;
    Ok((u.ok_or_else(failed)?, s, vt.ok_or_else(failed)?))
}

/// Inverts the symmetric positive definite `a` by Cholesky's `L L^T`; also returns the smallest
/// diagonal entry of `L`, squared.  `None` if a pivot is not positive.  Time `O(R^3)`.
pub(super) fn cholesky_inverse(a: ArrayView2<'_, f64>) -> Option<(Array2<f64>, f64)> {
    one_thread();
    let l = a.to_owned().cholesky(UPLO::Lower).ok()?;
    let pivot = l.diag().iter().map(|x| x * x).fold(f64::INFINITY, f64::min);
    let l_inverse = l.inv().ok()?;
    Some((l_inverse.t().dot(&l_inverse), pivot))
}

/// Computes `out = a b`, all row-major and contiguous.
///
/// # Panics
///
/// If they are not, or the sizes do not fit.
pub fn multiply(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) {
    one_thread();
    general_mat_mul(1.0, &a, &b, 0.0, &mut out);
}

/// Adds the lower triangle of `a^T a` to that of `gram`; the other triangle is left undefined.
///
/// # Panics
///
/// If they are not row-major and contiguous, or the sizes do not fit.
pub fn add_gram(a: ArrayView2<'_, f64>, gram: ArrayViewMut2<'_, f64>) {
    add_cross_gram(a, a, gram);
}

/// Adds `a^T b` to `out`, all row-major and contiguous.
///
/// # Panics
///
/// If they are not, or the sizes do not fit.
pub fn add_cross_gram(
    a: ArrayView2<'_, f64>,
    b: ArrayView2<'_, f64>,
    mut out: ArrayViewMut2<'_, f64>,
) {
    one_thread();
    general_mat_mul(1.0, &a.t(), &b, 1.0, &mut out);
}
