//! The strongest entries of the columns of a factor.

use decompose_formats::{Matrix, Value};
use rayon::prelude::*;

/// The least entry that counts, as a part of the largest of its column.
const LEAST: f64 = 1e-12;

/// That of numbers of low precision, in relative distances of neighbouring numbers.
const LEAST_DISTANCES: f64 = 8.0;

/// Rows of a factor that one task looks at.
const ROWS: usize = 1 << 14;

/// An entry of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strong {
    /// The index, from 0.
    pub index: usize,
    /// The entry.
    pub value: f64,
}

/// Some columns of which rows have been seen.
struct Seen {
    /// The most entries of a column that are kept.
    most: usize,
    /// By column: the entries of largest magnitude, the largest first, of equal ones the first.
    strongest: Vec<Vec<Strong>>,
    /// By column: what an entry must exceed.
    least: Vec<f64>,
    /// By column: the lowest and the highest entry.
    range: Vec<(f64, f64)>,
}

impl Seen {
    fn none(columns: usize, most: usize) -> Seen {
        Seen {
            most,
            strongest: vec![Vec::new(); columns],
            least: vec![0.0; columns],
            range: vec![(f64::INFINITY, f64::NEG_INFINITY); columns],
        }
    }

    /// Widens the range of a column.
    fn widen(&mut self, column: usize, (low, high): (f64, f64)) {
        let (lowest, highest) = self.range[column];
        self.range[column] = (lowest.min(low), highest.max(high));
    }

    /// Keeps an entry if it is among the strongest so far.
    fn keep(&mut self, column: usize, entry: Strong) {
        let size = entry.value.abs();
        if size > self.least[column] {
            let kept = &mut self.strongest[column];
            let place = kept.partition_point(|other| other.value.abs() >= size);
            kept.insert(place, entry);
            kept.truncate(self.most);
            if let Some(last) = kept.get(self.most.saturating_sub(1)) {
                self.least[column] = last.value.abs();
            }
        }
    }

    /// Adds what was seen of later rows.
    fn with(mut self, later: Seen) -> Seen {
        for (column, entries) in later.strongest.into_iter().enumerate() {
            entries.into_iter().for_each(|entry| self.keep(column, entry));
            self.widen(column, later.range[column]);
        }
        self
    }
}

/// Returns the strongest entries of every column, `most` at most: the largest magnitude first, of equal ones the first.
///
/// Entries that are only rounding beside the largest of their column are left out.  A column whose entries are equal but
/// for rounding has none: it prefers no index.  Time `O(I R)` for a factor of `I` rows and `R` columns, parallel.
pub fn strongest<V: Value + Into<f64>>(factor: &Matrix<V>, most: usize) -> Vec<Vec<Strong>> {
    let (rows, columns) = (factor.rows(), factor.cols());
    let look = |start: usize| {
        let mut seen = Seen::none(columns, most);
        for index in start..rows.min(start + ROWS) {
            for (column, &value) in factor.row(index).iter().enumerate() {
                let value: f64 = value.into();
                seen.widen(column, (value, value));
                seen.keep(column, Strong { index, value });
            }
        }
        seen
    };
    let starts: Vec<usize> = (0..rows).step_by(ROWS).collect();
    let parts: Vec<Seen> = starts.into_par_iter().map(look).collect();
    let seen = parts.into_iter().fold(Seen::none(columns, most), Seen::with);
    let rounding = LEAST.max(LEAST_DISTANCES * V::EPSILON);
    let of_column = |(mut entries, (low, high)): (Vec<Strong>, (f64, f64))| {
        let least = rounding * low.abs().max(high.abs());
        if rows > 1 && high - low <= least {
            return Vec::new();
        }
        entries.retain(|entry| entry.value.abs() > least);
        entries
    };
    seen.strongest.into_iter().zip(seen.range).map(of_column).collect()
}

#[cfg(test)]
mod tests {
    use decompose_formats::Matrix;

    use super::{ROWS, Strong, strongest};

    const MOST: usize = 10;

    #[test]
    fn rounding_is_no_entry() {
        let columns = [[1.0, 2e-12], [1e-13, -1.0], [1.0 + 1e-13, 0.0]];
        let mut factor = Matrix::<f64>::zeros(3, 2).unwrap();
        (0..3).for_each(|row| factor.row_mut(row).copy_from_slice(&columns[row]));
        let indices = |found: &[Strong]| found.iter().map(|of| of.index).collect::<Vec<_>>();
        let found = strongest(&factor, MOST);
        assert_eq!((indices(&found[0]), indices(&found[1])), (vec![2, 0], vec![1, 0]));
        factor.row_mut(1)[0] = 1.0;
        assert!(strongest(&factor, MOST)[0].is_empty(), "equal but for rounding");
        let mut short = Matrix::<f32>::zeros(2, 1).unwrap();
        (short.row_mut(0)[0], short.row_mut(1)[0]) = (1.0, 1e-7);
        assert_eq!(indices(&strongest(&short, MOST)[0]), [0]);
        let mut one = Matrix::<f64>::zeros(1, 1).unwrap();
        one.row_mut(0)[0] = 2.0;
        assert_eq!(indices(&strongest(&one, MOST)[0]), [0]);
    }

    #[test]
    fn the_strongest_come_first_and_of_equal_ones_the_first() {
        let mut factor = Matrix::<f64>::zeros(3 * ROWS, 3).unwrap();
        for (index, value) in [(5, 1.0), (ROWS + 1, -3.0), (2 * ROWS, 3.0), (3 * ROWS - 1, 0.5)] {
            factor.row_mut(index)[1] = value;
        }
        (0..3 * ROWS).for_each(|index| factor.row_mut(index)[2] = 0.25);
        let found = strongest(&factor, MOST);
        assert_eq!((found[0].len(), found[2].len()), (0, 0));
        let named = |index, value| Strong { index, value };
        let want =
            [named(ROWS + 1, -3.0), named(2 * ROWS, 3.0), named(5, 1.0), named(3 * ROWS - 1, 0.5)];
        assert_eq!(found[1], want);
        let mut long = Matrix::<f32>::zeros(40, 1).unwrap();
        (0..40).for_each(|index| long.row_mut(index)[0] = index as f32);
        let found: Vec<usize> = strongest(&long, MOST)[0].iter().map(|entry| entry.index).collect();
        assert_eq!(found, (40 - MOST..40).rev().collect::<Vec<_>>());
    }
}
