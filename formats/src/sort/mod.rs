//! Sorting coordinate lists by any order of the modes.
//!
//! The coordinates of an entry are packed into one key, outermost mode in the highest bits, and
//! the pairs (key, value) are sorted by radix:
//!
//! 1. *Partition*: every thread reads a chunk of the columns, packs, and appends each pair to its
//!    own piece of the bucket of the key's leading digit.  Pieces of one bucket lie in the order of
//!    the chunks, so the pass is stable and its result does not depend on the number of threads.
//! 2. *Finish*: a bucket that fits the second-level cache is sorted by the remaining digits, lowest
//!    first, and unpacked to its place in the columns; a larger one (a heavy slice) is unpacked as it
//!    is and partitioned again.
//!
//! The columns are those that were read, or others where those are still needed.
//!
//! Where the values are decimals of few digits, an entry is its key alone, the code of the value in the
//! lowest bits ([`Decimals`]).
//!
//! Peak memory beyond the columns is one pair an entry: 16 bytes, or 24 for keys of 65 to 128 bits; 8 and
//! 16 with codes.
//! Longer keys fall back to a comparison sort of positions.  Time `O(nnz * key bits / 10)`.
//!
//! A list that is sorted already by another order needs only its leading modes sorted again: see
//! [`Layout::resorting`].

mod bucket;
mod column;
mod compare;
mod decimals;
mod key;
mod radix;
mod scratch;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::error::FormatError;
use crate::sort::key::{Whole, Word, pack};
use crate::sort::radix::Run;
use crate::value::Value;

pub(crate) use crate::sort::column::{Column, ColumnMut};
pub(crate) use crate::sort::decimals::Decimals;
pub(crate) use crate::sort::key::Layout;
pub(crate) use crate::sort::scratch::Room;

/// Keys packed at a time: small enough for the first-level cache, large enough for vector code.
pub(crate) const BLOCK: usize = 1024;

/// Tells whether `columns` are sorted by the modes of `layout`, equal entries allowed.
///
/// Time `O(nnz * order)`, less if an early pair is out of order.
pub(crate) fn is_sorted(columns: &[Column<'_>], layout: &Layout) -> bool {
    match layout.bits() {
        0..=64 => keys_ascend::<u64>(columns, layout),
        65..=128 => keys_ascend::<u128>(columns, layout),
        _ => compare::ascend(columns, layout),
    }
}

/// Entries to be sorted.
pub(crate) struct Source<'a, V> {
    pub(crate) columns: Vec<Column<'a>>,
    pub(crate) values: &'a [V],
}

/// Where sorted entries go; without a source, the entries that are sorted.
pub(crate) struct Target<'a, V> {
    pub(crate) columns: Vec<ColumnMut<'a>>,
    pub(crate) values: &'a mut [V],
}

impl<V> Target<'_, V> {
    /// Returns the entries that are there.
    fn read(&self) -> Source<'_, V> {
        let columns = self.columns.iter().map(ColumnMut::read).collect();
        Source { columns, values: &*self.values }
    }
}

/// Sorts the entries of `source`, or of `target` where they are, by `layout`, stably.
///
/// # Errors
///
/// [`FormatError::NotATensor`] if the system has no memory for the pairs.
pub(crate) fn sort<V: Value>(
    source: Option<&Source<'_, V>>,
    target: Target<'_, V>,
    layout: &Layout,
    room: &Room,
) -> Result<(), FormatError> {
    match (layout.bits(), layout.decimals()) {
        (0..=64, None) => sort_keys::<u64, V>(source, target, layout, room),
        (65..=128, None) => sort_keys::<u128, V>(source, target, layout, room),
        (0..=64, Some(_)) => sort_keys::<Whole<u64>, V>(source, target, layout, room),
        (65..=128, Some(_)) => sort_keys::<Whole<u128>, V>(source, target, layout, room),
        _ => {
            compare::sort(source, target, layout);
            Ok(())
        }
    }
}

fn sort_keys<W: Word, V: Value>(
    source: Option<&Source<'_, V>>,
    target: Target<'_, V>,
    layout: &Layout,
    room: &Room,
) -> Result<(), FormatError> {
    room.with(target.values.len() * size_of::<W::Entry>(), |memory| {
        let entries = bytemuck::cast_slice_mut(memory);
        radix::sort::<W, V>(source, Run { target, entries }, layout, layout.bits());
    })
}

fn keys_ascend<W: Word>(columns: &[Column<'_>], layout: &Layout) -> bool {
    let len = columns.first().map_or(0, Column::len);
    // Blocks overlap by one entry, so that every neighbouring pair meets in one of them.
    (0..len.div_ceil(BLOCK - 1)).into_par_iter().all(|block| {
        let start = block * (BLOCK - 1);
        let mut keys = [W::default(); BLOCK];
        let keys = &mut keys[..BLOCK.min(len - start)];
        pack(layout, columns, start, keys);
        keys.is_sorted()
    })
}
