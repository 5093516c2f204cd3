//! The oracle of the searches: every fully fused nest of every path.
//!
//! Enumerates each term's loop orders that follow the tree's levels, and all combinations of
//! them (SpTTN, section 4.1): the number grows as the product of factorials, so it serves tests
//! and small expressions.

use crate::autoschedule::paths::widening;
use crate::autoschedule::spttn::WalkOrder;
use crate::autoschedule::{Found, Scheduler, SearchLimits, rank};
use crate::cost::Machine;
use crate::cost::tree::{Site, TreeCost};
use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::{Forest, Node};
use crate::path::Path;
use crate::schedule::Problem;

/// The scheduler `exhaustive`: every fully fused nest, ranked by predicted seconds; slow beyond five operands.
pub(super) struct Exhaustive;

impl Scheduler for Exhaustive {
    fn name(&self) -> &'static str {
        "exhaustive"
    }

    fn search_within(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<Found, CoreError> {
        widening(problem, limits, self.name(), |promising, mut report| {
            let mut nests = Vec::new();
            for path in promising.paths {
                let forests = all_forests(problem, &path);
                nests.extend(forests.into_iter().map(|forest| (path.clone(), forest)));
            }
            report.explored = nests.len();
            Ok(Found { candidates: rank(problem, machine, nests)?, report })
        })
    }
}

/// Returns the fully fused forest of every combination of loop orders of the terms of `path`.
pub fn all_forests(problem: &Problem, path: &Path) -> Vec<Forest> {
    let walk = WalkOrder::new(problem);
    let mut choices: Vec<Vec<Vec<Index>>> = vec![Vec::new()];
    for term in &path.terms {
        let mut orders = Vec::new();
        extend(&walk, term.indices, &mut Vec::new(), &mut orders);
        let longer = choices.iter().flat_map(|before| {
            orders.iter().map(|order| [before.as_slice(), std::slice::from_ref(order)].concat())
        });
        choices = longer.collect();
    }
    choices.iter().map(|orders| Forest::fused(orders)).collect()
}

fn extend(
    walk: &WalkOrder,
    indices: IndexSet,
    order: &mut Vec<Index>,
    orders: &mut Vec<Vec<Index>>,
) {
    let done: IndexSet = order.iter().copied().collect();
    if done == indices {
        orders.push(order.clone());
        return;
    }
    for index in (indices - done).iter() {
        if walk.may_loop(indices, index, done) {
            order.push(index);
            extend(walk, indices, order, orders);
            order.pop();
        }
    }
}

/// Returns the cost of `forest` under `costs`, computed from the forest itself; `None` if they refuse it.
pub fn price<C: TreeCost>(
    problem: &Problem,
    path: &Path,
    forest: &Forest,
    costs: &C,
) -> Option<C::Cost> {
    let (consumers, end) = (path.consumers(), path.terms.len());
    let site = Site { problem, path, consumers: &consumers, first: 0, end, done: IndexSet::EMPTY };
    price_nodes(site, &forest.roots, costs)
}

fn price_nodes<C: TreeCost>(site: Site, nodes: &[Node], costs: &C) -> Option<C::Cost> {
    let Some((node, rest)) = nodes.split_first() else { return Some(costs.nothing()) };
    let split = site.first + terms_in(node);
    let first = Site { end: split, ..site };
    let cost = match node {
        Node::Term(_) => costs.leaf(first),
        Node::Loop { index, body } => {
            let inner = Site { done: site.done.with(*index), ..first };
            let body = price_nodes(inner, body, costs)?;
            costs.tree(first, *index, body)
        }
    };
    let rest = price_nodes(Site { first: split, ..site }, rest, costs)?;
    costs.may_hand_on(first, site.end).then(|| costs.join(first, site.end, cost, rest))
}

fn terms_in(node: &Node) -> usize {
    match node {
        Node::Term(_) => 1,
        Node::Loop { body, .. } => body.iter().map(terms_in).sum(),
    }
}
