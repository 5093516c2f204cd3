//! The files of a run: models, scores, figures.

use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::{files, model};
use decompose_formats::Value;

use crate::cp::figures;
use crate::cp::prepare::Facts;
use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::failure::Failure;

/// The file of a saved state.
pub(crate) const CHECKPOINT: &str = "checkpoint.npz";

/// Files that an earlier run may have left and this one may not write.
pub(crate) const STALE: &[&str] = &[
    "model.npz", "model.ktensor", "lambda.mat", "weights.csv", "checkpoint.npz", "run.json",
    "restarts.csv", "restarts.svg", "restarts.png", "convergence.svg", "convergence.png",
    "timing.svg", "timing.png", "components.svg", "components.png",
];

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
    folder: &Path,
) -> Result<Vec<String>, Failure> {
    let outcome = &solved.outcome;
    let mut paths: Vec<PathBuf> = Vec::new();
    for &format in &settings.formats {
        paths.extend(model::write(&outcome.model, folder, format)?);
    }
    paths.push(folder.join("history.csv"));
    if outcome.restarts.len() > 1 {
        paths.push(restarts(solved, folder)?);
    }
    paths.extend(figures::draw(settings, solved, (&facts.phases, &facts.labels), folder)?);
    let named = paths.iter().filter_map(|path| path.file_name());
    let names = named.map(|name| name.to_string_lossy().into_owned()).collect();
    Ok(names)
}

/// Writes how the starts ended, and the factor match score of each with each.
fn restarts<V: Value>(solved: &Solved<V>, folder: &Path) -> Result<PathBuf, Failure> {
    let outcome = &solved.outcome;
    let path = folder.join("restarts.csv");
    files::replace(&path, |out| {
        write!(out, "restart,seed,fit,relative_error,iterations,stop")?;
        (1..=outcome.restarts.len()).try_for_each(|other| write!(out, ",match_{other}"))?;
        writeln!(out)?;
        for (k, start) in outcome.restarts.iter().enumerate() {
            let (fit, error, iterations) = (start.fit, start.relative_error, start.iterations);
            let stop = serde_json::to_value(start.stop)?;
            let stop = stop.as_str().unwrap_or_default();
            write!(out, "{},{},{fit},{error:e},{iterations},{stop}", k + 1, start.seed)?;
            outcome.match_scores.row(k).iter().try_for_each(|score| write!(out, ",{score}"))?;
            writeln!(out)?;
        }
        Ok(())
    })?;
    Ok(path)
}
