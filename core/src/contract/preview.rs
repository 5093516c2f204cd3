//! What a schedule will be, told before there is a tree to run it on.

use decompose_formats::narrow_ints::Width;

use crate::einsum::Index;
use crate::error::CoreError;
use crate::lower::{LevelStorage, Program, lower};
use crate::schedule::{Problem, Schedule, SparseOperand};

/// Lowers `schedule` for the index widths that a tree of the problem's extents and non-zeros has.
///
/// # Errors
///
/// [`CoreError::Illegal`] if the schedule breaks a rule.
pub fn preview(problem: &Problem, schedule: &Schedule) -> Result<Program, CoreError> {
    let stored: Vec<Vec<LevelStorage>> =
        problem.sparse.iter().map(|x| storage(problem, x)).collect();
    lower(problem, schedule, &stored)
}

/// How the levels of a tree with the problem's extents and non-zeros are stored.
fn storage(problem: &Problem, x: &SparseOperand) -> Vec<LevelStorage> {
    let extents = &problem.extents;
    let levels: Vec<Index> = problem.stored(x.levels()).collect();
    let nodes = |depth: usize| x.nodes(levels[..depth].iter().copied().collect(), extents);
    let narrow = Width::below(nodes(levels.len()).saturating_add(1));
    // Only nodes that open loops have pointers.
    let opens = |at: usize| at + x.fused() < levels.len();
    let level = |(at, &index): (usize, &Index)| LevelStorage {
        coords: Width::below(extents.of(index)),
        pointers: if opens(at) { narrow } else { Width::W32 },
    };
    levels.iter().enumerate().map(level).collect()
}
