//! Which entries of a list stay.

use std::ops::Range;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator};
use rayon::iter::{IntoParallelRefMutIterator, ParallelIterator};

use crate::array::Array;
use crate::narrow_ints::{Ints, each_width};
use crate::sort::Column;

use bytemuck::Pod;

/// Words of a mask that one task handles.
const CHUNK: usize = 1 << 10;

/// One bit an entry, set if the entry stays.
pub(super) struct Mask {
    words: Vec<u64>,
    len: usize,
}

impl Mask {
    /// Asks `word` for the bits of each word's entries, in parallel; the range has 64 or, at the
    /// end, fewer positions.
    pub(super) fn new(len: usize, word: impl Fn(Range<usize>) -> u64 + Sync) -> Mask {
        let mut words = vec![0; len.div_ceil(64)];
        words.par_iter_mut().enumerate().with_min_len(CHUNK).for_each(|(index, bits)| {
            *bits = word(index * 64..len.min(index * 64 + 64));
        });
        Mask { words, len }
    }

    /// Returns how many entries stay.
    pub(super) fn count(&self) -> usize {
        self.words.par_iter().with_min_len(CHUNK).map(|word| word.count_ones() as usize).sum()
    }

    /// Tells whether the entry at `position` stays; none does past the end.
    pub(super) fn has(&self, position: usize) -> bool {
        self.words.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Returns the first position from `from` on that stays, or the length of the list.
    pub(super) fn next(&self, from: usize) -> usize {
        let mut position = from;
        while position < self.len && !self.has(position) {
            position += 1;
        }
        position
    }

    /// Returns the coordinates that stay.
    pub(super) fn compact_ints(&self, ints: &Ints) -> Ints {
        each_width!(Ints, ints, array => self.compact(|position| array[position]).into())
    }

    /// Returns `of(position)` for every position that stays, in order; in parallel.
    pub(super) fn compact<T>(&self, of: impl Fn(usize) -> T + Sync) -> Array<T>
    where
        T: Pod + Send + Sync,
    {
        let mut compacted = bytemuck::zeroed_vec(self.count());
        let mut rest = &mut compacted[..];
        let mut pieces = Vec::with_capacity(self.words.len().div_ceil(CHUNK));
        for words in self.words.chunks(CHUNK) {
            let count: u32 = words.iter().map(|word| word.count_ones()).sum();
            let (piece, tail) = rest.split_at_mut(count as usize);
            pieces.push((words, piece));
            rest = tail;
        }
        pieces.into_par_iter().enumerate().for_each(|(chunk, (words, piece))| {
            let mut slots = piece.iter_mut();
            for (index, &word) in words.iter().enumerate() {
                let (start, mut bits) = ((chunk * CHUNK + index) * 64, word);
                while bits != 0 {
                    if let Some(slot) = slots.next() {
                        *slot = of(start + bits.trailing_zeros() as usize);
                    }
                    bits &= bits - 1;
                }
            }
        });
        compacted.into()
    }
}

/// Returns the bits of the entries in `range` (at most 64) that differ from the entry before them
/// in some column; the first entry of all always does.
pub(super) fn heads(columns: &[Column<'_>], range: Range<usize>) -> u64 {
    let mut bits = [0];
    if !range.is_empty() {
        let columns = columns.iter().map(|column| column.part(0..range.end));
        columns.for_each(|column| column.add_heads(range.start, &mut bits));
    }
    bits[0]
}
