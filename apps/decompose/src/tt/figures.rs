//! The figures of a run.

use decompose_common::SolverError;
use decompose_formats::Value;
use decompose_plot::{Spectra, Spectrum, Timing};
use decompose_tt::Method;

use crate::run::Phases;
use crate::run::components::{Modes, TrainVectors};
use crate::run::figures::{self, Sketches};
use crate::run::memory::figure_bytes;
use crate::tt::prepare::Facts;
use crate::tt::settings::{Settings, joined};
use crate::tt::solve::Solved;

/// Vectors shown of each mode.
const SHOWN: usize = 8;

/// Foresees the figures, drawn while the cores are copied in the precision `V` and written.
///
/// # Errors
///
/// The numbers, if the figure of the components does not fit.
pub(crate) fn foresee<V: Value>(settings: &Settings, solved: &Solved) -> Result<(), SolverError> {
    let train = &solved.outcome.train;
    let figures = figure_bytes(train.order(), settings);
    if figures == 0 || !TrainVectors::are_quick(train, SHOWN) {
        return Ok(());
    }
    let written = (train.parameters() * V::BYTES) as u64;
    TrainVectors::foresee(train, SHOWN, figures + written)
}

/// Draws all figures but that of the phases; that of the components if there is `room`.
///
/// The components of a large train take long, and are left to `decompose plot`.
pub(crate) fn draw(
    settings: &Settings,
    solved: &Solved,
    (facts, room): (&Facts, Result<(), SolverError>),
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
        sketches.try_add("components", || {
            room?;
            Ok(vectors()?.figure(&modes, &title, 0..SHOWN)?)
        });
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
