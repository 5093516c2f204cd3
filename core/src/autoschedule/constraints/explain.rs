//! The system that a schedule solves.

use std::time::Instant;

use crate::autoschedule::constraints::{Layouts, Solution, System};
use crate::nest::buffers;
use crate::schedule::{Problem, Schedule};

/// The most choices that are made to solve a system again.
const MOST_WORK: u64 = 1_000_000;

/// A schedule as a solution of the system of its contraction tree.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The system, with the bound that the schedule keeps.
    pub system: System,
    /// The schedule, as a solution of it.
    pub solution: Solution,
    /// The least bound, from 1 on, with which the system has a solution.
    pub least: usize,
    /// Seconds to pose and solve it with this bound and those below.
    pub seconds: f64,
}

/// Returns the system of the tree of `schedule`, in which the layouts are variables: one for all references of a tensor if
/// the schedule has one.
///
/// `None` if the schedule keeps no such system: fused levels, for example, may be written in another order.
pub fn explain(problem: &Problem, schedule: &Schedule) -> Option<Explained> {
    let path = &schedule.path;
    let loops = schedule.nest.orders(path.terms.len())?;
    let stored = buffers(path, &schedule.nest)?.into_iter().map(|buffer| buffer.stored.len());
    let stored = stored.max().unwrap_or(0);
    [Layouts::Shared, Layouts::Own].into_iter().find_map(|layouts| {
        let start = Instant::now();
        let one = System::new(problem, path, layouts, 1);
        let mut bounds = 1..=one.largest().max(1);
        let least = bounds.find(|&bound| one.bounded(bound).solve(MOST_WORK).0.is_some())?;
        let seconds = start.elapsed().as_secs_f64();
        let system = one.bounded(least.max(stored));
        let solution = Solution::new(&system, (0..path.terms.len()).collect(), loops.clone());
        system.check(&solution).ok()?;
        Some(Explained { system, solution, least, seconds })
    })
}
