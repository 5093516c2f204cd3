//! What a schedule will be, told before there is a tree to run it on.

use decompose_formats::ints::Width;

use crate::einsum::Index;
use crate::error::CoreError;
use crate::lower::{Program, lower};
use crate::schedule::{Problem, Schedule};

/// Lowers `schedule` for the index widths that a tree of the problem's extents and non-zeros has.
///
/// # Errors
///
/// [`CoreError::Illegal`] if the schedule breaks a rule.
pub fn preview(problem: &Problem, schedule: &Schedule) -> Result<Program, CoreError> {
    let Some(x) = problem.sparse.first() else { return lower(problem, schedule, &[]) };
    let nnz = x.nodes(problem.sparse_indices(), &problem.extents);
    let pointers = Width::below(nnz.saturating_add(1));
    let level = |&index: &Index| (Width::below(problem.extents.of(index)), pointers);
    let mut widths: Vec<(Width, Width)> = x.levels.iter().map(level).collect();
    // Only nodes that open loops have pointers.
    let first = x.levels.len() - x.fused;
    widths[first..].iter_mut().for_each(|width| width.1 = Width::W32);
    lower(problem, schedule, &widths)
}
