//! What a better model costs, and whether the memory that was foreseen is what was held.

use std::collections::BTreeSet;

use decompose_plot::{Curve, CurveLook, CurveMark, CurvePanel, Curves, ScaleKind};

use crate::experiment::report::configs::Config;
use crate::experiment::report::figures::{Sheet, tensors};
use crate::experiment::report::results::Measure;

/// The unit of memory in figures.
const MIB: f64 = (1 << 20) as f64;
const KIB: f64 = 1024.0;

/// Draws errors against the size of models and the time to fit them, for each tensor and measure.
pub(super) fn pareto(configs: &[Config<'_>], sheet: &mut Sheet) {
    for tensor in tensors(configs) {
        let of_tensor = || configs.iter().filter(|config| config.tensor == tensor);
        let measures: BTreeSet<Measure> = of_tensor().filter_map(Config::measure).collect();
        for &measure in &measures {
            let judged = of_tensor().filter(|config| config.measure() == Some(measure));
            let judged: Vec<&Config<'_>> = judged.collect();
            if judged.len() < 2 {
                continue;
            }
            let error =
                |config: &Config<'_>| Some(config.spread(|run| Some(run.quality?.error))?.median);
            let size = |config: &Config<'_>| {
                let bytes = config.spread(|run| run.model_bytes.map(|bytes| bytes as f64));
                Some((bytes?.median / KIB, error(config)?))
            };
            let time = |config: &Config<'_>| {
                Some((config.seconds(|run| run.solve)?.median, error(config)?))
            };
            let by_size = panel("size of the model (KiB)", measure, &judged, size);
            let by_time = panel("time of all iterations (s)", measure, &judged, time);
            let panels: Vec<CurvePanel> = [by_size, by_time].into_iter().flatten().collect();
            if panels.is_empty() {
                continue;
            }
            let title = match measures.len() {
                1 => format!("{tensor}: what a smaller error costs"),
                _ => format!("{tensor}: what a smaller {} costs", measure.error_name()),
            };
            let (note, width) = (String::new(), Default::default());
            let caption = "Each point is the median of a configuration. The line joins those of which no other is \
                           both better and cheaper.";
            let figure = Curves { title, note, panels, width };
            sheet.curves(&format!("pareto-{tensor}"), figure, caption);
        }
    }
}

/// Returns a panel with the points of each group, and the front; `None` of less than two points.
fn panel(
    x_name: &str,
    measure: Measure,
    configs: &[&Config<'_>],
    point: impl Fn(&Config<'_>) -> Option<(f64, f64)>,
) -> Option<CurvePanel> {
    let mut curves: Vec<Curve> = Vec::new();
    for config in configs {
        let Some(point) = point(config) else { continue };
        match curves.iter_mut().find(|curve| curve.name == config.group) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                name: config.group.to_owned(),
                points: vec![point],
                look: CurveLook::Points,
                ..Curve::default()
            }),
        }
    }
    let all: Vec<(f64, f64)> = curves.iter().flat_map(|curve| curve.points.clone()).collect();
    if all.len() < 2 {
        return None;
    }
    let (name, points) = ("none better and cheaper".to_owned(), front(&all));
    curves.push(Curve { name, points, look: CurveLook::Steps, ..Curve::default() });
    Some(CurvePanel {
        x_name: x_name.to_owned(),
        y_name: measure.error_name().to_owned(),
        x: ScaleKind::Log,
        y: ScaleKind::Log,
        curves,
        ..CurvePanel::default()
    })
}

/// Returns the points of which no other has both numbers smaller, from left to right.
fn front(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut best = f64::INFINITY;
    sorted.retain(|(_, y)| {
        let better = *y < best;
        best = best.min(*y);
        better
    });
    sorted
}

/// Draws the memory at the peak of every run against what was foreseen.
pub(super) fn memory(configs: &[Config<'_>], sheet: &mut Sheet) {
    let mut curves: Vec<Curve> = Vec::new();
    for config in configs {
        let known = config.runs.iter().filter_map(|run| run.foreseen.zip(run.peak));
        let points = known.map(|(foreseen, peak)| (foreseen as f64 / MIB, peak as f64 / MIB));
        match curves.iter_mut().find(|curve| curve.name == config.group) {
            Some(curve) => curve.points.extend(points),
            None => curves.push(Curve {
                name: config.group.to_owned(),
                points: points.collect(),
                look: CurveLook::Points,
                ..Curve::default()
            }),
        }
    }
    curves.retain(|curve| !curve.points.is_empty());
    if curves.is_empty() {
        return;
    }
    let ratios = curves.iter().flat_map(|curve| curve.points.iter().map(|(x, y)| y / x));
    let (low, high) = ratios.fold((f64::INFINITY, 0.0_f64), |(l, h), r| (l.min(r), h.max(r)));
    let panels = vec![CurvePanel {
        x_name: "foreseen (MiB)".into(),
        y_name: "at the peak (MiB)".into(),
        x: ScaleKind::Log,
        y: ScaleKind::Log,
        curves,
        mark: CurveMark::Diagonal,
        ..CurvePanel::default()
    }];
    let note = format!("the peak is {low:.2} to {high:.2} of what was foreseen");
    let (title, width) = ("Memory".to_owned(), Default::default());
    let caption = "Each point is a run. On the dashed line the peak is what was foreseen; above it, it is more.";
    sheet.curves("memory", Curves { title, note, panels, width }, caption);
}

#[cfg(test)]
mod tests {
    use super::front;

    #[test]
    fn the_front_has_no_point_that_another_beats() {
        let points = [(3.0, 1.0), (1.0, 4.0), (2.0, 4.0), (2.0, 2.0), (4.0, 1.0), (5.0, 0.5)];
        assert_eq!(front(&points), [(1.0, 4.0), (2.0, 2.0), (3.0, 1.0), (5.0, 0.5)]);
    }
}
