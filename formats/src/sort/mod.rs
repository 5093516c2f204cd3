//! Sorting coordinate lists by any order of the modes.
//!
//! The coordinates of an entry are packed into one key, outermost mode in the highest bits, and
//! the pairs (key, value) are sorted by radix:
//!
//! 1. *Partition*: every thread reads a chunk of the columns, packs, and appends each pair to its
//!    own piece of the bucket of the key's leading digit.  Pieces of one bucket lie in the order of
//!    the chunks, so the pass is stable and its result does not depend on the number of threads.
//! 2. *Finish*: a bucket that fits the second-level cache is sorted by the remaining digits, lowest
//!    first, and unpacked over the columns it came from; a larger one (a heavy slice) is unpacked
//!    as it is and partitioned again.
//!
//! Peak memory beyond the columns is one pair an entry: 16 bytes, or 24 for keys of 65 to 128 bits.
//! Longer keys fall back to a comparison sort of positions.  Time `O(nnz * key bits / 10)`.
//!
//! A list that is sorted already by another order needs only its leading modes sorted again: see
//! [`Layout::resorting`].

mod column;
mod compare;
mod key;
mod leaf;
mod radix;

use memmap2::MmapMut;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::error::FormatError;
use crate::pages;
use crate::sort::key::{Word, pack};
use crate::sort::radix::Run;
use crate::value::Value;

pub(crate) use crate::sort::column::{Column, ColumnMut};
pub(crate) use crate::sort::key::Layout;

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

/// Memory for the pairs of a sort, which the next one may use again: fresh pages are slow to touch.
#[derive(Debug, Default)]
pub(crate) struct Room(Option<MmapMut>);

impl Clone for Room {
    /// Returns room that takes no memory yet.
    fn clone(&self) -> Room {
        Room::default()
    }
}

impl Room {
    /// Returns `bytes` of memory with anything in it.
    fn of(&mut self, bytes: usize) -> Result<&mut [u8], FormatError> {
        let enough = self.0.take().filter(|memory| memory.len() >= bytes);
        let memory = match enough {
            Some(memory) => memory,
            None => Room::fresh(bytes)?,
        };
        Ok(&mut self.0.insert(memory)[..bytes])
    }

    fn fresh(bytes: usize) -> Result<MmapMut, FormatError> {
        let Ok(memory) = MmapMut::map_anon(bytes.max(1)) else {
            return Err(FormatError::NotATensor(format!("no memory to sort it: {bytes} bytes")));
        };
        pages::ask_in_order(&memory);
        Ok(memory)
    }
}

/// Sorts the entries by `layout`, stably.
///
/// # Errors
///
/// [`FormatError::NotATensor`] if the system has no memory for the pairs.
pub(crate) fn sort<V: Value>(
    columns: Vec<ColumnMut<'_>>,
    values: &mut [V],
    layout: &Layout,
    room: &mut Room,
) -> Result<(), FormatError> {
    match layout.bits() {
        0..=64 => sort_keys::<u64, V>(columns, values, layout, room),
        65..=128 => sort_keys::<u128, V>(columns, values, layout, room),
        _ => {
            compare::sort(columns, values, layout);
            Ok(())
        }
    }
}

fn sort_keys<W: Word, V: Value>(
    columns: Vec<ColumnMut<'_>>,
    values: &mut [V],
    layout: &Layout,
    room: &mut Room,
) -> Result<(), FormatError> {
    let memory = room.of(values.len() * size_of::<W::Entry>())?;
    let entries = bytemuck::cast_slice_mut(memory);
    radix::sort::<W, V>(Run { columns, values, entries }, layout, layout.bits());
    Ok(())
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
