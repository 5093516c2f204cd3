//! Counts of modes, as the planner names them.

use decompose_core::kernels;
use decompose_core::schedule::Pattern;
use decompose_formats::PatternCounts;

/// Renames the modes of `counts` to the indices of the named kernels.
pub(crate) fn of(counts: &PatternCounts) -> Pattern {
    let modes: Vec<_> = (0..counts.extents().len()).map(kernels::mode_index).collect();
    Pattern::of(counts, &modes)
}
