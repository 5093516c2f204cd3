//! How models become better: medians over seeds, with bands between the quartiles.

use std::collections::BTreeSet;

use decompose_plot::{Curve, CurveLook, CurvePanel, Curves, ScaleKind};

use crate::experiment::report::configs::{Config, Quartiles, Shared};
use crate::experiment::report::figures::{Sheet, evenly, tensors};
use crate::experiment::report::results::{Measure, Moment};

/// Most curves of a figure: as many as there are colours.
const MOST: usize = 7;

/// Draws a figure for each tensor and measure of which a configuration has `least` runs.
pub(super) fn draw(configs: &[Config<'_>], least: usize, sheet: &mut Sheet) {
    for tensor in tensors(configs) {
        let of_tensor = || configs.iter().filter(|config| config.tensor == tensor);
        let measures: BTreeSet<Measure> = of_tensor().filter_map(Config::measure).collect();
        for &measure in &measures {
            let shown = of_tensor().filter(|config| config.measure() == Some(measure));
            // What ends after one step has no course.
            let shown = shown.filter(|config| config.runs.iter().any(|run| run.course.len() > 1));
            let shown: Vec<&Config<'_>> = shown.collect();
            if shown.iter().any(|config| config.runs.len() >= least) {
                let title = match measures.len() {
                    1 => format!("{tensor}: convergence"),
                    _ => format!("{tensor}: convergence of the {}", measure.name()),
                };
                figure((tensor, &title), measure, shown, sheet);
            }
        }
    }
}

fn figure(
    (tensor, title): (&str, &str),
    measure: Measure,
    all: Vec<&Config<'_>>,
    sheet: &mut Sheet,
) {
    let count = all.len();
    let shared = Shared::of(&all);
    let shown = evenly(all, MOST);
    let courses: Vec<(String, Vec<Step>)> =
        shown.iter().map(|config| (config.label(&shared), steps(config))).collect();
    let by_iteration = |(name, steps): &(String, Vec<Step>)| Curve {
        name: name.clone(),
        points: steps.iter().map(|step| (step.iteration, step.value.median)).collect(),
        band: steps
            .iter()
            .map(|step| (step.iteration, (step.value.low, step.value.high)))
            .collect(),
        look: CurveLook::Line,
        ..Curve::default()
    };
    let by_time = |(name, steps): &(String, Vec<Step>)| Curve {
        name: name.clone(),
        points: steps.iter().map(|step| (step.seconds, step.value.median)).collect(),
        look: CurveLook::Line,
        ..Curve::default()
    };
    let y = if measure.rises() { ScaleKind::Linear } else { ScaleKind::Log };
    let mut panels = vec![CurvePanel {
        x_name: "iteration".into(),
        y_name: measure.name().into(),
        y,
        curves: courses.iter().map(by_iteration).collect(),
        ..CurvePanel::default()
    }];
    if shown.iter().all(|config| config.runs.iter().all(|run| run.run.timed)) {
        panels.push(CurvePanel {
            x_name: "median time of the iterations (s)".into(),
            y_name: String::new(),
            y,
            curves: courses.iter().map(by_time).collect(),
            ..CurvePanel::default()
        });
    }
    let note = match count > MOST {
        true => format!("{MOST} of {count} configurations, evenly chosen"),
        false => String::new(),
    };
    let title = title.to_owned();
    let width = Default::default();
    let caption = "Lines are medians over the runs of a configuration; bands lie between the quartiles. A run \
                   that has ended keeps its last value.";
    sheet.curves(&format!("convergence-{tensor}"), Curves { title, note, panels, width }, caption);
}

/// The runs of a configuration after as many iterations.
struct Step {
    iteration: f64,
    seconds: f64,
    value: Quartiles,
}

/// Returns the spread of the runs at each iteration that any of them has made.
fn steps(config: &Config<'_>) -> Vec<Step> {
    let courses: Vec<&[Moment]> =
        config.runs.iter().map(|run| run.course.as_slice()).filter(|c| !c.is_empty()).collect();
    let iterations: BTreeSet<u64> =
        courses.iter().flat_map(|course| course.iter().map(|moment| moment.iteration)).collect();
    let step = |&iteration: &u64| {
        let now = courses.iter().filter_map(|course| {
            let made = course.partition_point(|moment| moment.iteration <= iteration);
            course[..made].last()
        });
        let now: Vec<&Moment> = now.collect();
        Some(Step {
            iteration: iteration as f64,
            seconds: Quartiles::of(now.iter().map(|moment| moment.seconds))?.median,
            value: Quartiles::of(now.iter().map(|moment| moment.value))?,
        })
    };
    iterations.iter().filter_map(step).collect()
}
