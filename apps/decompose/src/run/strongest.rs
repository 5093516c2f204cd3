//! `components.csv`: the strongest entries of every component, with their labels.
//!
//! A component of weight 0 is left out.  A column whose entries are equal is left out: it prefers no index.  Entries
//! that are only rounding beside the largest of their column are left out.

use std::io;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_formats::{Matrix, Value};
use decompose_plot::alive_components;
use rayon::prelude::*;
use serde::Serialize;

use crate::failure::Failure;
use crate::labels::ModeLabels;

/// The most entries of a component in a mode.
const MOST: usize = 10;

/// The least entry that counts, as a part of the largest of its column.
const LEAST: f64 = 1e-12;

/// That of numbers of low precision, in relative distances of neighbouring numbers.
const LEAST_DISTANCES: f64 = 8.0;

/// Rows of a factor that one task looks at.
const ROWS: usize = 1 << 14;

/// A line of the table.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    /// From 1; of a Tucker model the number of the column.
    pub(crate) component: usize,
    /// Empty where components have none.
    pub(crate) weight: Option<f64>,
    /// From 1.
    pub(crate) mode: usize,
    pub(crate) name: &'a str,
    /// From 1, the strongest first.
    pub(crate) place: usize,
    /// From 1.
    pub(crate) index: usize,
    pub(crate) label: &'a str,
    pub(crate) value: f64,
}

/// Writes `components.csv` of a CP model with `weights`, or of the columns of a Tucker model's factors.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn write<V: Value + Into<f64>>(
    weights: Option<&[f64]>,
    factors: &[Matrix<V>],
    labels: &[ModeLabels],
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let found: Vec<Vec<Vec<Strong>>> = factors.iter().map(strongest).collect();
    let columns = factors.iter().map(Matrix::cols).max().unwrap_or(0);
    let order = match weights {
        None => (0..columns).collect(),
        Some(weights) => {
            let mut alive = alive_components(weights);
            alive.sort_by(|&a, &b| weights[b].abs().total_cmp(&weights[a].abs()));
            alive
        }
    };
    let mut lines = Vec::new();
    for component in order {
        let weight = weights.map(|weights| weights[component]);
        for ((of_mode, labels), mode) in found.iter().zip(labels).zip(1..) {
            let entries = of_mode.get(component).into_iter().flatten();
            lines.extend(entries.zip(1..).map(|(entry, place)| Line {
                component: component + 1,
                weight,
                mode,
                name: &labels.name,
                place,
                index: entry.index + 1,
                label: labels.at(entry.index).unwrap_or_default(),
                value: entry.value,
            }));
        }
    }
    let path = folder.join("components.csv");
    files::replace(&path, |out| to_csv(&lines, out))?;
    Ok(path)
}

/// Writes lines as a table.
///
/// # Errors
///
/// Those of `out`.
pub(crate) fn to_csv(lines: &[Line<'_>], out: impl io::Write) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    let heads = ["component", "weight", "mode", "name", "place", "index", "label", "value"];
    table.write_record(heads).map_err(files::table_error)?;
    for line in lines {
        table.serialize(line).map_err(files::table_error)?;
    }
    table.flush()
}

/// An entry of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Strong {
    index: usize,
    value: f64,
}

/// Some columns of which rows have been seen.
struct Seen {
    /// By column: the entries of largest magnitude, the largest first, of equal ones the first.
    strongest: Vec<Vec<Strong>>,
    /// By column: what an entry must exceed.
    least: Vec<f64>,
    /// By column: the lowest and the highest entry.
    range: Vec<(f64, f64)>,
}

impl Seen {
    fn none(columns: usize) -> Seen {
        Seen {
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
            kept.truncate(MOST);
            if let Some(last) = kept.get(MOST - 1) {
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

/// Returns the strongest entries of every column; none of a column whose entries are equal but for rounding.
fn strongest<V: Value + Into<f64>>(factor: &Matrix<V>) -> Vec<Vec<Strong>> {
    let (rows, columns) = (factor.rows(), factor.cols());
    let look = |start: usize| {
        let mut seen = Seen::none(columns);
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
    let seen = parts.into_iter().fold(Seen::none(columns), Seen::with);
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

    use super::{MOST, ROWS, Strong, strongest};

    #[test]
    fn rounding_is_no_entry() {
        let columns = [[1.0, 2e-12], [1e-13, -1.0], [1.0 + 1e-13, 0.0]];
        let mut factor = Matrix::<f64>::zeros(3, 2).unwrap();
        (0..3).for_each(|row| factor.row_mut(row).copy_from_slice(&columns[row]));
        let indices = |found: &[Strong]| found.iter().map(|of| of.index).collect::<Vec<_>>();
        let found = strongest(&factor);
        assert_eq!((indices(&found[0]), indices(&found[1])), (vec![2, 0], vec![1, 0]));
        factor.row_mut(1)[0] = 1.0;
        assert!(strongest(&factor)[0].is_empty(), "equal but for rounding");
        let mut short = Matrix::<f32>::zeros(2, 1).unwrap();
        (short.row_mut(0)[0], short.row_mut(1)[0]) = (1.0, 1e-7);
        assert_eq!(indices(&strongest(&short)[0]), [0]);
        let mut one = Matrix::<f64>::zeros(1, 1).unwrap();
        one.row_mut(0)[0] = 2.0;
        assert_eq!(indices(&strongest(&one)[0]), [0]);
    }

    #[test]
    fn the_strongest_come_first_and_of_equal_ones_the_first() {
        let mut factor = Matrix::<f64>::zeros(3 * ROWS, 3).unwrap();
        for (index, value) in [(5, 1.0), (ROWS + 1, -3.0), (2 * ROWS, 3.0), (3 * ROWS - 1, 0.5)] {
            factor.row_mut(index)[1] = value;
        }
        (0..3 * ROWS).for_each(|index| factor.row_mut(index)[2] = 0.25);
        let found = strongest(&factor);
        assert_eq!((found[0].len(), found[2].len()), (0, 0));
        let named = |index, value| Strong { index, value };
        let want =
            [named(ROWS + 1, -3.0), named(2 * ROWS, 3.0), named(5, 1.0), named(3 * ROWS - 1, 0.5)];
        assert_eq!(found[1], want);
        let mut long = Matrix::<f32>::zeros(40, 1).unwrap();
        (0..40).for_each(|index| long.row_mut(index)[0] = index as f32);
        let found: Vec<usize> = strongest(&long)[0].iter().map(|entry| entry.index).collect();
        assert_eq!(found, (40 - MOST..40).rev().collect::<Vec<_>>());
    }
}
