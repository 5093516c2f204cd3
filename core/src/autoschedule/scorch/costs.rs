//! What a loop order costs (Scorch, section III-C): from extents and numbers of non-zeros alone.
//!
//! Costs count iterations of a loop over a sparse level.  They compare orders of loops by how fast they grow and
//! predict no seconds.  Their constants are those of the machine ([`GreedyCosts`]); the weights α, β and γ of the paper are in them.
//!
//! The workspace of an assembled result costs what the paper says.  A buffer between terms is an array here: it is
//! cleared, and nothing is inserted or sorted.

use crate::autoschedule::scorch::storage::{Lead, Stores};
use crate::cost::GreedyCosts;
use crate::einsum::{Index, IndexSet};
use crate::path::{Path, Source, Term};
use crate::schedule::{OutputForm, Problem};

/// Up to this many levels, the nodes of all sets of levels are tabulated.
const TABULATED: usize = 8;

/// The costs of an order of the loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price {
    /// A buffer exceeds the bounds of the problem.
    pub(super) over_bound: bool,
    /// Iterations.
    pub(super) computing: f64,
    /// Insertions into the workspace of a result and its sorting; the clearing of buffers.
    pub(super) workspaces: f64,
    /// Transpositions of sparse operands, and of a result that is not assembled in its order.
    pub(super) transposing: f64,
}

impl Price {
    /// Returns the sum of the costs.
    pub(super) fn total(&self) -> f64 {
        self.computing + self.workspaces + self.transposing
    }

    /// Tells whether the cost to push is negative that leads from `before` to this: what keeps the bounds of the problem is
    /// less than what does not.
    pub(super) fn is_less(&self, before: &Price) -> bool {
        (self.over_bound, self.total()) < (before.over_bound, before.total())
    }
}

/// What is known of a sparse operand.
struct SparseFactor {
    input: usize,
    /// The indices as the expression names them.
    indices: Vec<Index>,
    extents: Vec<f64>,
    nonzeros: f64,
    /// Nodes by set of positions, where there are few.
    nodes: Vec<f64>,
}

impl SparseFactor {
    fn of(problem: &Problem, operand: usize) -> SparseFactor {
        let x = &problem.sparse[operand];
        let indices = x.levels().to_vec();
        let all: IndexSet = indices.iter().copied().collect();
        let extents = indices.iter().map(|&index| problem.extents.of(index).max(1) as f64);
        let nonzeros = x.pattern.count(all, &problem.extents).max(1) as f64;
        let extents = extents.collect();
        let mut walked =
            SparseFactor { input: x.input, indices, extents, nonzeros, nodes: Vec::new() };
        if walked.indices.len() <= TABULATED {
            walked.nodes = (0..1 << walked.indices.len()).map(|set| walked.expected(set)).collect();
        }
        walked
    }

    /// Returns the expected number of distinct coordinates in the levels of `set`, a bit a position: the coverage of
    /// equation 4 for any number of levels, `cells (1 - exp(-nnz / cells))`.
    fn expected(&self, set: usize) -> f64 {
        if set + 1 == 1 << self.extents.len() {
            return self.nonzeros;
        }
        let inside = self.extents.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        let cells: f64 = inside.map(|(_, extent)| extent).product();
        if set == 0 { 1.0 } else { -cells * (-self.nonzeros / cells).exp_m1() }
    }

    fn nodes(&self, set: usize) -> f64 {
        self.nodes.get(set).copied().unwrap_or_else(|| self.expected(set))
    }

    /// Returns the share ρ of the coordinates of the level at `position` that occur below the levels of `set`.
    fn share(&self, set: usize, position: usize) -> f64 {
        let below = self.nodes(set | 1 << position);
        (below / (self.nodes(set) * self.extents[position])).min(1.0)
    }
}

/// The loops of a term: how often the body of each begins, and how often it is reached where several operands agree.
struct Visits {
    tried: Vec<f64>,
    reached: Vec<f64>,
}

