//! The facade of dense linear algebra: everything a solver does besides its sparse kernels.
//!
//! Two families of routines:
//! * small `R x R` matrices in `f64`: [`eigh`], [`invert_spd`];
//! * long `I x R` factors in `f64` or `f32`, row block by row block at the speed of memory:
//!   [`gram`], [`cross_gram`], [`update_rows`].
//!
//! Behind it stands faer, pure Rust, or with the cargo feature `lapack` OpenBLAS by ndarray-linalg;
//! `faer.rs` and `lapack.rs` have the same signatures.  Both run on one thread: the parallelism is
//! over the row blocks, and matrices of a few hundred rows gain nothing from threads.

mod inverse;
mod nonneg;
mod rows;

#[cfg(not(feature = "lapack"))]
mod faer;
#[cfg(not(feature = "lapack"))]
use self::faer as backend;
#[cfg(feature = "lapack")]
mod lapack;
#[cfg(feature = "lapack")]
use self::lapack as backend;

pub use backend::eigh;
pub use inverse::{Inverse, invert_spd};
pub use nonneg::NonNegative;
pub use rows::{RowRule, RowSums, cross_gram, gram, update_rows};
