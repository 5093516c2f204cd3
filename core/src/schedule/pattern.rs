//! What is known of a sparse operand's pattern.

use std::collections::BTreeMap;

use decompose_formats::ModeSet;
use decompose_formats::stats::{Count, PatternCounts};

use crate::einsum::{Extents, Index, IndexSet};

/// Counts of distinct coordinate tuples: `nnz(X_S)` for sets `S` of indices.
///
/// `nnz(X_S)` is the number of different tuples of coordinates in the modes of `S` among the
/// non-zeros; it is the number of nodes of a CSF level whose prefix is `S`.  Searches see these
/// numbers, never the non-zeros.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pattern(BTreeMap<IndexSet, u64>);

impl Pattern {
    /// Takes over the counts of a tensor whose modes are `indices`.
    pub fn of(counts: &PatternCounts, indices: &[Index]) -> Pattern {
        let named = |(set, count): (ModeSet, Count)| {
            let set = set.modes().map(|mode| indices[mode]).collect::<IndexSet>();
            (set, count.value)
        };
        counts.iter().map(named).collect()
    }

    /// Records `nnz(X_set)`.
    pub fn record(&mut self, set: IndexSet, count: u64) {
        self.0.insert(set, count);
    }

    /// Returns `nnz(X_set)` as recorded; otherwise the bound that follows from what is known: no
    /// more than the product of the extents, than `nnz(X)`, and than any recorded superset.
    pub fn count(&self, set: IndexSet, extents: &Extents) -> u64 {
        if set.is_empty() {
            return 1;
        }
        if let Some(&count) = self.0.get(&set) {
            return count;
        }
        let cells = set.iter().fold(1u64, |n, index| n.saturating_mul(extents.of(index)));
        let supersets = self.0.iter().filter(|(known, _)| set.is_subset(**known));
        supersets.map(|(_, &count)| count).fold(cells, u64::min)
    }
}

impl FromIterator<(IndexSet, u64)> for Pattern {
    fn from_iter<I: IntoIterator<Item = (IndexSet, u64)>>(counts: I) -> Pattern {
        Pattern(counts.into_iter().collect())
    }
}
