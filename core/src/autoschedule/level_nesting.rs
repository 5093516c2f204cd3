//! The order in which loops may be over the levels of a tree.

use crate::einsum::{Index, IndexSet};
use crate::path::{Source, Term};
use crate::schedule::Problem;

/// How loops over the levels of a problem's sparse operands must be nested.
pub(super) struct LevelNesting {
    /// The levels above that of each index in the first operand, by its number; none where it is no level.
    above: [IndexSet; Index::COUNT],
    /// The other operands, by input, with theirs.
    others: Vec<(usize, [IndexSet; Index::COUNT])>,
}

/// Returns the levels above that of each index, by its number.
fn above(levels: &[Index]) -> [IndexSet; Index::COUNT] {
    let mut above = [IndexSet::EMPTY; Index::COUNT];
    levels.iter().fold(IndexSet::EMPTY, |walked, &level| {
        above[level.number()] = walked;
        walked.with(level)
    });
    above
}

impl LevelNesting {
    pub(super) fn new(problem: &Problem) -> LevelNesting {
        let first = problem.leader().map_or(&[][..], |x| x.levels());
        let others = problem.sparse.iter().skip(1).map(|x| (x.input, above(x.levels()))).collect();
        LevelNesting { above: above(first), others }
    }

    /// Tells whether `term` inside loops over `done` may loop over `index` next: a level of the first tree comes
    /// after those above it, and so does one of another tree in the term that reads it.
    pub(super) fn may_loop(&self, term: &Term, index: Index, done: IndexSet) -> bool {
        let open = term.indices - done;
        let after = |above: &[IndexSet]| (open & above[index.number()]).is_empty();
        let mut read =
            self.others.iter().filter(|(input, _)| term.inputs.contains(&Source::Input(*input)));
        open.contains(index) && after(&self.above) && read.all(|(_, above)| after(above))
    }
}
