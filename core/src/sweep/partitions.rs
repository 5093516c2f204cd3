//! The partitions of the modes for a sweep of MTTKRPs, and the best of them.
//!
//! A partition needs trees for the kernels of `Y` and for those of each merge ([`PriceTable`]).  Coarse estimates leave a few
//! partitions.  These are compared by prices that need no search, and the kernels of those that take least are searched.

use std::collections::{BTreeMap, BTreeSet};

use decompose_formats::panels::row_bytes;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::cost::Machine;
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::kernels::mode_index;
use crate::schedule::Pattern;
use crate::sweep::alternatives::{Alternative, nearest};
use crate::sweep::budget::{Look, partitions_worth};
use crate::sweep::mode_groups::{ModeGroups, partitions};
use crate::sweep::mttkrp_merges::{Merge, SweepPlan, joined};
use crate::sweep::options::{Merging, PlanOptions, Trees};
use crate::sweep::problems::extents_of;
use crate::sweep::select_trees::{Selection, building_seconds, together};
use crate::sweep::table::PriceTable;
use crate::sweep::tree_plan::TreePlan;
use crate::sweep::trees::mttkrps;

/// The most tuples, as a share of the non-zeros, that are worth a merge.
pub(super) const MOST_TUPLES: f64 = 0.5;

/// The most partitions that are priced beside that of single modes.
const MOST_PRICED: usize = 6;

/// Partitions that take up to so many times the least coarse estimate are priced.
const WORTH_PRICE: f64 = 1.5;

/// Partitions that take up to so many times what the best is priced at are searched.
const NEAR: f64 = 1.1;

/// The most partitions that are searched.
const MOST_SEARCHED: usize = 3;

/// What a sweep is planned for.
#[derive(Clone, Copy)]
pub(super) struct Sweep<'a> {
    pub(super) extents: &'a [u64],
    pub(super) pattern: &'a Pattern,
    pub(super) options: &'a PlanOptions,
    pub(super) machine: &'a Machine,
}

/// The partitions of the modes with what they take.
pub(super) struct Partitions<'a> {
    sweep: Sweep<'a>,
    tables: BTreeMap<Part, PriceTable<'a>>,
    /// Those that are priced.
    partitions: Vec<Partition>,
    /// How many there were, before those that are not worth a price were left out.
    considered: usize,
}

/// A partition of the modes.
struct Partition {
    groups: ModeGroups,
    /// The kernels of `Y`, then those of each merge.
    parts: Vec<Part>,
    /// Bytes of the matrices of its merges.
    matrices: u64,
}

/// The trees for a partition, by what is known.
pub(super) struct Chosen {
    at: usize,
    /// Seconds of a sweep, building and the handicap of blocks included.
    pub(super) seconds: f64,
    /// The trees of its parts, in their order.
    selections: Vec<Selection>,
}

/// The kernels that a table is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Those of `Y`.
    Outer(ModeGroups),
    /// Those of the `S` of some modes, of which the product runs so often.
    Inner(Vec<usize>, usize),
}

