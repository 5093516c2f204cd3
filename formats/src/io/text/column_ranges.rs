//! A second look at the columns of a piece, while they are in cache: their ranges and their order.
//!
//! Cheaper than checks between the digits: these are plain loops over arrays, compiled for wide
//! vectors.

use crate::io::text::row::Coordinate;
use crate::simd;

/// Rows compared at a time; what is known of them stays in registers and the first-level cache.
const BLOCK: usize = 512;

/// Returns the smallest and the largest index of a column as written; `(u64::MAX, 0)` of none.
pub(super) fn range<I: Coordinate>(column: &[I]) -> (u64, u64) {
    let Some(first) = column.first().map(|index| index.zero_based()) else { return (u64::MAX, 0) };
    // Stored indices are one too small and wrap at 0: shifted back, they order as written.
    let ends = |(least, most): (I, I), index: &I| {
        let index = index.zero_based();
        (index.min(least), index.max(most))
    };
    let (least, most) = simd::run(|| column.iter().fold((first, first), ends));
    (least.number(), most.number())
}

/// Whether rows ascend strictly, first mode first, and what their neighbours must know of them.
#[derive(Clone, Debug, Default)]
pub(super) enum RowOrder {
    /// No rows.
    #[default]
    Empty,
    /// They ascend, from the first to the last given here.
    Ascending { first: Vec<u64>, last: Vec<u64> },
    /// Some row does not exceed the one before it.
    Other,
}

impl RowOrder {
    /// Returns the order of the rows of `columns`.
    pub(super) fn of<I: Coordinate>(columns: &[&[I]]) -> RowOrder {
        let rows = columns.first().map_or(0, |column| column.len());
        let row = |row: usize| columns.iter().map(|column| column[row].raw()).collect();
        // Blocks overlap by one row, so that every neighbouring pair meets in one of them.
        let ascends = |start: usize| {
            let end = rows.min(start + BLOCK + 1);
            simd::run(|| block_ascends(columns, start, end))
        };
        match rows {
            0 => RowOrder::Empty,
            _ if (0..rows - 1).step_by(BLOCK).all(ascends) => {
                RowOrder::Ascending { first: row(0), last: row(rows - 1) }
            }
            _ => RowOrder::Other,
        }
    }

    /// Appends the rows of the next piece.
    pub(super) fn append(&mut self, next: RowOrder) {
        *self = match (std::mem::take(self), next) {
            (RowOrder::Empty, order) | (order, RowOrder::Empty) => order,
            (
                RowOrder::Ascending { first, last },
                RowOrder::Ascending { first: next, last: end },
            ) if last < next => RowOrder::Ascending { first, last: end },
            _ => RowOrder::Other,
        };
    }

    /// Tells whether there are rows and they ascend strictly.
    pub(super) fn ascends(&self) -> bool {
        matches!(self, RowOrder::Ascending { .. })
    }
}

/// Tells whether each row of `start + 1..end` exceeds the one before it.
#[inline(always)]
fn block_ascends<I: Coordinate>(columns: &[&[I]], start: usize, end: usize) -> bool {
    // Of each pair of neighbours: whether they are equal so far, whether the second is larger.
    let (mut equal, mut larger) = ([1u8; BLOCK], [0u8; BLOCK]);
    for column in columns {
        let (before, here) = (&column[start..end - 1], &column[start + 1..end]);
        let pairs = before.iter().zip(here).zip(equal.iter_mut().zip(&mut larger));
        for ((before, here), (equal, larger)) in pairs {
            let (before, here) = (before.zero_based(), here.zero_based());
            *larger |= *equal & u8::from(before < here);
            *equal &= u8::from(before == here);
        }
    }
    larger[..end - start - 1].iter().fold(1, |all, larger| all & larger) == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn orders_are_those_of_tuples(
            step in proptest::collection::vec(0u32..3, 0..1500),
            cut in 0usize..1500,
        ) {
            // Mostly ascending rows of two columns, some of them equal.
            let rows: Vec<(u32, u32)> = step
                .iter()
                .scan(0, |sum, &step| { *sum += u32::from(step > 0 || cut % 7 > 0); Some(*sum) })
                .map(|sum| (sum / 10, sum % 10))
                .collect();
            let columns: (Vec<u32>, Vec<u32>) = rows.iter().copied().unzip();
            let of = |rows: std::ops::Range<usize>| {
                RowOrder::of(&[&columns.0[rows.clone()], &columns.1[rows]])
            };
            let ascends = !rows.is_empty() && rows.is_sorted_by(|a, b| a < b);
            prop_assert_eq!(of(0..rows.len()).ascends(), ascends);
            let cut = cut.min(rows.len());
            let mut joined = of(0..cut);
            joined.append(of(cut..rows.len()));
            prop_assert_eq!(joined.ascends(), ascends);
        }
    }
}
