//! The choice of a loop order (algorithm 1, lines 3 to 18).

use crate::autoschedule::scorch::constraints::Constraints;
use crate::autoschedule::scorch::costs::Costs;
use crate::einsum::{Index, IndexSet};
use crate::schedule::{OutputForm, Problem};

/// A loop order.
pub(super) struct Order {
    /// The indices, outermost first.
    pub(super) loops: Vec<Index>,
    /// Its cost, in iterations.
    pub(super) cost: f64,
    /// Orders that were priced.
    pub(super) priced: usize,
}

/// What may become of the orders of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Levels {
    /// Operands are stored so: the loops follow.
    Fixed,
    /// Operands may be transposed, at a price.
    Free,
}

/// Chooses the loop order of `problem`; `None` if the levels that are fixed contradict each other.
pub(super) fn choose(problem: &Problem, levels: Levels) -> Option<Order> {
    let costs = Costs::new(problem);
    let by_sparsity = by_sparsity(&costs, problem);
    let mut constraints = Constraints::default();
    for prior in costs.priors() {
        constraints.add(&prior.operand().levels, prior.nonzeros());
    }
    let mut search = Search { costs, constraints: None, priced: 0 };
    if levels == Levels::Fixed {
        let start = constraints.sorted(&by_sparsity)?;
        search.constraints = Some(constraints);
        return Some(search.pushed(&by_sparsity, start));
    }
    if problem.output == OutputForm::Assembled {
        constraints.add(&problem.expr.output.indices, problem.assembled_elements() as f64);
    }
    constraints.cut_cycles();
    // The order in which the fewest tensors are transposed may be no push away.
    let stored = constraints.sorted(&by_sparsity)?;
    let [first, second] = [by_sparsity.clone(), stored].map(|o| search.pushed(&by_sparsity, o));
    let best = if second.cost <= first.cost { second } else { first };
    Some(Order { priced: search.priced, ..best })
}

/// Sorts the indices by the share of coordinates that all operands with the index have, the least first
/// (section III-B).
///
/// Of shares within a tenth of each other, that of more operands comes first, and then the order of the text.
fn by_sparsity(costs: &Costs<'_>, problem: &Problem) -> Vec<Index> {
    let mut order: Vec<Index> = Vec::new();
    for &index in problem.expr.inputs.iter().flat_map(|access| &access.indices) {
        if !order.contains(&index) {
            order.push(index);
        }
    }
    let key = |index: &Index| {
        let extent = problem.extents.of(*index) as f64;
        // Inside the loops over the levels above, as the operand is stored.
        let share = costs.priors().iter().filter_map(|prior| {
            let levels = &prior.operand().levels;
            let at = levels.iter().position(|level| level == index)?;
            let above: IndexSet = levels[..at].iter().copied().collect();
            Some(prior.children(above, *index) / extent)
        });
        let tenths = (share.product::<f64>().max(f64::MIN_POSITIVE).ln() * 10.0).round() as i64;
        let operands = problem.expr.inputs.iter().filter(|access| access.set().contains(*index));
        (tenths, std::cmp::Reverse(operands.count()))
    };
    order.sort_by_key(key);
    order
}

struct Search<'a> {
    costs: Costs<'a>,
    /// What an order must keep.
    constraints: Option<Constraints>,
    priced: usize,
}

impl Search<'_> {
    /// Pushes each index of `filters` inwards from `start` while that makes the order cheaper.
    fn pushed(&mut self, filters: &[Index], start: Vec<Index>) -> Order {
        let mut order = start;
        let mut cost = self.cost(&order);
        for &index in filters {
            let first = order.iter().position(|&own| own == index).unwrap_or(order.len());
            for place in first + 1..order.len() {
                let mut moved = order.clone();
                moved.retain(|&own| own != index);
                moved.insert(place, index);
                let allowed = self.constraints.as_ref().is_none_or(|own| own.allow(&moved));
                let new = if allowed { self.cost(&moved) } else { f64::INFINITY };
                if new < cost {
                    (order, cost) = (moved, new);
                }
            }
        }
        Order { loops: order, cost, priced: self.priced }
    }

    fn cost(&mut self, order: &[Index]) -> f64 {
        self.priced += 1;
        self.costs.of(order)
    }
}
