//! The figures of a run.

use std::path::{Path, PathBuf};

use decompose_core::plot::{
    self, ComponentFactor, Components, Convergence, ConvergencePoint, ConvergenceRun, ScoreMatrix,
    Timing, TimingComponent, TimingPhase, TimingRun,
};
use decompose_cp::IterationRecord;
use decompose_formats::Value;

use crate::cp::prepare::Phases;
use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::failure::Failure;
use crate::labels::ModeLabels;

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
    let mut paths = Vec::new();
    paths.extend(plot::save(&convergence(settings, solved, &title), folder, "convergence")?);
    paths.extend(plot::save(&timing(&outcome.history, phases, &title), folder, "timing")?);
    paths.extend(plot::save(&components(solved, labels, &title)?, folder, "components")?);
    if outcome.restarts.len() > 1 {
        paths.extend(plot::save(&scores(solved, title), folder, "restarts")?);
    }
    Ok(paths)
}

fn convergence<V: Value>(settings: &Settings, solved: &Solved<V>, title: &str) -> Convergence {
    let outcome = &solved.outcome;
    let runs = outcome.restarts.iter().zip(1..).map(|(start, number)| {
        let records = outcome.history.iter().filter(|record| record.restart == number);
        let name = match outcome.restarts.len() {
            1 => format!("rank {}, seed {}", outcome.model.rank(), start.seed),
            _ => format!("start {number}, seed {}", start.seed),
        };
        ConvergenceRun { name, points: points(records), stop: start.stop.to_string() }
    });
    let tolerance = Some(settings.config.stop.tol).filter(|tol| *tol > 0.0);
    Convergence { title: title.to_owned(), tolerance, runs: runs.collect() }
}

/// Returns the fits of one start, timed from its own beginning.
pub(crate) fn points<'a>(
    records: impl Iterator<Item = &'a IterationRecord>,
) -> Vec<ConvergencePoint> {
    let mut began = None;
    let point = |record: &IterationRecord| {
        let began = *began.get_or_insert(record.total_seconds - record.seconds);
        ConvergencePoint {
            iteration: record.iteration as u64,
            seconds: record.total_seconds - began,
            fit: record.fit,
        }
    };
    records.map(point).collect()
}

fn timing(history: &[IterationRecord], phases: &Phases, title: &str) -> Timing {
    let phases = phases.0.iter().map(|&(name, seconds)| TimingPhase { name: name.into(), seconds });
    let order = history.first().map_or(0, |record| record.mttkrp_seconds.len());
    let mut components: Vec<TimingComponent> = (0..order)
        .map(|mode| TimingComponent {
            name: format!("MTTKRP, mode {}", mode + 1),
            seconds: history.iter().map(|record| record.mttkrp_seconds[mode]).collect(),
        })
        .collect();
    components.push(TimingComponent {
        name: "dense algebra".into(),
        seconds: history.iter().map(|record| record.dense_seconds).collect(),
    });
    let run = TimingRun { name: String::new(), phases: phases.collect(), components };
    Timing { title: title.to_owned(), runs: vec![run] }
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
