//! Which trees of one tensor to keep, and which kernel runs on which.
//!
//! Every mode's MTTKRP can run on a tree of any mode order: rooted at its own mode it owns its
//! rows; on another tree it scatters into private copies.  The planner schedules every mode on
//! every candidate order, predicts its seconds, and picks the set of trees with the least total:
//! kernels of a sweep, plus each tree's building spread over the sweeps.  It starts from the best
//! single tree, adds the tree that saves most while one does, then tries exchanges.
//!
//! Which orders are candidates, `crate::autoschedule::storage_orders` says.  The same search plans
//! any list of kernels of one sparse tensor: [`plan_kernels`].

use std::fmt;

use decompose_formats::ModeOrder;
use decompose_formats::dense::padded;
use decompose_formats::panels::widths;
use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::autoschedule::{Candidate, LevelOrder, SCHEDULERS, SearchReport, storage_orders};
use crate::cost::{Machine, ThreadedCost, estimate, on_threads};
use crate::einsum::{Expr, Extents, Index, IndexSet};
use crate::error::CoreError;
use crate::kernels;
use crate::schedule::{OutputForm, Packing, Pattern, Problem, SparseOperand};
use crate::sweep::blocked::{blocked_trees, ranged_trees};
use crate::sweep::layout::TreeLayout;
use crate::sweep::rejected::{Rejected, nearest};

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The number of components; [`plan_kernels`] reads the extents of its problems instead.
    pub rank: usize,
    /// Size of a value in bytes: 8 or 4.
    pub value_bytes: usize,
    /// Columns of the panels in which factors are stored, about; `None`: the planner chooses.  See
    /// [`widths`].
    pub panels: Option<usize>,
    /// Threads that will run it.
    pub threads: usize,
    /// The most bytes for trees and private copies together; `None`: no limit.
    pub memory: Option<u64>,
    /// Sweeps over which building a tree is spread.
    pub sweeps: usize,
    /// Which trees are kept.
    pub trees: Trees,
    /// Which modes are merged.
    pub merging: Merging,
    /// The order in which modes are updated.
    pub updates: Vec<usize>,
}

impl PlanOptions {
    /// Returns the columns of each panel of a factor.
    pub(super) fn widths(&self) -> Vec<usize> {
        widths(self.rank, self.value_bytes, self.panels.unwrap_or(self.rank))
    }
}

/// Which modes a plan may merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merging {
    /// Those that the planner chooses; none where trees are given.
    Choose,
    /// None.
    Never,
    /// Those of these sets, each of several modes, in this order.
    Given(Vec<Vec<usize>>),
}

/// Which trees a plan keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trees {
    /// Those that the planner chooses.
    Choose,
    /// Those that the planner chooses among trees without blocks.
    ChooseUnblocked,
    /// Those that the planner chooses among trees without blocks and fused levels.
    ChoosePlain,
    /// One a kernel: plain CSF rooted at the first mode of its result, the other modes from short to long.
    Rooted,
    /// These, whatever they cost.
    Given(Vec<TreeLayout>),
}

/// The kernels of one tensor on its trees.
#[derive(Clone, Debug, Default)]
pub struct TreePlan {
    /// The trees to keep.
    pub trees: Vec<TreeLayout>,
    /// One step a kernel: for MTTKRP, by mode.
    pub steps: Vec<Step>,
    /// Bytes of the trees.
    pub tree_bytes: u64,
    /// Bytes of private copies of outputs.
    pub side_bytes: u64,
    /// Trees and exchanges that were considered.
    pub considered: usize,
    /// Seconds of a sweep as choices weigh them: blocks handicapped, the building of trees spread over the sweeps.
    pub weighed: f64,
    /// The sets of trees next to the chosen one, with one tree more, fewer or exchanged; none where trees are given.
    pub rejected: Vec<Rejected>,
}

/// One kernel of a sweep.
#[derive(Clone, Debug)]
pub struct Step {
    /// The number of the kernel: for MTTKRP, its mode.
    pub mode: usize,
    /// The tree it runs on, by position in the plan.
    pub tree: usize,
    /// What is scheduled; of factors stored in panels, the kernel for the widest.
    pub problem: Problem,
    /// The schedule with its predicted cost; of factors stored in panels, for all of them.
    pub candidate: Candidate,
    /// What the search saw.
    pub report: SearchReport,
    /// Predicted seconds on all threads, private copies included; for all panels of the factors.
    pub seconds: f64,
    /// Bytes of private copies, of all panels.
    pub side_bytes: u64,
    /// How often it runs in a sweep.
    pub runs: usize,
}

