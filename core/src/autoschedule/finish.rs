//! From a nest to a whole schedule: the decisions that follow from the nest.

use crate::cost::Machine;
use crate::einsum::{Index, IndexSet};
use crate::nest::Forest;
use crate::path::Path;
use crate::schedule::{BufferKind, Conflict, Layout, Parallel, Prefetch, Problem, Schedule, Space};

/// Completes a nest: CSF layouts as the problem gives them, dense buffers, the root loop parallel
/// over equal numbers of non-zeros, prefetches for gathered operands that leave the second-level
/// cache.
pub fn finish(problem: &Problem, path: Path, nest: Forest, machine: &Machine) -> Schedule {
    let layouts = problem.sparse.iter().map(|x| Layout::tree(&x.levels, x.tail)).collect();
    let buffers = vec![BufferKind::Dense; path.terms.len() - 1];
    let parallel = parallel(problem);
    let prefetches = prefetches(problem, &path, machine);
    Schedule { path, nest, layouts, buffers, tiles: Vec::new(), parallel, prefetches }
}

fn parallel(problem: &Problem) -> Option<Parallel> {
    let first = *problem.sparse.first()?.levels.first()?;
    let output = problem.expr.output.set();
    let conflict = if problem.has_pattern_output() {
        Conflict::Positions
    } else if !output.contains(first) {
        Conflict::Privatise
    } else if (output & problem.sparse_indices()).len() == 1 {
        Conflict::Boundary
    } else {
        Conflict::Owner
    };
    Some(Parallel { index: first, space: Space::Position, conflict })
}

/// Positions between the request of a row and its use.  Of 4, 8, 16 and 32 the best on one tensor of
/// short fibres at rank 50, and a few percent better than no requests; not swept on others.
const DISTANCE: u64 = 16;

/// The same for the operand of the root, whose rows follow each other, but so much later that the
/// processor sees no stream.
const ROOT_DISTANCE: u64 = 4;

/// Rows of up to this many bytes are not requested from the last-level cache where a non-zero takes a few
/// multiply-adds a row: the processor looks far enough ahead by itself, and requests were slower at
/// rank 16 on the same tensor.
const SHORT_ROW_BYTES: u64 = 128;

/// The same where a non-zero takes an outer product, which fills the processor's window so that it does
/// not see the next rows: TTMc of rank 16 x 16 on 4 million non-zeros was faster with requests.
const SHORT_ROW_BYTES_OF_PRODUCTS: u64 = 64;

/// Rows of more than this many bytes are not requested: the processor sees a stream in them, and so
/// many requests would stall.
const LONG_ROW_BYTES: u64 = 2048;

fn prefetches(problem: &Problem, path: &Path, machine: &Machine) -> Vec<Prefetch> {
    let Some(x) = problem.sparse.first() else { return Vec::new() };
    let dense = |indices: IndexSet| (indices - problem.sparse_indices()).len();
    let short = match path.terms.iter().any(|term| dense(term.indices) > 1) {
        true => SHORT_ROW_BYTES_OF_PRODUCTS,
        false => SHORT_ROW_BYTES,
    };
    let root = x.levels.first().copied();
    let gathered = |indices: &[Index]| -> bool {
        let sparse: IndexSet = indices.iter().copied().collect();
        let sparse = sparse & problem.sparse_indices();
        let elements = indices.iter().map(|&i| problem.extents.of(i)).product::<u64>();
        let used = x.pattern.count(sparse, &problem.extents);
        let rows = sparse.iter().map(|i| problem.extents.of(i)).product::<u64>().max(1);
        let bytes = elements as f64 * used as f64 / rows as f64 * problem.value_bytes as f64;
        let row = indices.iter().filter(|index| !sparse.contains(**index));
        let row: u64 = row.map(|&index| problem.extents.of(index)).product();
        let row_bytes = row * problem.value_bytes as u64;
        let near = match row_bytes <= short {
            true => machine.l3_bytes as f64 * machine.l3_share,
            false => machine.l2_bytes as f64 / 2.0,
        };
        sparse.len() == 1 && row_bytes <= LONG_ROW_BYTES && bytes > near
    };
    let inputs = problem.expr.inputs.iter().enumerate();
    inputs
        .filter(|(input, access)| *input != x.input && gathered(&access.indices))
        .map(|(input, access)| {
            let at_root = root.is_some_and(|root| access.set().contains(root));
            Prefetch { input, distance: if at_root { ROOT_DISTANCE } else { DISTANCE } }
        })
        .collect()
}
