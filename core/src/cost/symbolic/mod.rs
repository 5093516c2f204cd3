//! Costs as polynomials, and what can be said of them for all sizes at once.
//!
//! Loops over `l` and over two levels of `B` run `l*nnz(B_ij)` times: a product of extents, of which those that a tree is
//! walked over are multiplied by the share of the coordinates that occur.
//!
//! ```text
//! iterations(loops) = product of extents(loops) * product of share(operand, level) over the levels walked
//! nnz(B_ij)         = i*share(B,1) * j*share(B,2)
//! ```
//!
//! A [`Polynomial`] sums such products: the *iteration time* of a nest over its terms, its *auxiliary memory* over its
//! buffers.  [`Symbols`] names the variables, prints polynomials and evaluates them on real counts.  A [`Domain`] is what
//! is known of the variables, and decides whether one polynomial is at least another one wherever that holds
//! ([`Domain::at_least`]).  [`Trees`] joins the domains of several trees.
//!
//! Source: Dias et al., "SparseAuto: An Auto-scheduler for Sparse Tensor Computations using Recursive Loop Nest
//! Restructuring", OOPSLA 2024, sections 3 and 5.2.

mod actual;
mod compare;
mod constraint;
mod contradiction;
mod domain;
mod exact;
mod polynomial;
mod range;
mod smt;
mod symbols;
mod trees;

pub use compare::{Answer, Comparisons};
pub use domain::Domain;
pub use polynomial::{Monomial, Polynomial};
pub use range::{Assumption, Range};
pub use symbols::Symbols;
pub use trees::Trees;
