//! The end of a run: its files, figures and summary.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;

use decompose_common::files;
use decompose_formats::Value;
use decompose_plot::{Spectra, Spectrum, Timing};
use decompose_tucker::{Unfolding, slice_norms};
use serde::Serialize;

use crate::failure::Failure;
use crate::run::components::{self, Modes};
use crate::run::figures::{self, Sketches};
use crate::run::record::Parts;
use crate::run::strongest;
use crate::run::{Desk, Ended, Phases, RunFacts, Written};
use crate::tucker::prepare::Facts;
use crate::tucker::record;
use crate::tucker::settings::{Settings, times};
use crate::tucker::solve::Solved;

/// Columns shown of each factor.
const SHOWN: usize = 8;

/// Singular values are shown up to this multiple of the rank, and a few more.
const BEYOND: usize = 3;
const FEW: usize = 10;

/// A run that has ended.
pub(crate) struct Report<'a, V: Value> {
    pub(crate) settings: &'a Settings,
    pub(crate) solved: &'a Solved<V>,
    pub(crate) facts: &'a Facts,
}

impl<V: Value + Into<f64>> Ended for Report<'_, V> {
    fn facts(&self) -> RunFacts<'_> {
        let Facts { tensor, forecast, .. } = self.facts;
        let (settings, done) = (&self.settings.run, self.solved.done);
        RunFacts { settings, tensor, forecast: *forecast, done }
    }

    fn parts(&self) -> Parts<impl Serialize + Sync, impl Serialize + Sync, impl Serialize + Sync> {
        record::parts(self.settings, self.solved, self.facts)
    }

    fn write(&self, desk: &Desk<'_>) -> Result<Written, Failure> {
        let outcome = &self.solved.outcome;
        let mut written = desk.model(outcome.model.write(desk.folder).map(|path| vec![path]))?;
        let (factors, labels) = (outcome.model.factors(), &self.facts.tensor.labels);
        written.add(strongest::write(None, factors, labels, desk.folder).map(Some));
        written.add(self.write_spectra(desk).map(Some));
        written.add_restarts(&outcome.restarts, None, desk);
        Ok(written)
    }

    fn draw(&self, sketches: &mut Sketches<'_>) {
        let (outcome, tol) = (&self.solved.outcome, self.settings.stop.tol);
        let (title, what) = (self.title(), format!("ranks {}", times(&self.facts.ranks)));
        let course =
            || Ok(figures::convergence(&outcome.restarts, &outcome.history, tol, &title, &what));
        sketches.add("convergence", course);
        let modes = Modes::new(&self.facts.tensor.labels);
        let components = || components::of_tucker(&outcome.model, &modes, &title, 0..SHOWN);
        sketches.add("components", components);
        sketches.add("spectra", || Ok(self.spectra()));
    }

    fn timing(&self, phases: &Phases) -> Option<Timing> {
        Some(figures::timing(&self.solved.outcome.history, phases, &self.title()))
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.solved.outcome;
        let best = outcome.best();
        writeln!(f, "fit         {:.9} (relative error {:.3e})", best.fit, best.relative_error)?;
        if let Some(bound) = self.facts.bound {
            writeln!(
                f,
                "bound       relative error at most {bound:.3e}, by the singular values left out"
            )?;
        }
        let followed = outcome.restarts.len() > self.settings.restarts;
        if let Some(fit) = outcome.hosvd_fit {
            let how = if followed {
                "all starts ended below, so it was continued from"
            } else {
                "less than the fit"
            };
            writeln!(f, "HOSVD       fit {fit:.9}; {how}")?;
        }
        if outcome.model.core().iter().all(|&g| g == 0.0) {
            let why = "no nonnegative model is nearer to this tensor";
            writeln!(f, "zero        the model is zero everywhere: {why}")?;
        }
        let cells = outcome.model.extents().iter().map(|&e| e as f64).product::<f64>();
        let numbers = outcome.model.core().len() as f64
            + outcome.model.factors().iter().map(|u| (u.rows() * u.cols()) as f64).sum::<f64>();
        let (ranks, nnz) = (times(&self.facts.ranks), self.facts.tensor.nnz as f64);
        writeln!(
            f,
            "model       ranks {ranks}: {numbers:.0} numbers for {nnz:.0} non-zeros of {cells:.3e} cells",
        )?;
        let count = outcome.restarts.len();
        if count > 1 {
            let number = outcome.best + 1;
            let from =
                if followed { "from the HOSVD".into() } else { format!("seed {}", best.seed) };
            writeln!(f, "best start  {number} of {count}, {from}")?;
        }
        writeln!(f, "iterations  {}; {}", best.iterations, best.stop)
    }
}

impl<V: Value> Report<'_, V> {
    fn title(&self) -> String {
        let ranks = times(&self.facts.ranks);
        let (name, method) = (self.settings.input.name(), self.settings.method_name());
        format!("{name}, {method}, ranks {ranks}")
    }

    /// Writes the norms of the core's slices, the singular values of the model in each mode, beside those of
    /// the tensor's unfoldings as far as they are known.
    fn write_spectra(&self, desk: &Desk<'_>) -> Result<PathBuf, Failure> {
        let path = desk.folder.join("spectra.csv");
        files::replace(&path, |out| {
            writeln!(out, "mode,number,singular_value,unfolding")?;
            for (norms, mode) in slice_norms(self.solved.outcome.model.core()).iter().zip(0..) {
                let known =
                    self.facts.unfoldings.as_deref().map_or(&[][..], |all| &all[mode].values);
                for at in 0..norms.len().max(known.len()) {
                    let number = |values: &[f64]| values.get(at).map(|value| format!("{value:e}"));
                    let [norm, value] =
                        [number(norms), number(known)].map(Option::unwrap_or_default);
                    writeln!(out, "{},{},{norm},{value}", mode + 1, at + 1)?;
                }
            }
            Ok(())
        })?;
        Ok(path)
    }

    /// Returns the singular values of the tensor's unfoldings, which tell of further ranks, or where no HOSVD was
    /// computed those of the model.
    fn spectra(&self) -> Spectra {
        let names = self.facts.tensor.labels.iter().map(|mode| mode.name.clone());
        let norms = slice_norms(self.solved.outcome.model.core());
        let (value_name, spectra) = match &self.facts.unfoldings {
            Some(unfoldings) => {
                let spectrum =
                    |((unfolding, &rank), name): ((&Unfolding, &usize), String)| Spectrum {
                        name,
                        values: unfolding
                            .values
                            .iter()
                            .copied()
                            .take(BEYOND * rank + FEW)
                            .collect(),
                        kept: rank,
                        all: unfolding.extent,
                        left_out: Some(unfolding.left_out),
                    };
                let spectra =
                    unfoldings.iter().zip(&self.facts.ranks).zip(names).map(spectrum).collect();
                ("singular value of the unfolding", spectra)
            }
            None => {
                let spectrum = |((values, name), &all): ((Vec<f64>, String), &u64)| {
                    let (kept, all) = (values.len(), all as usize);
                    Spectrum { name, values, kept, all, left_out: None }
                };
                let extents = &self.facts.tensor.report.extents;
                let spectra = norms.into_iter().zip(names).zip(extents).map(spectrum).collect();
                let what = match self.settings.nonneg {
                    true => "norm of a slice of the core",
                    false => "singular value of the model",
                };
                (what, spectra)
            }
        };
        Spectra { title: self.title(), value_name: value_name.to_owned(), spectra }
    }
}
