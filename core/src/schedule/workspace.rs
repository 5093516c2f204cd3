//! The workspace of an assembled output: which loops of the last term stand outside of it.  These questions are asked of
//! the loops around one term, before there is a schedule.

use crate::einsum::{Index, IndexSet};
use crate::schedule::Problem;

/// Where the elements of an assembled output are summed up that share the coordinates of its outer loops
/// ([`Problem::assembled_outside`]), before they are appended in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workspace {
    /// An array of all cells, with a bitmap of those that were met (Gustavson, "Two fast algorithms for sparse
    /// matrices", ACM TOMS 4(3), 1978).
    Dense,
    /// A hash table of the cells that were met, which are sorted (Nagasaka et al., "High-performance sparse matrix-matrix
    /// products on Intel KNL and multicore architectures", ICPP Workshops 2018).
    Hashed,
    /// A list of cells and values, which is sorted and summed up.
    List,
}

/// Tells whether an output has rows that lanes can write: it is an array, or it is summed up in one.
pub(crate) fn has_rows(workspace: Option<Workspace>) -> bool {
    workspace.is_none_or(|kind| kind == Workspace::Dense)
}

impl Problem {
    /// Returns how many of the loops `last` around the last term are outside of what is summed up together of an
    /// assembled output: the outermost ones over indices of the output, each of whose iterations comes once, but not
    /// the innermost loop, each of whose iterations would be a part of one element.
    pub fn assembled_outside(&self, last: &[Index]) -> usize {
        let output = self.expr.output.set();
        let outer = last.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().take_while(|&&index| output.contains(index)).count()
    }

    /// Returns the cells of the workspace of an assembled output whose last term stands in the loops `last`; saturates.
    pub fn workspace_cells(&self, last: &[Index]) -> u64 {
        let outside: IndexSet = last[..self.assembled_outside(last)].iter().copied().collect();
        let inside = self.expr.output.set() - outside;
        inside.iter().map(|index| self.extents.of(index)).fold(1, u64::saturating_mul)
    }

    /// Tells whether tasks append the elements of an assembled output in its own order, so that the list need not be
    /// sorted: its outer indices are the loops outside, the first of them over the root of the first sparse operand.
    pub fn is_assembled_in_order(&self, last: &[Index]) -> bool {
        let (outside, inside) = last.split_at(self.assembled_outside(last));
        let output = &self.expr.output.indices;
        let root = self.leader().and_then(|x| x.levels().first());
        let Some((outer, inner)) = output.split_at_checked(outside.len()) else { return false };
        outer == outside && outside.first() == root && self.output_order(inner, inside) == inner
    }
}
