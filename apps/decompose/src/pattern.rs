//! Counts of modes, as the planner names them.

use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::kernels;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{Trees, blockings, count_blocks, panel_columns};
use decompose_core::technique::{Technique, Techniques};
use decompose_formats::dense::padded;
use decompose_formats::{Coo, PatternCounts, Value};

/// Renames the modes of `counts` to the indices of the named kernels.
pub(crate) fn of(counts: &PatternCounts) -> Pattern {
    let modes: Vec<_> = (0..counts.extents().len()).map(kernels::mode_index).collect();
    Pattern::of(counts, &modes)
}

/// Names the modes as [`of`] does, and counts the blocks by which the trees of a sweep of MTTKRPs of
/// `rank` may be stored: of given trees theirs, else those worth considering.
///
/// # Errors
///
/// If the blocks of a given tree do not fit the tensor.
pub(crate) fn of_sweep<V: Value>(
    tensor: &Coo<V>,
    counts: &PatternCounts,
    rank: usize,
    (trees, techniques): (&Trees, Techniques),
) -> Result<Pattern, CoreError> {
    let mut pattern = of(counts);
    let columns = match techniques.has(Technique::Panels) {
        true => panel_columns(rank, V::BYTES),
        false => rank,
    };
    let row_bytes = (padded(columns, V::BYTES) * V::BYTES) as u64;
    // Blocks are sized for the rows of panels, which are planned wherever rows are long.
    let found = match trees {
        Trees::Given(trees) => trees.iter().filter_map(|tree| tree.blocks.clone()).collect(),
        Trees::Choose if techniques.has(Technique::Blocks) => {
            blockings(counts, row_bytes, Machine::here())
        }
        _ => Vec::new(),
    };
    count_blocks(&mut pattern, counts, tensor, found)?;
    Ok(pattern)
}