/// Prices orders of the loops of a problem.
pub(super) struct Judge<'a> {
    pub(super) problem: &'a Problem,
    pub(super) stores: &'a Stores<'a>,
    costs: GreedyCosts,
    operands: Vec<SparseFactor>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        stores: &'a Stores<'a>,
        costs: GreedyCosts,
    ) -> Judge<'a> {
        let operands = (0..problem.sparse.len()).map(|at| SparseFactor::of(problem, at)).collect();
        Judge { problem, stores, costs, operands }
    }

    /// Returns the cost of transposing the sparse operand at `operand`.
    pub(super) fn transposition(&self, operand: usize) -> f64 {
        self.costs.transpose * self.operands[operand].nonzeros
    }

    /// Returns the cost of sorting the result, whose elements are estimated from the products of a join.
    pub(super) fn sorting_of_result(&self) -> f64 {
        let joined = self.joined(self.problem.expr.all());
        self.costs.transpose * self.elements(joined)
    }

    /// Returns about how many combinations of `loops` the sparse operands leave, whatever the order of the loops.
    pub(super) fn joined(&self, loops: IndexSet) -> f64 {
        let share = |x: &SparseFactor| {
            let bit = |(at, index): (usize, &Index)| usize::from(loops.contains(*index)) << at;
            let set: usize = x.indices.iter().enumerate().map(bit).sum();
            let inside = x.extents.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            x.nodes(set) / inside.map(|(_, extent)| extent).product::<f64>()
        };
        self.cells(loops) * self.operands.iter().map(share).product::<f64>()
    }

    /// Returns the number of combinations of `indices`.
    fn cells(&self, indices: IndexSet) -> f64 {
        indices.iter().map(|index| self.problem.extents.of(index).max(1) as f64).product()
    }

    /// Returns about how many elements a result of so many products has, by equation 4.
    fn elements(&self, products: f64) -> f64 {
        let cells = self.cells(self.problem.expr.output.set());
        -cells * (-products / cells).exp_m1()
    }

    /// Returns the loops of the terms of `path` if those over all indices are ordered as `order`, and what they cost; `None`
    /// if the operands cannot be stored for them.
    pub(super) fn price(&self, path: &Path, order: &[Index]) -> Option<(Vec<Vec<Index>>, Price)> {
        let lead = self.stores.lead(self.problem, order)?;
        let orders: Option<Vec<Vec<Index>>> =
            path.terms.iter().map(|term| self.stores.order_of(term, order)).collect();
        let orders = orders?;
        let mut price = Price {
            over_bound: false,
            computing: 0.0,
            workspaces: 0.0,
            transposing: self.transposing(&lead),
        };
        for (at, (term, own)) in path.terms.iter().zip(&orders).enumerate() {
            let visits = self.visits(term, own, &lead);
            let before = at.checked_sub(1).map_or(&[][..], |before| &orders[before]);
            price.computing += visits.tried[shared(before, own)..].iter().sum::<f64>();
            // Each further operand is one more multiplication.
            let more = term.inputs.len().saturating_sub(2) as f64;
            price.computing += more * visits.tried.last().copied().unwrap_or(0.0);
            match path.consumer(at) {
                Some(reader) => {
                    let fused = (at..reader).map(|t| shared(&orders[t], &orders[t + 1])).min();
                    let fused: IndexSet = own[..fused.unwrap_or(0)].iter().copied().collect();
                    let stored = term.output - fused;
                    price.over_bound |= !self.problem.allows_buffer(stored);
                    let fillings = fused.len().checked_sub(1).map_or(1.0, |at| visits.reached[at]);
                    price.workspaces += self.costs.lane * fillings * self.cells(stored);
                }
                None if lead.form == OutputForm::Assembled => {
                    self.assemble(own, &visits, &mut price)
                }
                None => {}
            }
        }
        Some((orders, price))
    }

    /// The sum of the sparse operands that are stored in another order than the problem names.
    fn transposing(&self, lead: &Lead) -> f64 {
        let moved = (0..self.operands.len()).filter(|at| lead.transposed >> at & 1 == 1);
        moved.map(|at| self.transposition(at)).sum()
    }

    /// Adds the workspace of an assembled result, and its transposition where it is not met in its order.
    fn assemble(&self, own: &[Index], visits: &Visits, price: &mut Price) {
        let outside = self.problem.assembled_outside(own);
        let output = &self.problem.expr.output.indices;
        let dimensions = output.len().saturating_sub(outside) as f64;
        let inserted = visits.reached.last().copied().unwrap_or(1.0);
        let elements = self.elements(inserted);
        let fillings = outside.checked_sub(1).map_or(1.0, |last| visits.reached[last].max(1.0));
        let compared = (1.0 + elements / fillings).log2();
        price.workspaces +=
            (self.costs.insert * inserted + self.costs.sort * elements * compared) * dimensions;
        if outside == 0 || output.get(..outside) != Some(&own[..outside]) {
            price.transposing += self.costs.transpose * elements;
        }
    }

    /// Follows the loops `order` of `term`.
    ///
    /// A loop visits the coordinates of the operand that has the fewest, and locates them in the others.  It goes on with
    /// those that all have.
    fn visits(&self, term: &Term, order: &[Index], lead: &Lead) -> Visits {
        let mut visits = Visits { tried: Vec::new(), reached: Vec::new() };
        let mut walked = vec![0_usize; self.operands.len()];
        let mut reached = 1.0;
        for (depth, &index) in order.iter().enumerate() {
            let extent = self.problem.extents.of(index).max(1) as f64;
            let (mut fewest, mut common, mut sparse) = (1.0_f64, 1.0_f64, false);
            for (at, x) in self.operands.iter().enumerate() {
                let Some(position) = x.indices.iter().position(|&one| one == index) else {
                    continue;
                };
                let next = at == lead.operand
                    && lead.levels.get(walked[at].count_ones() as usize) == Some(&index);
                if !next && !term.inputs.contains(&Source::Input(x.input)) {
                    continue;
                }
                let share = x.share(walked[at], position);
                walked[at] |= 1 << position;
                (fewest, common, sparse) = (fewest.min(share), common * share, true);
            }
            let lane = if sparse || depth + 1 < order.len() { 1.0 } else { self.costs.lane };
            visits.tried.push(reached * extent * fewest * lane);
            reached *= extent * common;
            visits.reached.push(reached);
        }
        visits
    }
}

/// Returns how many loops two orders share from the outside.
fn shared(a: &[Index], b: &[Index]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
