//! The files of a run: model, spectra, scores.

use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_formats::Value;
use decompose_tucker::slice_norms;

use crate::failure::Failure;
use crate::run::record;
use crate::tucker::solve::Solved;

/// Writes all results; returns their files and the history, which is there already.
///
/// # Errors
///
/// If a file cannot be written.
pub(crate) fn results<V: Value>(
    solved: &Solved<V>,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let outcome = &solved.outcome;
    let mut paths: Vec<PathBuf> = vec![outcome.model.write(folder)?, folder.join("history.csv")];
    paths.push(spectra(solved, folder)?);
    if outcome.restarts.len() > 1 {
        paths.push(record::restarts(&outcome.restarts, None, folder)?);
    }
    Ok(paths)
}

/// Writes the norms of the core's slices: the singular values of each mode.
fn spectra<V: Value>(solved: &Solved<V>, folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("spectra.csv");
    files::replace(&path, |out| {
        writeln!(out, "mode,number,singular_value")?;
        for (norms, mode) in slice_norms(solved.outcome.model.core()).iter().zip(1..) {
            for (norm, number) in norms.iter().zip(1..) {
                writeln!(out, "{mode},{number},{norm:e}")?;
            }
        }
        Ok(())
    })?;
    Ok(path)
}