impl<'a> Partitions<'a> {
    /// Prices the partitions that the options allow.
    ///
    /// # Errors
    ///
    /// [`CoreError::Merge`] for given sets that cannot be merged; those of [`PriceTable::new`].
    pub(super) fn new(sweep: Sweep<'a>) -> Result<Partitions<'a>, CoreError> {
        let mut all = sweep.partitions()?;
        let first = sweep.partition(all.remove(0));
        let tables =
            first.parts.iter().map(|part| Ok((part.clone(), sweep.table(part)?.priced()?)));
        let tables = tables.collect::<Result<_, CoreError>>()?;
        let mut priced = Partitions { sweep, tables, partitions: vec![first], considered: 1 };
        // Others are worth a look as far as the sweeps can win back what it takes.
        let seconds = priced.chosen(0).map_or(f64::INFINITY, |plain| plain.seconds);
        let seconds = seconds * sweep.options.sweeps as f64;
        let worth = partitions_worth(sweep.extents.len(), Look::Coarse, seconds);
        let others = all.into_iter().take(worth).map(|groups| sweep.partition(groups));
        priced.add_few(others.collect())?;
        Ok(priced)
    }

    /// Adds those of `others` that may take least by coarse estimates, and prices them.
    fn add_few(&mut self, others: Vec<Partition>) -> Result<(), CoreError> {
        let parts = others.iter().flat_map(|partition| &partition.parts);
        let parts: BTreeSet<Part> = parts.cloned().collect();
        let table = |part: Part| Ok::<_, CoreError>((self.sweep.table(&part)?, part));
        let made = parts.into_par_iter().map(table).collect::<Result<Vec<_>, _>>()?;
        let mut tables: BTreeMap<Part, PriceTable<'a>> =
            made.into_iter().map(|(table, part)| (part, table)).collect();
        let coarse = |partition: &Partition| {
            let parts = partition.parts.iter().filter_map(|part| tables.get(part));
            parts.map(PriceTable::coarse_seconds).sum::<f64>()
        };
        let mut rated: Vec<(f64, Partition)> =
            others.into_iter().map(|partition| (coarse(&partition), partition)).collect();
        rated.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.considered += rated.len();
        let plain = self.tables_of(0).map(PriceTable::coarse_seconds).sum::<f64>();
        let least = rated.first().map_or(plain, |(least, _)| least.min(plain));
        rated.truncate(MOST_PRICED);
        rated.retain(|(seconds, _)| *seconds <= WORTH_PRICE * least);
        let few = rated.into_iter().map(|(_, partition)| partition);
        for partition in few {
            for part in &partition.parts {
                if let Some(table) = tables.remove(part) {
                    self.tables.insert(part.clone(), table.priced()?);
                }
            }
            self.partitions.push(partition);
        }
        Ok(())
    }

    /// Returns the trees of the best partition by what is known.
    ///
    /// # Errors
    ///
    /// If nothing keeps the limit on memory, or a kernel has no schedule.
    pub(super) fn best(&self) -> Result<Chosen, CoreError> {
        let chosen = (0..self.partitions.len()).filter_map(|at| self.chosen(at));
        let best = chosen.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        best.ok_or_else(|| self.tables[&self.partitions[0].parts[0]].refusal())
    }

    /// Searches the kernels of the partition without merges and of the few that take least; returns the best.
    ///
    /// # Errors
    ///
    /// As [`Partitions::best`].
    pub(super) fn select_best(&mut self) -> Result<Chosen, CoreError> {
        let mut near: Vec<Chosen> =
            (0..self.partitions.len()).filter_map(|at| self.chosen(at)).collect();
        near.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let most = near.first().map_or(0.0, |best| NEAR * best.seconds);
        let near = near.iter().take(MOST_SEARCHED).filter(|chosen| chosen.seconds <= most);
        let searched: BTreeSet<usize> = near.map(|chosen| chosen.at).chain([0]).collect();
        for at in searched {
            self.search(at)?;
        }
        self.best()
    }

    /// Searches the trees that are chosen for the partition `at`, until they stay.
    fn search(&mut self, at: usize) -> Result<(), CoreError> {
        while let Some(chosen) = self.chosen(at) {
            let mut any = false;
            for (part, selection) in self.partitions[at].parts.iter().zip(&chosen.selections) {
                let table = self.tables.get_mut(part);
                let table =
                    table.ok_or_else(|| CoreError::Internal("kernels without a price".into()))?;
                any |= table.search_selected(selection)?;
            }
            if !any {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The trees for the partition `at` by what is known; `None` where it does not keep the limit on memory.
    fn chosen(&self, at: usize) -> Option<Chosen> {
        let partition = &self.partitions[at];
        let limit = match self.sweep.options.memory {
            Some(limit) => Some(limit.checked_sub(partition.matrices)?),
            None => None,
        };
        let parts = self.tables_of(at).map(PriceTable::selections).collect::<Vec<_>>();
        let (price, selections) =
            together(parts.iter().map(Vec::as_slice), limit).into_iter().next()?;
        let selections = selections.into_iter().cloned().collect();
        Some(Chosen { at, seconds: price.seconds + self.merging_seconds(at), selections })
    }

    /// The tables of the parts of the partition `at`.
    fn tables_of(&self, at: usize) -> impl Iterator<Item = &PriceTable<'a>> {
        self.partitions[at].parts.iter().map(|part| &self.tables[part])
    }

    /// Seconds to merge modes, spread over the sweeps: each merge sorts the list, which takes about what a tree does, and
    /// writes it anew.
    fn merging_seconds(&self, at: usize) -> f64 {
        let list = self.tables[&self.partitions[at].parts[0]].least_bytes();
        let merges = self.partitions[at].groups.merged().len() as u64;
        self.sweep.spread_seconds(2 * merges * list)
    }

    /// Returns what `chosen` costs, as that of `what`.
    pub(super) fn alternative(&self, what: String, chosen: &Chosen) -> Alternative {
        let tables = self.tables_of(chosen.at).zip(&chosen.selections);
        let bytes = tables.map(|(table, selection)| table.tree_bytes(selection)).sum();
        Alternative { what, seconds: chosen.seconds, bytes }
    }

    /// Makes the plan of `chosen`.
    ///
    /// # Errors
    ///
    /// Never, for what was chosen among these partitions.
    pub(super) fn plan(&self, chosen: &Chosen) -> Result<SweepPlan, CoreError> {
        let sweep = self.sweep;
        let others = (0..self.partitions.len()).filter(|&at| at != chosen.at);
        let alternative = |at| Some(self.alternative(self.name(at), &self.chosen(at)?));
        let alternatives = nearest(others.filter_map(alternative));
        let tables = self.tables_of(chosen.at).zip(&chosen.selections);
        let plans = tables.map(|(table, selection)| table.plan(selection));
        let mut plans = plans.collect::<Result<Vec<TreePlan>, _>>()?.into_iter();
        let none = || CoreError::Internal("a partition without kernels".into());
        let kernels = plans.next().ok_or_else(none)?;
        let groups = &self.partitions[chosen.at].groups;
        let merge = |(modes, kernels): (&Vec<usize>, _)| {
            let (tuples, matrix_bytes) = (sweep.tuples(modes), sweep.matrix_bytes(modes));
            Merge { modes: modes.clone(), tuples, kernels, matrix_bytes }
        };
        Ok(SweepPlan {
            kernels,
            panels: sweep.options.widths(),
            merges: groups.merged().iter().zip(plans).map(merge).collect(),
            groups: groups.clone().into_vec(),
            considered: self.considered,
            alternatives,
            plain_seconds: self.plain_seconds()?,
        })
    }

    /// The predicted seconds of the kernels of the sweep without merges, if that is a partition.
    fn plain_seconds(&self) -> Result<f64, CoreError> {
        let plain = self.chosen(0).filter(|_| self.partitions[0].groups.merged().is_empty());
        let Some(plain) = plain else { return Ok(f64::INFINITY) };
        let table = &self.tables[&self.partitions[0].parts[0]];
        Ok(table.plan(&plain.selections[0])?.seconds())
    }

    /// What tells the partition `at` from others.
    fn name(&self, at: usize) -> String {
        let merged = self.partitions[at].groups.merged().iter().map(|modes| joined(modes));
        match merged.collect::<Vec<String>>().as_slice() {
            [] => "no merging".to_owned(),
            merged => format!("modes {} merged", merged.join(", ")),
        }
    }
}

impl<'a> Sweep<'a> {
    fn partition(&self, groups: ModeGroups) -> Partition {
        let merges =
            groups.merged().iter().cloned().zip(groups.runs(&self.options.updates).products);
        let inner = merges.map(|(modes, products)| Part::Inner(modes, products));
        let parts = [Part::Outer(groups.clone())].into_iter().chain(inner).collect();
        let matrices = groups.merged().iter().map(|modes| self.matrix_bytes(modes)).sum();
        Partition { groups, parts, matrices }
    }

    /// The partitions that the options allow, the one without merges first if it is among them.
    fn partitions(&self) -> Result<Vec<ModeGroups>, CoreError> {
        let order = self.extents.len();
        let plain = ModeGroups::single(order);
        match &self.options.merging {
            Merging::Given(merged) => {
                let groups = ModeGroups::given(merged, order);
                Ok(vec![groups.ok_or_else(|| wrong_merge(merged, order))?])
            }
            Merging::Choose if !matches!(self.options.trees, Trees::Given(_)) => {
                let all: Vec<usize> = (0..order).collect();
                let most = (self.tuples(&all) as f64 * MOST_TUPLES) as u64;
                let worthwhile = |group: &[usize]| self.tuples(group) <= most;
                let worthwhile = partitions(order, worthwhile, |groups| self.work(groups));
                Ok([plain].into_iter().chain(worthwhile).collect())
            }
            _ => Ok(vec![plain]),
        }
    }

    fn tuples(&self, modes: &[usize]) -> u64 {
        self.pattern.count(set_of(modes), &extents_of(self.extents, 1))
    }

    /// What a sweep multiplies with modes in `groups`, about: the entries of each kernel's tensor by their
    /// modes.
    fn work(&self, groups: &ModeGroups) -> f64 {
        let all: Vec<usize> = (0..self.extents.len()).collect();
        let runs = groups.runs(&self.options.updates);
        let outer = runs.outer.iter().sum::<usize>() * groups.iter().count();
        let inner = groups.merged().iter().zip(&runs.products).map(|(group, products)| {
            ((group.len() + products) * (group.len() + 1)) as f64 * self.tuples(group) as f64
        });
        outer as f64 * self.tuples(&all) as f64 + inner.sum::<f64>()
    }

    /// Bytes of the matrix of a merge of `modes`.
    fn matrix_bytes(&self, modes: &[usize]) -> u64 {
        self.tuples(modes) * row_bytes(&self.options.widths(), self.options.value_bytes) as u64
    }

    /// Seconds to build trees of `bytes`, spread over the sweeps.
    fn spread_seconds(&self, bytes: u64) -> f64 {
        building_seconds(bytes, self.machine) / self.options.sweeps.max(1) as f64
    }

    fn table(&self, part: &Part) -> Result<PriceTable<'a>, CoreError> {
        match part {
            Part::Outer(groups) => self.outer(groups),
            Part::Inner(modes, products) => self.inner(modes, *products),
        }
    }

    /// The kernels of the `Y` of a partition; of the tensor itself without merges.
    fn outer(&self, groups: &ModeGroups) -> Result<PriceTable<'a>, CoreError> {
        let Sweep { extents, pattern, options, machine } = *self;
        if groups.merged().is_empty() {
            return mttkrps(extents, pattern, &vec![1; extents.len()], options, machine);
        }
        let extent = |modes: &[usize]| match *modes {
            [mode] => extents[mode],
            _ => self.tuples(modes),
        };
        let outer: Vec<u64> = groups.iter().map(extent).collect();
        let sets: Vec<IndexSet> = groups.iter().map(set_of).collect();
        let pattern = renamed(extents, pattern, &sets);
        mttkrps(&outer, &pattern, &groups.runs(&options.updates).outer, options, machine)
    }

    /// The kernels of the `S` of `modes`, of which the product runs `products` times.
    fn inner(&self, modes: &[usize], products: usize) -> Result<PriceTable<'a>, CoreError> {
        let Sweep { extents, pattern, options, machine } = *self;
        let inner: Vec<u64> =
            modes.iter().map(|&mode| extents[mode]).chain([self.tuples(modes)]).collect();
        // A tuple's number says all about it.
        let groups = modes.iter().map(|&mode| set_of(&[mode])).chain([set_of(modes)]);
        let pattern = renamed(extents, pattern, &groups.collect::<Vec<_>>());
        let runs: Vec<usize> = modes.iter().map(|_| 1).chain([products]).collect();
        mttkrps(&inner, &pattern, &runs, options, machine)
    }
}

