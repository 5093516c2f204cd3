//! The partitions of the modes for a sweep of MTTKRPs, searched as far as the choice among them asks.
//!
//! A partition needs trees for the kernels of `Y` and for those of each merge ([`Table`]).  What it takes at least is
//! known at once, and the one that takes least is settled until it is the one that takes least and all of it has been
//! searched.

use std::collections::{BTreeMap, BTreeSet};

use decompose_formats::panels::row_bytes;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::cost::Machine;
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::kernels::mode_index;
use crate::schedule::Pattern;
use crate::sweep::blocks::{Blocks, partitions};
use crate::sweep::budget::partitions_worth;
use crate::sweep::choice::{Pick, together};
use crate::sweep::plan::{Merge, SweepPlan, joined};
use crate::sweep::rejected::{Rejected, nearest};
use crate::sweep::table::{Table, WORTH_BLOCKS};
use crate::sweep::trees::{
    Merging, PlanOptions, TreePlan, Trees, building_seconds, extents_of, mttkrps,
};

/// The most tuples, as a share of the non-zeros, that are worth a merge.
pub(super) const MOST_TUPLES: f64 = 0.5;

/// What a sweep is planned for.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) extents: &'a [u64],
    pub(super) pattern: &'a Pattern,
    pub(super) options: &'a PlanOptions,
    pub(super) machine: &'a Machine,
}

/// The partitions of the modes with what they take.
pub(super) struct Offers<'a> {
    source: Source<'a>,
    tables: BTreeMap<Part, Table<'a>>,
    offers: Vec<Offer>,
}

/// A partition of the modes.
struct Offer {
    blocks: Blocks,
    /// The kernels of `Y`, then those of each merge.
    parts: Vec<Part>,
    /// Seconds to merge modes, spread over the sweeps.
    merging: f64,
    /// Bytes of the matrices of its merges.
    matrices: u64,
}

/// What a partition takes by what is known.
struct Taken {
    at: usize,
    /// Seconds of a sweep, building included.
    seconds: f64,
    /// The trees of those of its parts of which there is a table.
    picks: Vec<(Part, Pick)>,
}

/// The kernels that a table is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Those of `Y`.
    Outer(Blocks),
    /// Those of the `S` of some modes, of which the product runs so often.
    Inner(Vec<usize>, usize),
}

