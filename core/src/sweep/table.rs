//! What each kernel of one tensor takes on each candidate tree, and the best set of trees.
//!
//! A coarse estimate ([`prune`]) of each kernel on each tree leaves a few trees.  On these every kernel gets a price: that
//! of the schedule that follows the tree ([`along_tree`]), which needs no search.  A dynamic program selects the best set of
//! trees by these prices ([`selections`]).  The kernels of the selection are searched, their prices fall, and the selection
//! is made anew, until all of it has been searched or no searches are left ([`searches_worth`]).  A kernel that was not
//! searched keeps the schedule that follows its tree, so there is a plan at any time.

use std::sync::Arc;

use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::autoschedule::{Candidate, SearchLimits, SearchReport, along_tree, default_scheduler};
use crate::cost::{Machine, ThreadedCost, estimate, on_threads};
use crate::error::CoreError;
use crate::schedule::{Pattern, Problem};
use crate::sweep::alternatives::{Alternative, MOST, nearest};
use crate::sweep::budget::searches_worth;
use crate::sweep::layout::TreeLayout;
use crate::sweep::options::{PlanOptions, Trees};
use crate::sweep::problems::{Kernels, at_rank};
use crate::sweep::prune::{Pruned, prune};
use crate::sweep::select_trees::{
    KernelSet, Price, PricedTree, Selection, building_seconds, selections,
};
use crate::sweep::tree_plan::{Step, TreePlan};

/// A kernel on blocks must be predicted to take less than this share of its seconds on whole trees:
/// predictions that are closer say nothing.
const WORTH_BLOCKS: f64 = 0.91;

/// A kernel whose result has rows of several indices, as a TTMc, is searched on so many trees before any set of trees is
/// selected: its loops may be cut in many ways, and the schedule that follows the tree says little of the best.
const FIRST_SEARCHES: usize = 8;

/// Returns `seconds` on `tree` as choices weigh them: more on blocks.  Not more on ranges, with which there are no
/// private copies and all else is as without.
fn weighed(tree: &TreeLayout, seconds: f64) -> f64 {
    match &tree.blocks {
        Some(blocks) if blocks.ranges().is_none() => seconds / WORTH_BLOCKS,
        _ => seconds,
    }
}

/// The kernels of one tensor on candidate trees.
pub(super) struct PriceTable<'a> {
    extents: Vec<u64>,
    kernels: Kernels,
    options: &'a PlanOptions,
    machine: Machine,
    trees: Vec<TreeLayout>,
    /// By tree: the kernels that are worth a price on it.
    worth: Vec<KernelSet>,
    /// By tree, then by kernel: what was searched.
    steps: Vec<Vec<Option<Arc<Step>>>>,
    /// By tree: what its kernels cost, and what it costs to keep it.
    prices: Vec<PricedTree>,
    /// How many trees there were, before those that are not worth a price were left out.
    considered: usize,
    /// The seconds of a sweep by coarse estimates, each kernel on a tree of its own.
    coarse_seconds: f64,
    /// How many searches are left.
    searches: usize,
    /// The most bytes for trees and private copies together; `None`: no limit.
    memory: Option<u64>,
    /// By kernel: why it had no schedule on some tree.
    refused: Vec<Option<String>>,
}

