//! How many iterations loops have, whatever the layouts.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::einsum::{Index, IndexSet};
use crate::schedule::Problem;

/// Estimated numbers of iterations of loops over sets of indices, if every sparse operand is laid out as the loops run.
pub(super) struct Sizes<'a> {
    problem: &'a Problem,
    sparse: IndexSet,
    known: RefCell<HashMap<IndexSet, f64>>,
}

impl<'a> Sizes<'a> {
    pub(super) fn new(problem: &'a Problem) -> Sizes<'a> {
        let inputs = problem.sparse.iter().map(|x| problem.expr.inputs[x.input].set());
        let sparse = inputs.fold(IndexSet::EMPTY, |all, own| all | own);
        Sizes { problem, sparse, known: RefCell::default() }
    }

    /// Returns the iterations of loops over `loops`: all cells, times the share of them that each sparse operand has in
    /// the modes that are looped.
    pub(super) fn iterations(&self, loops: IndexSet) -> f64 {
        if let Some(&known) = self.known.borrow().get(&loops) {
            return known;
        }
        let extents = &self.problem.extents;
        let cells = |set: IndexSet| set.iter().map(|i| extents.of(i) as f64).product::<f64>();
        let shares = self.problem.sparse.iter().map(|x| {
            let own: IndexSet = x.levels().iter().copied().collect::<IndexSet>() & loops;
            x.pattern.count(own, extents) as f64 / cells(own).max(1.0)
        });
        let iterations = cells(loops) * shares.product::<f64>();
        self.known.borrow_mut().insert(loops, iterations);
        iterations
    }

    /// Ranks the loop over `index` inside `loops`: at the root one over rows of the result that a sparse operand has, later
    /// those that sparse operands have; of equals, that with the fewest iterations.
    pub(super) fn rank(&self, loops: IndexSet, index: Index) -> (u8, f64) {
        let sparse = self.sparse.contains(index);
        let written = self.problem.expr.output.set().contains(index);
        let class = match (sparse, written || !loops.is_empty()) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => 2,
        };
        (class, self.iterations(loops.with(index)))
    }
}
