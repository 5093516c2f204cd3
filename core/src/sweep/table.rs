//! What each kernel takes on each candidate tree, as far as choices ask.
//!
//! A search of schedules for every kernel on every tree takes most of the time of planning, and hardly any of them is
//! chosen.  Bounds from below are known: of MTTKRPs one that is mostly within a few hundredths of what the
//! search finds ([`LeastSeconds`]), of other kernels a weaker one (`promising`).  So the best set of trees is chosen by
//! bounds, its kernels are searched, and so on until all that is chosen has been searched: nothing else can be better,
//! since it takes no less than its bounds.
//!
//! Above five modes the searches are counted, and where none are left ([`Budget`]) the choice is the best of what was
//! searched.
//!
//! By weak bounds many sets would be chosen one after the other.  So each kernel is first searched on all trees on which
//! its bound is less than what it takes on the best one that is known, building that included: on any other it is not worth
//! while, since it could run there instead.

mod nearest;
mod promising;

use std::sync::Arc;

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::autoschedule::{Candidate, SCHEDULERS, SearchLimits};
use crate::cost::{LeastSeconds, Machine, ThreadedCost, estimate, on_threads};
use crate::einsum::Index;
use crate::error::CoreError;
use crate::kernels;
use crate::schedule::{Pattern, Problem};
use crate::sweep::budget::Budget;
use crate::sweep::choice::{self, KernelSet, Pick, Price, picks};
use crate::sweep::layout::TreeLayout;
use crate::sweep::trees::{PlanOptions, Step, TreePlan, Trees, at_rank, building_seconds};

/// A kernel on blocks must be predicted to take less than this share of its seconds on whole trees:
/// predictions that are closer say nothing.
pub(super) const WORTH_BLOCKS: f64 = 0.91;

/// Returns `seconds` on `tree` as choices weigh them: more on blocks.  Not more on ranges, with which there are no
/// private copies and all else is as without.
fn weighed(tree: &TreeLayout, seconds: f64) -> f64 {
    match &tree.blocks {
        Some(blocks) if blocks.ranges().is_none() => seconds / WORTH_BLOCKS,
        _ => seconds,
    }
}

/// The kernels of one tensor on candidate trees.
pub(super) struct Table<'a> {
    extents: Vec<u64>,
    kernels: Kernels,
    options: &'a PlanOptions,
    machine: Machine,
    trees: Vec<TreeLayout>,
    /// By tree, then by kernel.
    entries: Vec<Vec<Entry>>,
    /// By tree: what its kernels cost, and what it costs to keep it.
    prices: Vec<choice::Candidate>,
    /// The best sets of trees by what is known.
    picks: Vec<Pick>,
    budget: Budget,
    /// The most bytes for trees and private copies together; `None`: no limit.
    memory: Option<u64>,
    /// By kernel: why it had no schedule on some tree.
    refused: Vec<Option<String>>,
}

/// What is known of a kernel on a tree.
#[derive(Clone)]
enum Entry {
    /// The tree was made for another result, or there is no schedule.
    Unsuited,
    /// It takes at least so many seconds.
    AtLeast(f64),
    /// It was searched.
    Searched(Arc<Step>),
}

/// The kernels of a sweep over one tensor.
pub(super) struct Kernels {
    /// What their steps call them.
    pub(super) numbers: Vec<usize>,
    /// What each computes, the tensor being input 0.
    pub(super) problems: Vec<Problem>,
    /// How often each runs.
    pub(super) runs: Vec<usize>,
    /// Whether they are the MTTKRPs of the modes, in their order.
    pub(super) mttkrps: bool,
}

impl Kernels {
    /// Kernels of any kind, numbered in their order.
    pub(super) fn new(problems: Vec<Problem>, runs: &[usize]) -> Kernels {
        let numbers = (0..problems.len()).collect();
        Kernels { numbers, problems, runs: runs.to_vec(), mttkrps: false }
    }
}

