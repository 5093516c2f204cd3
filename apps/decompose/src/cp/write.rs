//! The files of a run: models and scores.

use std::path::{Path, PathBuf};

use decompose_common::model;
use decompose_formats::Value;

use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::failure::Failure;
use crate::run::record;

/// Writes models and scores; returns their files and the history, which is there already.
///
/// # Errors
///
/// If a file cannot be written.
pub(crate) fn results<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let outcome = &solved.outcome;
    let mut paths = Vec::new();
    for &format in &settings.formats {
        paths.extend(model::write(&outcome.model, folder, format)?);
    }
    paths.push(folder.join("history.csv"));
    if outcome.restarts.len() > 1 {
        paths.push(record::restarts(&outcome.restarts, Some(&outcome.match_scores), folder)?);
    }
    Ok(paths)
}
