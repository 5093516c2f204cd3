//! The search that chooses the layouts of the operands by the system.

use std::collections::HashSet;
use std::time::Instant;

use crate::autoschedule::constraints::search::{Judged, Tree, judge_tree};
use crate::autoschedule::constraints::sizes::Sizes;
use crate::autoschedule::constraints::solve::End;
use crate::autoschedule::constraints::solver::Ready;
use crate::autoschedule::constraints::system::Layouts;
use crate::autoschedule::constraints::trees::trees;
use crate::autoschedule::constraints::{Const, Solution};
use crate::autoschedule::level_orders::{ordered, with_tiles};
use crate::autoschedule::work::Work;
use crate::autoschedule::{
    Breadth, Candidate, OrderedCandidate, OrdersFound, SearchLimits, SearchReport, StopReason,
    Storage, finish,
};
use crate::cost::{Machine, estimate};
use crate::einsum::Index;
use crate::error::CoreError;
use crate::path::{Path, Source};
use crate::schedule::{Format, Problem, SparseOperand, has_pattern_of};

/// How much more work than a search on given layouts one that chooses them may do: it stands for a search on each of
/// many layouts.
const MORE_WORK: u64 = 4;

/// Schedules of which a storage with the last two levels fused is judged besides.
const FUSED: usize = 8;

/// A search over layouts: what is asked, and which storages may be chosen.
pub(super) struct Free<'a> {
    pub(super) scheduler: &'a Const,
    pub(super) problem: &'a Problem,
    pub(super) machine: &'a Machine,
    pub(super) limits: &'a SearchLimits,
    /// The storages that may be chosen; `None`: all.
    pub(super) allowed: Option<HashSet<&'a Storage>>,
}

