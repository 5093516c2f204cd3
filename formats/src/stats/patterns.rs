//! Counts for every set of modes, mostly estimated, from one pass over the non-zeros.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::blocking::Blocking;
use crate::coo::Coo;
use crate::csf::node_counts;
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::modes::ModeSet;
use crate::stats::coverage::Coverage;
use crate::stats::slices::{SliceStats, slices};
use crate::stats::tuples::Tuples;
use crate::value::Value;

/// Up to this order every set of modes is counted.
const ALL_SETS: usize = 6;

/// Blockings counted in one pass: the kernels of a sweep are seldom on trees of more.
const AT_ONCE: usize = 4;

/// How a [`Count`] is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// Counted.
    Exact,
    /// Estimated, with a standard error of 1.15 %.
    Estimated,
    /// Not looked at: the greatest value it can have.
    Bound,
}

/// The number of distinct coordinate tuples in a set of modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// The number.
    pub value: u64,
    /// How it is known.
    pub certainty: Certainty,
}

/// The counts of a tensor's sets of modes: what a planner asks of a tensor.
///
/// Up to order 6 all sets are counted; above, the prefixes of [`ModeOrder::rooted`] orders, pairs
/// and sets that lack one mode, and [`PatternCounts::count`] bounds the others.  Counts are
/// consistent: never above the count of a larger set of those looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternCounts {
    extents: Vec<u64>,
    nnz: u64,
    counts: BTreeMap<ModeSet, Count>,
    /// By mode.
    coverages: Vec<Coverage>,
}

impl PatternCounts {
    /// Counts the sets of modes of a list without duplicates.
    ///
    /// Single modes and the set of all modes are exact, as are the prefixes of the order by which
    /// the list is known to be sorted; the others are estimated.  Parallel and deterministic; time
    /// `O(nnz * sets)`, memory 8 KiB a set and thread.
    pub fn of<V: Value>(coo: &Coo<V>) -> PatternCounts {
        PatternCounts::with_slices(coo).0
    }

    /// Counts as [`PatternCounts::of`], and returns the slices of all modes too.
    pub(super) fn with_slices<V: Value>(coo: &Coo<V>) -> (PatternCounts, Vec<SliceStats>) {
        let (slices, coverages): (Vec<SliceStats>, Vec<Coverage>) =
            (0..coo.order()).map(|mode| slices(coo, mode)).unzip();
        let (extents, nnz) = (coo.extents().to_vec(), coo.nnz() as u64);
        let mut counts = BTreeMap::new();
        let mut exactly = |set: ModeSet, value: u64| {
            counts.insert(set, Count { value, certainty: Certainty::Exact });
        };
        slices
            .iter()
            .enumerate()
            .for_each(|(mode, slice)| exactly(ModeSet::of(&[mode]), slice.used));
        exactly(ModeSet::all(coo.order()), nnz);
        if let Some(order) = coo.sorted_by() {
            let columns = coo.columns();
            let upper = &order.modes()[..coo.order() - 1];
            let nodes = node_counts(&upper.iter().map(|&mode| columns[mode]).collect::<Vec<_>>());
            nodes.iter().enumerate().for_each(|(l, &n)| exactly(ModeSet::of(&upper[..=l]), n));
        }
        let sets = interesting(&extents).into_iter().filter(|set| !counts.contains_key(set));
        let sets: Vec<ModeSet> = sets.collect();
        let values = Tuples::of(coo, &[]).map(|tuples| tuples.counts(&sets)).unwrap_or_default();
        for (&set, value) in sets.iter().zip(values) {
            counts.insert(set, Count { value, certainty: Certainty::Estimated });
        }
        let mut patterns = PatternCounts { extents, nnz, counts, coverages };
        patterns.reconcile();
        (patterns, slices)
    }

