//! How fast a kernel could be at best: what its plan must do against what the machine can do.
//!
//! [`Limits`] are measured: multiply-adds in registers, streams from memory, random gathers of rows
//! from tables that fit the first, second and last level of cache, and that fit none.  [`Work`] is
//! counted on the tree of a kernel.  The bound is the time of the busiest part of the machine;
//! the parts work side by side, so that nothing is added up that could overlap:
//!
//! ```text
//! seconds = max( flops / peak,                                                 arithmetic
//!                near / W_1,                                                   loads
//!                middle / max(W_2, W_3, W_memory, W_stream),                   beyond L1
//!                far / max(W_3, W_memory, W_stream),                           beyond L2
//!                streamed / W_stream + scattered / W_memory )                  memory
//! ```
//!
//! Nothing that is counted can be avoided by the same plan:
//!
//! - *flops*: one multiplication and one addition for every iteration of every term, on the counts
//!   of the tree; padding, clearing and summing of private copies are left out.
//! - *near*: the tree once, and for every node whose coordinate differs from the one before the row
//!   of each operand that its level reaches; a row that is added to is loaded and stored.  A row in
//!   registers stays there until the coordinate changes; after that it must be loaded at least from
//!   the first-level cache.  Repeats in dense loops outside are left out.
//! - *middle*, *far*, *streamed*, *scattered*: caches are granted the best replacement that there can be: once
//!   with the whole cache for every array, once, for the caches of a thread, with all arrays in one, reached as
//!   the loops over the tree do; the larger number counts.  The tree, of `S` bytes, must come in except for what
//!   the caches can have kept from the last time, `S - capacity`.  Of rows, any stretch of accesses
//!   with `d` different rows brings in at least `d` less those that fit, whatever the replacement
//!   (the argument of Sleator and Tarjan, "Amortized efficiency of list update and paging rules",
//!   CACM 1985); stretches are cut one after the other and add up.  Stretches of threads with caches
//!   of their own are looked at apart; for the shared last level the accesses of threads are taken
//!   in turns, as they advance evenly.
//! - Rows within 4 KiB behind the one before can be foreseen and are priced as a stream; the others
//!   as the random gather that was measured.
//!
//! The bound is not tight where a plan needs several parts of the machine at once and cannot overlap
//! them, or where stretches are a poor measure of reuse: within a factor of two for uniform accesses.

mod bound;
mod limits;
mod reuse;
mod share;
mod shared;
#[cfg(test)]
mod tests;
mod touches;
mod work;

pub(crate) use bound::Bound;
pub(crate) use limits::{Limits, TablePlace};
pub(crate) use share::CoreShare;
pub(crate) use work::{Caches, Work};
