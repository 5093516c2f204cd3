//! All that can be said of a tensor without decomposing it.

use serde::Serialize;

use crate::catalog;
use crate::coo::Coo;
use crate::modes::ModeOrder;
use crate::modes::ModeSet;
use crate::stats::forecast::{cp_bytes, csf_bytes, tucker_bytes};
use crate::stats::patterns::{Count, PatternCounts};
use crate::stats::slices::SliceStats;
use crate::value::Value;

/// The statistics of a tensor; `Display` writes them as a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorStats {
    /// The extent of every mode.
    pub extents: Vec<u64>,
    /// The entries, duplicates merged, explicit zeros included.
    pub nnz: u64,
    /// Entries over cells.
    pub density: f64,
    /// The FROSTT tensor with these extents and non-zeros.
    pub frostt_name: Option<&'static str>,
    /// How many entries were merged into others on reading.
    pub duplicates: u64,
    /// The slices of every mode.
    pub slices: Vec<SliceStats>,
    /// The fibres along every mode that hold an entry: the distinct tuples of all other modes.
    pub fibres: Vec<Count>,
    /// The counts of sets of modes.
    pub patterns: PatternCounts,
    /// The counts of the first mode, the first two, ..., all modes of the natural order.
    pub prefix_counts: Vec<Count>,
    /// The values; `None` without entries.
    pub values: Option<ValueStats>,
    /// Bytes of the list.
    pub coo_bytes: u64,
    /// Bytes of one tree in the natural order.
    pub csf_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
}

/// The values of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValueStats {
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// The mean over the entries.
    pub mean: f64,
    /// The square root of the sum of squares.
    pub norm: f64,
    /// Entries of value zero.
    pub zeros: u64,
    /// The narrowest kind all values belong to.
    pub kind: ValueKind,
}

/// What kind of numbers the values are; each kind includes those before it but `Integer`, which
/// `NonNegative` does not include.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueKind {
    /// 0 and 1.
    Binary,
    /// Integers from 0.
    Count,
    /// Integers.
    Integer,
    /// Reals from 0.
    NonNegative,
    /// Reals.
    Real,
}

impl TensorStats {
    /// Computes the statistics of a list whose reading merged `duplicates` entries into others.
    ///
    /// Prefix counts are exact if the list is known to be sorted by the natural order.  Parallel,
    /// as [`PatternCounts::of`].
    pub fn of<V: Value>(coo: &Coo<V>, duplicates: u64) -> TensorStats {
        let (order, extents, nnz) = (coo.order(), coo.extents().to_vec(), coo.nnz() as u64);
        let (patterns, slices) = PatternCounts::with_slices(coo);
        let all = ModeSet::all(order);
        let fibres = (0..order).map(|mode| patterns.count(all.without(mode))).collect();
        let natural = ModeOrder::natural(order);
        let prefix = |len: usize| patterns.count(ModeSet::of(&natural.modes()[..len]));
        let prefix_counts: Vec<Count> = (1..=order).map(prefix).collect();
        let counts: Vec<u64> = prefix_counts.iter().map(|count| count.value).collect();
        TensorStats {
            density: nnz as f64 / extents.iter().map(|&extent| extent as f64).product::<f64>(),
            frostt_name: catalog::matches(&extents, nnz).map(|preset| preset.name),
            csf_bytes: csf_bytes(&extents, &counts, V::BYTES),
            coo_bytes: coo.bytes(),
            value_bytes: V::BYTES,
            values: value_stats(coo),
            extents,
            nnz,
            duplicates,
            slices,
            fibres,
            patterns,
            prefix_counts,
        }
    }

    /// Returns the bytes to fit a CP model of rank `rank`: one tree a mode and the matrices, as
    /// [`cp_bytes`].
    pub fn cp_forecast(&self, rank: u64) -> u64 {
        let trees = self.csf_bytes.saturating_mul(self.extents.len() as u64);
        cp_bytes(&self.extents, rank, self.value_bytes).saturating_add(trees)
    }

    /// Returns the bytes to fit a Tucker model of `ranks`: one tree a mode and the arrays, as
    /// [`tucker_bytes`].
    pub fn tucker_forecast(&self, ranks: &[u64]) -> u64 {
        let trees = self.csf_bytes.saturating_mul(self.extents.len() as u64);
        tucker_bytes(&self.extents, ranks, self.value_bytes).saturating_add(trees)
    }
}

fn value_stats<V: Value>(coo: &Coo<V>) -> Option<ValueStats> {
    let (min, max) = coo.value_range()?;
    let whole = coo.all_values(|value| value.fract() == 0.0);
    let kind = match (whole, min >= 0.0) {
        (true, true) if max <= 1.0 => ValueKind::Binary,
        (true, true) => ValueKind::Count,
        (true, false) => ValueKind::Integer,
        (false, true) => ValueKind::NonNegative,
        (false, false) => ValueKind::Real,
    };
    let (mean, norm) = (coo.sum() / coo.nnz() as f64, coo.norm_squared().sqrt());
    Some(ValueStats { min, max, mean, norm, zeros: coo.zeros(), kind })
}