impl<'a> Offers<'a> {
    /// Prepares to choose among the partitions that the options allow.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] for given sets that cannot be merged; those of [`Table::new`].
    pub(super) fn new(source: Source<'a>) -> Result<Offers<'a>, CoreError> {
        let partitions = source.partitions()?;
        let updates = &source.options.updates;
        let parts = |blocks: &Blocks| -> Vec<Part> {
            let merges = blocks.merged().iter().cloned().zip(blocks.runs(updates).products);
            let inner = merges.map(|(modes, products)| Part::Inner(modes, products));
            [Part::Outer(blocks.clone())].into_iter().chain(inner).collect()
        };
        let offer = |blocks: Blocks| {
            let parts = parts(&blocks);
            let matrices = blocks.merged().iter().map(|modes| source.matrix_bytes(modes)).sum();
            Offer { blocks, parts, merging: 0.0, matrices }
        };
        let offers: Vec<Offer> = partitions.into_iter().map(offer).collect();
        let mut all = Offers { source, tables: BTreeMap::new(), offers };
        all.leave_out_unworthy()?;
        let outer = all.offers.iter().map(|offer| offer.parts[0].clone());
        all.prepare(outer.collect())?;
        for offer in &mut all.offers {
            // Each merge sorts the list, which takes about what a tree does, and writes it anew.
            let list = all.tables.get(&offer.parts[0]).map_or(0, Table::least_bytes);
            offer.merging = source.spread_seconds(list * 2 * offer.blocks.merged().len() as u64);
        }
        Ok(all)
    }

    /// Leaves out partitions that take longer to plan than they can save.
    fn leave_out_unworthy(&mut self) -> Result<(), CoreError> {
        let (order, sweeps) = (self.source.extents.len(), self.source.options.sweeps);
        if self.offers.len() > 1 && partitions_worth(order, 0.0) == 0 {
            self.prepare([self.offers[0].parts[0].clone()].into())?;
            self.settle_plain(f64::INFINITY)?;
            let seconds = self.taken(0).map_or(f64::INFINITY, |plain| plain.seconds);
            let worth = partitions_worth(order, seconds * sweeps as f64);
            self.offers.truncate(worth.saturating_add(1));
        }
        Ok(())
    }

    /// Makes the tables of `parts` that are not made yet.
    fn prepare(&mut self, parts: BTreeSet<Part>) -> Result<(), CoreError> {
        let missing: Vec<Part> =
            parts.into_iter().filter(|part| !self.tables.contains_key(part)).collect();
        let table = |part: Part| Ok::<_, CoreError>((self.source.table(&part)?, part));
        let made: Vec<_> = missing.into_par_iter().map(table).collect::<Result<_, _>>()?;
        self.tables.extend(made.into_iter().map(|(table, part)| (part, table)));
        Ok(())
    }

    /// Settles until the best partition is, or is known to take no less than `below` seconds a sweep; returns whether
    /// it is settled.
    ///
    /// # Errors
    ///
    /// If nothing keeps the limit on memory, or a kernel has no schedule.
    pub(super) fn settle_below(&mut self, below: f64) -> Result<bool, CoreError> {
        let most = self.settle_plain(below)?;
        // Of partitions whose `Y` alone takes longer, no more need be known.
        let open = (0..self.offers.len()).filter_map(|at| self.taken(at));
        let open = open.filter(|taken| taken.seconds < most).map(|taken| taken.at);
        let parts: BTreeSet<Part> =
            open.flat_map(|at| self.offers[at].parts.iter().cloned()).collect();
        self.prepare(parts)?;
        loop {
            let best = self.best()?;
            if best.seconds >= below {
                return Ok(false);
            }
            if !self.settle(&best)? {
                return Ok(true);
            }
        }
    }

    /// Settles the sweep without merges, if it is among the partitions, unless it takes no less than `below` seconds;
    /// returns the less of both.
    fn settle_plain(&mut self, below: f64) -> Result<f64, CoreError> {
        if !self.offers[0].blocks.merged().is_empty() {
            return Ok(below);
        }
        while let Some(plain) = self.taken(0).filter(|plain| plain.seconds < below) {
            if !self.settle(&plain)? {
                return Ok(plain.seconds);
            }
        }
        Ok(below)
    }

    /// Returns the price of the best partition, as that of `what`: as predicted and not as weighed, if it is settled.
    ///
    /// # Errors
    ///
    /// As [`Offers::settle_below`].
    pub(super) fn priced(&mut self, what: String) -> Result<Rejected, CoreError> {
        let best = self.best()?;
        Ok(self.rejected(what, &best))
    }

    fn best(&mut self) -> Result<Taken, CoreError> {
        let taken = (0..self.offers.len()).filter_map(|at| self.taken(at));
        let best = taken.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        best.ok_or_else(|| {
            let plain = self.tables.get(&self.offers[0].parts[0]);
            plain.map_or_else(
                || CoreError::Internal("no kernel to plan".into()),
                |table| table.refusal(),
            )
        })
    }

    /// What the partition `at` takes by what is known; `None` where it does not keep the limit on memory.
    fn taken(&self, at: usize) -> Option<Taken> {
        let offer = &self.offers[at];
        let limit = match self.source.options.memory {
            Some(limit) => Some(limit.checked_sub(offer.matrices)?),
            None => None,
        };
        let parts = offer.parts.iter().filter_map(|part| Some((part, self.tables.get(part)?)));
        let picks = parts.clone().map(|(_, table)| table.picks());
        let (price, picks) = together(picks, limit).into_iter().next()?;
        let picks = parts.zip(picks).map(|((part, _), pick)| (part.clone(), pick.clone()));
        Some(Taken { at, seconds: price.seconds + offer.merging, picks: picks.collect() })
    }

    /// Searches what `taken` chose; returns whether anything of it was open.
    fn settle(&mut self, taken: &Taken) -> Result<bool, CoreError> {
        let mut open = false;
        for (part, pick) in &taken.picks {
            if let Some(table) = self.tables.get_mut(part) {
                open |= table.settle(pick)?;
            }
        }
        Ok(open)
    }

    /// Makes the plan of the best partition, which is settled.
    ///
    /// # Errors
    ///
    /// As [`Offers::settle_below`].
    pub(super) fn into_plan(mut self) -> Result<SweepPlan, CoreError> {
        let best = self.best()?;
        self.settle_plain(f64::INFINITY)?;
        let plain_seconds = self.plain_seconds();
        let others = (0..self.offers.len()).filter(|&at| at != best.at);
        let rejected = |at| Some(self.rejected(self.name(at), &self.taken(at)?));
        let rejected = nearest(others.filter_map(rejected));
        let considered = self.offers.len();
        let Offers { source, mut tables, mut offers } = self;
        let Offer { blocks, .. } = offers.swap_remove(best.at);
        let plan = |(part, pick): &(Part, Pick)| {
            let table = tables.remove(part);
            let twice = || CoreError::Internal("two parts of a sweep share a table".into());
            table.ok_or_else(twice)?.into_plan(pick)
        };
        let plans: Vec<TreePlan> = best.picks.iter().map(plan).collect::<Result<_, _>>()?;
        let mut plans = plans.into_iter();
        let kernels = plans.next().unwrap_or_default();
        let merge = |(modes, kernels): (&Vec<usize>, _)| {
            let (tuples, matrix_bytes) = (source.tuples(modes), source.matrix_bytes(modes));
            Merge { modes: modes.clone(), tuples, kernels, matrix_bytes }
        };
        let merges = blocks.merged().iter().zip(plans).map(merge).collect();
        let (panels, blocks) = (source.options.widths(), blocks.into_vec());
        Ok(SweepPlan { blocks, kernels, panels, merges, considered, rejected, plain_seconds })
    }

    /// The predicted seconds of the kernels of the sweep without merges, if that is settled.
    fn plain_seconds(&self) -> f64 {
        let plain = self.taken(0).filter(|_| self.offers[0].blocks.merged().is_empty());
        let seconds = plain.and_then(|plain| {
            let (part, pick) = plain.picks.first()?;
            Some(self.tables.get(part)?.seconds(pick))
        });
        seconds.unwrap_or(f64::INFINITY)
    }

    /// Returns what `taken` costs, as that of `what`: a bound unless it is settled.
    fn rejected(&self, what: String, taken: &Taken) -> Rejected {
        let offer = &self.offers[taken.at];
        let parts = || {
            let table = |(part, pick)| Some((self.tables.get(part)?, pick));
            taken.picks.iter().map(|(part, pick)| (part, pick)).filter_map(table)
        };
        let whole = taken.picks.len() == offer.parts.len();
        if !whole || !parts().all(|(table, pick)| table.is_settled(pick)) {
            // Only trees of the tensor itself are weighed with more than their seconds.
            let share = if offer.blocks.merged().is_empty() { WORTH_BLOCKS } else { 1.0 };
            return Rejected { what, seconds: share * taken.seconds, bytes: None };
        }
        let kernels: f64 = parts().map(|(table, pick)| table.seconds(pick)).sum();
        let bytes = parts().map(|(table, pick)| table.tree_bytes(pick)).sum();
        let seconds = kernels + self.source.spread_seconds(bytes) + offer.merging;
        Rejected { what, seconds, bytes: Some(bytes) }
    }

    /// What tells the partition `at` from others.
    fn name(&self, at: usize) -> String {
        let merged = self.offers[at].blocks.merged().iter().map(|modes| joined(modes));
        match merged.collect::<Vec<String>>().as_slice() {
            [] => "no merging".to_owned(),
            merged => format!("modes {} merged", merged.join(", ")),
        }
    }
}

impl<'a> Source<'a> {
    /// The partitions that the options allow, the one without merges first if it is among them.
    fn partitions(&self) -> Result<Vec<Blocks>, CoreError> {
        let order = self.extents.len();
        let plain = Blocks::single(order);
        match &self.options.merging {
            Merging::Given(merged) => {
                let blocks = Blocks::given(merged, order);
                Ok(vec![blocks.ok_or_else(|| wrong_merge(merged, order))?])
            }
            Merging::Choose if !matches!(self.options.trees, Trees::Given(_)) => {
                let all: Vec<usize> = (0..order).collect();
                let most = (self.tuples(&all) as f64 * MOST_TUPLES) as u64;
                let worthwhile = |block: &[usize]| self.tuples(block) <= most;
                let worthwhile = partitions(order, worthwhile, |block| self.work(block));
                Ok([plain].into_iter().chain(worthwhile).collect())
            }
            _ => Ok(vec![plain]),
        }
    }

