//! Which trees of one tensor to keep, and which kernel runs on which.
//!
//! Every mode's MTTKRP can run on a tree of any mode order: rooted at its own mode it owns its
//! rows; on another tree it scatters into private copies.  What a kernel takes on a candidate tree is predicted
//! ([`Table`]), and the set of trees with the least total is selected ([`selections`](crate::sweep::select_trees::selections)):
//! kernels of a sweep, plus each tree's building spread over the sweeps.
//!
//! Of up to five modes every order of the levels is a candidate; of more, [`storage_orders`] says which orders are.  [`plan_kernels`] plans any list of kernels of one sparse tensor.

use std::fmt;

use decompose_formats::dense::padded;
use decompose_formats::panels::widths;
use decompose_formats::{ModeOrder, counted};

use crate::autoschedule::{Candidate, LevelOrder, SearchReport, storage_orders};
use crate::cost::{LINE_BYTES, Machine};
use crate::einsum::{Expr, Extents, Index, IndexSet};
use crate::error::CoreError;
use crate::kernels;
use crate::schedule::{OutputForm, Packing, Pattern, Problem, SparseOperand};
use crate::sweep::alternatives::Alternative;
use crate::sweep::blocked::{blocked_trees, ranged_trees};
use crate::sweep::layout::TreeLayout;
use crate::sweep::table::{Kernels, Table};

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

impl Trees {
    /// Tells whether the planner chooses them, and they are not given.
    pub(super) fn are_chosen(&self) -> bool {
        !matches!(self, Trees::Rooted | Trees::Given(_))
    }
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
    /// The trees that it was chosen among.
    pub considered: usize,
    /// The kernels on trees whose schedules were searched.
    pub searched: usize,
    /// Seconds of a sweep as choices weigh them: blocks handicapped, the building of trees spread over the sweeps.
    pub weighed: f64,
    /// The best sets of trees without one of the chosen ones; none where trees are given.
    pub alternatives: Vec<Alternative>,
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
    /// What the search saw; `None` where the schedule follows the tree, without a search.
    pub report: Option<SearchReport>,
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
        let (considered, searched) = (self.considered, counted(self.searched, "kernel", "kernels"));
        writeln!(
            f,
            "trees: {count} ({bytes} bytes) of {considered}, compared at {weighed:.2e} s a sweep with building; \
             {searched} searched"
        )?;
        for (at, tree) in self.trees.iter().enumerate() {
            writeln!(f, "  tree {}: modes {tree}", at + 1)?;
        }
        self.alternatives.iter().try_for_each(|other| writeln!(f, "  {other}"))?;
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
            match &step.report {
                Some(report) => writeln!(f, "    search   {report}")?,
                None => writeln!(f, "    search   none: the schedule follows the tree")?,
            }
        }
        Ok(())
    }
}

/// Prepares to plan the MTTKRPs of a tensor of `extents` whose pattern is `pattern` (counted over
/// [`kernels::mode_index`]), of which that of each mode runs as often as `runs` says.
pub(super) fn mttkrps<'a>(
    (extents, pattern): (&[u64], &Pattern),
    runs: &[usize],
    options: &'a PlanOptions,
    machine: &Machine,
) -> Result<Table<'a>, CoreError> {
    let columns = options.widths()[0];
    let problem = |mode| {
        let expr = kernels::mttkrp(extents.len(), mode);
        posed(expr, extents_of(extents, columns), pattern.clone(), options.value_bytes)
    };
    let problems: Vec<Problem> = (0..extents.len()).map(problem).collect();
    let row = (padded(columns, options.value_bytes) * options.value_bytes) as u64;
    let kernels = Kernels::new(problems, runs);
    let trees = candidates(extents, &kernels, options, |pattern| {
        let ranged = ranged_trees(extents, pattern, (row, options.threads), machine);
        blocked_trees(extents, pattern, row, machine).into_iter().chain(ranged).collect()
    })?;
    Table::new(extents, kernels, trees, options, machine)
}

/// Poses a kernel of a solver: operand 0 of `expr` is the tensor, with the pattern `pattern` over its
/// indices; the other operands belong to the solver and are stored as the expression names them; the
/// result is dense.  Planning chooses how the tensor is stored.
pub fn posed(expr: Expr, extents: Extents, pattern: Pattern, value_bytes: usize) -> Problem {
    let levels = expr.inputs[0].indices.clone();
    let sparse = SparseOperand { input: 0, levels, fused: 1, pattern };
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
/// problem stores it does not matter.  Time: a price for each kernel and candidate tree, and a search of schedules for the
/// few on which it takes least, in parallel.
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
    (problems, runs): (&[Problem], &[usize]),
    options: &PlanOptions,
    machine: &Machine,
) -> Result<TreePlan, CoreError> {
    planned(searched(extents, (problems, runs), options, machine)?)
}

