//! What a loop nest costs.
//!
//! [`tree`] prices nests by *tree-separable* functions, which dynamic programming can minimise
//! exactly; [`estimate`] judges a whole schedule in seconds with the constants of a [`Machine`], which are those of its [`Family`].
//! Both count iterations with `nnz(X_i)`, `nnz(X_ij)`, ... of the sparse operand.

mod access;
mod batches;
mod buffers;
mod estimate;
mod least;
mod least_work;
mod machine;
mod memory;
mod threads;
pub mod tree;
mod walks;

pub use estimate::{Cost, estimate};
pub(crate) use least::LeastSeconds;
pub(crate) use least_work::LeastWork;
pub use machine::{Family, MACHINE_VARIABLE, Machine};
pub(crate) use memory::{LINE_BYTES, Table, near_and_late};
pub use threads::{ThreadedCost, on_threads};
