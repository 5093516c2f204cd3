//! From a sorted list to a tree.
//!
//! An entry opens a node at level `l` if it differs from the entry before it in one of the first
//! `l + 1` modes: its bit at level `l` is set.  One pass over the upper columns makes the bits and
//! counts them in chunks of entries; another writes the nodes of the set bits to where the counts
//! of the chunks before say.  Beyond the tree this takes a bit an entry and level.

use std::ops::Range;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::csf::Level;
use crate::narrow_ints::{Int, Ints, Width, each_width};
use crate::simd;
use crate::sort::Column;
use crate::sort::ColumnMut;

/// Least entries of a chunk, a multiple of the bits of a word.
const CHUNK: usize = 1 << 16;

/// Returns how many nodes each of `columns` has as a level, outermost first.
///
/// The columns must be sorted.  Time `O(nnz * levels)`, parallel.
pub(crate) fn node_counts(columns: &[Column<'_>]) -> Vec<u64> {
    let mut totals = vec![0; columns.len()];
    for chunk in chunks(columns, columns.first().map_or(0, Column::len)) {
        totals.iter_mut().zip(chunk.counts).for_each(|(total, count)| *total += count as u64);
    }
    totals
}

/// Builds the levels above the last one from their sorted columns, outermost first, each with the
/// width of its coordinates.
pub(super) fn upper_levels(columns: &[(Column<'_>, Width)], nnz: usize) -> Vec<Level> {
    let (columns, widths): (Vec<Column<'_>>, Vec<Width>) = columns.iter().copied().unzip();
    let columns = &columns[..];
    let chunks = chunks(columns, nnz);
    let total = |level| chunks.iter().map(|chunk| chunk.counts[level]).sum();
    let totals: Vec<usize> = (0..columns.len()).map(total).collect();
    let mut levels: Vec<Level> =
        widths.iter().zip(&totals).map(|(&width, &n)| room(width, n, nnz)).collect();
    let pieces = split(&mut levels, &chunks);
    let firsts = first_nodes(&chunks, columns.len());
    pieces.into_par_iter().zip(firsts).zip(&chunks).for_each(|((pieces, first), chunk)| {
        fill(columns, chunk, pieces, &first);
    });
    for (level, Level { pointers, .. }) in levels.iter_mut().enumerate() {
        let children = totals.get(level + 1).copied().unwrap_or(nnz);
        set_last(pointers, children as u64);
    }
    levels
}

/// A run of entries; the result does not depend on how they are cut.
struct Chunk {
    /// The position of its first entry.
    start: usize,
    /// The bits of its entries, by level: 64 a word.
    bits: Vec<Vec<u64>>,
    /// The set bits of each level.
    counts: Vec<usize>,
}

/// Cuts the entries into chunks and marks those that open nodes.
fn chunks(columns: &[Column<'_>], nnz: usize) -> Vec<Chunk> {
    let size = nnz.div_ceil(4 * rayon::current_num_threads()).next_multiple_of(64).max(CHUNK);
    let chunk = |index: usize| {
        let entries = index * size..nnz.min((index + 1) * size);
        marked(columns, entries)
    };
    (0..nnz.div_ceil(size)).into_par_iter().map(chunk).collect()
}

fn marked(columns: &[Column<'_>], entries: Range<usize>) -> Chunk {
    let mut above = vec![0; entries.len().div_ceil(64)];
    let mut bits: Vec<Vec<u64>> = Vec::with_capacity(columns.len());
    for column in columns {
        column.part(0..entries.end).add_heads(entries.start, &mut above);
        bits.push(above.clone());
    }
    let ones = |bits: &[u64]| bits.iter().map(|word| word.count_ones() as usize).sum();
    let count = |bits: &Vec<u64>| simd::run(|| ones(bits));
    let counts = bits.iter().map(count).collect();
    Chunk { start: entries.start, bits, counts }
}

/// The piece of a level that one chunk writes.
struct Piece<'a> {
    coords: ColumnMut<'a>,
    pointers: ColumnMut<'a>,
}

fn room(width: Width, nodes: usize, nnz: usize) -> Level {
    // A pointer may equal the number of entries, one more than the largest position.
    let pointers = Ints::to_fill(nodes + 1, Width::below(nnz as u64 + 1));
    Level { coords: Ints::to_fill(nodes, width), pointers }
}

/// Splits all levels among the chunks.
fn split<'a>(levels: &'a mut [Level], chunks: &[Chunk]) -> Vec<Vec<Piece<'a>>> {
    let mut pieces: Vec<Vec<Piece<'a>>> = chunks.iter().map(|_| Vec::new()).collect();
    for (number, level) in levels.iter_mut().enumerate() {
        let mut coords = ColumnMut::of(&mut level.coords);
        let mut pointers = ColumnMut::of(&mut level.pointers);
        for (pieces, chunk) in pieces.iter_mut().zip(chunks) {
            let (head, tail) = coords.split_at(chunk.counts[number]);
            let (pointers_head, pointers_tail) = pointers.split_at(chunk.counts[number]);
            pieces.push(Piece { coords: head, pointers: pointers_head });
            (coords, pointers) = (tail, pointers_tail);
        }
    }
    pieces
}

/// Returns for each chunk the number of nodes that the chunks before it open at each level.
fn first_nodes(chunks: &[Chunk], levels: usize) -> Vec<Vec<usize>> {
    let mut sums = vec![0; levels];
    let add = |chunk: &Chunk| {
        let first = sums.clone();
        sums.iter_mut().zip(&chunk.counts).for_each(|(sum, count)| *sum += count);
        first
    };
    chunks.iter().map(add).collect()
}

/// Writes the nodes that a chunk opens; `first` counts those opened before, by level.
fn fill(columns: &[Column<'_>], chunk: &Chunk, pieces: Vec<Piece<'_>>, first: &[usize]) {
    for (level, piece) in pieces.into_iter().enumerate() {
        let (bits, start) = (&chunk.bits[level], chunk.start);
        let column = columns[level];
        each_width!(ColumnMut, piece.coords, to => {
            each_width!(Column, column, from => gather(&from[start..], bits, to));
        });
        // Below the last of these levels lie the entries themselves: each is a node.
        let below = chunk.bits.get(level + 1).map(Vec::as_slice);
        let before = first.get(level + 1).copied().unwrap_or(start);
        each_width!(ColumnMut, piece.pointers, to => point(bits, below, before, to));
    }
}

/// Writes the coordinates of the marked entries, cut to the width of `to`, which holds them.
fn gather<T: Int, U: Int>(from: &[T], bits: &[u64], to: &mut [U]) {
    simd::run(|| {
        let mut slots = to.iter_mut();
        for (word, from) in bits.iter().zip(from.chunks(64)) {
            each_bit(*word, |bit| put(&mut slots, U::cut(from[bit as usize].wide())));
        }
    });
}

/// Writes for each marked entry how many children, of the bits `below` or all entries, were opened
/// before it; `before` of them before the chunk.
fn point<T: Int>(bits: &[u64], below: Option<&[u64]>, mut before: usize, to: &mut [T]) {
    simd::run(|| {
        let mut slots = to.iter_mut();
        for (index, &word) in bits.iter().enumerate() {
            let children = below.map_or(u64::MAX, |below| below[index]);
            each_bit(word, |bit| {
                let within = (children & ((1 << bit) - 1)).count_ones();
                put(&mut slots, T::cut((before + within as usize) as u64));
            });
            before += children.count_ones() as usize;
        }
    });
}

/// Calls `each` for the set bits of a word, in order.
#[inline(always)]
fn each_bit(mut word: u64, mut each: impl FnMut(u32)) {
    while word != 0 {
        each(word.trailing_zeros());
        word &= word - 1;
    }
}

#[inline(always)]
fn put<'a, T: Int>(slots: &mut impl Iterator<Item = &'a mut T>, item: T) {
    if let Some(slot) = slots.next() {
        *slot = item;
    }
}

fn set_last(pointers: &mut Ints, children: u64) {
    each_width!(ColumnMut, ColumnMut::of(pointers), pointers => put_last(pointers, children));
}

fn put_last<T: Int>(pointers: &mut [T], children: u64) {
    if let Some(last) = pointers.last_mut() {
        *last = T::cut(children);
    }
}
