//! Which modes to merge, so that kernels of a sweep share their work.
//!
//! Every MTTKRP of a sweep runs over all non-zeros.  Where few tuples of coordinates occur in some
//! modes - papers and their authors, senders and receivers - these modes are better taken as one:
//! with a number `n` for each tuple,
//!
//! ```text
//! X(i, j, k, l) = sum over n of S(i, j, n) Y(n, k, l),
//! P(n, r) = sum over k, l of Y(n, k, l) C(k, r) D(l, r)         the partial product,
//! A(i, r) = sum over j, n of S(i, j, n) P(n, r) B(j, r),        and the same for B(j, r),
//! K(n, r) = sum over i, j of S(i, j, n) A(i, r) B(j, r)         stands for A and B elsewhere.
//! ```
//!
//! `P` serves all merged modes, until a factor changes that it contains: a dimension tree (Phan,
//! Tichavsky, Cichocki 2013; Kaya, Ucar 2018) whose inner nodes have as many rows as tuples occur.
//! `P` and `K` are MTTKRPs of `Y` and `S`, as are the updates, so all that was built for trees and
//! kernels of one tensor ([`TreePlan`]) serves here.  The updates and their order are those of the
//! plain sweep; results differ by rounding.  Modes that follow each other in the cycle of updates share
//! one `P`; others need it made again.
//!
//! Up to five modes every partition into blocks is considered, above that one block at a time.  The
//! kernels of `Y` are planned first, those of all partitions side by side: one whose `Y` alone takes longer than
//! the sweep without merges is out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use decompose_formats::panels::row_bytes;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::cost::Machine;
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::kernels::mode_index;
use crate::schedule::{Pattern, Problem};
use crate::sweep::blocks::{Blocks, partitions};
use crate::sweep::engine::typed;
use crate::sweep::rejected::{Rejected, nearest};
use crate::sweep::trees::{
    Merging, PlanOptions, Step, TreePlan, Trees, at_rank, building_seconds, extents_of,
    plan_mttkrps,
};

/// The plan of a sweep.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// The modes of each mode of `Y`: those of the merges, last one first, then the others.
    pub blocks: Vec<Vec<usize>>,
    /// The kernels of `Y`; of the tensor itself if nothing is merged.
    pub kernels: TreePlan,
    /// The columns of each panel of the factors, the widest first; one panel of all columns if factors
    /// are stored whole.
    pub panels: Vec<usize>,
    /// The columns of the last panel that are stored apart, as the fringe of its rows: see
    /// [`SweepPlan::with_fringe`].
    pub fringe: usize,
    /// The merges, in the order in which they are made.
    pub merges: Vec<Merge>,
    /// Partitions of the modes that were considered.
    pub considered: usize,
    /// Other partitions of the modes, and the other way to store factors, as far as they were priced.
    pub rejected: Vec<Rejected>,
    /// Predicted seconds of a sweep's kernels if nothing is merged, where that was planned too.
    pub plain_seconds: f64,
}

/// Modes that are taken as one.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The modes, ascending.
    pub modes: Vec<usize>,
    /// The tuples of coordinates that occur, as far as is known.
    pub tuples: u64,
    /// The kernels of `S`: those of the merged modes, and last that of the tuples.
    pub kernels: TreePlan,
    /// Bytes of the matrix that is `P` or `K`.
    pub matrix_bytes: u64,
}

impl SweepPlan {
    /// Returns the predicted seconds of one sweep's kernels.
    pub fn seconds(&self) -> f64 {
        self.parts().map(TreePlan::seconds).sum()
    }

    /// Returns the bytes of all trees.
    pub fn tree_bytes(&self) -> u64 {
        self.parts().map(|part| part.tree_bytes).sum()
    }

    /// Returns the bytes of private copies of outputs, and of the matrices of merges.
    pub fn side_bytes(&self) -> u64 {
        let matrices: u64 = self.merges.iter().map(|merge| merge.matrix_bytes).sum();
        self.parts().map(|part| part.side_bytes).sum::<u64>() + matrices
    }