impl TreePlan {
    /// Returns the predicted seconds of one sweep's kernels.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.runs as f64 * step.seconds).sum()
    }
}

impl fmt::Display for TreePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, bytes, weighed) = (self.trees.len(), self.tree_bytes, self.weighed);
        writeln!(
            f,
            "trees: {count} ({bytes} bytes), compared at {weighed:.2e} s a sweep with building"
        )?;
        for (at, tree) in self.trees.iter().enumerate() {
            writeln!(f, "  tree {}: modes {tree}", at + 1)?;
        }
        self.rejected.iter().try_for_each(|other| writeln!(f, "  {other}"))?;
        for step in &self.steps {
            let (mode, tree) = (step.mode + 1, step.tree + 1);
            let runs = if step.runs == 1 { String::new() } else { format!(", {} runs", step.runs) };
            writeln!(f, "mode {mode} on tree {tree}{runs}: {}", step.problem.expr)?;
            for line in step.candidate.schedule.text(&step.problem.expr).lines() {
                writeln!(f, "    {line}")?;
            }
            writeln!(f, "    cost     {}", step.candidate.cost)?;
            let side = step.side_bytes;
            writeln!(f, "    predicted {:.2e} s, private copies {side} B", step.seconds)?;
            writeln!(f, "    search   {}", step.report)?;
        }
        Ok(())
    }
}

/// Plans the MTTKRPs of a tensor of `extents` whose pattern is `pattern` (counted over
/// [`kernels::mode_index`]), of which that of each mode runs as often as `runs` says.
pub(super) fn plan_mttkrps(
    (extents, pattern): (&[u64], &Pattern),
    runs: &[usize],
    options: &PlanOptions,
    machine: &Machine,
) -> Result<TreePlan, CoreError> {
    let problem = |mode| {
        let expr = kernels::mttkrp(extents.len(), mode);
        let by_index = extents_of(extents, options.widths()[0]);
        posed(expr, by_index, pattern.clone(), options.value_bytes)
    };
    let problems: Vec<Problem> = (0..extents.len()).map(problem).collect();
    let row = padded(options.widths()[0], options.value_bytes) * options.value_bytes;
    let blocked = match options.trees {
        Trees::Choose => blocked_trees(extents, pattern, row as u64, machine)
            .into_iter()
            .chain(ranged_trees(extents, pattern, (row as u64, options.threads), machine))
            .collect(),
        _ => Vec::new(),
    };
    plan_among(extents, (&problems, runs), blocked, options, machine)
}

/// Poses a kernel of a solver: operand 0 of `expr` is the tensor, with the pattern `pattern` over its
/// indices; the other operands belong to the solver and are stored as the expression names them; the
/// result is dense.  Planning chooses how the tensor is stored.
pub fn posed(expr: Expr, extents: Extents, pattern: Pattern, value_bytes: usize) -> Problem {
    let levels = expr.inputs[0].indices.clone();
    let sparse = SparseOperand { input: 0, levels, tail: 1, pattern };
    let mut problem = Problem::new(expr, extents, sparse);
    // Of a vector the result has all indices, and is a matrix all the same.
    problem.output = OutputForm::Dense;
    problem.packing = Packing::Named;
    problem.value_bytes = value_bytes;
    problem
}

/// Plans the kernels of `problems`, each run once a sweep, over one tensor of `extents`.
///
/// Operand 0 of each problem is the tensor, its modes called by [`kernels::mode_index`]; how the
/// problem stores it does not matter.  Time: a search a kernel and candidate tree, in parallel.
///
/// # Errors
///
/// [`CoreError::Memory`] if not even one tree keeps the limit; [`CoreError::NoSchedule`] if a
/// kernel has none; [`CoreError::Internal`] without a problem, or with one that has no sparse
/// operand.
pub fn plan_kernels(
    extents: &[u64],
    problems: &[Problem],
    options: &PlanOptions,
    machine: &Machine,
) -> Result<TreePlan, CoreError> {
    plan_runs(extents, (problems, &vec![1; problems.len()]), options, machine)
}

/// Plans kernels as [`plan_kernels`] does, each run as often as `runs` says.
pub(super) fn plan_runs(
    extents: &[u64],
    kernels: (&[Problem], &[usize]),
    options: &PlanOptions,
    machine: &Machine,
) -> Result<TreePlan, CoreError> {
    plan_among(extents, kernels, Vec::new(), options, machine)
}

