//! Counts of modes, as the planner names them.

use decompose_core::cost::Machine;
use decompose_core::kernels;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{Trees, blockings, estimate_blocks, panel_columns};
use decompose_core::technique::{Technique, Techniques};
use decompose_formats::PatternCounts;
use decompose_formats::dense::padded;

/// Renames the modes of `counts` to the indices of the named kernels.
pub(crate) fn of(counts: &PatternCounts) -> Pattern {
    let modes: Vec<_> = (0..counts.extents().len()).map(kernels::mode_index).collect();
    Pattern::of(counts, &modes)
}

/// Names the modes as [`of`] does, and estimates the blocks by which the trees of a sweep of MTTKRPs of
/// `rank` with values of `value_bytes` may be stored: of given trees theirs, else those worth considering.
pub(crate) fn of_sweep(
    counts: &PatternCounts,
    (rank, value_bytes): (usize, usize),
    (trees, techniques): (&Trees, Techniques),
) -> Pattern {
    let mut pattern = of(counts);
    let columns = match techniques.has(Technique::Panels) {
        true => panel_columns(rank, value_bytes),
        false => rank,
    };
    let row_bytes = (padded(columns, value_bytes) * value_bytes) as u64;
    // Blocks are sized for the rows of panels, which are planned wherever rows are long.
    let found = match trees {
        Trees::Given(trees) => trees.iter().filter_map(|tree| tree.blocks.clone()).collect(),
        Trees::Choose if techniques.has(Technique::Blocks) => {
            blockings(counts, row_bytes, Machine::here())
        }
        _ => Vec::new(),
    };
    estimate_blocks(&mut pattern, counts.extents(), found);
    pattern
}
