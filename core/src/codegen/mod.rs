//! From a program to C.
//!
//! Everything that is known before the kernel runs is a literal (`sizes`): ranks, strides, buffer
//! sizes, the number of vectors of a row.  Rows are padded to whole vectors, so vector code has no
//! remainders.  Which buffers live in vector registers, and which iterations of a loop are taken together, passes of
//! [`lower`](crate::lower) have decided: batches are in `outer_products`, partial sums in `sums` and `vector_matrix`,
//! tiles in `vector`.  Loops over levels of several sparse operands are in `intersection`, what finds
//! coordinates there in `locate`, sparse buffers in `marked`, assembled outputs in `assembled`.
//!
//! Which of this is left out, the program says ([`Optimisation`](crate::optimisation::Optimisation)).
//!
//! The code uses GCC's vector types, which clang has too; the compiler splits a 64-byte vector
//! where the machine has narrower ones.

mod assembled;
mod intersection;
mod kernel;
mod levels;
mod locate;
mod marked;
mod outer_products;
mod sizes;
mod statements;
mod sums;
mod union;
mod vector;
mod vector_matrix;
mod writer;

pub use kernel::{ENTRY, emit_c};
pub use sizes::sizes;