/// Does what [`plan_runs`] does, where trees may be chosen among `blocked` too.
fn plan_among(
    extents: &[u64],
    (problems, runs): (&[Problem], &[usize]),
    blocked: Vec<TreeLayout>,
    options: &PlanOptions,
    machine: &Machine,
) -> Result<TreePlan, CoreError> {
    // What threads have for themselves shares the last-level cache among as many as run.
    let machine = &Machine { threads: options.threads, ..machine.clone() };
    let first = problems.first().and_then(|problem| problem.sparse.first());
    let pattern = &first.ok_or_else(|| CoreError::Internal("no kernel to plan".into()))?.pattern;
    let trees = match &options.trees {
        Trees::Choose | Trees::ChooseUnblocked => {
            let mut trees: Vec<_> = unblocked_trees(extents, pattern).chain(blocked).collect();
            trees.sort();
            trees
        }
        Trees::ChoosePlain => {
            let mut trees: Vec<_> = unblocked_trees(extents, pattern).collect();
            trees.retain(|tree| tree.tail == 1);
            trees.sort();
            trees
        }
        Trees::Rooted => problems.iter().map(|problem| rooted(extents, problem)).collect(),
        Trees::Given(trees) => trees.clone(),
    };
    let (steps, bytes) = (Vec::new(), Vec::new());
    let mut table =
        Table { extents, problems, pattern, runs, options, machine, trees, steps, bytes };
    table.fill()?;
    let chosen = match &options.trees {
        Trees::Choose | Trees::ChooseUnblocked | Trees::ChoosePlain => table.choose()?,
        Trees::Rooted | Trees::Given(_) => table.keep(table.trees.len())?,
    };
    Ok(table.into_plan(&chosen))
}

/// Seconds to sort a list or tree of `bytes` and compress it: it is moved about eight times.
pub(super) fn building_seconds(bytes: u64, machine: &Machine) -> f64 {
    bytes as f64 * 8.0 / 64.0 * machine.stream_line
}

pub(super) fn all_modes(order: usize) -> IndexSet {
    (0..order).map(kernels::mode_index).collect()
}

pub(super) fn extents_of(extents: &[u64], rank: usize) -> Extents {
    let modes = extents.iter().enumerate().map(|(mode, &e)| (kernels::mode_index(mode), e));
    modes.chain([(kernels::rank_index(), rank as u64)]).collect()
}

/// Returns the problem of an MTTKRP for factors of `rank` columns.
pub(super) fn at_rank(problem: &Problem, rank: usize) -> Problem {
    let mut problem = problem.clone();
    problem.extents.set(kernels::rank_index(), rank as u64);
    problem
}

/// Every candidate order, plain and with the last two levels fused.
fn unblocked_trees(extents: &[u64], pattern: &Pattern) -> impl Iterator<Item = TreeLayout> {
    let indices: Vec<Index> = (0..extents.len()).map(kernels::mode_index).collect();
    let stored = storage_orders(&indices, &extents_of(extents, 1), pattern);
    let tree = move |stored: LevelOrder| {
        let mode_of = |index: &Index| indices.iter().position(|i| i == index);
        let modes: Option<Vec<usize>> = stored.levels.iter().map(mode_of).collect();
        let order = modes.and_then(ModeOrder::new)?;
        Some(TreeLayout::new(order, stored.tail))
    };
    stored.into_iter().filter_map(tree)
}

/// The tree of plain CSF for one kernel: its root the first mode of the result, the others from short to
/// long.
fn rooted(extents: &[u64], problem: &Problem) -> TreeLayout {
    let output = &problem.expr.output.indices;
    let place = |mode: usize| output.iter().position(|&index| index == kernels::mode_index(mode));
    let root = (0..extents.len()).min_by_key(|&mode| place(mode).unwrap_or(usize::MAX));
    TreeLayout::new(ModeOrder::rooted(root.unwrap_or(0), extents), 1)
}

/// A kernel on blocks must be predicted to take less than this share of its seconds on whole trees:
/// predictions that are closer say nothing.
const WORTH_BLOCKS: f64 = 0.91;

/// Returns `seconds` on `tree` as choices weigh them: more on blocks.  Not more on ranges, with which there are no
/// private copies and all else is as without.
fn weighed(tree: &TreeLayout, seconds: f64) -> f64 {
    match &tree.blocks {
        Some(blocks) if blocks.ranges().is_none() => seconds / WORTH_BLOCKS,
        _ => seconds,
    }
}

