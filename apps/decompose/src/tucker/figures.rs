//! The figures of a run.

use decompose_core::plot::{Spectra, Spectrum, Timing};
use decompose_formats::Value;
use decompose_tucker::slice_norms;

use crate::run::Phases;
use crate::run::figures::{self, Sketches};
use crate::tucker::prepare::Facts;
use crate::tucker::settings::{Settings, times};
use crate::tucker::solve::Solved;

/// Draws all figures but that of the phases.
pub(crate) fn draw<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    sketches: &mut Sketches<'_>,
) {
    let outcome = &solved.outcome;
    let (title, what) = (title(settings, facts), format!("ranks {}", times(&facts.ranks)));
    let starts = (outcome.restarts.as_slice(), settings.stop.tol);
    let course = || Ok(figures::convergence(starts, &outcome.history, (&title, &what)));
    sketches.add("convergence", course);
    sketches.add("spectra", || Ok(spectra(settings, solved, facts, title.clone())));
}

/// Returns the figure of the phases.
pub(crate) fn timing<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    phases: &Phases,
) -> Timing {
    figures::timing(&solved.outcome.history, phases, &title(settings, facts))
}

fn title(settings: &Settings, facts: &Facts) -> String {
    let ranks = times(&facts.ranks);
    format!("{}, {}, ranks {ranks}", settings.input.name(), settings.method_name())
}

fn spectra<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    title: String,
) -> Spectra {
    let norms = slice_norms(solved.outcome.model.core()).into_iter().zip(&facts.tensor.labels);
    let spectrum = |(values, mode): (Vec<f64>, &crate::labels::ModeLabels)| {
        let kept = values.len();
        Spectrum { name: mode.name.clone(), values, kept }
    };
    let value_name = match settings.nonneg {
        true => "norm of a slice of the core".to_owned(),
        false => "singular value".to_owned(),
    };
    Spectra { title, value_name, spectra: norms.map(spectrum).collect() }
}
