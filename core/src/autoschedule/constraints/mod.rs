//! The scheduler of CoNST: one system of constraints for the order of the contractions, the loops around each, and the
//! layouts of the operands.
//!
//! 1. A contraction tree gives a [`System`]: positions of assignments (`ap`), of the modes in each layout (`dp`), and of
//!    the loops around each assignment (`lp`), with the constraints of section 3.2 for intermediates of up to `l` indices.
//! 2. [`System::solve`] decides it exactly, and [`System::solutions`] visits every solution.  [`System::check`] judges
//!    one by the constraints alone.
//! 3. A [`Solution`] is a sequence of assignments, each with its loops; peeling makes fused loops of it (algorithm 1).
//! 4. The machine model judges the solutions of all trees; the best comes first.
//!
//! Where this departs from the paper:
//!
//! - The trees of the path space are solved, in the order of their flops, and that of one contraction.
//! - All solutions are judged, as far as the work goes, where the paper takes any.  Those with larger intermediates than
//!   needed are judged too, up to the bound of the problem.
//! - Dense operands are packed as they are read, so their layouts restrict nothing.
//! - A result that has the pattern of an operand is written in the order of its layout.
//! - If one layout of a tensor cannot serve all its references, each has its own.
//! - If the layouts are given, they are constants of the system.
//!
//! Source: Raje et al., "CoNST: Code Generator for Sparse Tensor Networks", ACM TACO 21(4), 2024.

mod constraint;
mod explain;
mod free;
mod search;
mod sizes;
mod solution;
mod solve;
mod solver;
mod system;
#[cfg(test)]
mod tests;
mod text;
mod trees;

use std::fmt;

use decompose_formats::counted;

use crate::autoschedule::level_orders::search_each;
use crate::autoschedule::paths::widening;
use crate::autoschedule::work::Work;
use crate::autoschedule::{
    Candidate, OrdersFound, Scheduler, SearchLimits, SearchOutcome, StopReason, Storage, finish,
    storages,
};
use crate::cost::{Machine, estimate};
use crate::error::CoreError;
use crate::path::Path;
use crate::schedule::Problem;

use free::Free;
use search::{Judged, Tree, judge_tree};
use sizes::Sizes;
use solver::Solver;

pub use constraint::{Constraint, Part, Variable};
pub use explain::{Explained, explain};
pub use solution::{Row, Solution};
pub use solve::End;
pub use system::{Contraction, Layouts, Reference, System, Tensor};

/// What the solver found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// The most indices of an intermediate: the least bound with which the best tree has a solution.
    pub bound: usize,
    /// Seconds until its first solution.
    pub seconds: f64,
    /// Solutions of all trees that were judged.
    pub solutions: usize,
    /// The predicted seconds of the first legal solution, as a multiple of those of the best.
    pub gain: f64,
}

impl fmt::Display for Solved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Solved { bound, seconds, solutions, gain } = self;
        let milliseconds = seconds * 1e3;
        let solutions = counted(*solutions, "solution", "solutions");
        write!(f, "l = {bound} solved in {milliseconds:.3} ms, {solutions} judged, ")?;
        write!(f, "the best {gain:.2}x as fast as the first")
    }
}

/// A scheduler by the constraint systems of CoNST, whose solutions are judged by predicted seconds.
pub(super) struct Const {
    name: &'static str,
    solver: Solver,
}

/// The scheduler `const`: all solutions of each system.
pub(super) const OWN: Const = Const { name: "const", solver: Solver::Own };

/// The scheduler `const-z3`: the one that a `z3` process finds of each system.
pub(super) const ASKING: Const = Const { name: "const-z3", solver: Solver::Process };

impl Scheduler for Const {
    fn name(&self) -> &'static str {
        self.name
    }

    fn search_within(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<SearchOutcome, CoreError> {
        let solver = self.solver.ready(limits)?;
        widening(problem, machine, limits, self.name, |listed, mut report| {
            let sizes = Sizes::new(problem);
            let mut work = Work::new(limits.max_work);
            let mut all = Judged::nothing();
            for path in trees::distinct(listed.paths) {
                if work.left() == 0 {
                    all.end = End::Cut;
                    break;
                }
                let mut part = work.take_half();
                let mut judge = |solution: &Solution| candidate(problem, &path, solution, machine);
                let tree = Tree {
                    problem,
                    path: &path,
                    layouts: Layouts::Given,
                    sizes: &sizes,
                    solver: &solver,
                };
                all.add(judge_tree(&tree, &mut part, &mut judge)?);
                work.give_back(part);
            }
            if all.legal.is_empty() {
                solver.in_time()?;
            }
            if all.end == End::Cut {
                report.stop = report.stop.max(StopReason::Work);
            }
            (report.explored, report.solved) = (all.solutions, all.report());
            Ok(SearchOutcome { candidates: all.ranked(limits.max_nests), report })
        })
    }

    fn search_storages(
        &self,
        problem: &Problem,
        storages: &[Storage],
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<OrdersFound, CoreError> {
        let allowed = Some(storages.iter().collect());
        let free = Free { scheduler: self, problem, machine, limits, allowed };
        let found = if has_all_orders(problem, storages) { free.search()? } else { None };
        found.map_or_else(|| search_each(self, problem, storages, machine, limits), Ok)
    }

    fn search_any_storage(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<OrdersFound, CoreError> {
        let found = Free { scheduler: self, problem, machine, limits, allowed: None }.search()?;
        found.map_or_else(|| search_each(self, problem, &storages(problem), machine, limits), Ok)
    }
}

/// Tells whether `storages` have all combinations of orders of the levels.
fn has_all_orders(problem: &Problem, storages: &[Storage]) -> bool {
    let levels = |storage: &Storage| {
        let mut operands = storage.operands.clone();
        operands.sort();
        operands
    };
    let plain = |storage: &&Storage| storage.operands.iter().all(|(_, order)| order.fused() == 1);
    let distinct: std::collections::HashSet<_> =
        storages.iter().filter(plain).map(levels).collect();
    let orders = |levels: usize| (1..=levels).fold(1, usize::saturating_mul);
    let all =
        problem.sparse.iter().map(|x| orders(x.levels().len())).fold(1, usize::saturating_mul);
    distinct.len() == all
}

/// Completes and judges the nest of a solution; nothing if it breaks a rule.
fn candidate(
    problem: &Problem,
    path: &Path,
    solution: &Solution,
    machine: &Machine,
) -> Vec<(f64, Candidate)> {
    let schedule = finish(problem, solution.path(path), solution.nest(), machine);
    let legal = schedule.verify(problem).is_ok().then(|| {
        let cost = estimate(problem, &schedule, machine);
        (cost.seconds, Candidate { schedule, cost })
    });
    legal.into_iter().collect()
}
