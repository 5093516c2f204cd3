//! The end of a run: its files, figures and summary.

use std::fmt;

use decompose_common::model::{Meaning, Model, Stored};
use decompose_complete::{EpochRecord, Loss, Quality, Reg, Scores};
use decompose_formats::counted;
use decompose_plot::{ComponentChoice, Timing, TimingComponent, TimingPhase, TimingRun};
use decompose_tt::Train;
use serde::Serialize;

use crate::cli::Done;
use crate::complete::data::Loaded;
use crate::complete::figures::{self, number, short};
use crate::complete::predictions::Predictions;
use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::complete::{judged, record};
use crate::evaluate::bits;
use crate::failure::Failure;
use crate::run::components::{self, Modes, TrainVectors};
use crate::run::console::Console;
use crate::run::figures::Sketches;
use crate::run::record::Parts;
use crate::run::strongest;
use crate::run::{Desk, Ended, Phases, RunFacts, Written};

/// A run that has ended.
pub(crate) struct Report<'a> {
    settings: &'a Settings,
    solved: &'a Solved,
    loaded: &'a Loaded,
    predictions: Option<Predictions>,
    /// Of the held-out entries, if there are any.
    quality: Option<Quality>,
    stored: Stored<f64>,
}

impl<'a> Report<'a> {
    /// Reports a run, and predicts its held-out entries; it goes without them where that fails.
    ///
    /// # Errors
    ///
    /// If there is no model.
    pub(crate) fn new(
        settings: &'a Settings,
        solved: &'a Solved,
        loaded: &'a Loaded,
        console: &mut Console,
    ) -> Result<Report<'a>, Failure> {
        let predict = || Predictions::of(settings, solved, &loaded.parts);
        let predictions = console.phase("predict", predict).unwrap_or_else(|failure| {
            console.trouble(&failure);
            None
        });
        let quality = predictions.as_ref().map(Predictions::quality);
        let stored = stored(settings, solved, loaded)?;
        Ok(Report { settings, solved, loaded, predictions, quality, stored })
    }

    fn title(&self) -> String {
        format!("{}, completion by {}", self.settings.input.name(), self.settings.model_name())
    }

    /// Says which ridge was chosen and by what.
    fn choice(&self) -> String {
        let outcome = &self.solved.outcome;
        let ridge = number(outcome.starts[outcome.best_start].reg.first().copied().unwrap_or(0.0));
        let rounds = outcome.starts.len();
        match outcome.held_out {
            None => {
                let fits = counted(rounds, "fit", "fits");
                format!("{ridge}, chosen of {fits} by the validation error")
            }
            Some(entries) if self.solved.done == Done::Complete => format!(
                "{ridge}, chosen of {} by {entries} of the training entries, then fitted to all",
                counted(rounds - 1, "fit", "fits")
            ),
            Some(entries) => format!("{ridge}, so far, by {entries} of the training entries"),
        }
    }
}

