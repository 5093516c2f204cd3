//! The end of a run: its files, figures and summary.

use std::fmt;
use std::marker::PhantomData;

use decompose_formats::Value;
use decompose_formats::stats::grouped;
use decompose_plot::Timing;
use decompose_tt::{Measured, Method, TtOutcome};
use serde::Serialize;

use crate::failure::Failure;
use crate::run::components::{Modes, TrainVectors};
use crate::run::figures::{self, Sketches};
use crate::run::memory::figure_bytes;
use crate::run::record::Parts;
use crate::run::{Desk, Ended, Phases, RunFacts, Written};
use crate::tt::prepare::Facts;
use crate::tt::settings::{Settings, joined, times};
use crate::tt::solve::Solved;
use crate::tt::{record, spectra};

/// Vectors shown of each mode.
const SHOWN: usize = 8;

/// A run that has ended, whose cores are written in the precision `V`.
pub(crate) struct Report<'a, V: Value> {
    settings: &'a Settings,
    solved: &'a Solved,
    facts: &'a Facts,
    /// Whether there is memory for the figure of the components.
    room: Result<(), Failure>,
    precision: PhantomData<V>,
}

impl<V: Value> Ended for Report<'_, V> {
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
        let model = outcome.train.to_model::<V>(self.facts.ordering.order.clone())?;
        let mut written = desk.model(model.write(desk.folder).map(|path| vec![path]))?;
        written.add_restarts(&outcome.restarts, None, desk);
        let table = spectra::write(&outcome.spectra, &outcome.train.ranks(), desk.folder);
        written.add(table.map(Some));
        Ok(written)
    }

    /// The components of a large train take long, and are left to `decompose plot`.
    fn draw(&self, sketches: &mut Sketches<'_>) {
        let (outcome, tol) = (&self.solved.outcome, self.settings.stop.tol);
        let title = self.title();
        match self.settings.config.method {
            Method::Svd => {}
            Method::Als | Method::Dmrg => {
                let what = format!("ranks {}", joined(&outcome.train.ranks(), "-"));
                let course = || {
                    Ok(figures::convergence(
                        &outcome.restarts, &outcome.history, tol, &title, &what,
                    ))
                };
                sketches.add("convergence", course);
            }
        }
        if TrainVectors::are_quick(&outcome.train, SHOWN) {
            let modes = Modes::new(&self.facts.tensor.labels);
            let order = self.facts.ordering.order.modes();
            let vectors = || TrainVectors::of(&outcome.train, order, SHOWN);
            sketches.try_add("components", || {
                self.room.clone()?;
                Ok(vectors()?.figure(&modes, &title, 0..SHOWN)?)
            });
        } else {
            let folder = self.settings.folder.display();
            sketches.warnings.push(format!(
                "the figure `components` is left out, since it takes long: draw it with \
                 `decompose plot {folder} --components {SHOWN}`"
            ));
        }
        let (values, ranks) = (&outcome.spectra, outcome.train.ranks());
        sketches.add("spectra", || Ok(spectra::figure(title.clone(), values, &ranks)));
    }

    fn timing(&self, phases: &Phases) -> Option<Timing> {
        Some(figures::timing(&self.solved.outcome.history, phases, &self.title()))
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.solved.outcome;
        let best = outcome.best();
        writeln!(f, "error       {}", error(outcome))?;
        let (order, ranks) = (&self.facts.ordering.order, joined(&outcome.train.ranks(), "-"));
        writeln!(f, "train       ranks {ranks}, modes {order}; {}", numbers(outcome))?;
        if outcome.restarts.len() > 1 {
            let (number, count) = (outcome.best + 1, outcome.restarts.len());
            writeln!(f, "best start  {number} of {count}, seed {}", best.seed)?;
        }
        writeln!(f, "iterations  {}; {}", best.iterations, best.stop)
    }
}

impl<'a, V: Value> Report<'a, V> {
    /// Reports a run, and foresees the figures, drawn while the cores are copied and written.
    pub(crate) fn new(settings: &'a Settings, solved: &'a Solved, facts: &'a Facts) -> Self {
        let train = &solved.outcome.train;
        let figures = figure_bytes(train.order(), settings);
        let room = if figures == 0 || !TrainVectors::are_quick(train, SHOWN) {
            Ok(())
        } else {
            let written = (train.parameters() * V::BYTES) as u64;
            TrainVectors::foresee(train, SHOWN, figures + written).map_err(Failure::from)
        };
        Report { settings, solved, facts, room, precision: PhantomData }
    }

    fn title(&self) -> String {
        let ranks = joined(&self.solved.outcome.train.ranks(), "-");
        let (name, method) = (self.settings.input.name(), self.settings.config.method);
        format!("{name}, tensor train by {method}, ranks {ranks}")
    }
}

/// The measured error, how it was measured, and the bound asked for.
fn error(outcome: &TtOutcome) -> String {
    let verified = &outcome.verified;
    let how = match verified.measured {
        Measured::InnerProduct => "measured by <X,T> over the non-zeros",
        Measured::Cells => "measured cell by cell",
        Measured::Entries => "at most, measured at the non-zeros",
    };
    let error = match verified.relative_error < verified.floor {
        true => format!("under {:.1e}", verified.floor),
        false => format!("{:.6e}", verified.relative_error),
    };
    let bound = match (outcome.bound, outcome.keeps_bound()) {
        (Some(bound), Some(true)) => format!("; the bound {bound:e} is kept"),
        (Some(bound), Some(false)) => format!("; the bound {bound:e} is NOT kept"),
        (Some(bound), None) => format!("; the bound {bound:e} is below what can be measured"),
        (None, _) => String::new(),
    };
    format!("{error} of ||X||, {how}{bound}")
}

fn numbers(outcome: &TtOutcome) -> String {
    let numbers = grouped(outcome.train.parameters() as u64);
    format!("{numbers} numbers, {} times fewer than cells", times(outcome.compression()))
}