    /// Returns the kernels of `Y`, then those of each merge.
    pub fn parts(&self) -> impl Iterator<Item = &TreePlan> {
        std::iter::once(&self.kernels).chain(self.merges.iter().map(|merge| &merge.kernels))
    }

    /// Returns the merged modes of each merge, counted from 1, as `1+2`.
    pub fn merged(&self) -> Vec<String> {
        self.merges.iter().map(|merge| joined(&merge.modes)).collect()
    }

    /// Returns the columns of each panel of the factors, as `32 + 18`, unless they are stored whole.
    pub fn panels_typed(&self) -> Option<String> {
        (self.panels.len() > 1).then(|| typed(&self.panels))
    }

    /// Returns what `step` computes for each panel of the factors.
    pub fn problems(&self, step: &Step) -> impl Iterator<Item = Problem> {
        self.panels.iter().map(|&width| at_rank(&step.problem, width))
    }

    /// Returns every step with a name for what it computes.
    pub fn steps(&self) -> impl Iterator<Item = (String, &Step)> {
        let outer = self.blocks.iter().zip(&self.kernels.steps).map(|(block, step)| {
            let name = match block.as_slice() {
                [mode] => format!("mode {}", mode + 1),
                modes => format!("partial of modes {}", joined(modes)),
            };
            (name, step)
        });
        let inner = self.merges.iter().flat_map(|merge| {
            let one = |mode: &usize| format!("mode {}", mode + 1);
            let all = format!("product of modes {}", joined(&merge.modes));
            merge.modes.iter().map(one).chain([all]).zip(&merge.kernels.steps)
        });
        outer.chain(inner)
    }
}

pub(super) fn set_of(modes: &[usize]) -> IndexSet {
    modes.iter().map(|&mode| mode_index(mode)).collect()
}

/// Writes modes counted from 1, joined by `+`.
pub(super) fn joined(modes: &[usize]) -> String {
    let words: Vec<String> = modes.iter().map(|mode| (mode + 1).to_string()).collect();
    words.join("+")
}

impl fmt::Display for SweepPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(widths) = self.panels_typed() {
            let widest = self.panels[0];
            writeln!(
                f,
                "factors in panels of {widths} columns; schedules are for {widest}, costs for all:"
            )?;
        }
        if self.fringe > 0 {
            let columns = self.fringe;
            writeln!(
                f,
                "the last {columns} columns of factors are stored apart; costs are for whole rows:"
            )?;
        }
        if !self.merges.is_empty() {
            let blocks: Vec<String> = self.blocks.iter().map(|modes| joined(modes)).collect();
            writeln!(f, "over the modes {}:", blocks.join(", "))?;
        }
        write!(f, "{}", self.kernels)?;
        for merge in &self.merges {
            let (modes, tuples) = (joined(&merge.modes), merge.tuples);
            let bytes = merge.matrix_bytes;
            writeln!(
                f,
                "merged modes {modes}: {tuples} tuples, a matrix of {bytes} bytes; the tuples are mode {}:",
                merge.modes.len() + 1
            )?;
            write!(f, "{}", merge.kernels)?;
        }
        let (seconds, plain) = (self.seconds(), self.plain_seconds);
        write!(f, "sweep: predicted {seconds:.2e} s")?;
        if !self.merges.is_empty() && plain.is_finite() {
            write!(f, ", without merging {plain:.2e} s")?;
        }
        write!(f, "; {} partitions of the modes considered", self.considered)?;
        self.rejected.iter().try_for_each(|other| write!(f, "\n  {other}"))
    }
}

