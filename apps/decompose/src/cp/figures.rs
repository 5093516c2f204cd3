//! The figures of a run.

use decompose_formats::Value;
use decompose_plot::{ComponentChoice, ScoreMatrix, Timing};

use crate::cp::prepare::Facts;
use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::run::Phases;
use crate::run::components::{self, Modes};
use crate::run::figures::{self, Sketches};

/// Draws all figures but that of the phases.
pub(crate) fn draw<V: Value + Into<f64>>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    sketches: &mut Sketches<'_>,
) {
    let outcome = &solved.outcome;
    let title = title(settings, solved);
    let what = format!("rank {}", outcome.model.rank());
    let starts = (outcome.restarts.as_slice(), settings.stop.tol);
    let modes = Modes::new(&facts.tensor.labels);
    let choice = ComponentChoice::default();
    let components = || components::of_cp(&outcome.model, &modes, &title, &choice);
    let course = || Ok(figures::convergence(starts, &outcome.history, (&title, &what)));
    sketches.both(
        |sketches| sketches.add("components", components),
        |sketches| {
            sketches.add("convergence", course);
            if outcome.restarts.len() > 1 {
                sketches.add("restarts", || Ok(scores(solved, title.clone())));
            }
        },
    );
}

/// Returns the figure of the phases.
pub(crate) fn timing<V: Value>(settings: &Settings, solved: &Solved<V>, phases: &Phases) -> Timing {
    figures::timing(&solved.outcome.history, phases, &title(settings, solved))
}

fn title<V: Value>(settings: &Settings, solved: &Solved<V>) -> String {
    format!("{}, CP-ALS, rank {}", settings.input.name(), solved.outcome.model.rank())
}

fn scores<V: Value>(solved: &Solved<V>, title: String) -> ScoreMatrix {
    let outcome = &solved.outcome;
    let names: Vec<String> =
        outcome.restarts.iter().map(|start| format!("seed {}", start.seed)).collect();
    ScoreMatrix {
        title,
        score_name: "factor match score".into(),
        rows: names.clone(),
        columns: names,
        scores: outcome.match_scores.rows().into_iter().map(|row| row.to_vec()).collect(),
        range: (0.0, 1.0),
    }
}
