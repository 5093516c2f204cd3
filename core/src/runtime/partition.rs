//! Tasks: parts of a tree with equal numbers of non-zeros.
//!
//! Cuts are mostly made in position space - between non-zeros, whatever their coordinates - so one giant
//! slice is shared by several tasks.  A task is a range of nodes at every level: the ancestors of
//! its non-zeros.

use std::ops::Range;

use decompose_formats::{Csf, Value};

/// Where a tree may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Between any two non-zeros.
    Anywhere,
    /// Between root slices only.
    Roots,
    /// Between equal ranges of the root's coordinates, all of which are below this extent.
    Coordinates {
        /// The extent.
        extent: u64,
    },
}

/// A part of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The nodes of each level that have non-zeros of this part below them.
    pub nodes: Vec<Range<u64>>,
    /// Whether the first root slice began in an earlier task.
    pub continues: bool,
    /// The rows of the root mode that belong to this task: from its first own slice to that of
    /// the next task.  Together the tasks' rows are all rows.
    pub rows: Range<u64>,
}

impl Task {
    /// Returns the positions of its non-zeros: a tree has at least one level.
    pub fn leaves(&self) -> &Range<u64> {
        &self.nodes[self.nodes.len() - 1]
    }
}

/// Cuts `tree` into `parts` tasks of nearly equal numbers of non-zeros.
///
/// Time `O(parts * order * log nnz)`.
pub fn partition<V: Value>(tree: &Csf<V>, parts: usize, cut: Cut) -> Vec<Task> {
    let count = tree.values().len() as u64;
    let extent = tree.extents()[tree.mode_order().modes()[0]];
    let mut tasks: Vec<Task> = Vec::with_capacity(parts);
    let mut begin = 0;
    for part in 1..=parts as u64 {
        let share = |units: u64| (u128::from(units) * u128::from(part) / parts as u128) as u64;
        let wanted = share(count);
        let end = match cut {
            _ if part == parts as u64 => count,
            Cut::Anywhere => wanted,
            Cut::Roots => slice_start(tree, wanted).max(begin),
            Cut::Coordinates { extent } => {
                let root = tree.levels()[0].coords.first_from(share(extent));
                first_leaf(tree, 0, root as u64)
            }
        };
        if end > begin {
            tasks.push(task(tree, begin..end));
        }
        begin = end.max(begin);
    }
    let mut next = extent;
    for task in tasks.iter_mut().rev() {
        task.rows.end = next;
        task.rows.start = task.rows.start.min(next);
        next = task.rows.start;
    }
    if let Some(first) = tasks.first_mut() {
        first.rows.start = 0;
    }
    tasks
}

/// Returns the nodes of each level below the root nodes `roots`, these first.
pub(super) fn nodes_below<V: Value>(tree: &Csf<V>, roots: Range<u64>) -> Vec<Range<u64>> {
    let mut nodes = vec![roots.clone()];
    let (mut start, mut end) = (roots.start, roots.end);
    for level in &tree.levels()[..tree.levels().len() - 1] {
        (start, end) = (level.first_child(start as usize), level.first_child(end as usize));
        nodes.push(start..end);
    }
    nodes
}

/// The first non-zero of the root slice that holds non-zero `leaf`.
fn slice_start<V: Value>(tree: &Csf<V>, leaf: u64) -> u64 {
    if leaf == tree.values().len() as u64 {
        return leaf;
    }
    first_leaf(tree, 0, path_to(tree, leaf)[0])
}

/// The first non-zero below `node` of a level.
pub(super) fn first_leaf<V: Value>(tree: &Csf<V>, level: usize, node: u64) -> u64 {
    let inner = &tree.levels()[level..tree.levels().len() - 1];
    inner.iter().fold(node, |node, level| level.first_child(node as usize))
}

/// The node above non-zero `leaf` at each level, the non-zero itself last.
pub(super) fn path_to<V: Value>(tree: &Csf<V>, leaf: u64) -> Vec<u64> {
    let inner = &tree.levels()[..tree.levels().len() - 1];
    let mut nodes = vec![leaf];
    for level in inner.iter().rev() {
        let child = nodes[nodes.len() - 1];
        if level.pointers.is_empty() {
            nodes.push(child);
            continue;
        }
        // The last node whose children begin at or before `child`.
        let (mut low, mut high) = (0, level.coords.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if level.pointers.get(middle) <= child { low = middle } else { high = middle }
        }
        nodes.push(low as u64);
    }
    nodes.reverse();
    nodes
}

fn task<V: Value>(tree: &Csf<V>, leaves: Range<u64>) -> Task {
    let first = path_to(tree, leaves.start);
    let last = path_to(tree, leaves.end - 1);
    let nodes: Vec<Range<u64>> = first.iter().zip(&last).map(|(&a, &b)| a..b + 1).collect();
    let continues = first_leaf(tree, 0, first[0]) < leaves.start;
    let coords = &tree.levels()[0].coords;
    let own = first[0] as usize + usize::from(continues);
    // Rows end where the next task's begin, which is filled in afterwards.  A task within one
    // slice that it does not own has no rows.
    let start = if (own as u64) < nodes[0].end { coords.get(own) } else { u64::MAX };
    Task { nodes, continues, rows: start..u64::MAX }
}