/// Plans a sweep of MTTKRPs over a tensor of `extents` whose pattern
/// is `pattern` (counted over [`mode_index`]).
///
/// # Errors
///
/// [`CoreError::Memory`] if not even one tree keeps the limit; [`CoreError::NoSchedule`] if a
/// kernel has none.
pub fn plan(
    extents: &[u64],
    pattern: &Pattern,
    options: &PlanOptions,
    machine: &Machine,
) -> Result<SweepPlan, CoreError> {
    let planned = |columns| {
        let options = PlanOptions { panels: Some(columns), ..options.clone() };
        plan_stored(&Planner { extents, pattern, options: &options, machine })
    };
    if let Some(columns) = options.panels {
        return planned(columns);
    }
    let narrow = panel_columns(options.rank, options.value_bytes);
    if narrow == options.rank {
        return planned(options.rank);
    }
    match rayon::join(|| planned(options.rank), || planned(narrow)) {
        (Ok(whole), Ok(panels)) => {
            let planner = Planner { extents, pattern, options, machine };
            let better = planner.price(&panels) < WORTH_PANELS * planner.price(&whole);
            let (mut taken, other) = if better { (panels, whole) } else { (whole, panels) };
            let stored = other.panels_typed().map(|widths| format!("panels of {widths} columns"));
            let what = format!("factors in {}", stored.as_deref().unwrap_or("whole rows"));
            taken.rejected.push(planner.rejected(what, &other));
            Ok(taken)
        }
        (Err(_), Ok(panels)) => Ok(panels),
        (whole, Err(_)) => whole,
    }
}

/// Bytes of a row of a panel: those that a gather brings in little more time than a single line, and that
/// fill the registers of a kernel.
const PANEL_BYTES: usize = 256;

/// Panels must be predicted to take less than this share of the seconds with whole factors: predictions
/// that are closer say nothing.
const WORTH_PANELS: f64 = 0.83;

/// Returns about how many columns a panel has where factors of `rank` columns of `value_bytes` bytes are
/// stored in panels; `rank` where they never are.
pub fn panel_columns(rank: usize, value_bytes: usize) -> usize {
    rank.min(PANEL_BYTES / value_bytes)
}

/// Plans a sweep over factors that are stored as the options say.
fn plan_stored(planner: &Planner<'_>) -> Result<SweepPlan, CoreError> {
    let &Planner { extents, pattern, options, machine } = planner;
    let order = extents.len();
    if let Merging::Given(merged) = &options.merging {
        let blocks = Blocks::given(merged, order).ok_or_else(|| wrong_merge(merged, order))?;
        let (kernels, products) = planner.outer(&blocks)?;
        let merges = blocks.merged().iter().zip(&products);
        let merges = merges.map(|(modes, &products)| planner.inner(modes, products));
        let merges = merges.collect::<Result<_, _>>()?;
        return Ok(planner.assemble(blocks, kernels, merges));
    }
    let choose = options.merging == Merging::Choose && !matches!(options.trees, Trees::Given(_));
    let partitions = if choose { planner.worthwhile() } else { Vec::new() };
    let considered = partitions.len() + 1;
    let (plain, outer) = rayon::join(
        || plan_mttkrps((extents, pattern), &vec![1; order], options, machine),
        || planner.outers(partitions),
    );
    // Where the plain plan needs too much memory, any other is better.
    let plain_seconds = plain.as_ref().map_or(f64::INFINITY, TreePlan::seconds);
    let weighed = plain.as_ref().map_or(f64::INFINITY, |plan| plan.weighed);
    let (merged, mut rejected) = planner.merged(outer, weighed);
    let best = match (merged, plain) {
        (Some(best), Ok(plain)) => {
            let what = "no merging".to_owned();
            rejected.push(Rejected { what, seconds: weighed, bytes: plain.tree_bytes });
            best
        }
        (Some(best), Err(_)) => best,
        (None, plain) => planner.assemble(Blocks::single(order), plain?, Vec::new()),
    };
    let rejected = nearest(rejected);
    Ok(SweepPlan { considered, plain_seconds, rejected, ..best })
}

pub(super) fn wrong_merge(merged: &[Vec<usize>], order: usize) -> CoreError {
    let sets: Vec<String> = merged.iter().map(|modes| joined(modes)).collect();
    let why = "list sets apart from each other, of at least two modes and not of all";
    CoreError::Operand {
        operand: format!("merged modes {}", sets.join(", ")),
        why: format!("{why}, of a tensor of {order} modes"),
    }
}

