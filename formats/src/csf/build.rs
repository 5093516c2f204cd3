//! From a sorted list to a tree.
//!
//! An entry opens a node at level `l` if it differs from the entry before it in one of the first
//! `l + 1` modes.  Two passes over the upper columns suffice: one counts the nodes that each chunk
//! of entries opens, the other writes them to where the counts of the chunks before say.

use std::ops::Range;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::csf::Level;
use crate::ints::Int;
use crate::ints::Ints;
use crate::ints::Width;
use crate::sort::Column;
use crate::sort::ColumnMut;

/// Entries marked at a time; the marks of all levels stay in the first-level cache.
const BLOCK: usize = 1024;
/// Least entries of a chunk.
const CHUNK: usize = 1 << 16;

/// For each level, which entries of a block open a node: 1 or 0.
type Marks = Vec<[u8; BLOCK]>;

/// Returns how many nodes each of `columns` has as a level, outermost first.
///
/// The columns must be sorted.  Time `O(nnz * levels)`, parallel.
pub(crate) fn node_counts(columns: &[Column<'_>]) -> Vec<u64> {
    let chunks = Chunks::of(columns.first().map_or(0, Column::len));
    let mut totals = vec![0; columns.len()];
    for counts in chunk_counts(columns, chunks) {
        totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count as u64);
    }
    totals
}

/// Builds the levels above the last one from their sorted columns, outermost first.
pub(super) fn upper_levels(columns: &[Column<'_>], nnz: usize) -> Vec<Level> {
    let chunks = Chunks::of(nnz);
    let counts = chunk_counts(columns, chunks);
    let totals: Vec<usize> =
        (0..columns.len()).map(|level| counts.iter().map(|counts| counts[level]).sum()).collect();
    let mut levels: Vec<Level> =
        columns.iter().zip(&totals).map(|(c, &n)| room(c, n, nnz)).collect();
    let pieces = split(&mut levels, &counts);
    let firsts = first_nodes(&counts, columns.len());
    pieces.into_par_iter().zip(firsts).enumerate().for_each(|(index, (pieces, first))| {
        fill(columns, chunks.range(index), pieces, first);
    });
    for (level, Level { pointers, .. }) in levels.iter_mut().enumerate() {
        let children = totals.get(level + 1).copied().unwrap_or(nnz);
        set_last(pointers, children as u64);
    }
    levels
}

/// How the entries are cut into tasks; the result does not depend on it.
#[derive(Clone, Copy)]
struct Chunks {
    nnz: usize,
    count: usize,
}

impl Chunks {
    fn of(nnz: usize) -> Chunks {
        Chunks { nnz, count: nnz.div_ceil(CHUNK).min(4 * rayon::current_num_threads()) }
    }

    fn range(self, index: usize) -> Range<usize> {
        let at = |index: usize| (self.nnz as u128 * index as u128 / self.count as u128) as usize;
        at(index)..at(index + 1)
    }
}

/// The piece of a level that one chunk writes.
struct Piece<'a> {
    coords: ColumnMut<'a>,
    pointers: ColumnMut<'a>,
}

fn room(column: &Column<'_>, nodes: usize, nnz: usize) -> Level {
    let width = match column {
        Column::U32(_) => Width::W32,
        Column::U64(_) => Width::W64,
    };
    // A pointer may equal the number of entries, one more than the largest position.
    let pointers = Ints::zeros(nodes + 1, Width::below(nnz as u64 + 1));
    Level { coords: Ints::zeros(nodes, width), pointers }
}

/// Splits all levels among the chunks.
fn split<'a>(levels: &'a mut [Level], counts: &[Vec<usize>]) -> Vec<Vec<Piece<'a>>> {
    let mut pieces: Vec<Vec<Piece<'a>>> = counts.iter().map(|_| Vec::new()).collect();
    for (number, level) in levels.iter_mut().enumerate() {
        let mut coords = ColumnMut::of(&mut level.coords);
        let mut pointers = ColumnMut::of(&mut level.pointers);
        for (pieces, counts) in pieces.iter_mut().zip(counts) {
            let (head, tail) = coords.split_at(counts[number]);
            let (pointers_head, pointers_tail) = pointers.split_at(counts[number]);
            pieces.push(Piece { coords: head, pointers: pointers_head });
            (coords, pointers) = (tail, pointers_tail);
        }
    }
    pieces
}

/// Returns for each chunk the number of nodes that the chunks before it open at each level.
fn first_nodes(counts: &[Vec<usize>], levels: usize) -> Vec<Vec<usize>> {
    let mut sums = vec![0; levels];
    let add = |counts: &Vec<usize>| {
        let first = sums.clone();
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        first
    };
    counts.iter().map(add).collect()
}

