//! What it takes to store the sparse operands of a kernel that runs once.

use crate::cost::Machine;
use crate::einsum::Index;
use crate::schedule::{Problem, SparseOperand};

/// Seconds to sort a non-zero into another order of the modes, in the second-level cache and beyond it.
const SORT: (f64, f64) = (1.4e-8, 3e-8);

/// Seconds to visit a non-zero for a level of a tree, in the second-level cache and beyond it.
const LEVEL: (f64, f64) = (6e-10, 4e-9);

/// The most threads that are taken to build a tree faster than fewer; more than two were not measured.
const MOST_THREADS: usize = 8;

/// Bytes of a coordinate of a non-zero in a tree.
const COORDINATE_BYTES: usize = 4;

/// Returns the seconds to build the trees of the sparse operands of `problem` that are not there, or zero where they do
/// not count ([`Problem::storing`]).
///
/// References of a tensor that are stored alike share one tree.  A list is sorted by its modes, so that a tree of their order
/// needs no sort.  Sources of the constants: `data/records/current/storing/xeon`.
pub fn storing_seconds(problem: &Problem, machine: &Machine) -> f64 {
    let Some(storing) = &problem.storing else { return 0.0 };
    let mut built: Vec<(&str, Vec<usize>, usize)> = Vec::new();
    let mut seconds = 0.0;
    for x in &problem.sparse {
        let there =
            storing.trees.iter().any(|tree| tree.input == x.input && tree.format == x.format);
        let access = &problem.expr.inputs[x.input];
        let tree = (access.tensor.as_str(), modes(x, &access.indices), x.fused());
        if there || built.contains(&tree) {
            continue;
        }
        seconds += tree_seconds(problem, x, &tree.1, machine);
        built.push(tree);
    }
    seconds
}

/// Returns the modes of the levels of `x`, whose modes have `indices`.
fn modes(x: &SparseOperand, indices: &[Index]) -> Vec<usize> {
    let mode = |level: &Index| indices.iter().position(|index| index == level);
    x.levels().iter().filter_map(mode).collect()
}

/// Returns the seconds to sort and build the tree of `x`, whose levels have these modes.
fn tree_seconds(problem: &Problem, x: &SparseOperand, modes: &[usize], machine: &Machine) -> f64 {
    let all = x.levels().iter().copied().collect();
    let non_zeros = x.pattern.count(all, &problem.extents) as f64;
    let element = COORDINATE_BYTES * modes.len() + problem.value_bytes;
    let cached = non_zeros * element as f64 <= machine.l2_bytes as f64;
    // A list in a cache is sorted by one thread.
    let threads = machine.threads.clamp(1, MOST_THREADS) as f64;
    let of = |(cache, beyond): (f64, f64)| if cached { cache } else { beyond / threads };
    let sort = if modes.is_sorted() { 0.0 } else { of(SORT) };
    non_zeros * (sort + of(LEVEL) * modes.len() as f64)
}
