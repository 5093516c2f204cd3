//! Sorting by comparison, for keys too long to pack.

use std::cmp::Ordering;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::sort::column::{Column, ColumnMut};
use crate::sort::key::Layout;
use crate::value::Value;

/// Tells whether the entries ascend, equal ones allowed.
pub(super) fn ascend(columns: &[Column<'_>], layout: &Layout) -> bool {
    let len = columns.first().map_or(0, Column::len);
    (1..len).into_par_iter().all(|i| compare(columns, layout, i - 1, i).is_le())
}

/// Sorts the entries stably: positions first, then column after column.
pub(super) fn sort<V: Value>(mut columns: Vec<ColumnMut<'_>>, values: &mut [V], layout: &Layout) {
    let read: Vec<Column<'_>> = columns.iter().map(ColumnMut::read).collect();
    let mut positions: Vec<usize> = (0..values.len()).collect();
    positions.par_sort_by(|&a, &b| compare(&read, layout, a, b));
    for column in &mut columns {
        let old: Vec<u64> = positions.iter().map(|&i| column.read().get(i)).collect();
        column.fill(old.into_iter());
    }
    let old: Vec<V> = positions.iter().map(|&i| values[i]).collect();
    values.copy_from_slice(&old);
}

fn compare(columns: &[Column<'_>], layout: &Layout, a: usize, b: usize) -> Ordering {
    let modes = layout.order().modes().iter();
    modes
        .map(|&mode| columns[mode].get(a).cmp(&columns[mode].get(b)))
        .fold(Ordering::Equal, Ordering::then)
}
