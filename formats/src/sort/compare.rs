//! Sorting by comparison, for keys too long to pack.

use std::cmp::Ordering;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::sort::column::Column;
use crate::sort::key::Layout;
use crate::sort::{Source, Target};
use crate::value::Value;

/// Tells whether the entries ascend, equal ones allowed.
pub(super) fn ascend(columns: &[Column<'_>], layout: &Layout) -> bool {
    let len = columns.first().map_or(0, Column::len);
    (1..len).into_par_iter().all(|i| compare(columns, layout, i - 1, i).is_le())
}

/// Sorts the entries of `source`, or of `target`, stably: positions first, then column after column.
pub(super) fn sort<V: Value>(
    source: Option<&Source<'_, V>>,
    target: Target<'_, V>,
    layout: &Layout,
) {
    let own = target.read();
    let source = source.unwrap_or(&own);
    let mut positions: Vec<usize> = (0..source.values.len()).collect();
    positions.par_sort_by(|&a, &b| compare(&source.columns, layout, a, b));
    let moved = |column: &Column<'_>| positions.iter().map(|&i| column.get(i)).collect::<Vec<_>>();
    let columns: Vec<Vec<u64>> = source.columns.iter().map(moved).collect();
    let values: Vec<V> = positions.iter().map(|&i| source.values[i]).collect();
    let Target { columns: slots, values: value_slots } = target;
    slots.into_iter().zip(columns).for_each(|(mut slots, column)| slots.fill(column.into_iter()));
    value_slots.copy_from_slice(&values);
}

fn compare(columns: &[Column<'_>], layout: &Layout, a: usize, b: usize) -> Ordering {
    let modes = layout.order().modes().iter();
    modes
        .map(|&mode| columns[mode].get(a).cmp(&columns[mode].get(b)))
        .fold(Ordering::Equal, Ordering::then)
}