impl Ended for Report<'_> {
    fn facts(&self) -> RunFacts<'_> {
        let Loaded { tensor, forecast, .. } = self.loaded;
        let (settings, done) = (&self.settings.run, self.solved.done);
        RunFacts { settings, tensor, forecast: *forecast, done }
    }

    fn parts(&self) -> Parts<impl Serialize + Sync, impl Serialize + Sync, impl Serialize + Sync> {
        record::parts(self.settings, self.solved, self.loaded, self.quality)
    }

    fn write(&self, desk: &Desk<'_>) -> Result<Written, Failure> {
        let mut written = desk.model(self.stored.write(desk.folder).map(|path| vec![path]))?;
        let labels = &self.loaded.tensor.labels;
        let table = |weights, factors| strongest::write(weights, factors, labels, desk.folder);
        match &self.stored.model {
            Model::Cp(cp) => written.add(table(Some(cp.weights()), cp.factors()).map(Some)),
            Model::Tucker(tucker) => written.add(table(None, tucker.factors()).map(Some)),
            Model::Tt(_) => {}
        }
        if let Some(predictions) = &self.predictions {
            written.add(predictions.write(desk.folder, &self.loaded.tensor.labels).map(Some));
        }
        Ok(written)
    }

    fn draw(&self, sketches: &mut Sketches<'_>) {
        let title = self.title();
        sketches.add("convergence", || Ok(figures::errors(self.solved, &title)));
        if let Some(predictions) = &self.predictions {
            sketches.add("predictions", || Ok(judged::figure(predictions, &title)));
        }
        let modes = Modes::new(&self.loaded.tensor.labels);
        let choice = ComponentChoice::default();
        let places = choice.places.clone();
        sketches.try_add("components", || {
            Ok(match &self.stored.model {
                Model::Cp(cp) => components::of_cp(cp, &modes, &title, &choice)?,
                Model::Tucker(tucker) => components::of_tucker(tucker, &modes, &title, places)?,
                Model::Tt(model) => {
                    let (train, order) = (Train::of_model(model), model.order().modes());
                    TrainVectors::foresee(&train, places.end, 0)?;
                    TrainVectors::of(&train, order, places.end)?.figure(&modes, &title, places)?
                }
            })
        });
    }

    /// The seconds of the phases and of the epochs kept.
    fn timing(&self, phases: &Phases) -> Option<Timing> {
        let phases =
            phases.0.iter().map(|&(name, seconds)| TimingPhase { name: name.into(), seconds });
        let part = |name: &str, of: fn(&EpochRecord) -> f64| TimingComponent {
            name: name.into(),
            seconds: self.solved.outcome.course().map(of).collect(),
        };
        let components =
            vec![part("epoch", |epoch| epoch.seconds), part("judge", |epoch| epoch.judge_seconds)];
        let run = TimingRun { name: String::new(), phases: phases.collect(), components };
        Some(Timing { title: self.title(), runs: vec![run] })
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.solved.outcome;
        let best = &outcome.best;
        let name = best.train.error_name();
        writeln!(f, "{name:<20}      training    validation          test")?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, scores: [Option<Scores>; 3]| {
            write!(f, "{name:<20}")?;
            for scores in scores {
                match scores {
                    Some(scores) => write!(f, "  {:>12}", number(scores.error()))?,
                    None => write!(f, "  {:>12}", "-")?,
                }
            }
            writeln!(f)
        };
        for b in &outcome.baselines {
            row(f, &b.name, [Some(b.train), b.val, b.test])?;
        }
        row(f, "model", [Some(best.train), best.val, best.test])?;
        let judged = best.test.or(best.val).unwrap_or(best.train);
        let r2 = self.quality.and_then(|quality| quality.r2);
        let r2 = r2.map(|r2| format!(", R2 {r2:.6}")).unwrap_or_default();
        writeln!(f, "held out    RMSE {}, MAE {}{r2}", number(judged.rmse), number(judged.mae))?;
        let quality = self.quality.and_then(|quality| quality.bits);
        for (name, text) in quality.iter().flat_map(bits) {
            writeln!(f, "{name:<12}{text}")?;
        }
        let of = |b: &decompose_complete::Baseline| b.test.or(b.val).unwrap_or(b.train).error();
        let least = outcome.baselines.iter().map(of).fold(f64::INFINITY, f64::min);
        if let Some(value) = self.loaded.parts.only_value() {
            let why = "zeros seem not to be listed, and there is nothing to learn";
            writeln!(f, "warning     every listed value is {}: {why}", short(value))?;
        } else if judged.error() >= least {
            let remedy = match outcome.is_unfinished() {
                true => "its fit had not ended",
                false => "try another rank, or a stronger --reg",
            };
            writeln!(f, "warning     the model predicts no better than a mean; {remedy}")?;
        }
        let epochs = outcome.starts[outcome.best_start].epochs;
        writeln!(f, "epochs      {epochs}, the best {}; {}", best.epoch, outcome.stop)?;
        let best = &outcome.starts[outcome.best_start];
        let count = outcome.starts.last().map_or(0, |last| last.start + 1);
        if self.settings.restarts > 1 {
            writeln!(f, "best start  {} of {count}", best.start + 1)?;
        }
        if self.settings.reg == Reg::Chosen {
            writeln!(f, "ridge       {}", self.choice())?;
        }
        Ok(())
    }
}

/// Returns the model as it is written, with what its values mean.
fn stored(settings: &Settings, solved: &Solved, loaded: &Loaded) -> Result<Stored<f64>, Failure> {
    let loss: Loss = settings.loss();
    let model = solved.outcome.model(&settings.kind(loaded.parts.train.order()))?;
    let meaning = Meaning {
        loss: Some(loss.to_string()),
        link: loss.scale(),
        biases: match &model {
            Model::Cp(cp) => cp.rank() - solved.outcome.rank,
            Model::Tucker(_) | Model::Tt(_) => 0,
        },
    };
    Ok(Stored { model, meaning })
}
