//! The figures of a run.

use std::path::{Path, PathBuf};

use decompose_core::plot::{self, Spectra, Spectrum};
use decompose_tt::Method;

use crate::failure::Failure;
use crate::run::{Phases, figures};
use crate::tt::settings::{Settings, joined};
use crate::tt::solve::Solved;

/// Draws all figures into `folder` and returns their files.
///
/// # Errors
///
/// If a figure has nothing to show or cannot be written.
pub(crate) fn draw(
    settings: &Settings,
    solved: &Solved,
    phases: &Phases,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let outcome = &solved.outcome;
    let ranks = joined(&outcome.train.ranks(), "-");
    let method = settings.config.method;
    let title = format!("{}, tensor train by {method}, ranks {ranks}", settings.input.name());
    let mut paths = match method {
        Method::Svd => {
            let timing = figures::timing(&outcome.history, phases, &title);
            plot::save(&timing, folder, "timing")?.to_vec()
        }
        Method::Als | Method::Dmrg => {
            let starts = (outcome.restarts.as_slice(), settings.stop.tol);
            let what = format!("ranks {ranks}");
            figures::course(starts, &outcome.history, (&title, &what), phases, folder)?
        }
    };
    let figure = spectra(title, &outcome.spectra, &outcome.train.ranks());
    paths.extend(plot::save(&figure, folder, "spectra")?);
    Ok(paths)
}

/// Returns the figure of singular values by bond, of which `ranks` were kept.
pub(crate) fn spectra(title: String, spectra: &[Vec<f64>], ranks: &[usize]) -> Spectra {
    let line = |((values, &kept), bond): ((&Vec<f64>, &usize), usize)| Spectrum {
        name: format!("bond {bond}"),
        values: values.clone(),
        kept,
    };
    let spectra = spectra.iter().zip(ranks).zip(1..).map(line).collect();
    Spectra { title, value_name: "singular value".into(), spectra }
}