    fn tuples(&self, modes: &[usize]) -> u64 {
        self.pattern.count(set_of(modes), &extents_of(self.extents, 1))
    }

    /// What a sweep multiplies where the modes `block` are merged, about: the entries of each kernel's tensor
    /// by their modes.
    fn work(&self, block: &[usize]) -> f64 {
        let order = self.extents.len();
        let all: Vec<usize> = (0..order).collect();
        let (entries, tuples) = (self.tuples(&all) as f64, self.tuples(block) as f64);
        let Some(blocks) = Blocks::given(&[block.to_vec()], order) else { return f64::INFINITY };
        let runs = blocks.runs(&self.options.updates);
        let outer: usize = runs.outer.iter().sum();
        let inner = block.len() + runs.products.iter().sum::<usize>();
        let outer = (outer * (order - block.len() + 1)) as f64 * entries;
        outer + (inner * (block.len() + 1)) as f64 * tuples
    }

    /// Bytes of the matrix of a merge of `modes`.
    fn matrix_bytes(&self, modes: &[usize]) -> u64 {
        self.tuples(modes) * row_bytes(&self.options.widths(), self.options.value_bytes) as u64
    }

    /// Seconds to build trees of `bytes`, spread over the sweeps.
    fn spread_seconds(&self, bytes: u64) -> f64 {
        building_seconds(bytes, self.machine) / self.options.sweeps.max(1) as f64
    }

