//! `components.csv`: the strongest entries of every component, with their labels.
//!
//! A component of weight 0 is left out, and so is what [`strongest`] leaves out.

use std::io;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_common::strongest::{Strong, strongest};
use decompose_formats::{Matrix, Value};
use decompose_plot::alive_components;
use serde::Serialize;

use crate::failure::Failure;
use crate::labels::ModeLabels;

/// The most entries of a component in a mode.
const MOST: usize = 10;

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
    let found: Vec<Vec<Vec<Strong>>> =
        factors.iter().map(|factor| strongest(factor, MOST)).collect();
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
