//! From a nest to a whole schedule: the decisions that follow from the nest.

use crate::autoschedule::prefetch::prefetches;
use crate::cost::{Machine, suited_vectors};
use crate::einsum::Index;
use crate::nest::Forest;
use crate::path::Path;
use crate::schedule::{
    BufferKind, Conflict, Layout, MOST_WORKSPACE_CELLS, OutputForm, Parallel, Problem, Schedule,
    Space, Vectors, Workspace,
};

/// Completes a nest: CSF layouts as the problem gives them, dense buffers, the root loop parallel
/// over equal numbers of non-zeros, prefetches for gathered operands that leave the second-level
/// cache, gathered vectors for long sums of a single term.
///
/// # Panics
///
/// If `nest` does not hold the terms of `path`.
pub fn finish(problem: &Problem, path: Path, nest: Forest, machine: &Machine) -> Schedule {
    let several = problem.sparse.len() > 1;
    let layouts = problem
        .sparse
        .iter()
        .map(|x| Layout { input: several.then_some(x.input), ..Layout::tree(&x.levels, x.fused) });
    let layouts = layouts.collect();
    let buffers = vec![BufferKind::Dense; path.terms.len() - 1];
    let orders = nest.orders(path.terms.len()).expect("a nest of all terms");
    let parallel = parallel(problem, &orders);
    let prefetches = prefetches(problem, &path, machine);
    let workspace = (problem.output == OutputForm::Assembled).then(|| {
        let last = orders.last().map_or(&[][..], Vec::as_slice);
        match problem.workspace_cells(last) <= MOST_WORKSPACE_CELLS {
            true => Workspace::Dense,
            false => Workspace::List,
        }
    });
    let splits = problem.splits.iter().map(|cut| cut.split).collect();
    let vectors = match orders.as_slice() {
        [order] => suited_vectors(problem, order, machine),
        _ => Vectors::All,
    };
    Schedule { splits, path, nest, layouts, buffers, workspace, parallel, vectors, prefetches }
}

fn parallel(problem: &Problem, orders: &[Vec<Index>]) -> Option<Parallel> {
    let first = *problem.leader()?.levels.first()?;
    let output = problem.expr.output.set();
    let conflict = if problem.output == OutputForm::Assembled {
        Conflict::Assemble
    } else if problem.has_pattern_output() {
        Conflict::Positions
    } else if orders.last().is_some_and(|last| problem.owns_ranges(last)) {
        Conflict::Owner
    } else if !output.contains(first) {
        Conflict::Privatise
    } else if (output & problem.sparse_indices()).len() == 1 {
        Conflict::Boundary
    } else {
        Conflict::Owner
    };
    Some(Parallel { index: first, space: Space::Position, conflict, tasks: None })
}
