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
mod locate;
mod machine;
mod predicted;
mod storing;
pub mod symbolic;
mod threads;
pub mod tree;
mod vector_loop;

pub(crate) use caches::{GatheredTable, LINE_BYTES, l2_and_late};
pub(crate) use coarse::{Coarse, VisitedTree};
pub use estimate::estimate;
pub(crate) use estimate::suited_vectors;
pub(crate) use locate::suited_kinds;
pub use machine::{Family, GreedyCosts, MACHINE_VARIABLE, Machine};
pub use predicted::Cost;
pub use storing::storing_seconds;
pub use threads::{ThreadedCost, on_threads};
