//! From a program to C.
//!
//! Everything that is known before the kernel runs is a literal (`sizes`): ranks, strides, buffer
//! sizes, the number of vectors of a row.  Rows are padded to whole vectors, so vector code has no
//! remainders.  Buffers of one index live in vector registers while they fit
//! ([`REGISTER_BUDGET`]); larger ones are arrays, and a loop over a level that adds to such an array holds a
//! tile of it in registers at a time.  A loop that adds scaled rows to one row does so in several
//! partial sums (`vector_matrix`).  Loops over levels of several sparse operands are in `intersection`, what finds
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
mod registers;
mod sizes;
mod statements;
mod sums;
mod union;
mod vector;
mod vector_matrix;
mod writer;

pub use kernel::{ENTRY, emit_c};
pub use sizes::sizes;

/// Bytes of a vector: a cache line, the widest register of any machine.
pub const VECTOR_BYTES: usize = 64;

/// Vector registers that buffers may take together: of the 32 of AVX-512, some are left for
/// operands.
pub const REGISTER_BUDGET: usize = 24;

/// The same where there are more than two buffers: under loops so deep the C compiler keeps addresses in
/// vector registers too, and with 21 for buffers gcc 12 moved the innermost sums to the stack.
const DEEP_BUDGET: usize = 20;
