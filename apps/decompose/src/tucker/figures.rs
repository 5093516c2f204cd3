//! The figures of a run.

use std::path::{Path, PathBuf};

use decompose_core::plot::{self, Spectra, Spectrum};
use decompose_formats::Value;
use decompose_tucker::slice_norms;

use crate::failure::Failure;
use crate::run::{Phases, figures};
use crate::tucker::prepare::Facts;
use crate::tucker::settings::{Settings, times};
use crate::tucker::solve::Solved;

/// Draws all figures into `folder` and returns their files.
///
/// # Errors
///
/// If a figure has nothing to show or cannot be written.
pub(crate) fn draw<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    phases: &Phases,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let outcome = &solved.outcome;
    let what = format!("ranks {}", times(&facts.ranks));
    let title = format!("{}, {}, {what}", settings.input.name(), settings.method_name());
    let starts = (outcome.restarts.as_slice(), settings.stop.tol);
    let mut paths = figures::course(starts, &outcome.history, (&title, &what), phases, folder)?;
    let norms = slice_norms(outcome.model.core()).into_iter().zip(&facts.tensor.labels);
    let spectrum = |(values, mode): (Vec<f64>, &crate::labels::ModeLabels)| {
        let kept = values.len();
        Spectrum { name: mode.name.clone(), values, kept }
    };
    let value_name = match settings.nonneg {
        true => "norm of a slice of the core".to_owned(),
        false => "singular value".to_owned(),
    };
    let spectra = Spectra { title, value_name, spectra: norms.map(spectrum).collect() };
    paths.extend(plot::save(&spectra, folder, "spectra")?);
    Ok(paths)
}
