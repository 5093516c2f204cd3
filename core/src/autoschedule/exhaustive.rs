//! The oracle of the searches: every fully fused nest of every path.
//!
//! Enumerates each term's loop orders that follow the tree's levels, and all combinations of
//! them (SpTTN, section 4.1): the number grows as the product of factorials, so it serves tests
//! and small expressions; of larger ones it looks at as many as the limits allow.

use crate::autoschedule::fallback_nest::sparse_outside;
use crate::autoschedule::level_nesting::LevelNesting;
use crate::autoschedule::paths::widening;
use crate::autoschedule::{Scheduler, SearchLimits, SearchOutcome, StopReason, rank};
use crate::cost::Machine;
use crate::cost::tree::{Site, TreeCost};
use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::{Forest, Node};
use crate::path::{Path, Term};
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
    ) -> Result<SearchOutcome, CoreError> {
        widening(problem, machine, limits, self.name(), |listed, mut report| {
            let most = (limits.max_work / SearchLimits::NEST_CHOICES).max(1) as usize;
            let mut nests = Vec::new();
            for path in listed.paths {
                let (forests, cut) = forests(problem, &path, most - nests.len());
                nests.extend(forests.into_iter().map(|forest| (path.clone(), forest)));
                if cut {
                    report.stop = StopReason::Work;
                    nests.extend(sparse_outside(problem, &path, machine));
                    break;
                }
            }
            report.explored = nests.len();
            Ok(SearchOutcome { candidates: rank(problem, machine, nests)?, report })
        })
    }
}

/// Returns the fully fused forest of every combination of loop orders of the terms of `path`: as many as the product of
/// what each term has.
pub fn all_forests(problem: &Problem, path: &Path) -> Vec<Forest> {
    forests(problem, path, usize::MAX).0
}

/// Returns the first `most` of those forests, and whether there are more.
fn forests(problem: &Problem, path: &Path, most: usize) -> (Vec<Forest>, bool) {
    let nesting = LevelNesting::new(problem);
    let enough = most.saturating_add(1);
    let choices: Vec<Vec<Vec<Index>>> = path
        .terms
        .iter()
        .map(|term| {
            let mut orders = Vec::new();
            extend(&nesting, term, &mut Vec::new(), &mut orders, enough);
            orders
        })
        .collect();
    let all = choices.iter().map(Vec::len).fold(1, usize::saturating_mul);
    let nth = |number: usize| {
        let mut rest = number;
        let mut orders: Vec<Vec<Index>> = Vec::with_capacity(choices.len());
        // The orders of the last term change first.
        for of_term in choices.iter().rev() {
            orders.push(of_term[rest % of_term.len()].clone());
            rest /= of_term.len();
        }
        orders.reverse();
        Forest::fused(&orders)
    };
    ((0..all.min(most)).map(nth).collect(), all > most)
}

/// Adds the loop orders of `term` that begin with `order`, until there are `enough`.
fn extend(
    nesting: &LevelNesting,
    term: &Term,
    order: &mut Vec<Index>,
    orders: &mut Vec<Vec<Index>>,
    enough: usize,
) {
    let done: IndexSet = order.iter().copied().collect();
    if done == term.indices {
        orders.push(order.clone());
        return;
    }
    for index in (term.indices - done).iter() {
        if orders.len() < enough && nesting.may_loop(term, index, done) {
            order.push(index);
            extend(nesting, term, order, orders, enough);
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
