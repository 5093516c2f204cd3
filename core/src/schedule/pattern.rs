//! What is known of a sparse operand's pattern.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use decompose_formats::stats::{Certainty, Coverage, PatternCounts};
use decompose_formats::{Blocking, ModeSet};

use crate::einsum::{Extents, Index, IndexSet};
use crate::kernels::mode_index;
use crate::schedule::{Chunks, Cut, Split};
use crate::small_map::SmallMap;

/// Counts of distinct coordinate tuples: `nnz(X_S)` for sets `S` of indices.
///
/// `nnz(X_S)` is the number of different tuples of coordinates in the modes of `S` among the
/// non-zeros; it is the number of nodes of a CSF level whose prefix is `S`.  Searches see these
/// numbers, and how skewed the coordinates of each index are, never the non-zeros.
///
/// Every search has a copy, so what is known is shared: cloning takes `O(1)`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Pattern {
    counts: Arc<Counts>,
    coverages: Arc<BTreeMap<Index, Coverage>>,
    /// Sets whose counts are no exact ones.
    inexact: Arc<BTreeSet<IndexSet>>,
    /// Counts of pairs of a block and a tuple, by blocking.
    blocks: Arc<BTreeMap<Blocking, BTreeMap<IndexSet, u64>>>,
    /// Blockings of which the counts are estimates.
    estimated: Arc<BTreeSet<Blocking>>,
    /// Within blocks, of how many steps to the next block each mode's bits change.
    changes: Vec<f64>,
    /// Within blocks, the index of which they are ranges, if they are.
    ranged: Option<Index>,
}

impl Pattern {
    /// Takes over the counts of a tensor whose modes are `indices`.
    pub fn of(counts: &PatternCounts, indices: &[Index]) -> Pattern {
        let named = |set: ModeSet| set.modes().map(|mode| indices[mode]).collect::<IndexSet>();
        let coverage = |(mode, &index): (usize, &Index)| (index, counts.coverage(mode).clone());
        let inexact = counts.iter().filter(|(_, count)| count.certainty != Certainty::Exact);
        Pattern {
            inexact: Arc::new(inexact.map(|(set, _)| named(set)).collect()),
            counts: Arc::new(counts.iter().map(|(set, count)| (named(set), count.value)).collect()),
            coverages: Arc::new(indices.iter().enumerate().map(coverage).collect()),
            ..Pattern::default()
        }
    }

    /// Records `nnz(X_set)`.
    pub fn record(&mut self, set: IndexSet, count: u64) {
        Arc::make_mut(&mut self.counts).record(set, count);
        Arc::make_mut(&mut self.inexact).remove(&set);
    }

