//! The files of a run: the model, scores, the singular values.

use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_formats::Value;

use crate::failure::Failure;
use crate::run::{Desk, Written, record};
use crate::tt::prepare::Facts;
use crate::tt::solve::Solved;

/// Writes all results but the history, which is there already: the model first.
///
/// # Errors
///
/// If the model cannot be written.
pub(crate) fn results<V: Value>(
    solved: &Solved,
    facts: &Facts,
    desk: &Desk<'_>,
) -> Result<Written, Failure> {
    let outcome = &solved.outcome;
    let model = outcome.train.to_model::<V>(facts.ordering.order.clone())?;
    let mut written = desk.model(model.write(desk.folder).map(|path| vec![path]))?;
    if outcome.restarts.len() > 1 {
        written.add(record::restarts(&outcome.restarts, None, desk.folder).map(Some));
    }
    written.add(spectra(&outcome.spectra, &outcome.train.ranks(), desk.folder).map(Some));
    Ok(written)
}

/// Writes `spectra.csv`: the singular values at each bond, and whether they were kept.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn spectra(
    spectra: &[Vec<f64>],
    ranks: &[usize],
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let path = folder.join("spectra.csv");
    files::replace(&path, |out| {
        writeln!(out, "bond,number,singular_value,kept")?;
        for ((values, &rank), bond) in spectra.iter().zip(ranks).zip(1..) {
            for (value, number) in values.iter().zip(1..) {
                writeln!(out, "{bond},{number},{value:e},{}", number <= rank)?;
            }
        }
        Ok(())
    })?;
    Ok(path)
}
