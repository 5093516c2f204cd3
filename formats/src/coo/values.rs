//! Facts about the values of a list, and their precision.

use std::sync::OnceLock;

use rayon::iter::{IntoParallelRefIterator, IntoParallelRefMutIterator, ParallelIterator};
use rayon::slice::ParallelSlice;

use crate::array::Array;
use crate::coo::Coo;
use crate::scaling::Unit;
use crate::value::Value;

/// Values added up at a time: partial sums do not depend on the number of threads.
const BLOCK: usize = 1 << 14;
/// Sums kept side by side, so that the additions of a block do not wait for each other.
const LANES: usize = 16;

impl<V: Value> Coo<V> {
    /// Returns the sum of the squares of all values, in `f64`.
    ///
    /// This is `||X||^2` once duplicates are merged.  Parallel, time `O(nnz)`; the same bits
    /// whatever the number of threads.
    pub fn norm_squared(&self) -> f64 {
        let blocks = self.values.par_chunks(BLOCK);
        let sums: Vec<f64> = blocks.map(|block| sum(block, |value| value * value)).collect();
        sums.iter().sum()
    }

    /// Returns the sum of all values, in `f64`, with the promises of [`Coo::norm_squared`].
    pub fn sum(&self) -> f64 {
        let sums: Vec<f64> = self.values.par_chunks(BLOCK).map(|block| sum(block, |v| v)).collect();
        sums.iter().sum()
    }

    /// Returns the least and the greatest value; `None` without entries.  Parallel.
    pub fn value_range(&self) -> Option<(f64, f64)> {
        let each = self.values.par_iter().map(|value| (value.to_f64(), value.to_f64()));
        each.reduce_with(|(low, high), (l, h)| (low.min(l), high.max(h)))
    }

    /// Tells whether `test` holds for every value.  Parallel.
    pub fn all_values(&self, test: impl Fn(f64) -> bool + Sync) -> bool {
        self.values.par_iter().all(|value| test(value.to_f64()))
    }

    /// Returns the unit in which sums of squares of the values stay in range: one for ordinary values.  Parallel.
    pub fn unit(&self) -> Unit {
        let range = self.value_range().unwrap_or_default();
        Unit::of::<V>(range.0.abs().max(range.1.abs()))
    }

    /// Divides every value by `unit`, exactly but for values so small beside the others that they lose digits.
    /// Parallel; the order of the entries stays.
    pub fn divided_by(mut self, unit: Unit) -> Coo<V> {
        if unit != Unit::ONE {
            self.decimals = OnceLock::new();
            let values = self.values.make_mut().par_iter_mut();
            values.for_each(|value| *value = V::from_f64(unit.divide(value.to_f64())));
        }
        self
    }

    /// Replaces each value by `of` it, where it is unless a file or another list has the values too.  Parallel.
    #[must_use]
    pub fn map_values(mut self, of: impl Fn(V) -> V + Sync + Send) -> Coo<V> {
        self.decimals = OnceLock::new();
        self.values.make_mut().par_iter_mut().for_each(|value| *value = of(*value));
        self
    }

    /// Returns how many bytes [`Coo::map_values`] takes: those of the values if they may not change where they are.
    pub fn bytes_to_map(&self) -> u64 {
        if self.values.is_own() { 0 } else { (self.nnz() * V::BYTES) as u64 }
    }

    /// Returns a copy of the values, made by all threads.
    pub(crate) fn copy_values(&self) -> Array<V> {
        self.values.copy()
    }

    /// Returns the entries with other values, as many as there were.
    pub(crate) fn with_values<U: Value>(self, values: Vec<U>) -> Coo<U> {
        debug_assert_eq!(values.len(), self.nnz());
        let Coo { extents, coords, sorted_by, distinct, .. } = self;
        Coo { sorted_by, distinct, ..Coo::listed(extents, coords, values.into()) }
    }
}

fn sum<V: Value>(block: &[V], of: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let rows = block.chunks_exact(LANES);
    let rest: f64 = rows.remainder().iter().map(|value| of(value.to_f64())).sum();
    for row in rows {
        for (lane, value) in lanes.iter_mut().zip(row) {
            *lane += of(value.to_f64());
        }
    }
    lanes.iter().sum::<f64>() + rest
}
