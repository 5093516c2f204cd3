//! Searches that choose the order of the sparse operand's levels too.
//!
//! The order of the levels decides which loops can be fused, which rows are gathered and who owns
//! the rows of the output.  If the caller can store the operand in another order, every order is a
//! problem of its own; their schedules are ranked together by predicted seconds on all threads,
//! since an order whose root the output lacks needs private copies of it.

use std::time::Instant;

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::autoschedule::{Candidate, Scheduler, SearchLimits, SearchReport};
use crate::cost::{Machine, on_threads};
use crate::einsum::{Extents, Index, IndexSet};
use crate::error::CoreError;
use crate::schedule::{Pattern, Problem};

/// How a sparse operand may be stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LevelOrder {
    /// The indices of the levels, outermost first.
    pub levels: Vec<Index>,
    /// How many of the last levels are fused, in one position loop; 1 is plain CSF.
    pub fused: usize,
}

impl LevelOrder {
    /// Returns `problem` with its sparse operand stored in this order.
    pub fn problem(&self, problem: &Problem) -> Problem {
        let mut problem = problem.clone();
        if let Some(x) = problem.sparse.first_mut() {
            x.levels.clone_from(&self.levels);
            x.fused = self.fused;
        }
        problem
    }
}

/// A schedule with the order that it is for.
#[derive(Clone, Debug)]
pub struct OrderedCandidate {
    /// The order of the levels.
    pub order: LevelOrder,
    /// The schedule, with its predicted cost on one core.
    pub candidate: Candidate,
    /// Predicted seconds on the threads of the machine.
    pub seconds: f64,
    /// Bytes of private copies of the output.
    pub side_bytes: u64,
}

/// What a search over orders found.
#[derive(Clone, Debug)]
pub struct OrdersFound {
    /// Legal schedules of all orders, best first; never empty.
    pub candidates: Vec<OrderedCandidate>,
    /// What the searches saw together.
    pub report: SearchReport,
}

/// Up to this many levels, every order is searched.
const ALL_ORDERS: usize = 5;

/// Returns the orders of `indices` worth a search.
///
/// All orders of up to five levels.  Above, that of `indices`, along which a chain of operands is open at one end, and for
/// each root two: the others by increasing extent, and by adding at each level the index with the fewest nodes, which makes
/// the smallest tree that a greedy choice finds.  At order 6 that is 13 orders of 720.
pub fn level_orders(indices: &[Index], extents: &Extents, pattern: &Pattern) -> Vec<Vec<Index>> {
    let mut orders = Vec::new();
    if indices.len() <= ALL_ORDERS {
        permutations(indices, &mut Vec::new(), &mut orders);
        return orders;
    }
    orders.push(indices.to_vec());
    for &root in indices {
        let mut by_extent: Vec<Index> = indices.iter().copied().filter(|&i| i != root).collect();
        by_extent.sort_by_key(|&index| extents.of(index));
        by_extent.insert(0, root);
        let by_nodes = fewest_nodes(root, indices, extents, pattern);
        for order in [by_nodes, by_extent] {
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
    }
    orders
}

/// Returns the ways to store a sparse operand over `indices` that are worth a search: each of
/// [`level_orders`] as plain CSF and, above two levels, with its last two levels fused, which spares
/// short fibres their loops.
pub fn storage_orders(indices: &[Index], extents: &Extents, pattern: &Pattern) -> Vec<LevelOrder> {
    let stored = |levels: Vec<Index>| {
        let fusings = if levels.len() > 2 { 1..=2 } else { 1..=1 };
        fusings.map(move |fused| LevelOrder { levels: levels.clone(), fused })
    };
    level_orders(indices, extents, pattern).into_iter().flat_map(stored).collect()
}

/// Searches `problem` with its sparse operand stored in each of `orders`, which share the work that `limits` allow.
///
/// # Errors
///
/// [`CoreError::NoSchedule`] if there is no schedule on any order.
pub fn search_orders(
    scheduler: &dyn Scheduler,
    problem: &Problem,
    orders: &[LevelOrder],
    machine: &Machine,
    limits: &SearchLimits,
) -> Result<OrdersFound, CoreError> {
    let start = Instant::now();
    let mut candidates = Vec::new();
    let mut report: Option<SearchReport> = None;
    let mut refused = None;
    let limits = limits.shared(orders.len());
    // The results keep the order of `orders`.
    let searched: Vec<_> = orders
        .par_iter()
        .map(|order| {
            let problem = order.problem(problem);
            let found = scheduler.search_within(&problem, machine, &limits)?;
            let one = |candidate| ordered(&problem, order, candidate, machine);
            let candidates: Vec<_> = found.candidates.into_iter().map(one).collect();
            Ok((candidates, found.report))
        })
        .collect();
    for result in searched {
        match result {
            Ok((found, seen)) => {
                candidates.extend(found);
                report = Some(together(report, seen));
            }
            Err(error @ CoreError::NoSchedule { .. }) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    candidates.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    match (report, refused) {
        (Some(report), _) => {
            let seconds = start.elapsed().as_secs_f64();
            Ok(OrdersFound { candidates, report: SearchReport { seconds, ..report } })
        }
        (None, Some(error)) => Err(error),
        (None, None) => Err(CoreError::NoSchedule {
            expr: problem.expr.to_string(),
            why: "no order of the levels was given".into(),
        }),
    }
}

fn ordered(
    problem: &Problem,
    order: &LevelOrder,
    candidate: Candidate,
    machine: &Machine,
) -> OrderedCandidate {
    let (schedule, cost) = (&candidate.schedule, &candidate.cost);
    let threaded = on_threads(problem, schedule, cost, machine, machine.threads);
    let (seconds, side_bytes) = (threaded.seconds, threaded.side_bytes);
    OrderedCandidate { order: order.clone(), candidate, seconds, side_bytes }
}

/// Adds up the reports of two searches.
fn together(before: Option<SearchReport>, now: SearchReport) -> SearchReport {
    let Some(before) = before else { return now };
    SearchReport {
        breadth: before.breadth.max(now.breadth),
        paths: before.paths.saturating_add(now.paths),
        pruned: before.pruned.saturating_add(now.pruned),
        explored: before.explored + now.explored,
        stop: before.stop.max(now.stop),
        ..now
    }
}

fn permutations(indices: &[Index], order: &mut Vec<Index>, orders: &mut Vec<Vec<Index>>) {
    if order.len() == indices.len() {
        orders.push(order.clone());
        return;
    }
    for &index in indices {
        if !order.contains(&index) {
            order.push(index);
            permutations(indices, order, orders);
            order.pop();
        }
    }
}

/// The order from `root` that adds at each level the index with the fewest nodes.
fn fewest_nodes(
    root: Index,
    indices: &[Index],
    extents: &Extents,
    pattern: &Pattern,
) -> Vec<Index> {
    let mut order = vec![root];
    loop {
        let prefix: IndexSet = order.iter().copied().collect();
        let rest = indices.iter().copied().filter(|index| !order.contains(index));
        match rest.min_by_key(|&index| pattern.count(prefix.with(index), extents)) {
            Some(next) => order.push(next),
            None => return order,
        }
    }
}