    /// Returns the counts to expect of `nnz` non-zeros spread evenly: for planning without data.
    ///
    /// `nnz` balls thrown into `n` cells hit `n (1 - (1 - 1/n)^nnz)` of them.
    pub fn uniform(extents: &[u64], nnz: u64) -> PatternCounts {
        let expected = |set: ModeSet| {
            let cells: f64 = set.modes().map(|mode| extents[mode] as f64).product();
            let hit = -cells * (nnz as f64 * (-1.0 / cells).ln_1p()).exp_m1();
            Count { value: (hit.round() as u64).min(nnz), certainty: Certainty::Estimated }
        };
        let mut counts: BTreeMap<ModeSet, Count> =
            interesting(extents).into_iter().map(|set| (set, expected(set))).collect();
        let all = Count { value: nnz, certainty: Certainty::Exact };
        counts.insert(ModeSet::all(extents.len()), all);
        let used = |mode| counts.get(&ModeSet::of(&[mode])).map_or(0, |count| count.value);
        let coverages = (0..extents.len()).map(|mode| Coverage::even(used(mode))).collect();
        PatternCounts { extents: extents.to_vec(), nnz, counts, coverages }
    }

    /// Returns, for sets of modes and each of `blockings`, how many pairs of a block and a tuple of
    /// coordinates occur; of the empty set, how many blocks.
    ///
    /// `coo` is the list that was counted.  All sets up to order 6, above it those that were looked
    /// at.  Estimated, each blocking as if alone; time `O(nnz * sets)` a blocking, memory 8 KiB a set of a few
    /// blockings and thread, twice that where a set has few cells.
    ///
    /// # Errors
    ///
    /// As [`Blocking::numbers`].
    pub fn in_blocks<V: Value>(
        &self,
        coo: &Coo<V>,
        blockings: &[Blocking],
    ) -> Result<Vec<Vec<(ModeSet, u64)>>, FormatError> {
        let mut found = Vec::new();
        for blockings in blockings.chunks(AT_ONCE) {
            found.extend(self.in_few_blocks(coo, blockings)?);
        }
        Ok(found)
    }

    /// Does what [`PatternCounts::in_blocks`] does, in one pass.
    fn in_few_blocks<V: Value>(
        &self,
        coo: &Coo<V>,
        blockings: &[Blocking],
    ) -> Result<Vec<Vec<(ModeSet, u64)>>, FormatError> {
        let mut sets = Vec::new();
        for (blocking, block) in blockings.iter().zip(coo.order()..) {
            let block = ModeSet::of(&[block]).bits();
            let inside = self.sets_inside(blocking);
            sets.extend(inside.iter().map(|set| ModeSet::from_bits(set.bits() | block)));
        }
        let mut counts = Tuples::of(coo, blockings)?.counts(&sets).into_iter();
        let all = |blocking| self.with_known(blocking, &mut counts);
        Ok(blockings.iter().map(all).collect())
    }

    /// The sets that were looked at, and the empty one, whose modes do not say in which block they are, as those
    /// with all bits of the number do.
    fn sets_inside(&self, blocking: &Blocking) -> Vec<ModeSet> {
        self.sets_and_none().filter(|&set| !self.tells(blocking, set)).collect()
    }

    /// Takes the counts of [`PatternCounts::sets_inside`], adds those of the other sets before them.
    fn with_known(
        &self,
        blocking: &Blocking,
        counts: &mut impl Iterator<Item = u64>,
    ) -> Vec<(ModeSet, u64)> {
        let known = self.sets_and_none().filter(|&set| self.tells(blocking, set));
        let known = known.map(|set| (set, self.count(set).value));
        let counted = self.sets_inside(blocking).into_iter().zip(counts).map(|(set, count)| {
            let least = self.counts.get(&set).map_or(1, |count| count.value).min(self.nnz);
            (set, count.clamp(least, self.nnz))
        });
        known.chain(counted).collect()
    }

    fn sets_and_none(&self) -> impl Iterator<Item = ModeSet> {
        self.counts.keys().copied().chain([ModeSet::default()])
    }

    fn tells(&self, blocking: &Blocking, set: ModeSet) -> bool {
        (0..self.extents.len()).all(|mode| set.contains(mode) || !blocking.splits(mode))
    }

