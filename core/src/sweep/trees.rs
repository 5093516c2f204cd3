//! Which trees of one tensor to keep, and which kernel runs on which.
//!
//! Every mode's MTTKRP can run on a tree of any mode order: rooted at its own mode it owns its
//! rows; on another tree it scatters into private copies.  What a kernel takes on a candidate tree is predicted
//! ([`PriceTable`]), and the set of trees with the least total is selected
//! ([`selections`](crate::sweep::select_trees::selections)): kernels of a sweep, plus each tree's building spread over
//! the sweeps.
//!
//! Of up to five modes every order of the levels is a candidate; of more, [`storage_orders`] says which orders are.
//! [`plan_kernels`] plans any list of kernels of one sparse tensor.

use decompose_formats::ModeOrder;
use decompose_formats::dense::padded;

use crate::autoschedule::storage_orders;
use crate::cost::Machine;
use crate::einsum::Index;
use crate::error::CoreError;
use crate::kernels;
use crate::schedule::{Format, Pattern, Problem};
use crate::sweep::blocked::{blocked_trees, ranged_trees};
use crate::sweep::layout::TreeLayout;
use crate::sweep::options::{PlanOptions, Trees};
use crate::sweep::problems::{Kernels, extents_of, posed};
use crate::sweep::table::PriceTable;
use crate::sweep::tree_plan::TreePlan;

/// Prepares to plan the MTTKRPs of a tensor of `extents` whose pattern is `pattern` (counted over
/// [`kernels::mode_index`]), of which that of each mode runs as often as `runs` says.
pub(super) fn mttkrps<'a>(
    extents: &[u64],
    pattern: &Pattern,
    runs: &[usize],
    options: &'a PlanOptions,
    machine: &Machine,
) -> Result<PriceTable<'a>, CoreError> {
    let columns = options.widths()[0];
    let problem = |mode| {
        let expr = kernels::mttkrp(extents.len(), mode);
        posed(expr, extents_of(extents, columns), pattern.clone(), options.value_bytes)
    };
    let problems: Vec<Problem> = (0..extents.len()).map(problem).collect();
    let row = (padded(columns, options.value_bytes) * options.value_bytes) as u64;
    let kernels = Kernels::new(problems, runs.to_vec());
    let trees = candidates(extents, &kernels, options, |pattern| {
        let ranged = ranged_trees(extents, pattern, row, options.threads, machine);
        blocked_trees(extents, pattern, row, machine).into_iter().chain(ranged).collect()
    })?;
    PriceTable::new(extents, kernels, trees, options, machine)
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
    plan_runs(extents, Kernels::once(problems), options, machine)
}

/// Plans `kernels` as [`plan_kernels`] does.
pub(super) fn plan_runs(
    extents: &[u64],
    kernels: Kernels,
    options: &PlanOptions,
    machine: &Machine,
) -> Result<TreePlan, CoreError> {
    planned(searched(extents, kernels, options, machine)?)
}

/// Kernels of one sparse tensor, searched on the trees that plans may choose: for who plans several sets of them.
pub struct SearchedKernels<'a>(PriceTable<'a>);

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
        Ok(SearchedKernels(searched(extents, Kernels::once(problems), options, machine)?))
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
    kernels: Kernels,
    options: &'a PlanOptions,
    machine: &Machine,
) -> Result<PriceTable<'a>, CoreError> {
    let trees = candidates(extents, &kernels, options, |_| Vec::new())?;
    PriceTable::new(extents, kernels, trees, options, &options.on_threads(machine))?.priced()
}

fn planned(mut table: PriceTable<'_>) -> Result<TreePlan, CoreError> {
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
    let pattern = &kernels.tensor()?.pattern;
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

/// Every candidate order, plain and with the last two levels fused.
pub(super) fn unblocked_trees(
    extents: &[u64],
    pattern: &Pattern,
) -> impl Iterator<Item = TreeLayout> + use<> {
    let indices: Vec<Index> = (0..extents.len()).map(kernels::mode_index).collect();
    let stored = storage_orders(&indices, &extents_of(extents, 1), pattern);
    let tree = move |stored: Format| {
        let mode_of = |index: &Index| indices.iter().position(|i| i == index);
        let modes: Option<Vec<usize>> = stored.levels().iter().map(mode_of).collect();
        let order = modes.and_then(ModeOrder::new)?;
        Some(TreeLayout::new(order, stored.fused()))
    };
    stored.into_iter().filter_map(tree)
}

/// The tree of plain CSF for one kernel: its root the first mode of the result, the others from short to
/// long.
fn rooted(extents: &[u64], problem: &Problem) -> TreeLayout {
    let output = &problem.expr.output.indices;
    let place = |mode: usize| output.iter().position(|&index| index == kernels::mode_index(mode));
    // Modes that the result lacks come last.
    let roots = (1..extents.len()).map(|mode| (place(mode).unwrap_or(usize::MAX), mode));
    let (_, root) = roots.fold((place(0).unwrap_or(usize::MAX), 0), Ord::min);
    TreeLayout::new(ModeOrder::rooted(root, extents), 1)
}
