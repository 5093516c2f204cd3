//! The rows that lanes cover.

use decompose_formats::dense::padded;

use crate::einsum::Index;
use crate::schedule::Problem;

/// Returns the bytes of a row over `lane`, padded as dense operands are; of a single value without.
pub(super) fn row_bytes(problem: &Problem, lane: Option<Index>) -> f64 {
    let width = lane.map_or(1, |lane| problem.extents.of(lane) as usize);
    (padded(width, problem.value_bytes) * problem.value_bytes) as f64
}
