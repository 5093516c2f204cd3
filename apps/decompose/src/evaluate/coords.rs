//! Coordinates from a file, with a value behind them or none, inside the extents of a model.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use decompose_formats::io::{Base, Compression, ReadReport};
use decompose_formats::{Coo, Ints, Width};

use crate::evaluate::predict::Unknown;
use crate::failure::Failure;

/// Returns the coordinates of a list as it was read, one array a mode of `extents`.
///
/// A text file may leave out the values: its last column is then the last coordinate.
///
/// # Errors
///
/// A list of another order; with [`Unknown::Error`] a coordinate outside of the extents, with file,
/// line and mode.
pub(crate) fn of_list(
    list: Coo<f64>,
    report: &ReadReport,
    extents: &[u64],
    unknown: Unknown,
) -> Result<Vec<Ints>, Failure> {
    let order = list.order();
    let (_, mut coords, values) = list.into_parts();
    if order + 1 == extents.len() && report.text.is_some() {
        coords.push(last_column(&values, report, extents[order], unknown)?);
    } else if order != extents.len() {
        let (file, want) = (&report.file, extents.len());
        return Err(Failure::input(format!("{file} is of order {order}, the model of {want}")));
    }
    for (mode, (column, &extent)) in coords.iter().zip(extents).enumerate() {
        if unknown == Unknown::Error && column.max().is_some_and(|max| max >= extent) {
            let entry = column.iter().position(|index| index >= extent).unwrap_or(0);
            let (from, index) = (offset(report), column.get(entry));
            return Err(outside((index + from).to_string(), entry, mode, extent, report));
        }
    }
    Ok(coords)
}

/// Returns `coords` with the last index of `extents` in the place of all beyond it, and how many
/// entries have that index in some mode.
pub(crate) fn within(coords: &[Ints], extents: &[u64]) -> (Vec<Ints>, usize) {
    let count = coords.first().map_or(0, Ints::len);
    let mut outside = vec![false; count];
    let one = |(column, &extent): (&Ints, &u64)| -> Ints {
        let last = extent - 1;
        column
            .iter()
            .zip(&mut outside)
            .filter(|(index, _)| *index >= last)
            .for_each(|(_, o)| *o = true);
        Ints::collect(column.iter().map(|index| index.min(last)), Width::below(extent))
    };
    let inside = coords.iter().zip(extents).map(one).collect();
    (inside, outside.into_iter().filter(|&outside| outside).count())
}

/// Takes the column that was read as values for coordinates.
fn last_column(
    values: &[f64],
    report: &ReadReport,
    extent: u64,
    unknown: Unknown,
) -> Result<Ints, Failure> {
    let from = offset(report) as f64;
    // Beyond this, doubles do not tell neighbours apart.
    let end = if unknown == Unknown::Error { extent } else { 1 << 53 };
    let index = |(entry, &value): (usize, &f64)| match value - from {
        index if index >= 0.0 && index.fract() == 0.0 && index < end as f64 => Ok(index as u64),
        _ => Err((entry, value)),
    };
    let indices: Result<Vec<u64>, (usize, f64)> = values.iter().enumerate().map(index).collect();
    let largest = indices.iter().flatten().max().map_or(extent, |&max| extent.max(max + 1));
    match indices {
        Ok(indices) => Ok(Ints::collect(indices, Width::listed(largest))),
        Err((entry, value)) => {
            let mode = report.extents.len();
            Err(outside(value.to_string(), entry, mode, extent, report)
                .help("a line is `i j k` or `i j k value`; see --base if indices count from 0"))
        }
    }
}

/// From where the indices of the file count.
fn offset(report: &ReadReport) -> u64 {
    match report.text.as_ref().map(|text| text.base) {
        Some(Base::Zero) => 0,
        Some(Base::One) | None => 1,
    }
}

/// Names the place of an `index` beyond the `extent` that the model has in `mode`.
fn outside(index: String, entry: usize, mode: usize, extent: u64, report: &ReadReport) -> Failure {
    let place = match line_of(entry, report) {
        Some(line) => format!("{}:{line}", report.file),
        None => format!("{}, entry {}", report.file, entry + 1),
    };
    let mode = mode + 1;
    Failure::input(format!("{place}: index {index} in mode {mode} is outside of the model")).help(
        format!(
            "the model has the extent {extent} in mode {mode}; `decompose predict --unknown mean` \
             takes the mean of the mode for such indices"
        ),
    )
}

/// Returns the line of an entry in a plain text file, from 1.
fn line_of(entry: usize, report: &ReadReport) -> Option<usize> {
    if report.text.is_none() || report.compression != Compression::None {
        return None;
    }
    let file = BufReader::new(File::open(Path::new(&report.file)).ok()?);
    let is_data =
        |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with(['#', '%']);
    let lines: Vec<usize> = file
        .lines()
        .zip(1..)
        .filter_map(|(line, number)| is_data(&line.ok()?).then_some(number))
        .collect();
    // A header stands before the entries.
    let header = lines.len().checked_sub(report.entries as usize)?;
    lines.get(header + entry).copied()
}
