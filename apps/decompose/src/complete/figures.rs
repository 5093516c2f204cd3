//! The figures of a run: errors by epoch and time, components, predictions.

use decompose_common::model::Model;
use decompose_complete::{EpochRecord, Scores};
use decompose_plot::{
    ComponentChoice, Curve, CurveLook, CurvePanel, Curves, ScaleKind, Timing, TimingComponent,
    TimingPhase, TimingRun,
};
use decompose_tt::Train;

use crate::complete::data::Loaded;
use crate::complete::judged;
use crate::complete::predictions::Predictions;
use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::complete::summary::number;
use crate::run::Phases;
use crate::run::components::{self, Modes, TrainVectors};
use crate::run::figures::Sketches;

/// Draws all figures but that of the phases.
pub(crate) fn draw(
    settings: &Settings,
    solved: &Solved,
    (model, predictions): (&Model<f64>, Option<&Predictions>),
    loaded: &Loaded,
    sketches: &mut Sketches<'_>,
) {
    let title = title(settings);
    sketches.add("convergence", || Ok(errors(solved, &title)));
    if let Some(predictions) = predictions {
        sketches.add("predictions", || Ok(judged::figure(predictions, &title)));
    }
    let modes = Modes::new(&loaded.tensor.labels);
    let choice = ComponentChoice::default();
    let places = choice.places.clone();
    sketches.try_add("components", || {
        Ok(match model {
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

/// Returns the figure of the phases and of the epochs kept.
pub(crate) fn timing(settings: &Settings, solved: &Solved, phases: &Phases) -> Timing {
    let phases = phases.0.iter().map(|&(name, seconds)| TimingPhase { name: name.into(), seconds });
    let part = |name: &str, of: fn(&EpochRecord) -> f64| TimingComponent {
        name: name.into(),
        seconds: solved.outcome.course().map(of).collect(),
    };
    let components =
        vec![part("epoch", |epoch| epoch.seconds), part("judge", |epoch| epoch.judge_seconds)];
    let run = TimingRun { name: String::new(), phases: phases.collect(), components };
    Timing { title: title(settings), runs: vec![run] }
}

fn title(settings: &Settings) -> String {
    format!("{}, completion by {}", settings.input.name(), settings.model_name())
}

/// Errors on all parts against epochs and seconds, with the baselines.
fn errors(solved: &Solved, title: &str) -> Curves {
    let outcome = &solved.outcome;
    let name = outcome.best.train.error_name();
    let held_out = |record: &EpochRecord| record.test.or(record.val);
    let part = |name: &str, of: &dyn Fn(&EpochRecord) -> Option<Scores>, by_time: bool| {
        let place = |r: &EpochRecord| if by_time { r.total_seconds } else { r.epoch as f64 };
        let points = outcome.course().filter_map(|r| Some((place(r), of(r)?.error())));
        let points: Vec<(f64, f64)> = points.collect();
        Curve { name: name.into(), points, look: CurveLook::Line, ..Curve::default() }
    };
    let panel = |x_name: &str, by_time: bool| {
        let curves = [
            part("training", &|r| Some(r.train), by_time),
            part("validation", &|r| r.val, by_time),
            part("test", &|r| r.test, by_time),
        ];
        let levels = outcome.baselines.iter().filter_map(|baseline| {
            let scores = baseline.test.or(baseline.val).unwrap_or(baseline.train);
            Some((baseline.name.clone(), Some(scores.error()).filter(|e| e.is_finite())?))
        });
        // The best of the baselines is the one to beat; the mean of all is the plainest.
        let mut levels: Vec<(String, f64)> = levels.collect();
        let best = levels.iter().skip(1).cloned().min_by(|a, b| a.1.total_cmp(&b.1));
        levels.truncate(1);
        levels.extend(best);
        // A fit that is perfect from the start has no error that a logarithm could show.
        let points = curves.iter().flat_map(|curve| &curve.points);
        let shown = points.map(|point| point.1).any(|error| error > 0.0 && error.is_finite());
        CurvePanel {
            x_name: x_name.into(),
            y_name: if by_time { String::new() } else { name.into() },
            x: ScaleKind::Linear,
            y: if shown { ScaleKind::Log } else { ScaleKind::Linear },
            curves: curves.into_iter().filter(|curve| !curve.points.is_empty()).collect(),
            levels,
            ..CurvePanel::default()
        }
    };
    let best = &outcome.best;
    let error = held_out(best).unwrap_or(best.train).error();
    let note = format!("best at epoch {}: {name} {}; {}", best.epoch, number(error), outcome.stop);
    Curves {
        title: title.into(),
        note,
        panels: vec![panel("epoch", false), panel("time (s)", true)],
    }
}