/// Up to this many groups, every set of them is counted.
const ALL_COUNTS: usize = 8;

/// The indices of `modes`.
pub(super) fn set_of(modes: &[usize]) -> IndexSet {
    modes.iter().map(|&mode| mode_index(mode)).collect()
}

pub(super) fn wrong_merge(merged: &[Vec<usize>], order: usize) -> CoreError {
    let sets: Vec<String> = merged.iter().map(|modes| joined(modes)).collect();
    let why = "list sets apart from each other, each of at least two modes and not of all";
    CoreError::Merge { sets: sets.join(", "), why: format!("{why}, of a tensor of {order} modes") }
}

/// Counts the pattern of a tensor whose modes stand for `groups` of those of a tensor of `extents`, whose
/// pattern is `pattern`.
pub(super) fn renamed(extents: &[u64], pattern: &Pattern, groups: &[IndexSet]) -> Pattern {
    let extents = extents_of(extents, 1);
    let counted = |inside: &[usize]| {
        let set: IndexSet = inside.iter().copied().map(mode_index).collect();
        let modes = inside.iter().fold(IndexSet::EMPTY, |modes, &at| modes | groups[at]);
        (set, pattern.count(modes, &extents))
    };
    let sets: BTreeMap<IndexSet, u64> = match groups.len() {
        0..=ALL_COUNTS => (1_u64..1 << groups.len())
            .map(|bits| {
                let inside = (0..groups.len()).filter(|at| bits >> at & 1 == 1);
                counted(&inside.collect::<Vec<_>>())
            })
            .collect(),
        many => {
            // As many sets as are known, those of one group, and that of all.
            let known = pattern.counts().map(|(known, _)| -> Vec<usize> {
                (0..many).filter(|&at| groups[at].is_subset(known)).collect()
            });
            let single = (0..many).map(|at| vec![at]).chain([(0..many).collect()]);
            let inside = known.chain(single).filter(|inside| !inside.is_empty());
            inside.map(|inside| counted(&inside)).collect()
        }
    };
    let single = groups.iter().enumerate().filter(|(_, group)| group.len() == 1);
    let coverages = single.filter_map(|(at, group)| {
        Some((mode_index(at), pattern.coverage(group.iter().next()?)?.clone()))
    });
    coverages.fold(sets.into_iter().collect(), |renamed: Pattern, (index, coverage)| {
        renamed.with_coverage(index, coverage)
    })
}