impl Free<'_> {
    /// Returns the best schedules of all solutions, best first; `None` if nothing is legal.
    ///
    /// One layout serves all references of a tensor, as in the paper; only if nothing comes of that, each has its own.
    ///
    /// # Errors
    ///
    /// What the solver's process says if it is absent or fails.
    pub(super) fn search(&self) -> Result<Option<OrdersFound>, CoreError> {
        let start = Instant::now();
        let solver = self.scheduler.solver.ready(self.limits)?;
        let (mut paths, mut pruned, mut stop) = (0, 0, StopReason::Complete);
        for layouts in [Layouts::Shared, Layouts::Own] {
            let mut judged = Judged::nothing();
            for posed in self.posed() {
                let sizes = Sizes::new(&posed);
                let listed = trees(&posed, &sizes, self.limits);
                (paths, stop) = (listed.all, stop.max(listed.stop));
                pruned = listed.all.saturating_sub(listed.paths.len());
                judged.add(self.judge((&posed, &sizes, layouts), &listed.paths, &solver)?);
            }
            let Some(solved) = judged.report() else { continue };
            if judged.end == End::Cut {
                stop = stop.max(StopReason::Work);
            }
            let explored = judged.solutions;
            let mut candidates = self.with_fused(judged.ranked(self.limits.max_nests));
            with_tiles(self.problem, &mut candidates, self.machine, self.limits);
            let report = SearchReport {
                scheduler: self.scheduler.name,
                breadth: Breadth::All,
                paths,
                pruned,
                explored,
                seconds: start.elapsed().as_secs_f64(),
                stop,
                solved: Some(solved),
            };
            return Ok(Some(OrdersFound { candidates, report }));
        }
        solver.in_time()?;
        Ok(None)
    }

    /// The problems with each operand first whose pattern the result can have; if there is none, the problem as it is.
    fn posed(&self) -> Vec<Problem> {
        let problem = self.problem;
        let inputs: Vec<usize> = problem.sparse.iter().map(|x| x.input).collect();
        let keeps = |x: &&SparseOperand| has_pattern_of(&problem.expr, x.input, &inputs);
        let keepers: Vec<&SparseOperand> = problem.sparse.iter().filter(keeps).collect();
        if keepers.is_empty() {
            return vec![problem.clone()];
        }
        let natural = |x: &SparseOperand| Format::csf(x.levels().to_vec());
        let led = |x: &&SparseOperand| self.led_by(x.input, natural).problem(problem);
        keepers.iter().map(led).collect()
    }

    /// Stores the operands as `order` says, that of input `leader` first.
    fn led_by(&self, leader: usize, order: impl Fn(&SparseOperand) -> Format) -> Storage {
        let mut operands: Vec<(usize, Format)> =
            self.problem.sparse.iter().map(|x| (x.input, order(x))).collect();
        operands.sort_by_key(|(input, _)| *input != leader);
        Storage { operands }
    }

    /// Judges the solutions of the trees, of which each may do half of the work that those before it left.
    fn judge(
        &self,
        (problem, sizes, layouts): (&Problem, &Sizes<'_>, Layouts),
        paths: &[Path],
        solver: &Ready,
    ) -> Result<Judged<OrderedCandidate>, CoreError> {
        let mut all = Judged::nothing();
        let mut work = Work::new(self.limits.max_work.saturating_mul(MORE_WORK));
        for path in paths {
            if work.left() == 0 {
                all.end = End::Cut;
                break;
            }
            let mut part = work.take_half();
            let mut judge = |solution: &Solution| self.candidates(problem, path, solution);
            let tree = Tree { problem, path, layouts, sizes, solver };
            all.add(judge_tree(&tree, &mut part, &mut judge)?);
            work.give_back(part);
        }
        Ok(all)
    }

    /// Returns the legal schedules of a solution, one for each operand that may lead.
    fn candidates(
        &self,
        posed: &Problem,
        path: &Path,
        solution: &Solution,
    ) -> Vec<(f64, OrderedCandidate)> {
        let nest = solution.nest();
        let terms = solution.path(path);
        let order = |x: &SparseOperand| {
            let levels = walked(path, solution, x);
            Format::csf(levels)
        };
        let mut found = Vec::new();
        for leader in self.leaders(posed, path, solution) {
            let storage = self.led_by(leader, order);
            if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(&storage)) {
                continue;
            }
            let problem = storage.problem(self.problem);
            let schedule = finish(&problem, terms.clone(), nest.clone(), self.machine);
            if schedule.verify(&problem).is_ok() {
                let cost = estimate(&problem, &schedule, self.machine);
                let candidate = Candidate { schedule, cost };
                let one = ordered(&problem, &storage, candidate, self.machine);
                found.push((one.total(), one));
            }
        }
        found
    }

    /// The operands that may lead: the one whose pattern the result has, or those whose roots are looped outermost.
    fn leaders(&self, posed: &Problem, path: &Path, solution: &Solution) -> Vec<usize> {
        if posed.has_pattern_output() {
            return posed.leader().map(|x| x.input).into_iter().collect();
        }
        let depth = |x: &SparseOperand| {
            let root = *walked(path, solution, x).first()?;
            let around = reader(path, x.input).map(|term| &solution.loops[term])?;
            around.iter().position(|&index| index == root)
        };
        let least = posed.sparse.iter().filter_map(depth).min();
        let outermost = posed.sparse.iter().filter(|x| depth(x) == least);
        outermost.map(|x| x.input).collect()
    }

    /// Adds the best candidates with the last two levels of a single operand fused, where that is allowed.
    fn with_fused(&self, mut candidates: Vec<OrderedCandidate>) -> Vec<OrderedCandidate> {
        let [x] = self.problem.sparse.as_slice() else { return candidates };
        let mut fused = Vec::new();
        for one in candidates.iter().take(FUSED).filter(|_| x.levels().len() > 2) {
            let mut storage = one.storage.clone();
            for (_, format) in &mut storage.operands {
                *format = Format::with_fused(format.levels().to_vec(), 2);
            }
            if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(&storage)) {
                continue;
            }
            let problem = storage.problem(self.problem);
            let made = &one.candidate.schedule;
            let schedule = finish(&problem, made.path.clone(), made.nest.clone(), self.machine);
            if schedule.verify(&problem).is_ok() {
                let cost = estimate(&problem, &schedule, self.machine);
                let candidate = Candidate { schedule, cost };
                fused.push(ordered(&problem, &storage, candidate, self.machine));
            }
        }
        candidates.extend(fused);
        candidates.sort_by(|a, b| a.total().total_cmp(&b.total()));
        candidates
    }
}

/// The levels of a sparse operand: its indices as the term that reads it loops over them.
fn walked(path: &Path, solution: &Solution, x: &SparseOperand) -> Vec<Index> {
    let around = reader(path, x.input).map_or(&[][..], |term| &solution.loops[term]);
    around.iter().copied().filter(|index| x.levels().contains(index)).collect()
}

fn reader(path: &Path, input: usize) -> Option<usize> {
    path.terms.iter().position(|term| term.inputs.contains(&Source::Input(input)))
}
