//! What a loop nest costs.
//!
//! [`tree`] prices nests by *tree-separable* functions, which dynamic programming can minimise
//! exactly; [`estimate`] judges a whole schedule in seconds with the constants of a [`Machine`], which are those of its [`Family`].
//! Both count iterations with `nnz(X_i)`, `nnz(X_ij)`, ... of the sparse operand.

mod access;
mod batches;
mod buffers;
mod caches;
mod coarse;
mod estimate;
mod levels;
mod machine;
mod threads;
pub mod tree;

pub(crate) use caches::{LINE_BYTES, Table, l2_and_late};
pub(crate) use coarse::{Coarse, VisitedTree};
pub use estimate::{Cost, estimate};
pub use machine::{Family, MACHINE_VARIABLE, Machine};
pub use threads::{ThreadedCost, on_threads};
