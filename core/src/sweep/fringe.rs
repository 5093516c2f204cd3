//! Factors whose rows have a fringe: last columns that are stored apart.
//!
//! What the last panel's rows have beyond whole lines, if it is little, is a panel of its own; unlike other
//! panels it is not taken by a walk of its own, but together with the lines before it ([`with_fringe`]).

use decompose_formats::ints::Width;

use crate::cost::LINE_BYTES;
use crate::error::CoreError;
use crate::kernels::rank_index;
use crate::lower::{Program, lower, with_fringe};
use crate::schedule::{Problem, Schedule};
use crate::sweep::trees::at_rank;
use crate::sweep::{Step, SweepPlan, panel_columns};

/// The most bytes of a fringe: lines hold at least two.
const MOST_BYTES: usize = 32;

impl SweepPlan {
    /// Returns the plan with the fringe of rows stored apart, if rows are longer than a line, what they have beyond
    /// lines is short enough, and every kernel can take it along.
    ///
    /// Predictions stay those for rows that end in a line of their own.  Time: a lowering a kernel.
    #[must_use]
    pub fn with_fringe(self) -> SweepPlan {
        let Some(&last) = self.panels.last() else { return self };
        let Some((_, step)) = self.steps().next() else { return self };
        let fringe = fringe_columns(last, step.problem.value_bytes);
        let taken = |(_, step): (String, &Step)| {
            let widths = vec![(Width::W32, Width::W32); step.problem.sparse[0].levels.len()];
            let problem = at_rank(&step.problem, last);
            program((&problem, fringe), &step.candidate.schedule, &widths).is_ok()
        };
        let fringe = if fringe > 0 && self.steps().all(taken) { fringe } else { 0 };
        SweepPlan { fringe, ..self }
    }

    /// Returns the columns of each part in which factors are stored: of each panel, the fringe of the last being a
    /// part of its own.
    pub fn parts_of_factors(&self) -> Vec<usize> {
        parts_of(&self.panels, self.fringe)
    }
}

/// The columns of each part of `panels`, the last `fringe` columns being a part of their own if there are any.
pub(super) fn parts_of(panels: &[usize], fringe: usize) -> Vec<usize> {
    let mut parts = panels.to_vec();
    if let Some(last) = parts.last_mut().filter(|_| fringe > 0) {
        *last -= fringe;
        parts.push(fringe);
    }
    parts
}

/// Tells whether factors of `rank` columns of `value_bytes` bytes may be stored in parts: panels, or a fringe.
pub fn may_be_in_parts(rank: usize, value_bytes: usize) -> bool {
    panel_columns(rank, value_bytes) < rank || fringe_columns(rank, value_bytes) > 0
}

/// The columns of the fringe of a row of `columns`; 0 if it has none that is stored apart.
fn fringe_columns(columns: usize, value_bytes: usize) -> usize {
    let beyond = columns % (LINE_BYTES as usize / value_bytes);
    if beyond < columns && beyond * value_bytes <= MOST_BYTES { beyond } else { 0 }
}

/// Lowers `schedule` of an MTTKRP `problem`, `fringe` columns of which are stored apart.
///
/// # Errors
///
/// If lowering fails, or the fringe cannot be taken along.
pub(super) fn program(
    (problem, fringe): (&Problem, usize),
    schedule: &Schedule,
    widths: &[(Width, Width)],
) -> Result<Program, CoreError> {
    if fringe == 0 {
        return lower(problem, schedule, widths);
    }
    let columns = problem.extents.of(rank_index()) as usize;
    let lines = lower(&at_rank(problem, columns - fringe), schedule, widths)?;
    with_fringe(&lines, rank_index(), fringe as u64)?
        .ok_or_else(|| CoreError::Internal(format!("{}: its rows have no fringe", lines.title)))
}
