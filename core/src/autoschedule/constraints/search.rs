//! All solutions of the systems of a tree, judged.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Instant;

use crate::autoschedule::SearchLimits;
use crate::autoschedule::constraints::sizes::Sizes;
use crate::autoschedule::constraints::solve::End;
use crate::autoschedule::constraints::solver::Ready;
use crate::autoschedule::constraints::system::{Layouts, System};
use crate::autoschedule::constraints::{Solution, Solved};
use crate::autoschedule::work::Work;
use crate::error::CoreError;
use crate::path::Path;
use crate::schedule::Problem;

/// What the solutions of one tree or several gave.
pub(super) struct Judged<T> {
    /// What is legal of them, with its predicted seconds, in the order in which it was found.
    pub(super) legal: Vec<(f64, T)>,
    /// How many solutions were judged.
    pub(super) solutions: usize,
    /// The bound and the time of the first solution.
    pub(super) solved: Option<(usize, f64)>,
    /// Whether work was left.
    pub(super) end: End,
}

impl<T> Judged<T> {
    pub(super) fn nothing() -> Judged<T> {
        Judged { legal: Vec::new(), solutions: 0, solved: None, end: End::All }
    }

    /// Adds what another tree gave.
    pub(super) fn add(&mut self, other: Judged<T>) {
        if self.solved.is_none() || other.best() < self.best() {
            self.solved = other.solved;
        }
        self.legal.extend(other.legal);
        self.solutions += other.solutions;
        if other.end == End::Cut {
            self.end = End::Cut;
        }
    }

    fn best(&self) -> f64 {
        self.legal.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min)
    }

    /// Returns what is legal, best first.
    pub(super) fn ranked(mut self, most: usize) -> Vec<T> {
        self.legal.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.legal.into_iter().take(most).map(|(_, one)| one).collect()
    }

    /// Returns the report of the best of what is legal.
    pub(super) fn report(&self) -> Option<Solved> {
        let best = self.best();
        let (first, (bound, seconds)) = (self.legal.first()?.0, self.solved?);
        let gain = if best > 0.0 { first / best } else { 1.0 };
        Some(Solved { bound, seconds, solutions: self.solutions, gain })
    }
}

/// A contraction tree and who solves its systems.
pub(super) struct Tree<'a> {
    pub(super) problem: &'a Problem,
    pub(super) path: &'a Path,
    pub(super) layouts: Layouts,
    pub(super) sizes: &'a Sizes<'a>,
    pub(super) solver: &'a Ready,
}

/// Solves the systems of a tree and judges their solutions with `judge`.
///
/// The bound on intermediates rises from one until there is a solution.  All solutions with this bound are judged, as
/// far as half of `work` goes, and then those that the next bounds add, up to that of the problem: less fusion can
/// be faster.  If nothing is legal, since the intermediates take too many bytes, only scalars may be left.
///
/// # Errors
///
/// What the solver's process says if it fails.
pub(super) fn judge_tree<T>(
    tree: &Tree<'_>,
    work: &mut Work,
    judge: &mut dyn FnMut(&Solution) -> Vec<(f64, T)>,
) -> Result<Judged<T>, CoreError> {
    let rank = |loops, index| tree.sizes.rank(loops, index);
    let most = tree.problem.max_buffer_dims;
    let start = Instant::now();
    let system = System::new(tree.problem, tree.path, tree.layouts, most.min(1));
    let mut judged = Judged::nothing();
    let last = system.largest().clamp(system.bound, most.max(system.bound));
    for bound in system.bound..=last {
        match tree.solver.first(&system.bounded(bound), &rank, work)? {
            (Some(first), _) => {
                judged.solved = Some((bound, start.elapsed().as_secs_f64()));
                if !tree.solver.enumerates() {
                    judged.solutions = 1;
                    judged.legal = judge(&first);
                }
                break;
            }
            (None, End::Cut) => judged.end = End::Cut,
            (None, _) => {}
        }
    }
    let Some((least, _)) = judged.solved.filter(|_| tree.solver.enumerates()) else {
        return Ok(judged);
    };
    let mut seen: HashSet<(Vec<usize>, Vec<Vec<_>>)> = HashSet::new();
    for bound in (least..=last).chain([0]) {
        if bound == 0 && !judged.legal.is_empty() {
            break;
        }
        let mut part = if bound == 0 { work.take_all() } else { work.take_half() };
        let mut visit = |solution: &Solution| {
            if !seen.insert((solution.sequence.clone(), solution.loops.clone())) {
                return ControlFlow::Continue(0);
            }
            judged.solutions += 1;
            judged.legal.extend(judge(solution));
            ControlFlow::Continue(SearchLimits::NEST_CHOICES)
        };
        let end = system.bounded(bound).each(&rank, &mut part, &mut visit);
        if end == End::Cut {
            judged.end = End::Cut;
        }
        work.give_back(part);
    }
    Ok(judged)
}
