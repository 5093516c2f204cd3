//! What a loop order costs (Scorch, section III-C).
//!
//! All costs are in iterations of an innermost loop.

use crate::autoschedule::scorch::prior::{Prior, covered};
use crate::einsum::{Index, IndexSet};
use crate::schedule::{OutputForm, Problem};

/// The weights of the parts of the cost, and the constants in them.
struct Weights {
    /// alpha: of computation.
    computation: f64,
    /// beta: of the workspace.
    workspace: f64,
    /// gamma: of transpositions.
    transposition: f64,
    /// c_insert: to add to an entry, for each dimension of the workspace.
    insert: f64,
    /// c_sort: to compare two entries, for each dimension of the workspace.
    sort: f64,
    /// c_trans: to move a non-zero into another order.
    transpose: f64,
}

/// In iterations: a non-zero is sorted in about the time of twenty multiply-adds of a sparse row, and adding to a
/// workspace takes about as long as a multiply-add.
const WEIGHTS: Weights = Weights {
    computation: 1.0,
    workspace: 1.0,
    transposition: 1.0,
    insert: 1.0,
    sort: 0.5,
    transpose: 20.0,
};

/// Prices loop orders of one problem.
pub(super) struct Costs<'a> {
    problem: &'a Problem,
    priors: Vec<Prior<'a>>,
}

impl<'a> Costs<'a> {
    /// Prepares the prices of `problem`.
    pub(super) fn new(problem: &'a Problem) -> Costs<'a> {
        Costs { problem, priors: Prior::all(problem) }
    }

    /// Returns what is expected of the sparse operands.
    pub(super) fn priors(&self) -> &[Prior<'a>] {
        &self.priors
    }

    /// Returns the cost of `order`.
    pub(super) fn of(&self, order: &[Index]) -> f64 {
        WEIGHTS.computation * self.computation(order)
            + WEIGHTS.workspace * self.workspace(order)
            + WEIGHTS.transposition * self.transposition(order)
    }

    /// Returns the iterations of the busiest loop.
    ///
    /// The paper multiplies the effective counts of all loops.  Where an intersection is mostly empty that is less than a
    /// loop outside runs, as in the inner products of two sparse matrices; so the product is taken up to each loop.
    /// A loop runs over the shortest of the lists that it intersects, and passes on what all of them have.
    pub(super) fn computation(&self, order: &[Index]) -> f64 {
        let (mut passed, mut most) = (1.0, 1.0_f64);
        let mut bound = IndexSet::EMPTY;
        for &index in order {
            let (shortest, common) = self.effective(bound, index);
            most = most.max(passed * shortest);
            passed *= common;
            bound = bound.with(index);
        }
        most
    }

    /// Returns the coordinates of `index` in the shortest list of a sparse operand inside loops over `bound`, and how
    /// many of them all operands have.
    fn effective(&self, bound: IndexSet, index: Index) -> (f64, f64) {
        let extent = self.problem.extents.of(index) as f64;
        let lists = self.priors.iter().filter(|prior| prior.set().contains(index));
        lists
            .map(|prior| prior.children(bound & prior.set(), index))
            .fold((extent, extent), |(shortest, common), children| {
                (shortest.min(children), common * children / extent)
            })
    }

    /// Returns the iterations that `order` passes on to its innermost statement.
    fn passed(&self, order: &[Index]) -> f64 {
        let mut bound = IndexSet::EMPTY;
        let mut passed = 1.0;
        for &index in order {
            passed *= self.effective(bound, index).1;
            bound = bound.with(index);
        }
        passed
    }

    /// Returns the cost to insert into the workspace of an assembled result, and to sort its entries.
    ///
    /// The workspace stands inside the outermost loops over indices of the result, and has its other indices.
    fn workspace(&self, order: &[Index]) -> f64 {
        if self.problem.output != OutputForm::Assembled {
            return 0.0;
        }
        let outside = self.problem.assembled_outside(order);
        let dimensions = (self.problem.expr.output.indices.len() - outside) as f64;
        let (inserts, entries, runs) = self.workspace_entries(order, outside);
        let sorts = entries * (entries / runs.max(1.0)).max(1.0).log2();
        dimensions * (WEIGHTS.insert * inserts + WEIGHTS.sort * sorts)
    }

    /// Returns the insertions, the entries of all runs of the workspace, and the runs.
    fn workspace_entries(&self, order: &[Index], outside: usize) -> (f64, f64, f64) {
        let (inserts, runs) = (self.passed(order), self.passed(&order[..outside]));
        let cells = self.problem.workspace_cells(order) as f64;
        (inserts, runs * covered(cells, inserts / runs.max(1.0)), runs)
    }

    /// Returns the cost to transpose every operand whose levels do not follow `order`, and an assembled result that
    /// is not met in its own.
    fn transposition(&self, order: &[Index]) -> f64 {
        let follows = |levels: &[Index]| {
            let places = levels.iter().map(|level| order.iter().position(|index| index == level));
            places.is_sorted()
        };
        let moved = self.priors.iter().filter(|prior| !follows(&prior.operand().levels));
        let mut nonzeros: f64 = moved.map(Prior::nonzeros).sum();
        if self.problem.output == OutputForm::Assembled
            && !follows(&self.problem.expr.output.indices)
        {
            nonzeros += self.workspace_entries(order, self.problem.assembled_outside(order)).1;
        }
        WEIGHTS.transpose * nonzeros
    }
}
