//! The facade of dense linear algebra: everything a solver does besides its sparse kernels.
//!
//! Two families of routines:
//! * matrices in `f64` that fit memory: [`eigh`], [`qr`], [`svd`], [`invert_spd`], [`solve_spd`], and leading
//!   eigenvectors of larger ones, [`leading_of`], [`leading`];
//! * long `I x R` factors in `f64` or `f32`, row block by row block at the speed of memory:
//!   [`gram`], [`gram_of_panels`], [`cross_gram`], [`update_rows`], [`update_panels`], [`orthonormalise`],
//!   [`complete`].
//!
//! Passes that update rows multiply in tiles of our own (`tiles.rs`), which read memory meanwhile.
//! Behind all else stands faer, pure Rust, or with the cargo feature `lapack` OpenBLAS by ndarray-linalg;
//! `faer.rs` and `lapack.rs` have the same signatures.  Both run on one thread: the parallelism is
//! over the row blocks, and matrices of a few hundred rows gain nothing from threads.  Blocks of rows
//! may also be handed in one by one: [`multiply`], [`add_gram`], [`add_cross_gram`].

mod aligned;
mod inverse;
mod leading;
mod nonneg;
mod normal_equations;
mod orthonormal;
mod prefetch;
mod rows;
#[cfg(not(feature = "lapack"))]
mod space;
mod tiles;

#[cfg(not(feature = "lapack"))]
mod faer;
#[cfg(not(feature = "lapack"))]
use self::faer as backend;
#[cfg(feature = "lapack")]
mod lapack;
#[cfg(feature = "lapack")]
use self::lapack as backend;

use ndarray::{Array1, Array2, ArrayView2};

pub use backend::{add_cross_gram, add_gram, eigh, multiply, qr, qr_r, svd};
pub use inverse::{Inverse, invert_spd};
pub use leading::{
    Guess, Leading, Product, leading, leading_bytes, leading_columns, leading_of, leading_of_flops,
};
pub use nonneg::NonNegative;
pub use normal_equations::{descend_nonneg, solve_spd};
pub(crate) use orthonormal::fill_centred;
pub use orthonormal::{complete, orthonormalise};
pub use rows::{
    RowRule, RowSums, cross_gram, gram, gram_of_panels, most_sums, scratch_rows, update_panels,
    update_rows,
};
#[cfg(not(feature = "lapack"))]
pub(crate) use space::is_inside as maps_buffer;

/// Tells whether what this thread asks for now is a buffer of dense algebra, in a limited address space: that of LAPACK
/// is small.
#[cfg(feature = "lapack")]
pub(crate) fn maps_buffer() -> bool {
    false
}

/// A singular value decomposition: left vectors in columns, values falling, right vectors in rows.
pub type Svd = (Array2<f64>, Array1<f64>, Array2<f64>);

/// Returns `a b`, on one thread.
///
/// # Panics
///
/// If the sizes do not fit.
pub fn matmul(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Array2<f64> {
    assert_eq!(a.ncols(), b.nrows(), "matrices that do not multiply");
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    multiply(a.as_standard_layout().view(), b.as_standard_layout().view(), out.view_mut());
    out
}
