//! The figures of a run.

use std::path::{Path, PathBuf};

use decompose_core::plot::{self, ComponentFactor, Components, ScoreMatrix};
use decompose_formats::Value;

use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::failure::Failure;
use crate::labels::ModeLabels;
use crate::run::{Phases, figures};

/// Draws all figures into `folder` and returns their files.
///
/// # Errors
///
/// If a figure has nothing to show or cannot be written.
pub(crate) fn draw<V: Value + Into<f64>>(
    settings: &Settings,
    solved: &Solved<V>,
    (phases, labels): (&Phases, &[ModeLabels]),
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let outcome = &solved.outcome;
    let title = format!("{}, CP-ALS, rank {}", settings.input.name(), outcome.model.rank());
    let what = format!("rank {}", outcome.model.rank());
    let starts = (outcome.restarts.as_slice(), settings.stop.tol);
    let draw = || -> Result<_, Failure> {
        Ok(plot::save(&components(solved, labels, &title)?, folder, "components")?)
    };
    let course = || figures::course(starts, &outcome.history, (&title, &what), phases, folder);
    // The components take longest: begun first, they are drawn while the model is written.
    let (components, course) = rayon::join(draw, course);
    let mut paths = course?;
    paths.extend(components?);
    if outcome.restarts.len() > 1 {
        paths.extend(plot::save(&scores(solved, title), folder, "restarts")?);
    }
    Ok(paths)
}

fn components<V: Value + Into<f64>>(
    solved: &Solved<V>,
    labels: &[ModeLabels],
    title: &str,
) -> Result<Components, Failure> {
    let model = &solved.outcome.model;
    let lookups: Vec<_> = labels
        .iter()
        .map(|mode| |index: usize| mode.indices.get(index).cloned().unwrap_or_default())
        .collect();
    let factors = model.factors().iter().zip(labels).zip(&lookups);
    let factors: Vec<ComponentFactor<'_, V>> = factors
        .map(|((factor, mode), lookup)| ComponentFactor {
            name: &mode.name,
            factor: factor.view(),
            labels: (!mode.indices.is_empty()).then_some(lookup as &dyn Fn(usize) -> String),
        })
        .collect();
    Ok(Components::from_factors(title, model.weights(), &factors)?)
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