    /// Renumbers the modes, as [`Coo::permute_modes`] does.
    ///
    /// # Panics
    ///
    /// If `order` is not of these modes.
    pub fn permute_modes(&self, order: &ModeOrder) -> PatternCounts {
        let modes = order.modes();
        assert_eq!(modes.len(), self.extents.len(), "an order of other modes");
        let moved = |set: ModeSet| {
            let to: Vec<usize> = (0..modes.len()).filter(|&p| set.contains(modes[p])).collect();
            ModeSet::of(&to)
        };
        PatternCounts {
            extents: modes.iter().map(|&mode| self.extents[mode]).collect(),
            nnz: self.nnz,
            counts: self.counts.iter().map(|(&set, &count)| (moved(set), count)).collect(),
            coverages: modes.iter().map(|&mode| self.coverages[mode].clone()).collect(),
        }
    }

    /// Returns the extents of the modes.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the number of non-zeros.
    pub fn nnz(&self) -> u64 {
        self.nnz
    }

    /// Returns the count of `set`; of a set not looked at, the bound that the others give.
    pub fn count(&self, set: ModeSet) -> Count {
        let bound = || Count { value: self.bound(set), certainty: Certainty::Bound };
        self.counts.get(&set).copied().unwrap_or_else(bound)
    }

    /// Returns how often rows of `mode` are found near.
    ///
    /// # Panics
    ///
    /// If `mode` is not below the order.
    pub fn coverage(&self, mode: usize) -> &Coverage {
        &self.coverages[mode]
    }

    /// Iterates over the sets that were looked at.
    pub fn iter(&self) -> impl Iterator<Item = (ModeSet, Count)> + '_ {
        self.counts.iter().map(|(&set, &count)| (set, count))
    }

    /// The product of the counts of the single modes, or nnz if that is less.
    fn bound(&self, set: ModeSet) -> u64 {
        if set.is_empty() {
            return self.nnz.min(1);
        }
        let single = |mode: usize| self.counts.get(&ModeSet::of(&[mode])).map(|count| count.value);
        let singles = set.modes().map(|mode| single(mode).unwrap_or(self.nnz));
        singles.fold(1, u64::saturating_mul).min(self.nnz)
    }

    /// Moves estimates to where bounds and exact counts allow them, small sets first.
    fn reconcile(&mut self) {
        let mut sets: Vec<ModeSet> = self.counts.keys().copied().collect();
        sets.sort_by_key(|set| set.len());
        for &set in &sets {
            let parts = set.modes().filter_map(|mode| self.counts.get(&set.without(mode)));
            let least = parts.map(|part| part.value).max().unwrap_or(0);
            let wholes = sets.iter().filter(|whole| whole.bits() & set.bits() == set.bits());
            let exact = wholes.filter_map(|whole| self.counts.get(whole));
            let exact = exact.filter(|count| count.certainty == Certainty::Exact);
            let most = exact.map(|count| count.value).fold(self.bound(set), u64::min);
            if let Some(count) = self.counts.get_mut(&set)
                && count.certainty == Certainty::Estimated
            {
                count.value = count.value.max(least).min(most);
            }
        }
    }
}

impl Serialize for PatternCounts {
    /// Writes a map from sets, as `1,3`, to counts.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.counts.len()))?;
        for (set, count) in self.iter() {
            map.serialize_entry(&set.to_string(), &count)?;
        }
        map.end()
    }
}

/// Returns the sets to look at: all of them for a low order.
fn interesting(extents: &[u64]) -> Vec<ModeSet> {
    let order = extents.len();
    if order <= ALL_SETS {
        return (1..1u64 << order).map(ModeSet::from_bits).collect();
    }
    let all = ModeSet::all(order);
    let mut sets = vec![all];
    for mode in 0..order {
        let rooted = ModeOrder::rooted(mode, extents);
        let natural = ModeOrder::natural(order);
        for len in 1..order {
            sets.push(ModeSet::of(&rooted.modes()[..len]));
            sets.push(ModeSet::of(&natural.modes()[..len]));
        }
        sets.push(all.without(mode));
        sets.extend((0..mode).map(|other| ModeSet::of(&[mode, other])));
    }
    sets.sort();
    sets.dedup();
    sets
}
