//! Which modes to merge, so that TTMcs of a sweep share their work.
//!
//! As in [`plan`](crate::sweep::mttkrp_merges), few tuples of coordinates in some modes make these better taken as
//! one, with a number `n` for each tuple:
//!
//! ```text
//! X(i, j, k, l)  = sum over n of S(i, j, n) Y(n, k, l),
//! P(n, t, u)     = sum over k, l of Y(n, k, l) C(k, t) D(l, u)          the partial product,
//! Z(i, s, t, u)  = sum over j, n of S(i, j, n) B(j, s) P(n, t, u),      and the same for j.
//! ```
//!
//! `P` and `Z` are TTMcs of `Y` and of `S`, of which one factor has two columns' indices: trees, kernels and
//! search serve unchanged.  `P` serves all merged modes until a factor changes that it contains, so modes
//! that follow each other in the cycle of updates need it once a sweep.  This is the TTMc dimension tree
//! (Kaya, Ucar, "High Performance Parallel Algorithms for the Tucker Decomposition of Sparse Tensors",
//! ICPP 2016) over the tuples that occur.
//!
//! Unlike a sweep of MTTKRPs, the modes that are *not* merged keep their kernels on the tensor itself.
//! The product that would stand for the merged factors there, `K(n, r, s) = A(i, r) B(j, s)`, has
//! `R_i R_j` columns: where a nest visits `N` tuples with `c` columns from below it costs `N R_i R_j c`, and
//! two factors in turn `N R_j c + N' R_i R_j c` for the `N' <= N` indices `i` among them.  `K` could save no
//! more than one part in `R_i`, and only if no two tuples share an `i`.
//!
//! Groups of modes do not see each other, so each is planned by itself, and the partition that saves most is taken.

use std::collections::BTreeMap;

use decompose_formats::dense::padded;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::cost::Machine;
use crate::einsum::{Access, Expr, Extents, Index, IndexSet};
use crate::error::CoreError;
use crate::kernels::{mode_index, mode_rank_index};
use crate::schedule::{Pattern, resolve};
use crate::sweep::budget::{Look, partitions_worth};
use crate::sweep::mode_groups::{ModeGroups, partitions};
use crate::sweep::options::{Merging, PlanOptions, Trees};
use crate::sweep::partitions::{MOST_TUPLES, renamed, set_of, wrong_merge};
use crate::sweep::problems::{Kernels, extents_of, posed};
use crate::sweep::select_trees::building_seconds;
use crate::sweep::tree_plan::{Step, TreePlan};
use crate::sweep::trees::plan_runs;

/// Up to this order every set of modes may be merged; above it sets of neighbours.
const ALL_SETS: usize = 5;

/// What is planned for.
#[derive(Clone, Copy, Debug)]
pub struct TtmcSweep<'a> {
    /// The extents of the tensor.
    pub extents: &'a [u64],
    /// The counts of its pattern, over [`mode_index`].
    pub pattern: &'a Pattern,
    /// The rank of every mode.
    pub ranks: &'a [usize],
    /// The modes that may be merged.
    pub modes: &'a [usize],
}

/// Modes that are taken as one for the TTMcs of a sweep.
#[derive(Clone, Debug)]
pub struct TtmcMerge {
    /// The modes, ascending.
    pub modes: Vec<usize>,
    /// The tuples of coordinates that occur, as far as is known.
    pub tuples: u64,
    /// The kernel of `Y` that makes `P`, run as often as a sweep needs.
    pub partial: TreePlan,
    /// The kernels of `S`: a step for each merged mode, by its number in the tensor.
    pub updates: TreePlan,
    /// Bytes of `P`.
    pub matrix_bytes: u64,
}

impl TtmcMerge {
    /// Returns the predicted seconds of its kernels in a sweep.
    pub fn seconds(&self) -> f64 {
        self.partial.seconds() + self.updates.seconds()
    }

    /// Returns the bytes of its trees.
    pub fn tree_bytes(&self) -> u64 {
        self.partial.tree_bytes + self.updates.tree_bytes
    }

    /// Returns the bytes of `P` and of private copies.
    pub fn side_bytes(&self) -> u64 {
        self.matrix_bytes + self.partial.side_bytes + self.updates.side_bytes
    }

    /// Returns its steps with the modes that are updated with them, the partial product first.
    pub fn steps(&self) -> impl Iterator<Item = (Option<usize>, &Step)> {
        let partial = self.partial.steps.iter().map(|step| (None, step));
        partial.chain(self.updates.steps.iter().map(|step| (Some(step.mode), step)))
    }
}