fn chunk_counts(columns: &[Column<'_>], chunks: Chunks) -> Vec<Vec<usize>> {
    let count = |index: usize| {
        let mut counts = vec![0; columns.len()];
        for_blocks(columns, chunks.range(index), |_, marks| {
            for (count, marks) in counts.iter_mut().zip(marks) {
                *count += total(marks);
            }
        });
        counts
    };
    (0..chunks.count).into_par_iter().map(count).collect()
}

/// Writes the nodes that the entries in `range` open; `first` counts those opened before.
fn fill(
    columns: &[Column<'_>],
    range: Range<usize>,
    mut pieces: Vec<Piece<'_>>,
    mut first: Vec<usize>,
) {
    let levels = columns.len();
    let mut done = vec![0; levels];
    for_blocks(columns, range, |block, marks| {
        for level in 0..levels {
            let Piece { coords, pointers } = &mut pieces[level];
            gather(columns[level], &block, marks[level], (coords, done[level]));
            let children = marks.get(level + 1).map(|marks| (*marks, first[level + 1]));
            // Below the last of these levels lie the entries themselves: each is a node.
            let children = children.unwrap_or((&ONES[..block.len()], block.start));
            let opened = point(marks[level], children, (pointers, done[level]));
            done[level] += opened;
        }
        for (first, marks) in first.iter_mut().zip(marks) {
            *first += total(marks);
        }
    });
}

const ONES: [u8; BLOCK] = [1; BLOCK];

/// Calls `each(block, marks)` for the blocks of `range`; `marks` has a slice a level.
fn for_blocks(
    columns: &[Column<'_>],
    range: Range<usize>,
    mut each: impl FnMut(Range<usize>, &[&[u8]]),
) {
    let mut marks: Marks = vec![[0; BLOCK]; columns.len()];
    for start in range.clone().step_by(BLOCK) {
        let block = start..range.end.min(start + BLOCK);
        let mut above = [0; BLOCK];
        for (column, marks) in columns.iter().zip(&mut marks) {
            *marks = above;
            match column {
                Column::U32(coords) => mark(coords, &block, &mut marks[..block.len()]),
                Column::U64(coords) => mark(coords, &block, &mut marks[..block.len()]),
            }
            above = *marks;
        }
        let marks: Vec<&[u8]> = marks.iter().map(|marks| &marks[..block.len()]).collect();
        each(block, &marks);
    }
}

/// Marks the entries of a block that differ from the entry before them.
fn mark<T: Int>(coords: &[T], block: &Range<usize>, marks: &mut [u8]) {
    let Range { start, end } = *block;
    let first = usize::from(start == 0);
    if start == 0 {
        marks[0] = 1;
    }
    let here = &coords[start + first..end];
    let before = &coords[start + first - 1..end - 1];
    for ((mark, here), before) in marks[first..].iter_mut().zip(here).zip(before) {
        *mark |= u8::from(here != before);
    }
}

fn total(marks: &[u8]) -> usize {
    marks.chunks(128).map(|part| usize::from(part.iter().sum::<u8>())).sum()
}

/// Writes the coordinates of the marked entries from `out.1` on.
fn gather(
    column: Column<'_>,
    block: &Range<usize>,
    marks: &[u8],
    out: (&mut ColumnMut<'_>, usize),
) {
    match (column, out) {
        (Column::U32(from), (ColumnMut::U32(to), at)) => {
            select(from[block.clone()].iter().copied(), marks, &mut to[at..]);
        }
        (Column::U64(from), (ColumnMut::U64(to), at)) => {
            select(from[block.clone()].iter().copied(), marks, &mut to[at..]);
        }
        // Room was made in the width of the column.
        _ => {}
    }
}

/// Writes for each marked entry how many `children` were opened before it, from `out.1` on;
/// returns how many entries are marked.
fn point(
    marks: &[u8],
    (children, mut before): (&[u8], usize),
    out: (&mut ColumnMut<'_>, usize),
) -> usize {
    let ranks = children.iter().map(|&mark| {
        let rank = before;
        before += usize::from(mark);
        rank
    });
    match out {
        (ColumnMut::U32(to), at) => select(ranks.map(|rank| rank as u32), marks, &mut to[at..]),
        (ColumnMut::U64(to), at) => select(ranks.map(|rank| rank as u64), marks, &mut to[at..]),
    }
}

/// Writes the items whose mark is 1, without a branch an item: marks are hard to predict.
fn select<T: Int>(items: impl Iterator<Item = T>, marks: &[u8], to: &mut [T]) -> usize {
    let mut selected = [T::zeroed(); BLOCK + 1];
    let mut count = 0;
    for (item, &mark) in items.zip(marks) {
        selected[count.min(BLOCK)] = item;
        count += usize::from(mark);
    }
    to[..count].copy_from_slice(&selected[..count]);
    count
}

fn set_last(pointers: &mut Ints, children: u64) {
    match ColumnMut::of(pointers) {
        ColumnMut::U32(pointers) => put_last(pointers, children),
        ColumnMut::U64(pointers) => put_last(pointers, children),
    }
}

fn put_last<T: Int>(pointers: &mut [T], children: u64) {
    if let Some(last) = pointers.last_mut() {
        *last = T::cut(children);
    }
}
