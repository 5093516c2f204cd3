//! The figures of a run.

use decompose_core::plot::{Spectra, Spectrum, Timing};
use decompose_tt::Method;

use crate::run::Phases;
use crate::run::components::{Modes, TrainVectors};
use crate::run::figures::{self, Sketches};
use crate::tt::prepare::Facts;
use crate::tt::settings::{Settings, joined};
use crate::tt::solve::Solved;

/// Vectors shown of each mode.
const SHOWN: usize = 8;

/// Draws all figures but that of the phases.
///
/// The components of a large train take long, and are left to `decompose plot`.
pub(crate) fn draw(
    settings: &Settings,
    solved: &Solved,
    facts: &Facts,
    sketches: &mut Sketches<'_>,
) {
    let outcome = &solved.outcome;
    let title = title(settings, solved);
    match settings.config.method {
        Method::Svd => {}
        Method::Als | Method::Dmrg => {
            let starts = (outcome.restarts.as_slice(), settings.stop.tol);
            let what = format!("ranks {}", joined(&outcome.train.ranks(), "-"));
            let course = || Ok(figures::convergence(starts, &outcome.history, (&title, &what)));
            sketches.add("convergence", course);
        }
    }
    if TrainVectors::are_quick(&outcome.train, SHOWN) {
        let modes = Modes::new(&facts.tensor.labels);
        let order = facts.ordering.order.modes();
        let vectors = || TrainVectors::of(&outcome.train, order, SHOWN);
        sketches.try_add("components", || Ok(vectors()?.figure(&modes, &title, 0..SHOWN)?));
    } else {
        let folder = settings.folder.display();
        sketches.warnings.push(format!(
            "the figure `components` is left out, since it takes long: draw it with \
             `decompose plot {folder} --components {SHOWN}`"
        ));
    }
    let (values, ranks) = (&outcome.spectra, outcome.train.ranks());
    sketches.add("spectra", || Ok(spectra(title.clone(), values, &ranks)));
}

/// Returns the figure of the phases.
pub(crate) fn timing(settings: &Settings, solved: &Solved, phases: &Phases) -> Timing {
    figures::timing(&solved.outcome.history, phases, &title(settings, solved))
}

fn title(settings: &Settings, solved: &Solved) -> String {
    let ranks = joined(&solved.outcome.train.ranks(), "-");
    let method = settings.config.method;
    format!("{}, tensor train by {method}, ranks {ranks}", settings.input.name())
}

/// Returns the figure of singular values by bond, of which `ranks` were kept.
pub(crate) fn spectra(title: String, spectra: &[Vec<f64>], ranks: &[usize]) -> Spectra {
    let line = |((values, &kept), bond): ((&Vec<f64>, &usize), usize)| Spectrum {
        name: format!("bond {bond}"),
        values: values.clone(),
        kept,
        all: values.len(),
        left_out: None,
    };
    let spectra = spectra.iter().zip(ranks).zip(1..).map(line).collect();
    Spectra { title, value_name: "singular value".into(), spectra }
}