struct Planner<'a> {
    extents: &'a [u64],
    pattern: &'a Pattern,
    options: &'a PlanOptions,
    machine: &'a Machine,
}

/// The kernels of `Y` of a partition.
struct Outer {
    blocks: Blocks,
    kernels: TreePlan,
    /// How often the product of each merge runs.
    products: Vec<usize>,
}

/// The most tuples, as a share of the non-zeros, that are worth a merge.
pub(super) const MOST_TUPLES: f64 = 0.5;

impl Planner<'_> {
    fn tuples(&self, modes: &[usize]) -> u64 {
        self.pattern.count(set_of(modes), &extents_of(self.extents, 1))
    }

    /// The partitions whose blocks have few tuples.
    fn worthwhile(&self) -> Vec<Blocks> {
        let order = self.extents.len();
        let all: Vec<usize> = (0..order).collect();
        let most = (self.tuples(&all) as f64 * MOST_TUPLES) as u64;
        partitions(order, |block| self.tuples(block) <= most)
    }

    /// The kernels of `Y` of each of `partitions` that has a plan, those that take least first.
    fn outers(&self, partitions: Vec<Blocks>) -> Vec<Outer> {
        let outer = partitions.into_par_iter().filter_map(|blocks| {
            let (kernels, products) = self.outer(&blocks).ok()?;
            Some(Outer { blocks, kernels, products })
        });
        let mut outer: Vec<Outer> = outer.collect();
        outer.sort_by(|a, b| a.kernels.seconds().total_cmp(&b.kernels.seconds()));
        outer
    }

    /// The best plan with merges that takes less than `plain` seconds a sweep, building included, and those that
    /// it was preferred to.
    fn merged(&self, outer: Vec<Outer>, plain: f64) -> (Option<SweepPlan>, Vec<Rejected>) {
        let inner = self.inners(outer.iter().take_while(|outer| outer.kernels.seconds() < plain));
        let mut best: Option<SweepPlan> = None;
        let (mut least, mut rejected) = (plain, Vec::new());
        let named = |plan: &SweepPlan| format!("modes {} merged", plan.merged().join(", "));
        for Outer { blocks, kernels, products } in outer {
            if kernels.seconds() >= least {
                break;
            }
            let merges = blocks.merged().iter().zip(&products);
            let merges = merges.map(|(modes, &products)| inner.get(&(modes.clone(), products)));
            let Some(merges) = merges.map(Option::<&Merge>::cloned).collect() else { continue };
            let plan = self.assemble(blocks, kernels, merges);
            let seconds = self.price(&plan);
            let other = if seconds < least && self.fits(&plan) {
                least = seconds;
                best.replace(plan)
            } else {
                Some(plan)
            };
            rejected.extend(other.map(|other| self.rejected(named(&other), &other)));
        }
        (best, rejected)
    }

    /// The merges of the partitions `outer` that have a plan, by their modes and how often their product runs.
    fn inners<'a>(
        &self,
        outer: impl Iterator<Item = &'a Outer>,
    ) -> BTreeMap<(Vec<usize>, usize), Merge> {
        let merges = |outer: &'a Outer| outer.blocks.merged().iter().zip(&outer.products);
        let wanted: BTreeSet<(&Vec<usize>, &usize)> = outer.flat_map(merges).collect();
        let planned = wanted.into_par_iter().filter_map(|(modes, &products)| {
            Some(((modes.clone(), products), self.inner(modes, products).ok()?))
        });
        planned.collect()
    }

    /// Returns `plan`, which `what` tells from the one that is taken, with its price.
    fn rejected(&self, what: String, plan: &SweepPlan) -> Rejected {
        Rejected { what, seconds: self.price(plan), bytes: plan.tree_bytes() }
    }

    /// Puts the kernels of `Y` and the merges together.
    fn assemble(&self, blocks: Blocks, kernels: TreePlan, merges: Vec<Merge>) -> SweepPlan {
        let (blocks, plain_seconds) = (blocks.into_vec(), f64::INFINITY);
        let (panels, rejected) = (self.options.widths(), Vec::new());
        let (fringe, considered) = (0, 1);
        SweepPlan { blocks, kernels, panels, fringe, merges, considered, rejected, plain_seconds }
    }

    fn fits(&self, plan: &SweepPlan) -> bool {
        let bytes = plan.tree_bytes() + plan.side_bytes();
        self.options.memory.is_none_or(|limit| bytes <= limit)
    }

    /// Seconds of a sweep, building included.
    fn price(&self, plan: &SweepPlan) -> f64 {
        plan.seconds() + self.spread_seconds(plan.tree_bytes()) + self.merging_seconds(plan)
    }

    /// Seconds to merge modes, spread over the sweeps: each merge sorts the list and writes it anew.
    fn merging_seconds(&self, plan: &SweepPlan) -> f64 {
        let list = plan.kernels.tree_bytes / plan.kernels.trees.len().max(1) as u64;
        self.spread_seconds(list * 2 * plan.merges.len() as u64)
    }

    /// Seconds to build trees of `bytes`, spread over the sweeps.
    fn spread_seconds(&self, bytes: u64) -> f64 {
        building_seconds(bytes, self.machine) / self.options.sweeps.max(1) as f64
    }

    /// Plans the kernels of `Y`; returns also how often the product of each merge runs.
    fn outer(&self, blocks: &Blocks) -> Result<(TreePlan, Vec<usize>), CoreError> {
        let extents = blocks.iter().map(|modes| match *modes {
            [mode] => self.extents[mode],
            _ => self.tuples(modes),
        });
        let extents: Vec<u64> = extents.collect();
        let sets: Vec<IndexSet> = blocks.iter().map(set_of).collect();
        let pattern = renamed((self.extents, self.pattern), &sets);
        let runs = blocks.runs(&self.options.updates);
        let plan = plan_mttkrps((&extents, &pattern), &runs.outer, self.options, self.machine)?;
        Ok((plan, runs.products))
    }

    /// Plans the kernels of the `S` of `modes`, of which the product runs `products` times.
    fn inner(&self, modes: &[usize], products: usize) -> Result<Merge, CoreError> {
        let tuples = self.tuples(modes);
        let extents = modes.iter().map(|&mode| self.extents[mode]).chain([tuples]);
        let extents: Vec<u64> = extents.collect();
        // A tuple's number says all about it.
        let blocks = modes.iter().map(|&mode| set_of(&[mode])).chain([set_of(modes)]);
        let pattern = renamed((self.extents, self.pattern), &blocks.collect::<Vec<_>>());
        let runs: Vec<usize> = modes.iter().map(|_| 1).chain([products]).collect();
        let kernels = plan_mttkrps((&extents, &pattern), &runs, self.options, self.machine)?;
        let row = row_bytes(&self.options.widths(), self.options.value_bytes);
        Ok(Merge { modes: modes.to_vec(), tuples, kernels, matrix_bytes: tuples * row as u64 })
    }
}

/// Counts the pattern of a tensor whose modes stand for `blocks` of those of a tensor of `extents`, whose
/// pattern is `pattern`.
pub(super) fn renamed((extents, pattern): (&[u64], &Pattern), blocks: &[IndexSet]) -> Pattern {
    let extents = extents_of(extents, 1);
    let sets = (1_u64..1 << blocks.len()).map(|bits| {
        let inside = (0..blocks.len()).filter(|at| bits >> at & 1 == 1);
        let set: IndexSet = inside.clone().map(mode_index).collect();
        let modes = inside.fold(IndexSet::EMPTY, |modes, at| modes | blocks[at]);
        (set, pattern.count(modes, &extents))
    });
    let single = blocks.iter().enumerate().filter(|(_, block)| block.len() == 1);
    let coverages = single.filter_map(|(at, block)| {
        Some((mode_index(at), pattern.coverage(block.iter().next()?)?.clone()))
    });
    coverages.fold(sets.collect(), |renamed: Pattern, (index, coverage)| {
        renamed.with_coverage(index, coverage)
    })
}