/// Kernels of one sparse tensor, searched on the trees that plans may choose: for who plans several sets of them.
pub struct SearchedKernels<'a>(Table<'a>);

impl<'a> SearchedKernels<'a> {
    /// Searches the kernels of `problems` as [`plan_kernels`] does.
    ///
    /// # Errors
    ///
    /// Those of [`plan_kernels`], but for the limit on memory.
    pub fn new(
        extents: &[u64],
        problems: &[Problem],
        options: &'a PlanOptions,
        machine: &Machine,
    ) -> Result<SearchedKernels<'a>, CoreError> {
        let runs = vec![1; problems.len()];
        Ok(SearchedKernels(searched(extents, (problems, &runs), options, machine)?))
    }

    /// Plans those of the kernels whose numbers are `kernels`, which their steps keep; given trees are kept all.
    ///
    /// # Errors
    ///
    /// [`CoreError::Memory`] if not even one tree keeps the limit; [`CoreError::NoSchedule`] if a kernel has none;
    /// [`CoreError::Internal`] for a number that is none.
    pub fn plan(&self, kernels: &[usize]) -> Result<TreePlan, CoreError> {
        self.plan_within(kernels, self.0.memory())
    }

    /// Returns the bytes of the smallest tree.
    pub fn least_tree_bytes(&self) -> u64 {
        self.0.least_bytes()
    }

    /// Plans as [`SearchedKernels::plan`] does, for at most `memory` bytes of trees and private copies.
    ///
    /// # Errors
    ///
    /// Those of [`SearchedKernels::plan`].
    pub fn plan_within(
        &self,
        kernels: &[usize],
        memory: Option<u64>,
    ) -> Result<TreePlan, CoreError> {
        let table = self.0.of(kernels, memory);
        planned(table.ok_or_else(|| CoreError::Internal(format!("no kernels {kernels:?}")))?)
    }
}

fn searched<'a>(
    extents: &[u64],
    (problems, runs): (&[Problem], &[usize]),
    options: &'a PlanOptions,
    machine: &Machine,
) -> Result<Table<'a>, CoreError> {
    let kernels = Kernels::new(problems.to_vec(), runs);
    let trees = candidates(extents, &kernels, options, |_| Vec::new())?;
    Table::new(extents, kernels, trees, options, &on_threads_of(options, machine))?.priced()
}

fn planned(mut table: Table<'_>) -> Result<TreePlan, CoreError> {
    let best = table.select_best()?;
    table.plan(&best)
}

/// The trees that a plan of `kernels` chooses among, or keeps; `blocked` are those of blocks that it may choose.
fn candidates(
    extents: &[u64],
    kernels: &Kernels,
    options: &PlanOptions,
    blocked: impl FnOnce(&Pattern) -> Vec<TreeLayout>,
) -> Result<Vec<TreeLayout>, CoreError> {
    let first = kernels.problems.first().and_then(|problem| problem.sparse.first());
    let pattern = &first.ok_or_else(|| CoreError::Internal("no kernel to plan".into()))?.pattern;
    let own = |problem| rooted(extents, problem);
    let unblocked = || unblocked_trees(extents, pattern);
    let mut trees: Vec<TreeLayout> = match &options.trees {
        Trees::Rooted => return Ok(kernels.problems.iter().map(own).collect()),
        Trees::Given(trees) => return Ok(trees.clone()),
        Trees::Choose => unblocked().chain(blocked(pattern)).collect(),
        Trees::ChooseUnblocked => unblocked().collect(),
        Trees::ChoosePlain => unblocked().filter(|tree| tree.fused == 1).collect(),
    };
    trees.sort();
    Ok(trees)
}

/// Returns `machine` with the threads of `options`: what threads have for themselves shares the last-level cache among
/// as many as run.
pub(super) fn on_threads_of(options: &PlanOptions, machine: &Machine) -> Machine {
    Machine { threads: options.threads, ..machine.clone() }
}

/// Seconds to sort a list or tree of `bytes` and compress it: it is moved about eight times.
pub(super) fn building_seconds(bytes: u64, machine: &Machine) -> f64 {
    bytes as f64 * 8.0 / LINE_BYTES * machine.stream_line
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
pub(super) fn unblocked_trees(
    extents: &[u64],
    pattern: &Pattern,
) -> impl Iterator<Item = TreeLayout> + use<> {
    let indices: Vec<Index> = (0..extents.len()).map(kernels::mode_index).collect();
    let stored = storage_orders(&indices, &extents_of(extents, 1), pattern);
    let tree = move |stored: LevelOrder| {
        let mode_of = |index: &Index| indices.iter().position(|i| i == index);
        let modes: Option<Vec<usize>> = stored.levels.iter().map(mode_of).collect();
        let order = modes.and_then(ModeOrder::new)?;
        Some(TreeLayout::new(order, stored.fused))
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
