//! What is expected of a sparse operand of which only extents and non-zeros are known.

use crate::einsum::{Extents, Index, IndexSet};
use crate::schedule::{Problem, SparseOperand};

/// A sparse operand whose non-zeros are taken to be spread evenly.
///
/// Where the paper has a ratio for each sparse level, since a compiler cannot know the non-zeros, their number is
/// at hand here: it gives the ratio of every level, whatever the order of the levels.
pub(super) struct Prior<'a> {
    operand: &'a SparseOperand,
    set: IndexSet,
    nonzeros: f64,
    extents: &'a Extents,
}

impl<'a> Prior<'a> {
    /// Returns the priors of the sparse operands of `problem`, in their order.
    pub(super) fn all(problem: &'a Problem) -> Vec<Prior<'a>> {
        let one = |operand: &'a SparseOperand| {
            let set: IndexSet = operand.levels.iter().copied().collect();
            let nonzeros = operand.pattern.count(set, &problem.extents) as f64;
            Prior { operand, set, nonzeros, extents: &problem.extents }
        };
        problem.sparse.iter().map(one).collect()
    }

    /// Returns the operand.
    pub(super) fn operand(&self) -> &'a SparseOperand {
        self.operand
    }

    /// Returns its indices.
    pub(super) fn set(&self) -> IndexSet {
        self.set
    }

    /// Returns how many non-zeros it has.
    pub(super) fn nonzeros(&self) -> f64 {
        self.nonzeros
    }

    /// Returns the different coordinates that its non-zeros are expected to have in `indices`: equation 4.
    pub(super) fn tuples(&self, indices: IndexSet) -> f64 {
        let extents = (indices & self.set).iter().map(|index| self.extents.of(index) as f64);
        covered(extents.product(), self.nonzeros)
    }

    /// Returns the coordinates of `index` that are expected where those of `bound` are given.
    pub(super) fn children(&self, bound: IndexSet, index: Index) -> f64 {
        self.tuples(bound.with(index)) / self.tuples(bound).max(1.0)
    }
}

/// Returns how many of `cells` are met by `entries` that fall at random.
pub(super) fn covered(cells: f64, entries: f64) -> f64 {
    if cells <= 1.0 { cells.min(entries.max(1.0)) } else { cells * -(-entries / cells).exp_m1() }
}
