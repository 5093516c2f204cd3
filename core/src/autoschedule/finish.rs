//! From a nest to a whole schedule: the decisions that follow from the nest.

use crate::autoschedule::prefetch::prefetches;
use crate::cost::Machine;
use crate::einsum::{Index, IndexSet};
use crate::nest::Forest;
use crate::path::Path;
use crate::schedule::{BufferKind, Conflict, Layout, Parallel, Problem, Schedule, Space};

/// Completes a nest: CSF layouts as the problem gives them, dense buffers, the root loop parallel
/// over equal numbers of non-zeros, prefetches for gathered operands that leave the second-level
/// cache.
///
/// # Panics
///
/// If `nest` does not hold the terms of `path`.
pub fn finish(problem: &Problem, path: Path, nest: Forest, machine: &Machine) -> Schedule {
    let layouts = problem.sparse.iter().map(|x| Layout::tree(&x.levels, x.tail)).collect();
    let buffers = vec![BufferKind::Dense; path.terms.len() - 1];
    let orders = nest.orders(path.terms.len()).expect("a nest of all terms");
    let parallel = parallel(problem, &orders, machine);
    let prefetches = prefetches(problem, &path, machine);
    Schedule { path, nest, layouts, buffers, tiles: Vec::new(), parallel, prefetches }
}

fn parallel(problem: &Problem, orders: &[Vec<Index>], machine: &Machine) -> Option<Parallel> {
    let first = *problem.sparse.first()?.levels.first()?;
    let output = problem.expr.output.set();
    let conflict = if problem.has_pattern_output() {
        Conflict::Positions
    } else if orders.last().is_some_and(|last| problem.owns_ranges(last)) {
        Conflict::Owner
    } else if turns_pay(problem, orders, first, machine) {
        Conflict::Turns
    } else if !output.contains(first) {
        Conflict::Privatise
    } else if (output & problem.sparse_indices()).len() == 1 {
        Conflict::Boundary
    } else {
        Conflict::Owner
    };
    Some(Parallel { index: first, space: Space::Position, conflict })
}

/// The least non-zeros of a block for each thread that shares it with others: they take longer than these are to
/// wait for each other at its end.
const LEAST_IN_TURN: f64 = 65_536.0;

/// Tells whether blocks may take turns and are large enough; never if a task would run other loops than those inside
/// the blocks, since there are many tasks.
fn turns_pay(problem: &Problem, orders: &[Vec<Index>], first: Index, machine: &Machine) -> bool {
    let may = orders.last().is_some_and(|last| problem.takes_turns(last));
    let inside = orders.iter().all(|order| order.first() == Some(&first));
    let Some(x) = problem.sparse.first().filter(|_| may && inside) else { return false };
    let count = |set| x.pattern.count(set, &problem.extents) as f64;
    let blocks = count(IndexSet::EMPTY.with(Index::BLOCK)).max(1.0);
    count(problem.sparse_indices()) / blocks >= LEAST_IN_TURN * machine.threads.max(1) as f64
}
