//! The end of a run: its files, figures and summary.

use std::fmt;

use decompose_common::model::{self, ModelFormat};
use decompose_formats::Value;
use decompose_plot::{ComponentChoice, ScoreMatrix, Timing};
use serde::Serialize;

use crate::cp::prepare::Facts;
use crate::cp::record;
use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::failure::Failure;
use crate::run::components::{self, Modes};
use crate::run::figures::{self, Sketches};
use crate::run::record::Parts;
use crate::run::strongest;
use crate::run::{Desk, Ended, Phases, RunFacts, Written};

/// A factor match score from which two models count as the same: 0.99 in each of three modes.
const SAME: f64 = 0.97;

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
        let mut written =
            desk.model(model::write(&outcome.model, desk.folder, ModelFormat::Npz))?;
        let others = self.settings.formats.iter().filter(|&&format| format != ModelFormat::Npz);
        let labels = self.facts.tensor.labels.iter();
        let labels: Vec<&[String]> = labels.map(|mode| mode.indices.as_slice()).collect();
        others.for_each(|&format| {
            written.add(match format {
                ModelFormat::Csv => model::write_csv(&outcome.model, desk.folder, &labels),
                _ => model::write(&outcome.model, desk.folder, format),
            });
        });
        let (weights, factors) = (outcome.model.weights(), outcome.model.factors());
        let labels = &self.facts.tensor.labels;
        written.add(strongest::write(Some(weights), factors, labels, desk.folder).map(Some));
        written.add_restarts(&outcome.restarts, Some(&outcome.match_scores), desk);
        Ok(written)
    }

    fn draw(&self, sketches: &mut Sketches<'_>) {
        let (outcome, tol) = (&self.solved.outcome, self.settings.stop.tol);
        let title = self.title();
        let what = format!("rank {}", outcome.model.rank());
        let modes = Modes::new(&self.facts.tensor.labels);
        let choice = ComponentChoice::default();
        let components = || components::of_cp(&outcome.model, &modes, &title, &choice);
        let course =
            || Ok(figures::convergence(&outcome.restarts, &outcome.history, tol, &title, &what));
        sketches.both(
            |sketches| sketches.add("components", components),
            |sketches| {
                sketches.add("convergence", course);
                if outcome.restarts.len() > 1 {
                    sketches.add("restarts", || Ok(self.scores()));
                }
            },
        );
    }

    fn timing(&self, phases: &Phases) -> Option<Timing> {
        Some(figures::timing(&self.solved.outcome.history, phases, &self.title()))
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.solved.outcome;
        let best = outcome.best();
        let count = outcome.restarts.len();
        writeln!(f, "fit         {:.9} (relative error {:.3e})", best.fit, best.relative_error)?;
        let zero: Vec<String> =
            outcome.model.zero_components().iter().map(|r| (r + 1).to_string()).collect();
        if !zero.is_empty() {
            let (dead, rank) = (zero.len(), outcome.model.rank());
            let are = if dead == 1 { "is" } else { "are" };
            writeln!(f, "zero        {dead} of {rank} components {are} zero: {}", zero.join(", "))?;
        }
        if count > 1 {
            let number = outcome.best + 1;
            writeln!(f, "best start  {number} of {count}, seed {}", best.seed)?;
            let scores = &outcome.match_scores;
            let others = (0..count).filter(|&k| k != outcome.best);
            let close = others.filter(|&k| scores[(outcome.best, k)] >= SAME).count();
            let rest = count - 1;
            writeln!(f, "stability   {close} of {rest} other starts found the same components")?;
        }
        writeln!(f, "iterations  {}; {}", best.iterations, best.stop)
    }
}

impl<V: Value> Report<'_, V> {
    fn title(&self) -> String {
        let rank = self.solved.outcome.model.rank();
        format!("{}, CP-ALS, rank {rank}", self.settings.input.name())
    }

    fn scores(&self) -> ScoreMatrix {
        let outcome = &self.solved.outcome;
        let names: Vec<String> =
            outcome.restarts.iter().map(|start| format!("seed {}", start.seed)).collect();
        ScoreMatrix {
            title: self.title(),
            score_name: "factor match score".into(),
            rows: names.clone(),
            columns: names,
            scores: outcome.match_scores.rows().into_iter().map(|row| row.to_vec()).collect(),
            range: (0.0, 1.0),
        }
    }
}