    fn table(&self, part: &Part) -> Result<Table<'a>, CoreError> {
        match part {
            Part::Outer(blocks) => self.outer(blocks),
            Part::Inner(modes, products) => self.inner(modes, *products),
        }
    }

    /// The kernels of the `Y` of a partition; of the tensor itself without merges.
    fn outer(&self, blocks: &Blocks) -> Result<Table<'a>, CoreError> {
        let Source { extents, pattern, options, machine } = *self;
        if blocks.merged().is_empty() {
            return mttkrps((extents, pattern), &vec![1; extents.len()], options, machine);
        }
        let extent = |modes: &[usize]| match *modes {
            [mode] => extents[mode],
            _ => self.tuples(modes),
        };
        let outer: Vec<u64> = blocks.iter().map(extent).collect();
        let sets: Vec<IndexSet> = blocks.iter().map(set_of).collect();
        let pattern = renamed((extents, pattern), &sets);
        mttkrps((&outer, &pattern), &blocks.runs(&options.updates).outer, options, machine)
    }

    /// The kernels of the `S` of `modes`, of which the product runs `products` times.
    fn inner(&self, modes: &[usize], products: usize) -> Result<Table<'a>, CoreError> {
        let Source { extents, pattern, options, machine } = *self;
        let inner: Vec<u64> =
            modes.iter().map(|&mode| extents[mode]).chain([self.tuples(modes)]).collect();
        // A tuple's number says all about it.
        let blocks = modes.iter().map(|&mode| set_of(&[mode])).chain([set_of(modes)]);
        let pattern = renamed((extents, pattern), &blocks.collect::<Vec<_>>());
        let runs: Vec<usize> = modes.iter().map(|_| 1).chain([products]).collect();
        mttkrps((&inner, &pattern), &runs, options, machine)
    }
}

/// Up to this many blocks, every set of them is counted.
const ALL_COUNTS: usize = 8;

/// The indices of `modes`.
pub(super) fn set_of(modes: &[usize]) -> IndexSet {
    modes.iter().map(|&mode| mode_index(mode)).collect()
}

pub(super) fn wrong_merge(merged: &[Vec<usize>], order: usize) -> CoreError {
    let sets: Vec<String> = merged.iter().map(|modes| joined(modes)).collect();
    let why = "list sets apart from each other, of at least two modes and not of all";
    CoreError::Operand {
        operand: format!("merged modes {}", sets.join(", ")),
        why: format!("{why}, of a tensor of {order} modes"),
    }
}

/// Counts the pattern of a tensor whose modes stand for `blocks` of those of a tensor of `extents`, whose
/// pattern is `pattern`.
pub(super) fn renamed((extents, pattern): (&[u64], &Pattern), blocks: &[IndexSet]) -> Pattern {
    let extents = extents_of(extents, 1);
    let counted = |inside: &[usize]| {
        let set: IndexSet = inside.iter().copied().map(mode_index).collect();
        let modes = inside.iter().fold(IndexSet::EMPTY, |modes, &at| modes | blocks[at]);
        (set, pattern.count(modes, &extents))
    };
    let sets: BTreeMap<IndexSet, u64> = match blocks.len() {
        0..=ALL_COUNTS => (1_u64..1 << blocks.len())
            .map(|bits| {
                let inside = (0..blocks.len()).filter(|at| bits >> at & 1 == 1);
                counted(&inside.collect::<Vec<_>>())
            })
            .collect(),
        many => {
            // As many sets as are known, those of one block, and that of all.
            let known = pattern.counts().map(|(known, _)| -> Vec<usize> {
                (0..many).filter(|&at| blocks[at].is_subset(known)).collect()
            });
            let single = (0..many).map(|at| vec![at]).chain([(0..many).collect()]);
            let inside = known.chain(single).filter(|inside| !inside.is_empty());
            inside.map(|inside| counted(&inside)).collect()
        }
    };
    let single = blocks.iter().enumerate().filter(|(_, block)| block.len() == 1);
    let coverages = single.filter_map(|(at, block)| {
        Some((mode_index(at), pattern.coverage(block.iter().next()?)?.clone()))
    });
    coverages.fold(sets.into_iter().collect(), |renamed: Pattern, (index, coverage)| {
        renamed.with_coverage(index, coverage)
    })
}