/// The schedules of all kernels on all candidate orders.
struct Table<'a> {
    extents: &'a [u64],
    problems: &'a [Problem],
    pattern: &'a Pattern,
    /// By kernel.
    runs: &'a [usize],
    options: &'a PlanOptions,
    machine: &'a Machine,
    trees: Vec<TreeLayout>,
    /// By tree, then by kernel; none on blocks that were made for another result.
    steps: Vec<Vec<Option<Step>>>,
    /// By tree.
    bytes: Vec<u64>,
}

/// A set of trees with its price.
struct Choice {
    trees: Vec<usize>,
    seconds: f64,
    considered: usize,
    rejected: Vec<Rejected>,
}

impl Table<'_> {
    /// Schedules every kernel on every tree that suits it; a candidate on which one has no schedule is left out.
    fn fill(&mut self) -> Result<(), CoreError> {
        let steps = |tree: &TreeLayout| {
            (0..self.problems.len()).map(|kernel| self.step(tree, kernel)).collect()
        };
        let found: Vec<Result<Vec<Option<Step>>, CoreError>> =
            self.trees.par_iter().map(steps).collect();
        let mut refused = None;
        for (tree, steps) in std::mem::take(&mut self.trees).into_iter().zip(found) {
            match steps {
                Ok(steps) => {
                    let bytes = tree.bytes(self.extents, self.pattern, self.options.value_bytes);
                    self.bytes.push(bytes);
                    self.trees.push(tree);
                    self.steps.push(steps);
                }
                Err(error @ CoreError::NoSchedule { .. })
                    if matches!(self.options.trees, Trees::Choose | Trees::ChooseUnblocked) =>
                {
                    refused = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if self.steps.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    fn step(&self, tree: &TreeLayout, mode: usize) -> Result<Option<Step>, CoreError> {
        if self.options.trees == Trees::Choose && !tree.suits(mode) {
            return Ok(None);
        }
        let problem = tree.problem(&self.problems[mode]).ok_or_else(|| {
            CoreError::Internal(format!("nothing is known of the blocks of {tree}"))
        })?;
        let found = SCHEDULERS[0].search(&problem, self.machine)?;
        let mut candidate = found.candidates.into_iter().next().ok_or_else(|| {
            CoreError::Internal(format!("{} found nothing", SCHEDULERS[0].name()))
        })?;
        let ThreadedCost { seconds, side_bytes } = self.all_panels(&problem, &mut candidate);
        let (report, runs) = (found.report, self.runs[mode]);
        Ok(Some(Step { mode, tree: 0, problem, candidate, report, seconds, side_bytes, runs }))
    }

    /// Adds to the cost of `candidate` for `problem`, which is that of the widest panel of the factors,
    /// those of the other panels; returns what all cost on the threads.
    fn all_panels(&self, problem: &Problem, candidate: &mut Candidate) -> ThreadedCost {
        let (machine, threads) = (self.machine, self.options.threads);
        let Candidate { schedule, cost, .. } = candidate;
        let mut all = on_threads(problem, schedule, cost, machine, threads);
        for &width in &self.options.widths()[1..] {
            let problem = at_rank(problem, width);
            let narrow = estimate(&problem, schedule, machine);
            let threaded = on_threads(&problem, schedule, &narrow, machine, threads);
            all.seconds += threaded.seconds;
            all.side_bytes += threaded.side_bytes;
            *cost = cost.then(narrow);
        }
        all
    }

    /// Seconds of a sweep with `trees`, building included; `None` over the memory limit, or if one of the kernels
    /// suits none of them.
    fn price(&self, trees: &[usize]) -> Option<f64> {
        let bytes: u64 = trees.iter().map(|&tree| self.bytes[tree]).sum();
        let (placed, side, kernels) =
            self.best_steps(trees).fold((0, 0, 0.0), |(placed, side, seconds), (at, step)| {
                let weighed = step.runs as f64 * self.weighed(trees[at], step);
                (placed + 1, side + step.side_bytes, seconds + weighed)
            });
        let over = self.options.memory.is_some_and(|limit| bytes + side > limit);
        if over || placed < self.problems.len() {
            return None;
        }
        let building = building_seconds(bytes, self.machine);
        Some(kernels + building / self.options.sweeps.max(1) as f64)
    }

    /// The seconds of `step` on candidate `tree` as choices weigh them.
    fn weighed(&self, tree: usize, step: &Step) -> f64 {
        match self.options.trees {
            Trees::Choose => weighed(&self.trees[tree], step.seconds),
            _ => step.seconds,
        }
    }

    /// The best step of each kernel that suits one of `trees`, with the position of its tree there.
    fn best_steps<'a>(&'a self, trees: &'a [usize]) -> impl Iterator<Item = (usize, &'a Step)> {
        (0..self.problems.len()).filter_map(|mode| {
            let on = |(at, &tree): (usize, &usize)| Some((at, self.steps[tree][mode].as_ref()?));
            let steps = trees.iter().enumerate().filter_map(on);
            let own = self.options.trees == Trees::Rooted;
            steps.filter(|&(at, _)| !own || at == mode).min_by(|a, b| {
                let seconds = |(at, step)| self.weighed(trees[at], step);
                seconds(*a).total_cmp(&seconds(*b))
            })
        })
    }

    fn choose(&self) -> Result<Choice, CoreError> {
        let (trees, seconds, rejected) = (Vec::new(), f64::INFINITY, Vec::new());
        let mut best = Choice { trees, seconds, considered: 0, rejected };
        loop {
            let offers = self.offers(&best.trees);
            let considered = best.considered + offers.len();
            let priced = offers.into_iter().filter_map(|trees| Some((self.price(&trees)?, trees)));
            let offer = priced.min_by(|a, b| a.0.total_cmp(&b.0));
            best.considered = considered;
            match offer {
                Some((seconds, trees)) if seconds < best.seconds => {
                    best = Choice { trees, seconds, considered, rejected: Vec::new() };
                }
                _ if best.trees.is_empty() => return Err(self.too_large()),
                _ => {
                    best.rejected = self.rejected(&best.trees);
                    return Ok(best);
                }
            }
        }
    }

    /// Returns `trees` with each other tree added, and in the place of each.
    fn offers(&self, trees: &[usize]) -> Vec<Vec<usize>> {
        let mut offers = Vec::new();
        for tree in (0..self.trees.len()).filter(|tree| !trees.contains(tree)) {
            offers.push([trees, &[tree]].concat());
            offers.extend((0..trees.len()).map(|at| {
                let mut exchanged = trees.to_vec();
                exchanged[at] = tree;
                exchanged
            }));
        }
        offers
    }

    /// Returns the choices next to `chosen`, all of whose trees are of use.
    fn rejected(&self, chosen: &[usize]) -> Vec<Rejected> {
        let fewer = (0..chosen.len()).map(|at| [&chosen[..at], &chosen[at + 1..]].concat());
        let others = self.offers(chosen).into_iter().chain(fewer.filter(|trees| !trees.is_empty()));
        let priced = others.filter_map(|trees| {
            let used = |at: usize| self.best_steps(&trees).any(|(tree, _)| tree == at);
            let seconds = self.price(&trees)?;
            let names: Vec<String> = trees.iter().map(|&t| self.trees[t].to_string()).collect();
            (0..trees.len()).all(used).then(|| Rejected {
                what: names.join(", "),
                seconds,
                bytes: trees.iter().map(|&tree| self.bytes[tree]).sum(),
            })
        });
        nearest(priced)
    }

    /// Keeps the first `trees` candidates.
    fn keep(&self, trees: usize) -> Result<Choice, CoreError> {
        let trees: Vec<usize> = (0..trees).collect();
        let seconds = self.price(&trees).ok_or_else(|| self.too_large())?;
        Ok(Choice { trees, seconds, considered: 1, rejected: Vec::new() })
    }

    fn too_large(&self) -> CoreError {
        let least = self.bytes.iter().copied().min().unwrap_or(0);
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64);
        CoreError::Memory {
            what: "the smallest tree with its private copies".into(),
            need: format!("at least {}", mib(least)),
            limit: mib(self.options.memory.unwrap_or(0)),
        }
    }

    fn into_plan(self, choice: &Choice) -> TreePlan {
        let best = self.best_steps(&choice.trees);
        let steps: Vec<Step> = best.map(|(tree, step)| Step { tree, ..step.clone() }).collect();
        TreePlan {
            trees: choice.trees.iter().map(|&tree| self.trees[tree].clone()).collect(),
            tree_bytes: choice.trees.iter().map(|&tree| self.bytes[tree]).sum(),
            side_bytes: steps.iter().map(|step| step.side_bytes).sum(),
            considered: choice.considered,
            weighed: choice.seconds,
            rejected: choice.rejected.clone(),
            steps,
        }
    }
}