impl<'a> PriceTable<'a> {
    /// Prepares to choose among `trees` for `kernels` over a tensor of `extents`; nothing is priced yet.
    ///
    /// Time: a coarse estimate for each kernel on each tree.
    ///
    /// # Errors
    ///
    /// If nothing is known of the blocks of a tree.
    pub(super) fn new(
        extents: &[u64],
        kernels: Kernels,
        trees: Vec<TreeLayout>,
        options: &'a PlanOptions,
        machine: &Machine,
    ) -> Result<PriceTable<'a>, CoreError> {
        let (considered, each) = (trees.len(), kernels.problems.len());
        let pattern = kernels.tensor()?.pattern.clone();
        let kept = |tree: &TreeLayout| kept(tree, extents, &pattern, options, machine);
        let pruned = match options.trees.are_chosen() {
            true => prune(trees, &kernels, options.sweeps, machine, kept)?,
            false => {
                let every = trees.into_iter().map(|tree| (tree, KernelSet::MAX));
                Pruned { trees: every.collect(), seconds: 0.0 }
            }
        };
        let (trees, worth): (Vec<_>, Vec<_>) = pruned.trees.into_iter().unzip();
        let unknown = |tree| PricedTree { kept: kept(tree), kernels: vec![None; each] };
        Ok(PriceTable {
            extents: extents.to_vec(),
            options,
            machine: machine.clone(),
            steps: vec![vec![None; each]; trees.len()],
            prices: trees.iter().map(unknown).collect(),
            trees,
            worth,
            considered,
            coarse_seconds: pruned.seconds,
            searches: usize::MAX,
            memory: options.memory,
            refused: vec![None; each],
            kernels,
        })
    }

    /// The seconds of a sweep as far as a coarse estimate tells them, each kernel on a tree of its own.
    pub(super) fn coarse_seconds(&self) -> f64 {
        self.coarse_seconds
    }

    /// Prices each kernel on each tree that is left, in parallel; trees that are not to be chosen are searched.
    ///
    /// # Errors
    ///
    /// If a tree that is not to be chosen has no schedule for a kernel.
    pub(super) fn priced(mut self) -> Result<PriceTable<'a>, CoreError> {
        let (count, each) = (self.trees.len(), self.kernels.problems.len());
        let all = (0..count).flat_map(|tree| (0..each).map(move |kernel| (tree, kernel)));
        if !self.options.trees.are_chosen() {
            let rooted = self.options.trees == Trees::Rooted;
            self.search(all.filter(|(tree, kernel)| !rooted || tree == kernel).collect())?;
            return Ok(self);
        }
        let worth = |&(tree, kernel): &(usize, usize)| self.worth[tree] >> kernel & 1 == 1;
        let all: Vec<(usize, usize)> = all.filter(worth).collect();
        let priced = all.par_iter().with_min_len(8);
        let priced = priced.map(|&(tree, kernel)| self.price_along(tree, kernel));
        let priced = priced.collect::<Result<Vec<_>, CoreError>>()?;
        for (price, &(tree, kernel)) in priced.into_iter().zip(&all) {
            self.prices[tree].kernels[kernel] = price;
        }
        let least = self.best().map_or(0.0, |selection| selection.price.seconds);
        let seconds = least * self.options.sweeps as f64;
        self.searches = searches_worth(self.extents.len(), each, seconds);
        self.search_first()?;
        Ok(self)
    }

    /// Returns the table of those `kernels`, by position, with all that is known of them, to select within `memory`
    /// bytes; `None` if there are not so many.
    pub(super) fn of(&self, kernels: &[usize], memory: Option<u64>) -> Option<PriceTable<'a>> {
        if kernels.iter().any(|&kernel| kernel >= self.kernels.problems.len()) {
            return None;
        }
        let trees: Vec<usize> = match self.options.trees {
            Trees::Rooted => kernels.to_vec(),
            _ => (0..self.trees.len()).collect(),
        };
        fn at<T: Clone>(all: &[T], chosen: &[usize]) -> Vec<T> {
            chosen.iter().map(|&at| all[at].clone()).collect()
        }
        let price = |&tree: &usize| {
            let PricedTree { kept, kernels: all } = &self.prices[tree];
            PricedTree { kept: *kept, kernels: at(all, kernels) }
        };
        Some(PriceTable {
            extents: self.extents.clone(),
            kernels: Kernels {
                numbers: at(&self.kernels.numbers, kernels),
                problems: at(&self.kernels.problems, kernels),
                runs: at(&self.kernels.runs, kernels),
            },
            options: self.options,
            machine: self.machine.clone(),
            trees: at(&self.trees, &trees),
            worth: at(&self.worth, &trees),
            steps: trees.iter().map(|&tree| at(&self.steps[tree], kernels)).collect(),
            prices: trees.iter().map(price).collect(),
            considered: self.considered,
            coarse_seconds: self.coarse_seconds,
            searches: self.searches,
            memory,
            refused: at(&self.refused, kernels),
        })
    }

    /// The most bytes for trees and private copies together.
    pub(super) fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Returns the bytes of the smallest tree.
    pub(super) fn least_bytes(&self) -> u64 {
        self.prices.iter().map(|tree| tree.kept.bytes).min().unwrap_or(0)
    }

    /// Searches each kernel whose price says little of it on the few trees on which it takes least.
    ///
    /// # Errors
    ///
    /// Those of searches, but for kernels without a schedule.
    fn search_first(&mut self) -> Result<(), CoreError> {
        let first = |kernel: usize| {
            let trees = self.prices.iter().enumerate();
            let known = trees.filter_map(|(at, tree)| Some((tree.kernels[kernel]?.seconds, at)));
            let mut known: Vec<(f64, usize)> = known.collect();
            known.sort_by(|a, b| a.0.total_cmp(&b.0));
            let few = known.into_iter().take(FIRST_SEARCHES).enumerate();
            few.map(move |(place, (_, tree))| (place, kernel, tree))
        };
        let several = |problem: &Problem| (problem.expr.all() - problem.sparse_indices()).len() > 1;
        let kernels = self.kernels.problems.iter().enumerate();
        let kernels = kernels.filter(|(_, problem)| several(problem)).map(|(kernel, _)| kernel);
        // Where few searches are left, every kernel has its share.
        let mut wanted: Vec<_> = kernels.flat_map(first).collect();
        wanted.sort_unstable();
        self.search(wanted.into_iter().map(|(_, kernel, tree)| (tree, kernel)).collect())?;
        Ok(())
    }

    /// Selects trees, and searches the kernels on them, until nothing of the selection is left to search.
    ///
    /// # Errors
    ///
    /// [`CoreError::Memory`] if not even one tree keeps the limit, [`CoreError::NoSchedule`] if a kernel has none.
    pub(super) fn select_best(&mut self) -> Result<Selection, CoreError> {
        loop {
            let best = self.best().ok_or_else(|| self.refusal())?;
            if !self.search_selected(&best)? {
                return Ok(best);
            }
        }
    }

    /// Searches the kernels of `selection` as far as searches are left; returns whether there were any.
    ///
    /// # Errors
    ///
    /// Those of searches, but for kernels without a schedule.
    pub(super) fn search_selected(&mut self, selection: &Selection) -> Result<bool, CoreError> {
        let selected = self.selected(selection).collect();
        self.search(selected)
    }

    /// Returns the best sets of trees by what is known, the fastest first; those that take more bytes than another
    /// only where bytes are limited.
    pub(super) fn selections(&self) -> Vec<Selection> {
        match self.options.trees.are_chosen() {
            true => selections(&self.prices, self.kernels.problems.len(), self.memory),
            false => self.all().into_iter().collect(),
        }
    }

    fn best(&self) -> Option<Selection> {
        self.selections().into_iter().next()
    }

    /// All trees, each kernel on the one on which it takes least; nothing beyond the limit.
    fn all(&self) -> Option<Selection> {
        let mut trees: Vec<(usize, KernelSet)> = (0..self.trees.len()).map(|at| (at, 0)).collect();
        let mut price =
            self.prices.iter().fold(Price::default(), |price, tree| price.and(tree.kept));
        for kernel in 0..self.kernels.problems.len() {
            let on = self.prices.iter().enumerate();
            let on = on.filter_map(|(at, tree)| Some((at, tree.kernels[kernel]?)));
            let (at, own) = on.min_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds))?;
            trees[at].1 |= 1 << kernel;
            price = price.and(own);
        }
        let over = self.memory.is_some_and(|limit| price.bytes > limit);
        (!over).then_some(Selection { price, trees })
    }

    /// The trees of `selection` with each of their kernels.
    fn selected<'b>(
        &self,
        selection: &'b Selection,
    ) -> impl Iterator<Item = (usize, usize)> + use<'b> {
        let kernels = self.kernels.problems.len();
        selection.trees.iter().flat_map(move |&(tree, set)| {
            kernels_in(set, kernels).map(move |kernel| (tree, kernel))
        })
    }

    /// Searches those of `wanted`, a tree and a kernel each, that are not searched, as far as searches are left; returns
    /// whether there were any.
    fn search(&mut self, mut wanted: Vec<(usize, usize)>) -> Result<bool, CoreError> {
        wanted.retain(|&(tree, kernel)| self.steps[tree][kernel].is_none());
        wanted.truncate(self.searches);
        self.searches -= wanted.len();
        let found: Vec<Result<Step, CoreError>> =
            wanted.par_iter().map(|&(tree, kernel)| self.searched_step(tree, kernel)).collect();
        for (&(tree, kernel), step) in wanted.iter().zip(found) {
            self.prices[tree].kernels[kernel] = match step {
                Ok(step) => {
                    let price = self.price(
                        tree,
                        kernel,
                        &ThreadedCost { seconds: step.seconds, side_bytes: step.side_bytes },
                    );
                    self.steps[tree][kernel] = Some(Arc::new(step));
                    Some(price)
                }
                Err(CoreError::NoSchedule { why, .. }) if self.options.trees.are_chosen() => {
                    self.refused[kernel] = Some(why);
                    None
                }
                Err(error) => return Err(error),
            };
        }
        Ok(!wanted.is_empty())
    }

    /// What a kernel on a tree costs in a sweep, as choices weigh it.
    fn price(&self, tree: usize, kernel: usize, cost: &ThreadedCost) -> Price {
        let &ThreadedCost { seconds, side_bytes: bytes } = cost;
        let seconds = match self.options.trees {
            Trees::Choose => weighed(&self.trees[tree], seconds),
            _ => seconds,
        };
        Price { seconds: self.kernels.runs[kernel] as f64 * seconds, bytes }
    }

    /// The price of a kernel by the schedule that follows the tree; `None` where the tree was made for another result.
    fn price_along(&self, tree: usize, kernel: usize) -> Result<Option<Price>, CoreError> {
        if self.options.trees == Trees::Choose && !self.trees[tree].suits(kernel) {
            return Ok(None);
        }
        let problem = self.trees[tree].problem(&self.kernels.problems[kernel])?;
        let Some(mut along) = along_tree(&problem, &self.machine) else { return Ok(None) };
        let cost = self.cost_of_all(&problem, &mut along);
        Ok(Some(self.price(tree, kernel, &cost)))
    }

    fn searched_step(&self, tree: usize, kernel: usize) -> Result<Step, CoreError> {
        let problem = self.trees[tree].problem(&self.kernels.problems[kernel])?;
        let limits = SearchLimits::one_of_many(problem.expr.inputs.len());
        let found = default_scheduler().search_within(&problem, &self.machine, &limits)?;
        let first = found.candidates.into_iter().next();
        let none = || CoreError::Internal(format!("{} found nothing", default_scheduler().name()));
        Ok(self.step(kernel, problem, first.ok_or_else(none)?, Some(found.report)))
    }

    /// The step of a kernel with the schedule that follows the tree.
    fn step_along(&self, tree: usize, kernel: usize) -> Result<Step, CoreError> {
        let problem = self.trees[tree].problem(&self.kernels.problems[kernel])?;
        let along = along_tree(&problem, &self.machine);
        let along =
            along.ok_or_else(|| CoreError::Internal("a price without a schedule".into()))?;
        Ok(self.step(kernel, problem, along, None))
    }

    fn step(
        &self,
        kernel: usize,
        problem: Problem,
        mut candidate: Candidate,
        report: Option<SearchReport>,
    ) -> Step {
        let ThreadedCost { seconds, side_bytes } = self.cost_of_all(&problem, &mut candidate);
        let (mode, runs) = (self.kernels.numbers[kernel], self.kernels.runs[kernel]);
        Step { mode, tree: 0, problem, candidate, report, seconds, side_bytes, runs }
    }

    /// Adds to the cost of `candidate` for `problem`, which has the most columns, those of the other groups of columns
    /// ([`PlanOptions::widths`]); returns what all cost on the threads.
    fn cost_of_all(&self, problem: &Problem, candidate: &mut Candidate) -> ThreadedCost {
        let (machine, threads) = (&self.machine, self.options.threads);
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

    /// Says why there is no plan.
    pub(super) fn refusal(&self) -> CoreError {
        let none = |kernel: &usize| self.prices.iter().all(|tree| tree.kernels[*kernel].is_none());
        let mut impossible = (0..self.kernels.problems.len()).filter(none);
        if let Some((kernel, why)) =
            impossible.find_map(|kernel| Some((kernel, self.refused[kernel].clone()?)))
        {
            let expr = self.kernels.problems[kernel].expr.to_string();
            return CoreError::NoSchedule { expr, why };
        }
        let Some(limit) = self.memory else {
            return CoreError::Internal("no set of trees, and memory is not limited".into());
        };
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64);
        CoreError::Memory {
            what: "the smallest tree with its private copies".into(),
            need: format!("at least {}", mib(self.least_bytes())),
            limit: mib(limit),
        }
    }

    /// Makes the plan of `selection`.
    ///
    /// # Errors
    ///
    /// Never, for a selection of this table.
    pub(super) fn plan(&self, selection: &Selection) -> Result<TreePlan, CoreError> {
        let mut steps = Vec::with_capacity(self.kernels.problems.len());
        for (place, &(tree, set)) in selection.trees.iter().enumerate() {
            for kernel in kernels_in(set, self.kernels.problems.len()) {
                let step = match &self.steps[tree][kernel] {
                    Some(step) => Step::clone(step),
                    None => self.step_along(tree, kernel)?,
                };
                steps.push((kernel, Step { tree: place, ..step }));
            }
        }
        steps.sort_by_key(|&(kernel, _)| kernel);
        let steps: Vec<Step> = steps.into_iter().map(|(_, step)| step).collect();
        Ok(TreePlan {
            trees: selection.trees.iter().map(|&(tree, _)| self.trees[tree].clone()).collect(),
            tree_bytes: self.tree_bytes(selection),
            side_bytes: steps.iter().map(|step| step.side_bytes).sum(),
            considered: self.considered,
            searched: self.steps.iter().flatten().flatten().count(),
            weighed: selection.price.seconds,
            alternatives: self.alternatives(selection),
            steps,
        })
    }

    /// Returns the bytes of the trees of `selection`.
    pub(super) fn tree_bytes(&self, selection: &Selection) -> u64 {
        selection.trees.iter().map(|&(tree, _)| self.prices[tree].kept.bytes).sum()
    }

    /// The best selections without one of the trees of `selection`.
    fn alternatives(&self, selection: &Selection) -> Vec<Alternative> {
        if !self.options.trees.are_chosen() {
            return Vec::new();
        }
        let without = selection.trees.iter().take(MOST).filter_map(|&(left_out, _)| {
            let mut prices = self.prices.clone();
            prices[left_out].kernels.fill(None);
            let best = selections(&prices, self.kernels.problems.len(), self.memory);
            let best = best.into_iter().next()?;
            let names = best.trees.iter().map(|&(tree, _)| self.trees[tree].to_string());
            let what = names.collect::<Vec<_>>().join(", ");
            let bytes = self.tree_bytes(&best);
            Some(Alternative { what, seconds: best.price.seconds, bytes })
        });
        nearest(without)
    }
}

/// The kernels of a set, of so many `kernels`.
fn kernels_in(set: KernelSet, kernels: usize) -> impl Iterator<Item = usize> {
    (0..kernels).filter(move |kernel| set >> kernel & 1 == 1)
}

/// What it costs to keep `tree` of a tensor of `extents` whose pattern is `pattern`: its building, spread over the sweeps.
fn kept(
    tree: &TreeLayout,
    extents: &[u64],
    pattern: &Pattern,
    options: &PlanOptions,
    machine: &Machine,
) -> Price {
    let bytes = tree.bytes(extents, pattern, options.value_bytes);
    let sweeps = options.sweeps.max(1) as f64;
    Price { seconds: building_seconds(bytes, machine) / sweeps, bytes }
}