impl<'a> Table<'a> {
    /// Prepares to choose among `trees` for `kernels` over a tensor of `extents`.
    ///
    /// # Errors
    ///
    /// If nothing is known of the blocks of a tree, or a tree that is not to be chosen has no schedule for a kernel.
    pub(super) fn new(
        extents: &[u64],
        kernels: Kernels,
        trees: Vec<TreeLayout>,
        options: &'a PlanOptions,
        machine: &Machine,
    ) -> Result<Table<'a>, CoreError> {
        let refused = vec![None; kernels.problems.len()];
        let mut table = Table {
            extents: extents.to_vec(),
            kernels,
            options,
            machine: machine.clone(),
            trees,
            entries: Vec::new(),
            prices: Vec::new(),
            picks: Vec::new(),
            budget: Budget::new(extents.len(), refused.len(), 0.0),
            memory: options.memory,
            refused,
        };
        let (mttkrps, kernels) = (table.kernels.mttkrps, table.kernels.problems.len());
        let chosen = options.trees.are_chosen();
        let bounds = match (chosen, mttkrps) {
            (true, true) => table.bounds()?,
            (true, false) => table.weak_bounds()?,
            (false, _) => vec![vec![0.0; kernels]; table.trees.len()],
        };
        let rows = table.trees.iter().zip(bounds).enumerate();
        let entries = rows.map(|(at, (tree, bounds))| {
            let suits = |kernel: usize| match options.trees {
                Trees::Choose => tree.suits(kernel),
                Trees::Rooted => kernel == at,
                _ => true,
            };
            let entry = |(kernel, least)| {
                if suits(kernel) { Entry::AtLeast(least) } else { Entry::Unsuited }
            };
            bounds.into_iter().enumerate().map(entry).collect()
        });
        table.entries = entries.collect();
        let candidate = |tree| choice::Candidate {
            kept: table.kept(tree),
            kernels: (0..kernels).map(|kernel| table.kernel_price(tree, kernel)).collect(),
        };
        table.prices = (0..table.trees.len()).map(candidate).collect();
        table.pick();
        let least = table.picks.first().map_or(0.0, |pick| pick.price.seconds);
        let all_sweeps = least * options.sweeps as f64;
        table.budget = Budget::new(extents.len(), kernels, all_sweeps);
        if !chosen {
            let all = 0..table.trees.len();
            table.search(all.flat_map(|tree| (0..kernels).map(move |kernel| (tree, kernel))))?;
        } else if !mttkrps {
            table.search_promising()?;
        }
        Ok(table)
    }

    /// Returns the table of those `kernels`, by position, with all that is known of them, to choose within `memory`
    /// bytes; `None` if there are not so many.
    pub(super) fn of(&self, kernels: &[usize], memory: Option<u64>) -> Option<Table<'a>> {
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
            let choice::Candidate { kept, kernels: prices } = &self.prices[tree];
            choice::Candidate { kept: *kept, kernels: at(prices, kernels) }
        };
        let mut table = Table {
            extents: self.extents.clone(),
            kernels: Kernels {
                numbers: at(&self.kernels.numbers, kernels),
                problems: at(&self.kernels.problems, kernels),
                runs: at(&self.kernels.runs, kernels),
                mttkrps: false,
            },
            options: self.options,
            machine: self.machine.clone(),
            trees: at(&self.trees, &trees),
            entries: trees.iter().map(|&tree| at(&self.entries[tree], kernels)).collect(),
            prices: trees.iter().map(price).collect(),
            picks: Vec::new(),
            budget: self.budget,
            memory,
            refused: at(&self.refused, kernels),
        };
        table.pick();
        Some(table)
    }

    /// The most bytes for trees and private copies together.
    pub(super) fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// How many kernels on trees were searched.
    fn searched(&self) -> usize {
        let entries = self.entries.iter().flatten();
        entries.filter(|entry| matches!(entry, Entry::Searched(_))).count()
    }

    fn pattern(&self) -> Option<&Pattern> {
        Some(&self.kernels.problems.first()?.sparse.first()?.pattern)
    }

    /// Bounds from below for each tree and kernel, all panels of the factors together.
    fn bounds(&self) -> Result<Vec<Vec<f64>>, CoreError> {
        let modes: Vec<Index> = (0..self.extents.len()).map(kernels::mode_index).collect();
        let mut bounds = vec![vec![0.0; modes.len()]; self.trees.len()];
        let widths = self.options.widths();
        let mut distinct = widths.clone();
        distinct.dedup();
        for width in distinct {
            let panels = widths.iter().filter(|&&other| other == width).count() as f64;
            let problem = at_rank(&self.kernels.problems[0], width);
            let least = |problem| LeastSeconds::new(problem, kernels::rank_index(), &self.machine);
            let mut unblocked = least(problem.clone());
            for (tree, bounds) in self.trees.iter().zip(&mut bounds) {
                let mut blocked = match &tree.blocks {
                    Some(_) => Some(least(self.stored(tree, &problem)?)),
                    None => None,
                };
                let least = blocked.as_mut().unwrap_or(&mut unblocked);
                let least = least.on_order(&tree.levels(), tree.tail, &modes);
                bounds.iter_mut().zip(least).for_each(|(all, least)| *all += panels * least);
            }
        }
        Ok(bounds)
    }

    fn is_searched(&self, tree: usize, kernel: usize) -> bool {
        matches!(self.entries[tree][kernel], Entry::Searched(_))
    }

    /// Returns `problem` with the tensor stored as `tree` says.
    fn stored(&self, tree: &TreeLayout, problem: &Problem) -> Result<Problem, CoreError> {
        let unknown = || CoreError::Internal(format!("nothing is known of the blocks of {tree}"));
        tree.problem(problem).ok_or_else(unknown)
    }

    /// Searches those of `wanted`, a tree and a kernel each, that are not searched, and picks anew; returns whether there were
    /// any.
    ///
    /// # Errors
    ///
    /// Those of searches; but where trees are chosen, those without a schedule are left out.
    pub(super) fn search(
        &mut self,
        wanted: impl Iterator<Item = (usize, usize)>,
    ) -> Result<bool, CoreError> {
        let any = self.look_up(wanted)?;
        if any {
            self.pick();
            self.end_searches();
        }
        Ok(any)
    }

    /// Where no searches are left, leaves the choice to what was searched.
    fn end_searches(&mut self) {
        if !self.budget.is_spent() || !self.options.trees.are_chosen() {
            return;
        }
        let searched = |kernel| (0..self.trees.len()).any(|tree| self.is_searched(tree, kernel));
        let kernels = 0..self.kernels.problems.len();
        let known: Vec<usize> = kernels.filter(|&kernel| searched(kernel)).collect();
        let (open, prices) = (self.entries.clone(), self.prices.clone());
        for (entries, price) in self.entries.iter_mut().zip(&mut self.prices) {
            for &kernel in &known {
                if matches!(entries[kernel], Entry::AtLeast(_)) {
                    (entries[kernel], price.kernels[kernel]) = (Entry::Unsuited, None);
                }
            }
        }
        self.pick();
        // More trees may fit where these do not.
        if self.picks.is_empty() && self.memory.is_some() && self.budget.refill() {
            (self.entries, self.prices) = (open, prices);
            self.pick();
        }
    }

    /// Searches as [`Table::search`] does, and picks nothing.
    fn look_up(&mut self, wanted: impl Iterator<Item = (usize, usize)>) -> Result<bool, CoreError> {
        let open = |&(tree, kernel): &(usize, usize)| {
            matches!(self.entries[tree][kernel], Entry::AtLeast(_))
        };
        let wanted: Vec<(usize, usize)> = wanted.filter(open).collect();
        let found: Vec<Result<Step, CoreError>> =
            wanted.par_iter().map(|&(tree, kernel)| self.step(tree, kernel)).collect();
        self.budget.spend(wanted.len());
        for (&(tree, kernel), step) in wanted.iter().zip(found) {
            self.entries[tree][kernel] = match step {
                Ok(step) => Entry::Searched(Arc::new(step)),
                Err(CoreError::NoSchedule { why, .. }) if self.options.trees.are_chosen() => {
                    self.refused[kernel] = Some(why);
                    Entry::Unsuited
                }
                Err(error) => return Err(error),
            };
            self.prices[tree].kernels[kernel] = self.kernel_price(tree, kernel);
        }
        Ok(!wanted.is_empty())
    }

    /// Searches what `pick` chose; returns whether anything of it was open.
    pub(super) fn settle(&mut self, pick: &Pick) -> Result<bool, CoreError> {
        let chosen: Vec<(usize, usize)> = self.chosen(pick).collect();
        self.search(chosen.into_iter())
    }

    /// The trees of `pick` with each of their kernels.
    fn chosen<'b>(&self, pick: &'b Pick) -> impl Iterator<Item = (usize, usize)> + use<'b> {
        let kernels = self.kernels.problems.len();
        pick.trees.iter().flat_map(move |&(tree, set)| {
            (0..kernels).filter(move |kernel| set >> kernel & 1 == 1).map(move |k| (tree, k))
        })
    }

    /// Tells whether all of `pick` is searched.
    pub(super) fn is_settled(&self, pick: &Pick) -> bool {
        self.chosen(pick).all(|(tree, kernel)| self.is_searched(tree, kernel))
    }

    /// The steps of `pick`, by kernel, each with the place of its tree there, as far as they are searched.
    fn steps<'b>(&'b self, pick: &'b Pick) -> impl Iterator<Item = (usize, &'b Step)> + 'b {
        (0..self.kernels.problems.len()).filter_map(|kernel| {
            let at = pick.trees.iter().position(|&(_, set)| set >> kernel & 1 == 1)?;
            match &self.entries[pick.trees[at].0][kernel] {
                Entry::Searched(step) => Some((at, &**step)),
                _ => None,
            }
        })
    }

    /// Returns the predicted seconds of the kernels of `pick`, which is settled.
    pub(super) fn seconds(&self, pick: &Pick) -> f64 {
        self.steps(pick).map(|(_, step)| step.runs as f64 * step.seconds).sum()
    }

    /// Returns the bytes of the trees of `pick`.
    pub(super) fn tree_bytes(&self, pick: &Pick) -> u64 {
        pick.trees.iter().map(|&(tree, _)| self.prices[tree].kept.bytes).sum()
    }

    /// Searches until the best set of trees has been.
    ///
    /// # Errors
    ///
    /// [`CoreError::Memory`] if not even one tree keeps the limit, [`CoreError::NoSchedule`] if a kernel has none.
    pub(super) fn settle_best(&mut self) -> Result<Pick, CoreError> {
        loop {
            let best = self.picks.first().cloned().ok_or_else(|| self.refusal())?;
            if !self.settle(&best)? {
                return Ok(best);
            }
        }
    }

    /// Returns the best sets of trees by what is known, the fastest first; those that take more bytes than another
    /// only where bytes are limited.
    pub(super) fn picks(&self) -> &[Pick] {
        &self.picks
    }

    fn pick(&mut self) {
        self.picks = match self.options.trees.are_chosen() {
            true => picks(&self.prices, self.kernels.problems.len(), self.memory),
            false => self.all().into_iter().collect(),
        };
    }

    /// All trees, each kernel on the one on which it takes least; nothing beyond the limit.
    fn all(&self) -> Option<Pick> {
        let all: Vec<usize> = (0..self.trees.len()).collect();
        let price = self.price(&all)?;
        let mut trees: Vec<(usize, KernelSet)> = all.iter().map(|&tree| (tree, 0)).collect();
        for (kernel, (at, _)) in self.best_on(&all).enumerate() {
            trees[at].1 |= 1 << kernel;
        }
        Some(Pick { price, trees })
    }

    /// What it costs to keep a tree: its building, spread over the sweeps.
    fn kept(&self, tree: usize) -> Price {
        let bytes = self.pattern().map_or(0, |pattern| {
            self.trees[tree].bytes(&self.extents, pattern, self.options.value_bytes)
        });
        let sweeps = self.options.sweeps.max(1) as f64;
        Price { seconds: building_seconds(bytes, &self.machine) / sweeps, bytes }
    }

    /// What is known of the costs of a kernel on a tree, in a sweep and as choices weigh them.
    fn kernel_price(&self, tree: usize, kernel: usize) -> Option<Price> {
        let (seconds, bytes) = match &self.entries[tree][kernel] {
            Entry::Unsuited => return None,
            Entry::AtLeast(seconds) => (*seconds, 0),
            Entry::Searched(step) => (step.seconds, step.side_bytes),
        };
        let seconds = match self.options.trees {
            Trees::Choose => weighed(&self.trees[tree], seconds),
            _ => seconds,
        };
        Some(Price { seconds: self.kernels.runs[kernel] as f64 * seconds, bytes })
    }

    fn step(&self, tree: usize, kernel: usize) -> Result<Step, CoreError> {
        let problem = self.stored(&self.trees[tree], &self.kernels.problems[kernel])?;
        let limits = SearchLimits::one_of_many(problem.expr.inputs.len());
        let found = SCHEDULERS[0].search_within(&problem, &self.machine, &limits)?;
        let mut candidate = found.candidates.into_iter().next().ok_or_else(|| {
            CoreError::Internal(format!("{} found nothing", SCHEDULERS[0].name()))
        })?;
        let ThreadedCost { seconds, side_bytes } = self.all_panels(&problem, &mut candidate);
        let (report, runs) = (found.report, self.kernels.runs[kernel]);
        let mode = self.kernels.numbers[kernel];
        Ok(Step { mode, tree: 0, problem, candidate, report, seconds, side_bytes, runs })
    }

    /// Adds to the cost of `candidate` for `problem`, which is that of the widest panel of the factors,
    /// those of the other panels; returns what all cost on the threads.
    fn all_panels(&self, problem: &Problem, candidate: &mut Candidate) -> ThreadedCost {
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
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64);
        CoreError::Memory {
            what: "the smallest tree with its private copies".into(),
            need: format!("at least {}", mib(self.least_bytes())),
            limit: mib(self.memory.unwrap_or(0)),
        }
    }

    /// Returns the bytes of the smallest tree.
    pub(super) fn least_bytes(&self) -> u64 {
        self.prices.iter().map(|tree| tree.kept.bytes).min().unwrap_or(0)
    }

    /// Makes the plan of `pick`, which was settled.
    pub(super) fn into_plan(mut self, pick: &Pick) -> Result<TreePlan, CoreError> {
        let chosen: Vec<usize> = pick.trees.iter().map(|&(tree, _)| tree).collect();
        let rejected =
            if self.options.trees.are_chosen() { self.nearest(&chosen)? } else { Vec::new() };
        let steps = self.steps(pick).map(|(tree, step)| Step { tree, ..step.clone() });
        let steps: Vec<Step> = steps.collect();
        Ok(TreePlan {
            trees: chosen.iter().map(|&tree| self.trees[tree].clone()).collect(),
            tree_bytes: self.tree_bytes(pick),
            side_bytes: steps.iter().map(|step| step.side_bytes).sum(),
            considered: self.trees.len(),
            searched: self.searched(),
            weighed: pick.price.seconds,
            rejected,
            steps,
        })
    }
}

#[cfg(test)]
mod tests;