/// Plans which modes of `sweep` are merged, as [`PlanOptions::merging`] says, and how many partitions
/// were considered; `plain` are the steps of the sweep without merging, whose number is the mode.
///
/// Where the planner chooses, merges take less predicted time than the steps they replace, the building
/// of their trees included.
///
/// # Errors
///
/// [`CoreError::Merge`] for given sets that cannot be merged, [`CoreError::NoSchedule`] and
/// [`CoreError::Memory`] for those that have no plan.
pub fn plan_ttmc_merges(
    sweep: &TtmcSweep<'_>,
    plain: &[Step],
    options: &PlanOptions,
    machine: &Machine,
) -> Result<(Vec<TtmcMerge>, usize), CoreError> {
    let planner = Planner { sweep, options, machine };
    let order = sweep.extents.len();
    match &options.merging {
        Merging::Given(merged) => {
            ModeGroups::given(merged, order).ok_or_else(|| wrong_merge(merged, order))?;
            let allowed = |group: &&Vec<usize>| group.iter().all(|m| sweep.modes.contains(m));
            let merges = merged.iter().filter(allowed).map(|group| planner.merge(group));
            Ok((merges.collect::<Result<_, _>>()?, 1))
        }
        Merging::Choose if !matches!(options.trees, Trees::Given(_)) => Ok(planner.best(plain)),
        _ => Ok((Vec::new(), 1)),
    }
}

struct Planner<'a> {
    sweep: &'a TtmcSweep<'a>,
    options: &'a PlanOptions,
    machine: &'a Machine,
}

