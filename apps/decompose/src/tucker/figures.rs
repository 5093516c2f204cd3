//! The figures of a run.

use decompose_formats::Value;
use decompose_plot::{Spectra, Spectrum, Timing};
use decompose_tucker::{Unfolding, slice_norms};

use crate::run::Phases;
use crate::run::components::{self, Modes};
use crate::run::figures::{self, Sketches};
use crate::tucker::prepare::Facts;
use crate::tucker::settings::{Settings, times};
use crate::tucker::solve::Solved;

/// Columns shown of each factor.
const SHOWN: usize = 8;

/// Singular values are shown up to this multiple of the rank, and a few more.
const BEYOND: usize = 3;
const FEW: usize = 10;

/// Draws all figures but that of the phases.
pub(crate) fn draw<V: Value + Into<f64>>(
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
    let modes = Modes::new(&facts.tensor.labels);
    sketches.add("components", || components::of_tucker(&outcome.model, &modes, &title, 0..SHOWN));
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

/// Returns the singular values of the tensor's unfoldings, which tell of further ranks, or where no HOSVD was
/// computed those of the model.
fn spectra<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    title: String,
) -> Spectra {
    let names = facts.tensor.labels.iter().map(|mode| mode.name.clone());
    let norms = slice_norms(solved.outcome.model.core());
    let (value_name, spectra) = match &facts.unfoldings {
        Some(unfoldings) => {
            let spectrum = |((unfolding, &rank), name): ((&Unfolding, &usize), String)| Spectrum {
                name,
                values: unfolding.values.iter().copied().take(BEYOND * rank + FEW).collect(),
                kept: rank,
                all: unfolding.extent,
                left_out: Some(unfolding.left_out),
            };
            let spectra = unfoldings.iter().zip(&facts.ranks).zip(names).map(spectrum).collect();
            ("singular value of the unfolding", spectra)
        }
        None => {
            let spectrum = |((values, name), &all): ((Vec<f64>, String), &u64)| {
                let (kept, all) = (values.len(), all as usize);
                Spectrum { name, values, kept, all, left_out: None }
            };
            let extents = &facts.tensor.report.extents;
            let spectra = norms.into_iter().zip(names).zip(extents).map(spectrum).collect();
            let what = match settings.nonneg {
                true => "norm of a slice of the core",
                false => "singular value of the model",
            };
            (what, spectra)
        }
    };
    Spectra { title, value_name: value_name.to_owned(), spectra }
}
