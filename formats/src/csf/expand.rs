//! From a tree back to a list.

use std::ops::Range;

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::array::Array;
use crate::csf::Level;
use crate::narrow_ints::{Int, Ints, each_width};

/// Entries that one task writes.
const CHUNK: usize = 1 << 16;

/// Returns the coordinate of every entry at `level`; parallel.
///
/// `levels` are all levels of the tree, `nnz` the nodes of the last one.
pub(super) fn column(levels: &[Level], level: usize, nnz: usize) -> Ints {
    if levels[level].pointers.is_empty() {
        return levels[level].coords.copy();
    }
    let coords = &levels[level].coords;
    each_width!(Ints, coords, coords => repeat(coords, &levels[level..], nnz).into())
}

/// Returns the pointers of the first of `levels` straight to the last level.
pub(super) fn skip_levels(levels: &[Level]) -> Ints {
    let Some((first, rest)) = levels.split_first() else { return Vec::<u32>::new().into() };
    let below = &rest[..rest.len().saturating_sub(1)];
    let target =
        |node: u64| below.iter().fold(node, |node, level| level.first_child(node as usize));
    each_width!(Ints, &first.pointers, nodes => skip(nodes, target))
}

/// Replaces each of `nodes` by its `target`, of the same width: that of all pointers of a tree.
fn skip<T: Int>(nodes: &Array<T>, target: impl Fn(u64) -> u64 + Sync) -> Ints
where
    Ints: From<Vec<T>>,
{
    Ints::from(nodes.par_iter().map(|node| T::cut(target(node.wide()))).collect::<Vec<T>>())
}

/// Repeats the coordinate of each node as often as the node has entries below it.
fn repeat<T: Int>(coords: &Array<T>, levels: &[Level], nnz: usize) -> Vec<T> {
    let mut column = bytemuck::zeroed_vec(nnz);
    column.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, piece)| {
        let start = chunk * CHUNK;
        let mut node = ancestor(levels, start);
        let mut filled = 0;
        while filled < piece.len() {
            let end = (entries(levels, node).end - start).min(piece.len());
            piece[filled..end].fill(coords[node]);
            (filled, node) = (end, node + 1);
        }
    });
    column
}

/// Returns the node of the first of `levels` above the entry at `position`.
fn ancestor(levels: &[Level], position: usize) -> usize {
    let (_, upper) = levels.split_last().unwrap_or((&levels[0], &[]));
    upper.iter().rev().fold(position, |child, level| parent(&level.pointers, child))
}

/// Returns the node whose children include `child`: the last one that begins at or before it.
fn parent(pointers: &Ints, child: usize) -> usize {
    if pointers.is_empty() {
        return child;
    }
    let (mut low, mut high) = (0, pointers.len());
    while low + 1 < high {
        let middle = low.midpoint(high);
        if pointers.get(middle) <= child as u64 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Returns the entries below `node` of the first of `levels`.
fn entries(levels: &[Level], node: usize) -> Range<usize> {
    let upper = &levels[..levels.len() - 1];
    let below = |position: usize| {
        upper.iter().fold(position, |node, level| level.first_child(node) as usize)
    };
    below(node)..below(node + 1)
}
