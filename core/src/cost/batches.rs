//! Outer products of several nodes at a time.
//!
//! A loop over a level whose every node adds an outer product to the same block is generated for up to four nodes
//! at once, if the product's vectors are a buffer in registers: the block is then loaded and stored
//! once for all of them (`crate::codegen`).

use crate::path::Source;
use crate::schedule::{LoopNest, Problem, Schedule};

/// Bytes that the vectors of all nodes of a batch may take in registers.
const BATCH_BYTES: u64 = 16 * 64;

/// The most nodes of a batch.
pub(super) const MOST_NODES: u64 = 4;

/// Returns how many nodes share an access to what term `position` adds to: 1 where nothing is batched.
pub(super) fn batched_nodes(
    problem: &Problem,
    schedule: &Schedule,
    nest: &LoopNest,
    position: usize,
) -> f64 {
    let nodes = nodes(problem, schedule, nest, position);
    nodes.filter(|&nodes| nodes > 1).unwrap_or(1) as f64
}

fn nodes(problem: &Problem, schedule: &Schedule, nest: &LoopNest, position: usize) -> Option<u64> {
    let order = &nest.orders[position];
    let level_loop = order.len().checked_sub(3)?;
    let (walked, row, lanes) = (order[level_loop], order[level_loop + 1], order[level_loop + 2]);
    let over_level = |at: usize| nest.is_over_level(position, at);
    let dense = !over_level(level_loop + 1) && !over_level(level_loop + 2);
    let x = problem.leader()?;
    let level = x.levels().iter().position(|&index| index == walked)?;
    let term = &schedule.path.terms[position];
    let target = term.output;
    let owns_rows = level == 0 && problem.expr.output.set().contains(walked);
    let plain = level + x.fused() <= x.levels().len() && !owns_rows;
    let block = target.contains(row) && target.contains(lanes) && !target.contains(walked);
    if !(over_level(level_loop) && dense && plain && block) {
        return None;
    }
    let vectors = term.inputs.iter().find_map(|source| match *source {
        Source::Term(term) => {
            Some(nest.buffers[term].buffer.stored).filter(|set| set.contains(lanes))
        }
        Source::Input(_) => None,
    })?;
    let scales = term.inputs.iter().filter_map(|source| match *source {
        Source::Input(input) if input != x.input => Some(problem.expr.inputs[input].set()),
        _ => None,
    });
    let scaled = scales.clone().count() + 1 == term.inputs.len();
    let single = scales.clone().count() > 0 && scales.clone().all(|set| !set.contains(lanes));
    let bytes = problem.buffer_bytes(vectors).max(64);
    (vectors.len() == 1 && scaled && single).then(|| (BATCH_BYTES / bytes).min(MOST_NODES))
}
