//! What all arrays of a kernel bring into the cache that they share.
//!
//! [`least_misses`](crate::bench::roofline::reuse::least_misses) grants every array the whole cache. Here the
//! accesses to all of them are one sequence, as the loops over the tree make them: in a stretch that
//! meets `d` different bytes all arrays together can have had no more there than the cache holds.

use std::ops::Range;

use decompose_formats::{Csf, Value};

use crate::bench::roofline::reuse::STRETCHES;
use crate::bench::roofline::touches::Touch;

/// Returns the fewest bytes of the rows of `touches` that come into a cache of `capacity` bytes while
/// the nodes above `leaves` are walked.
///
/// Time: one pass over the nodes; memory: 16 bytes a row.
pub(super) fn least_bytes<V: Value>(
    tree: &Csf<V>,
    touches: &[Touch],
    leaves: Range<usize>,
    capacity: u64,
) -> u64 {
    let arrays = Arrays::of(tree, touches);
    let one_row_each = touches.iter().map(|touch| touch.row_bytes).sum();
    let capacity = capacity.max(one_row_each);
    if arrays.bytes <= capacity {
        return 0;
    }
    let stretch = |times: &f64| Stretch::new(arrays.rows, capacity, *times);
    let mut stretches: Vec<Stretch> = STRETCHES.iter().map(stretch).collect();
    visit_nodes(tree, leaves, |level, node| {
        for array in arrays.list.iter().filter(|array| array.level == level) {
            let row = array.first + tree.levels()[level].coords.get(node);
            stretches.iter_mut().for_each(|stretch| stretch.reach(row, array));
        }
    });
    stretches.iter().map(Stretch::all).max().unwrap_or(0)
}

/// The arrays whose rows are reached, their rows numbered one after the other.
struct Arrays {
    list: Vec<SharedRows>,
    rows: u64,
    bytes: u64,
}

struct SharedRows {
    level: usize,
    first: u64,
    row_bytes: u64,
    moves: u64,
}

impl Arrays {
    fn of<V: Value>(tree: &Csf<V>, touches: &[Touch]) -> Arrays {
        let mut arrays = Arrays { list: Vec::new(), rows: 0, bytes: 0 };
        for &Touch { level, row_bytes, moves, .. } in touches {
            let extent = tree.extents()[tree.mode_order().modes()[level]];
            arrays.list.push(SharedRows { level, first: arrays.rows, row_bytes, moves });
            arrays.rows += extent;
            arrays.bytes += extent * row_bytes;
        }
        arrays
    }
}

/// Stretches one after the other, each until it meets `most` different bytes.
struct Stretch {
    met: Vec<u32>,
    number: u32,
    capacity: u64,
    most: u64,
    /// Different bytes met in this stretch, and what of it would be moved: a row that is added to
    /// comes in and goes out.
    met_bytes: u64,
    moved_bytes: u64,
    all: u64,
}

impl Stretch {
    fn new(rows: u64, capacity: u64, times: f64) -> Stretch {
        let most = (capacity as f64 * times) as u64;
        let met = vec![0; rows as usize];
        Stretch { met, number: 1, capacity, most, met_bytes: 0, moved_bytes: 0, all: 0 }
    }

    fn reach(&mut self, row: u64, array: &SharedRows) {
        let stamp = &mut self.met[row as usize];
        if *stamp == self.number {
            return;
        }
        *stamp = self.number;
        self.met_bytes += array.row_bytes;
        self.moved_bytes += array.row_bytes * array.moves;
        if self.met_bytes >= self.most {
            self.all = self.all();
            (self.met_bytes, self.moved_bytes) = (0, 0);
            self.number += 1;
        }
    }

    /// Those of the stretches that ended, and of this one what was not there at its beginning; what
    /// was there is taken to be what moves most often.
    fn all(&self) -> u64 {
        let least = self.met_bytes.saturating_sub(self.capacity);
        let kept = self.met_bytes - least;
        let twice = self.moved_bytes - self.met_bytes;
        self.all + self.moved_bytes - kept - twice.min(kept)
    }
}

/// Visits the nodes of all levels whose leaves are among `leaves`, each before its children.
fn visit_nodes<V: Value>(tree: &Csf<V>, leaves: Range<usize>, mut visit: impl FnMut(usize, usize)) {
    let levels = tree.levels();
    let last = levels.len() - 1;
    let first_leaf = |level: usize, node: usize| {
        levels[level..last].iter().fold(node, |node, level| level.first_child(node) as usize)
    };
    // The node of each level above that comes next, and its first leaf.
    let mut next: Vec<(usize, usize)> = (0..last)
        .map(|level| {
            let nodes = levels[level].coords.len();
            let node = first_after(nodes, |node| first_leaf(level, node) > leaves.start);
            (node.saturating_sub(1), leaves.start)
        })
        .collect();
    for leaf in leaves {
        for (level, (node, begin)) in next.iter_mut().enumerate() {
            if *begin == leaf {
                visit(level, *node);
                *node += 1;
                *begin = first_leaf(level, *node);
            }
        }
        visit(last, leaf);
    }
}

/// The first of `0..nodes` for which a predicate holds that holds for all behind it; `nodes` if none.
fn first_after(nodes: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, nodes);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use decompose_formats::ModeOrder;

    use super::*;
    use crate::bench::roofline::reuse::tests::belady;
    use crate::bench::roofline::tests::tensor;

    fn tree() -> Csf<f64> {
        Csf::build(tensor(), &ModeOrder::natural(3)).unwrap()
    }

    fn touch(level: usize, moves: u64) -> Touch {
        Touch { array: "A".to_owned(), level, row_bytes: 64, moves }
    }

    #[test]
    fn parts_visit_every_node_below_them() {
        let tree = tree();
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        visit_nodes(&tree, 0..tree.nnz(), |level, node| whole.push((level, node)));
        let nodes: usize = tree.levels().iter().map(|level| level.coords.len()).sum();
        assert_eq!(whole.len(), nodes);
        let middle = tree.nnz() / 2;
        visit_nodes(&tree, 0..middle, |level, node| parts.push((level, node)));
        visit_nodes(&tree, middle..tree.nnz(), |level, node| parts.push((level, node)));
        // The nodes above the cut are visited twice.
        parts.dedup();
        parts.sort_unstable();
        parts.dedup();
        whole.sort_unstable();
        assert_eq!(parts, whole);
    }

    #[test]
    fn no_replacement_brings_in_less() {
        let tree = tree();
        let touches = [touch(0, 1), touch(1, 1), touch(2, 1)];
        let mut accesses = Vec::new();
        visit_nodes(&tree, 0..tree.nnz(), |level, node| {
            let first = [0, 30, 50][level];
            accesses.push(first + tree.levels()[level].coords.get(node));
        });
        for rows in [4, 10, 30] {
            let bound = least_bytes(&tree, &touches, 0..tree.nnz(), rows * 64);
            let least = 64 * belady(&accesses, rows as usize);
            assert!(bound <= least, "{rows}: {bound} > {least}");
            assert!(bound * 5 >= least, "{rows}: {bound} {least}");
        }
        assert_eq!(least_bytes(&tree, &touches, 0..tree.nnz(), 75 * 64), 0);
        let once = least_bytes(&tree, &touches, 0..tree.nnz(), 640);
        let twice = touches.map(|touch| Touch { moves: 2, ..touch });
        assert_eq!(least_bytes(&tree, &twice, 0..tree.nnz(), 640), 2 * once);
    }
}
