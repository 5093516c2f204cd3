//! The workspace of an assembled output: which loops of the last term stand outside of it, and which of its cells are
//! summed up in registers before they are added to it.

use crate::einsum::{Index, IndexSet};
use crate::schedule::Problem;

/// Where the elements of an assembled output are summed up that share the coordinates of its outer loops
/// ([`Problem::assembled_outside`]), before they are appended in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workspace {
    /// An array of all cells, with a bitmap of those that were met (Gustavson, "Two fast algorithms for sparse
    /// matrices", ACM TOMS 4(3), 1978).
    Dense,
    /// A list of cells and values, which is sorted and summed up.
    List,
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
        let root = self.leader().and_then(|x| x.levels.first());
        let Some((outer, inner)) = output.split_at_checked(outside.len()) else { return false };
        outer == outside && outside.first() == root && self.output_order(inner, inside) == inner
    }

    /// Returns the index of the innermost of the loops `last` if each of its iterations adds to another cell of a row
    /// of the workspace: it is dense, and over an index of the output.
    pub fn workspace_lanes(&self, last: &[Index], workspace: Workspace) -> Option<Index> {
        let (&innermost, outer) = last.split_last()?;
        let dense = self.sparse.iter().all(|x| x.visited_level(innermost, outer).is_none());
        let rows = workspace == Workspace::Dense && self.expr.output.set().contains(innermost);
        (dense && rows).then_some(innermost)
    }

    /// Returns inside how many of the loops `last` a cell of the workspace, or a row of lanes, is summed up before it
    /// is added to the workspace; `None` if there is nothing to sum up, or if it may be that nothing is met: only what
    /// was met is listed.
    pub fn workspace_sums(&self, last: &[Index], workspace: Workspace) -> Option<usize> {
        let output = self.expr.output.set();
        let lanes = usize::from(self.workspace_lanes(last, workspace).is_some());
        let depth = last[..last.len() - lanes].iter().rposition(|&at| output.contains(at))? + 1;
        let summed = last[depth..].iter().any(|&index| !output.contains(index));
        let surely_meets = |at: usize| {
            let mut levels = self.visited_levels(last[at], &last[..at]).into_iter();
            // Each node has a child.
            let over_children = levels.next().is_none_or(|(_, level)| level > 0);
            over_children && levels.next().is_none()
        };
        (summed && (depth..last.len()).all(surely_meets)).then_some(depth)
    }
}
