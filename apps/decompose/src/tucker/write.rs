//! The files of a run: model, spectra, scores.

use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_formats::Value;
use decompose_tucker::slice_norms;

use crate::failure::Failure;
use crate::run::{Desk, Written, record};
use crate::tucker::prepare::Facts;
use crate::tucker::solve::Solved;

/// Writes all results but the history, which is there already: the model first.
///
/// # Errors
///
/// If the model cannot be written.
pub(crate) fn results<V: Value>(
    solved: &Solved<V>,
    facts: &Facts,
    desk: &Desk<'_>,
) -> Result<Written, Failure> {
    let outcome = &solved.outcome;
    let mut written = desk.model(outcome.model.write(desk.folder).map(|path| vec![path]))?;
    written.add(spectra(solved, facts, desk.folder).map(Some));
    if outcome.restarts.len() > 1 {
        written.add(record::restarts(&outcome.restarts, None, desk.folder).map(Some));
    }
    Ok(written)
}

/// Writes the norms of the core's slices, the singular values of the model in each mode, beside those of
/// the tensor's unfoldings as far as they are known.
fn spectra<V: Value>(solved: &Solved<V>, facts: &Facts, folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("spectra.csv");
    files::replace(&path, |out| {
        writeln!(out, "mode,number,singular_value,unfolding")?;
        for (norms, mode) in slice_norms(solved.outcome.model.core()).iter().zip(0..) {
            let known = facts.unfoldings.as_deref().map_or(&[][..], |all| &all[mode].values);
            for at in 0..norms.len().max(known.len()) {
                let number = |values: &[f64]| values.get(at).map(|value| format!("{value:e}"));
                let [norm, value] = [number(norms), number(known)].map(Option::unwrap_or_default);
                writeln!(out, "{},{},{norm},{value}", mode + 1, at + 1)?;
            }
        }
        Ok(())
    })?;
    Ok(path)
}
