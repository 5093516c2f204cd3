//! The files of a run: models, scores, figures.

use std::path::{Path, PathBuf};

use decompose_common::model;
use decompose_formats::Value;

use crate::cp::figures;
use crate::cp::prepare::Facts;
use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::failure::Failure;
use crate::run::{Phases, record};

/// Writes everything but the history, which is there already, and the record; returns the names
/// of all files within the folder.
///
/// # Errors
///
/// If a file cannot be written.
pub(crate) fn all<V: Value + Into<f64>>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    phases: &Phases,
    folder: &Path,
) -> Result<Vec<String>, Failure> {
    let outcome = &solved.outcome;
    let write = || -> Result<Vec<_>, _> {
        settings
            .formats
            .iter()
            .map(|&format| model::write(&outcome.model, folder, format))
            .collect()
    };
    let draw = || figures::draw(settings, solved, (phases, &facts.tensor.labels), folder);
    let (models, figures) = rayon::join(write, draw);
    let mut paths: Vec<PathBuf> = models?.into_iter().flatten().collect();
    paths.push(folder.join("history.csv"));
    if outcome.restarts.len() > 1 {
        paths.push(record::restarts(&outcome.restarts, Some(&outcome.match_scores), folder)?);
    }
    paths.extend(figures?);
    Ok(record::names(&paths))
}