    /// Returns the sets of indices that are recorded, with their counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (IndexSet, u64)> + '_ {
        self.counts.ascending.iter().copied()
    }

    /// Returns how often rows of `index` are found near, if that is known.
    pub fn coverage(&self, index: Index) -> Option<&Coverage> {
        self.coverages.get(&index)
    }

    /// Returns this pattern with the coverage of `index` recorded.
    pub fn with_coverage(mut self, index: Index, coverage: Coverage) -> Pattern {
        Arc::make_mut(&mut self.coverages).insert(index, coverage);
        self
    }

    /// Records how many pairs of a block and a tuple in each set of indices occur; of the empty set,
    /// how many blocks.
    pub fn record_blocks(
        &mut self,
        blocking: Blocking,
        counts: impl IntoIterator<Item = (IndexSet, u64)>,
    ) {
        let counts = counts.into_iter().map(|(set, count)| (set.with(Index::BLOCK), count));
        Arc::make_mut(&mut self.estimated).remove(&blocking);
        Arc::make_mut(&mut self.blocks).insert(blocking, counts.collect());
    }

    /// Records what [`Pattern::record_blocks`] does as mere estimates.
    pub fn record_estimates(
        &mut self,
        blocking: Blocking,
        counts: impl IntoIterator<Item = (IndexSet, u64)>,
    ) {
        self.record_blocks(blocking.clone(), counts);
        Arc::make_mut(&mut self.estimated).insert(blocking);
    }

    /// Tells whether what is known of `blocking` needs no counting: it was counted, or the blocks are
    /// ranges, of which estimates do.
    pub fn is_counted(&self, blocking: &Blocking) -> bool {
        blocking.ranges().is_some()
            || self.blocks.contains_key(blocking) && !self.estimated.contains(blocking)
    }

    /// Returns the blockings of which counts are recorded.
    pub fn blockings(&self) -> impl Iterator<Item = &Blocking> {
        self.blocks.keys()
    }

    /// Returns the pattern of the tensor with [`Index::BLOCK`] as one more index; `None` if nothing is
    /// recorded of the blocking, unless its blocks are ranges, of which that is estimated.
    pub fn in_blocks(&self, blocking: &Blocking) -> Option<Pattern> {
        let inside: Vec<(IndexSet, u64)> = match blocking.ranges() {
            Some((mode, count)) => self.in_ranges(mode_index(mode), u64::from(count), Index::BLOCK),
            None => self.blocks.get(blocking)?.iter().map(|(&set, &count)| (set, count)).collect(),
        };
        let counts = Arc::new(self.counts().chain(inside).collect());
        let (coverages, changes) = (Arc::clone(&self.coverages), blocking.changes());
        let ranged = blocking.ranges().map(|(mode, _)| mode_index(mode));
        Some(Pattern { counts, coverages, changes, ranged, ..Pattern::default() })
    }

    /// Returns the pattern of the tensor with an index cut into `pieces` of `size` coordinates.
    ///
    /// Tuples with both parts are those with the whole index.  Tuples with one part are estimated: with the outer one as
    /// for ranges, with the inner one as many as fit.
    pub(super) fn split(
        &self,
        split: &Split,
        (size, pieces): (u64, u64),
        extents: &Extents,
    ) -> Pattern {
        let Split { index, outer, .. } = *split;
        let own = IndexSet::EMPTY.with(index);
        let ranges = self.in_ranges(index, pieces, outer);
        let inner = self.counts().map(|(set, tuples)| match set.contains(index) {
            true => (set, tuples.min(self.count(set - own, extents).saturating_mul(size))),
            false => (set, tuples),
        });
        let counts = Arc::new(inner.chain(ranges).collect());
        Pattern { counts, coverages: Arc::clone(&self.coverages), ..Pattern::default() }
    }

    /// Returns the pattern of a tree with `levels` in which the nodes of one level are cut into pieces below each node
    /// above: every node above has the mean number of pieces.
    pub(super) fn split_positions(
        &self,
        split: &Split,
        levels: &[Index],
        extents: &Extents,
    ) -> Pattern {
        let above: IndexSet = levels.iter().copied().take_while(|&i| i != split.index).collect();
        let own = above.with(split.index);
        let (parents, nodes) = (self.count(above, extents), self.count(own, extents));
        let mean = nodes.div_ceil(parents.max(1)).max(1);
        let pieces = match split.cut {
            Cut::Positions { chunks: Chunks::Strided, .. } => split.size(mean).min(mean),
            _ => split.pieces(mean),
        };
        let deeper = self.counts().filter(|(set, _)| own.is_subset(*set));
        let deeper: Vec<(IndexSet, u64)> =
            deeper.map(|(set, count)| (set.with(split.outer), count)).collect();
        let mut pattern = self.clone();
        pattern.record(above.with(split.outer), parents.saturating_mul(pieces).min(nodes));
        pattern.record(own.with(split.outer), nodes);
        deeper.into_iter().for_each(|(set, count)| pattern.record(set, count));
        pattern
    }

    /// Estimates the pairs of a tuple and one of `count` ranges of `index`, which are numbered by `part`: of other indices
    /// as if their non-zeros fell into the ranges at random, and no more than the tuples that have `index` too.
    fn in_ranges(&self, index: Index, count: u64, part: Index) -> Vec<(IndexSet, u64)> {
        let all = self.counts.ascending.last().map_or(1, |&(_, most)| most);
        let pairs = |(set, tuples): (IndexSet, u64)| {
            let pairs = match set.contains(index) {
                true => tuples,
                false => {
                    let spread = spread_pairs(tuples as f64, all as f64, count as f64);
                    let longer = self.counts.exact(set.with(index));
                    longer.unwrap_or(u64::MAX).min(spread.round() as u64)
                }
            };
            (set.with(part), pairs)
        };
        let inside = self.counts().map(pairs);
        inside.chain([(IndexSet::EMPTY.with(part), count)]).collect()
    }

    /// Returns the index, as [`mode_index`] names a mode, of which the blocks are ranges; `None` without blocks,
    /// or where they are others.
    pub fn ranged(&self) -> Option<Index> {
        self.ranged
    }

    /// Returns the share of the steps from one block to the next that change which rows of `index`, as
    /// [`mode_index`] names a mode, may occur; 0 without blocks.
    pub fn changes(&self, index: Index) -> f64 {
        let mut modes = self.changes.iter().enumerate();
        let found = modes.find(|(mode, _)| mode_index(*mode) == index);
        found.map_or(0.0, |(_, &changes)| changes)
    }

    /// Returns `nnz(X_set)` if it was counted, neither estimated nor bounded.
    pub fn counted(&self, set: IndexSet) -> Option<u64> {
        self.counts.exact(set).filter(|_| !self.inexact.contains(&set))
    }

    /// Returns `nnz(X_set)` as recorded; otherwise the bound that follows from what is known: no
    /// more than the product of the extents, than `nnz(X)`, and than any recorded superset.
    pub fn count(&self, set: IndexSet, extents: &Extents) -> u64 {
        if set.is_empty() {
            return 1;
        }
        if let Some(count) = self.counts.exact(set) {
            return count;
        }
        let cells = set.iter().fold(1u64, |n, index| n.saturating_mul(extents.of(index)));
        self.counts.of_superset(set).map_or(cells, |count| count.min(cells))
    }
}

