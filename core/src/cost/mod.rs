//! What a loop nest costs.
//!
//! [`tree`] prices nests by *tree-separable* functions, which dynamic programming can minimise
//! exactly; [`estimate`] judges a whole schedule in seconds with the constants of a [`Machine`].
//! Both count iterations with `nnz(X_i)`, `nnz(X_ij)`, ... of the sparse operand.

mod estimate;
mod machine;
pub mod tree;

pub use estimate::{Cost, estimate, gather_seconds};
pub use machine::Machine;