impl Planner<'_> {
    fn order(&self) -> usize {
        self.sweep.extents.len()
    }

    fn tuples(&self, modes: &[usize]) -> u64 {
        self.sweep.pattern.count(set_of(modes), &extents_of(self.sweep.extents, 1))
    }

    /// The merges that save most, and the number of partitions that were considered.
    fn best(&self, plain: &[Step]) -> (Vec<TtmcMerge>, usize) {
        let order = self.order();
        let all: Vec<usize> = (0..order).collect();
        let most = (self.tuples(&all) as f64 * MOST_TUPLES) as u64;
        let worthwhile = |group: &[usize]| {
            group.iter().all(|mode| self.sweep.modes.contains(mode))
                && (order <= ALL_SETS || self.partial_runs(group) == 1)
                && self.tuples(group) <= most
        };
        // The more updates share a product, and the fewer rows it has, the more is saved.
        let saved = |group: &[usize]| {
            let share = self.tuples(group) as f64 / self.tuples(&all).max(1) as f64;
            (group.len() - 1) as f64 - group.len() as f64 * share
        };
        let work =
            |groups: &ModeGroups| -groups.merged().iter().map(|group| saved(group)).sum::<f64>();
        let mut candidates = partitions(order, worthwhile, work);
        let seconds: f64 = plain.iter().map(|step| step.runs as f64 * step.seconds).sum();
        let seconds = seconds * self.options.sweeps as f64;
        candidates.truncate(partitions_worth(order, Look::Planned, seconds));
        let mut groups: Vec<&Vec<usize>> = candidates.iter().flat_map(|c| c.merged()).collect();
        groups.sort();
        groups.dedup();
        let planned: BTreeMap<&Vec<usize>, (f64, TtmcMerge)> = groups
            .into_par_iter()
            .filter_map(|group| Some((group, self.gain(group, plain)?)))
            .collect();
        let gain = |groups: &ModeGroups| -> Option<f64> {
            groups.merged().iter().map(|group| Some(planned.get(group)?.0)).sum()
        };
        let priced = candidates.iter().filter_map(|groups| Some((gain(groups)?, groups)));
        let best = priced.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, groups)| groups.merged());
        let merges = best.unwrap_or_default().iter().filter_map(|group| planned.get(group));
        (merges.map(|(_, merge)| merge.clone()).collect(), candidates.len() + 1)
    }

    /// The seconds a sweep that merging `group` saves, building included; `None` if it saves nothing.
    fn gain(&self, group: &[usize], plain: &[Step]) -> Option<(f64, TtmcMerge)> {
        let replaced = plain.iter().filter(|step| group.contains(&step.mode));
        let replaced: f64 = replaced.map(|step| step.seconds).sum();
        let (partial, stored) = self.partial(group).ok()?;
        if partial.seconds() >= replaced {
            return None;
        }
        let merge = self.with_updates(group, partial, &stored).ok()?;
        // The list is sorted and a tree is written as two lists, beside the trees themselves.
        let building = building_seconds(2 * merge.tree_bytes(), self.machine);
        let saved = replaced - merge.seconds() - building / self.options.sweeps.max(1) as f64;
        (saved > 0.0).then_some((saved, merge))
    }

    /// How often `P` is made in a sweep of updates in the order of the modes.
    fn partial_runs(&self, group: &[usize]) -> usize {
        let updates: Vec<usize> = (0..self.order()).collect();
        ModeGroups::new(vec![group.to_vec()], self.order()).runs(&updates).outer[0]
    }

    fn merge(&self, group: &[usize]) -> Result<TtmcMerge, CoreError> {
        let (partial, stored) = self.partial(group)?;
        self.with_updates(group, partial, &stored)
    }

    /// Plans the kernels of `S` for what [`Planner::partial`] returned.
    fn with_updates(
        &self,
        group: &[usize],
        partial: TreePlan,
        stored: &[usize],
    ) -> Result<TtmcMerge, CoreError> {
        let updates = self.updates(group, stored)?;
        let (modes, tuples) = (group.to_vec(), self.tuples(group));
        let (&last, others) =
            stored.split_last().ok_or_else(|| internal("a partial product without columns"))?;
        let others: u64 = others.iter().map(|&mode| self.sweep.ranks[mode] as u64).product();
        let row =
            padded(self.sweep.ranks[last], self.options.value_bytes) * self.options.value_bytes;
        let matrix_bytes = tuples.saturating_mul(others).saturating_mul(row as u64);
        Ok(TtmcMerge { modes, tuples, partial, updates, matrix_bytes })
    }

    /// Plans the kernel of `Y`; returns also the modes whose ranks are the columns of `P`, as stored.
    fn partial(&self, group: &[usize]) -> Result<(TreePlan, Vec<usize>), CoreError> {
        let order = self.order();
        let outside: Vec<usize> = (0..order).filter(|mode| !group.contains(mode)).collect();
        let extents = outside.iter().map(|&mode| self.sweep.extents[mode]);
        let extents: Vec<u64> = [self.tuples(group)].into_iter().chain(extents).collect();
        let sets = outside.iter().map(|&mode| set_of(&[mode]));
        let sets: Vec<_> = [set_of(group)].into_iter().chain(sets).collect();
        let columns: Vec<Index> =
            outside.iter().map(|&mode| mode_rank_index(order, mode)).collect();
        let tensor = access("Y", (0..extents.len()).map(mode_index));
        let factors = outside.iter().enumerate().map(|(at, &mode)| self.factor(mode, at + 1));
        let inputs = [tensor].into_iter().chain(factors).collect();
        let output = access("P", [mode_index(0)].into_iter().chain(columns.iter().copied()));
        let exprs = vec![Expr { inputs, output }];
        let plan = self.plan(&extents, &sets, exprs, vec![self.partial_runs(group)])?;
        let step =
            plan.steps.first().ok_or_else(|| internal("a partial product without a kernel"))?;
        let stored = resolve(&step.problem, &step.candidate.schedule)?.output;
        let mode_of =
            |index: &Index| outside.iter().find(|&&m| mode_rank_index(order, m) == *index);
        let stored: Vec<usize> = stored.iter().filter_map(mode_of).copied().collect();
        Ok((plan, stored))
    }

    /// Plans the kernels of `S`, which read `P` with the ranks of the modes `stored` as its columns.
    fn updates(&self, group: &[usize], stored: &[usize]) -> Result<TreePlan, CoreError> {
        let order = self.order();
        let extents = group.iter().map(|&mode| self.sweep.extents[mode]);
        let extents: Vec<u64> = extents.chain([self.tuples(group)]).collect();
        // A tuple's number says all about it.
        let sets = group.iter().map(|&mode| set_of(&[mode])).chain([set_of(group)]);
        let sets: Vec<_> = sets.collect();
        let columns = stored.iter().map(|&mode| mode_rank_index(order, mode));
        let partial = access("P", [mode_index(group.len())].into_iter().chain(columns));
        let update = |own: usize| {
            let tensor = access("S", (0..extents.len()).map(mode_index));
            let others = group.iter().enumerate().filter(|&(at, _)| at != own);
            let factors = others.map(|(at, &mode)| self.factor(mode, at));
            let inputs = [tensor].into_iter().chain(factors).chain([partial.clone()]).collect();
            let ranks = (0..order).filter(|&mode| mode != group[own]);
            let ranks = ranks.map(|mode| mode_rank_index(order, mode));
            Expr { inputs, output: access("Y", [mode_index(own)].into_iter().chain(ranks)) }
        };
        let exprs = (0..group.len()).map(update).collect();
        let mut plan = self.plan(&extents, &sets, exprs, vec![1; group.len()])?;
        plan.steps.iter_mut().for_each(|step| step.mode = group[step.mode]);
        Ok(plan)
    }

    /// The factor of `mode`, which is mode `at` of the tensor of the kernel.
    fn factor(&self, mode: usize, at: usize) -> Access {
        access(&format!("U{}", mode + 1), [mode_index(at), mode_rank_index(self.order(), mode)])
    }

    /// Plans kernels over a tensor whose modes stand for `sets` of the modes of this one.
    fn plan(
        &self,
        extents: &[u64],
        sets: &[IndexSet],
        exprs: Vec<Expr>,
        runs: Vec<usize>,
    ) -> Result<TreePlan, CoreError> {
        let pattern = renamed(self.sweep.extents, self.sweep.pattern, sets);
        let mut all: Extents =
            extents.iter().enumerate().map(|(at, &extent)| (mode_index(at), extent)).collect();
        for (mode, &rank) in self.sweep.ranks.iter().enumerate() {
            all.set(mode_rank_index(self.order(), mode), rank as u64);
        }
        let posed = |expr| posed(expr, all.clone(), pattern.clone(), self.options.value_bytes);
        let problems: Vec<_> = exprs.into_iter().map(posed).collect();
        plan_runs(extents, Kernels::new(problems, runs), self.options, self.machine)
    }
}

fn internal(what: &str) -> CoreError {
    CoreError::Internal(what.into())
}

fn access(tensor: &str, indices: impl IntoIterator<Item = Index>) -> Access {
    Access { tensor: tensor.into(), indices: indices.into_iter().collect() }
}