/// Counts by set of indices.
#[derive(Clone, Debug, PartialEq, Default)]
struct Counts {
    known: SmallMap<IndexSet, u64>,
    /// The same with the least counts first; of equal ones, by set.
    ascending: Vec<(IndexSet, u64)>,
    bounds: Bounds,
}

/// Least counts of supersets that were asked for: of many modes a search asks for the same few again and again, and some
/// hundred are recorded.
#[derive(Debug, Default)]
struct Bounds(Mutex<SmallMap<IndexSet, Option<u64>>>);

impl Clone for Bounds {
    fn clone(&self) -> Bounds {
        Bounds::default()
    }
}

impl PartialEq for Bounds {
    fn eq(&self, _: &Bounds) -> bool {
        true
    }
}

impl Bounds {
    /// Returns what was found for `set`, or what `find` finds.
    fn of(&self, set: IndexSet, find: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(set).or_insert_with(find)
    }
}

impl Counts {
    fn record(&mut self, set: IndexSet, count: u64) {
        self.bounds = Bounds::default();
        if let Some(before) = self.known.insert(set, count) {
            self.ascending.retain(|&one| one != (set, before));
        }
        let at = self.ascending.partition_point(|&(other, least)| (least, other) < (count, set));
        self.ascending.insert(at, (set, count));
    }

    /// Returns what is recorded of `set`.
    fn exact(&self, set: IndexSet) -> Option<u64> {
        self.known.get(&set).copied()
    }

    /// Returns the least count of a set that holds `set`.
    fn of_superset(&self, set: IndexSet) -> Option<u64> {
        self.bounds.of(set, || {
            let mut supersets = self.ascending.iter().filter(|(known, _)| set.is_subset(*known));
            supersets.next().map(|&(_, count)| count)
        })
    }
}

impl FromIterator<(IndexSet, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (IndexSet, u64)>>(counts: I) -> Counts {
        let known: SmallMap<IndexSet, u64> = counts.into_iter().collect();
        let mut ascending: Vec<(IndexSet, u64)> = known.iter().map(|(&set, &n)| (set, n)).collect();
        ascending.sort_unstable_by_key(|&(set, count)| (count, set));
        Counts { known, ascending, bounds: Bounds::default() }
    }
}

/// Returns how many pairs of a tuple and a part occur where the `entries` of `tuples` fall into `parts` at
/// random: `N b (1 - (1 - 1/b)^(n/N))`.
pub(crate) fn spread_pairs(tuples: f64, entries: f64, parts: f64) -> f64 {
    -tuples * parts * (entries / tuples * (-1.0 / parts).ln_1p()).exp_m1()
}

impl FromIterator<(IndexSet, u64)> for Pattern {
    fn from_iter<I: IntoIterator<Item = (IndexSet, u64)>>(counts: I) -> Pattern {
        Pattern { counts: Arc::new(counts.into_iter().collect()), ..Pattern::default() }
    }
}
