//! Quality and seconds against the rank, and seconds against the non-zeros.

use std::collections::BTreeSet;

use decompose_plot::{Curve, CurveLook, CurvePanel, Curves, ScaleKind};

use crate::experiment::plan::PlannedTensor;
use crate::experiment::report::configs::{Config, Quartiles};
use crate::experiment::report::figures::{Sheet, evenly, tensors};
use crate::experiment::report::results::{Measure, RunResult};

/// Most curves of a figure: as many as there are colours.
const MOST: usize = 7;
/// Options that are the rank.
const RANKS: [&str; 3] = ["rank", "ranks", "max-rank"];

/// A line through configurations that differ in what lies along an axis.
struct Line {
    name: String,
    /// By rising place.
    points: Vec<(f64, Quartiles)>,
}

impl Line {
    fn curve(&self) -> Curve {
        let ends = |(x, of): &(f64, Quartiles)| (*x, (of.low, of.high));
        Curve {
            name: self.name.clone(),
            points: self.points.iter().map(|(x, of)| (*x, of.median)).collect(),
            band: self.points.iter().map(ends).collect(),
            look: CurveLook::Line,
            ..Curve::default()
        }
    }
}

/// Gathers configurations to lines: `name` tells to which, `place` where, and `value` how high.
fn lines<'c, 'a: 'c>(
    configs: impl Iterator<Item = &'c Config<'a>>,
    name: impl Fn(&Config<'_>) -> String,
    place: impl Fn(&RunResult) -> Option<f64>,
    value: impl Fn(&Config<'_>) -> Option<Quartiles>,
) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for config in configs {
        let Some(point) = config.runs.first().and_then(|run| place(run)).zip(value(config)) else {
            continue;
        };
        let name = name(config);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name, points: vec![point] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

/// Tells whether a line has a direction: two places or more.
fn is_trend<'l>(mut lines: impl Iterator<Item = &'l Line>) -> bool {
    let places =
        |line: &Line| line.points.iter().map(|(x, _)| x.to_bits()).collect::<BTreeSet<_>>();
    lines.any(|line| places(line).len() > 1)
}

/// Draws quality against rank, for each tensor and measure.
pub(super) fn quality(configs: &[Config<'_>], sheet: &mut Sheet) {
    for tensor in tensors(configs) {
        let of_tensor = || configs.iter().filter(|config| config.tensor == tensor);
        let measures: BTreeSet<Measure> = of_tensor().filter_map(Config::measure).collect();
        for measure in measures {
            let judged = of_tensor().filter(|config| config.measure() == Some(measure));
            let found = lines(
                judged,
                |config| config.line(&RANKS),
                RunResult::rank,
                |config| config.spread(|run| Some(run.quality?.value)),
            );
            if !is_trend(found.iter()) {
                continue;
            }
            let title = format!("{tensor}: {} against rank", measure.name());
            let panel = panel(("rank", measure.name()), found, ScaleKind::Linear);
            let width = Default::default();
            let note = String::new();
            let caption = "Lines are medians over the runs of a configuration; bands lie between the quartiles. \
                           Of a model with several ranks, the largest counts.";
            let figure = Curves { title, note, panels: vec![panel], width };
            sheet.curves(&format!("{}-by-rank-{tensor}", stem(measure)), figure, caption);
        }
    }
}

/// Draws seconds against rank, of an iteration and of all, for each tensor.
pub(super) fn time_by_rank(configs: &[Config<'_>], sheet: &mut Sheet) {
    for tensor in tensors(configs) {
        let of_tensor = || configs.iter().filter(|config| config.tensor == tensor);
        let found = |of: fn(&RunResult) -> Option<f64>| {
            let name = |config: &Config<'_>| config.line(&RANKS);
            lines(of_tensor(), name, RunResult::rank, |config| config.seconds(of))
        };
        let (each, all) = (found(|run| run.per_iteration), found(|run| run.solve));
        if !is_trend(all.iter()) {
            continue;
        }
        let mut panels = Vec::new();
        if is_trend(each.iter()) {
            panels.push(panel(("rank", "time of an iteration (s)"), each, ScaleKind::Log));
        }
        panels.push(panel(("rank", "time of all iterations (s)"), all, ScaleKind::Log));
        let title = format!("{tensor}: time against rank");
        let (note, width) = (String::new(), Default::default());
        let caption = "Lines are medians over the runs of a configuration; bands lie between the quartiles. Both \
                       axes are logarithmic.";
        let figure = Curves { title, note, panels, width };
        sheet.curves(&format!("time-by-rank-{tensor}"), figure, caption);
    }
}

/// Draws seconds of an iteration against the non-zeros of the tensors; a line joins tensors of one family alone.
pub(super) fn time_by_size(configs: &[Config<'_>], plan: &[PlannedTensor], sheet: &mut Sheet) {
    let family = |config: &Config<'_>| {
        let planned = plan.iter().find(|tensor| tensor.name == config.tensor);
        let family = planned.and_then(|tensor| tensor.family.as_deref())?;
        let others = plan.iter().filter(|tensor| tensor.family.as_deref() == Some(family));
        (others.count() > 1).then_some(family)
    };
    let families: BTreeSet<Option<&str>> = configs.iter().map(family).collect();
    let mut found: Vec<(Line, CurveLook)> = Vec::new();
    for &own in &families {
        let look = if own.is_some() { CurveLook::Line } else { CurveLook::Points };
        let name = |config: &Config<'_>| match own {
            Some(family) if families.len() > 1 => format!("{}, {family}", config.line(&[])),
            _ => config.line(&[]),
        };
        let of_family = lines(
            configs.iter().filter(|config| family(config) == own),
            name,
            |run| run.nnz.map(|nnz| nnz as f64),
            |config| config.seconds(|run| run.per_iteration),
        );
        found.extend(of_family.into_iter().map(|line| (line, look)));
    }
    if !is_trend(found.iter().map(|(line, _)| line)) {
        return;
    }
    let count = found.len();
    let note = match count > MOST {
        true => format!("{MOST} of {count} configurations, evenly chosen"),
        false => String::new(),
    };
    let axes = ("non-zeros", "time of an iteration (s)");
    let (lines, looks): (Vec<Line>, Vec<CurveLook>) = evenly(found, MOST).into_iter().unzip();
    let mut panel = panel(axes, lines, ScaleKind::Log);
    for (curve, look) in panel.curves.iter_mut().zip(looks) {
        curve.look = look;
        if look == CurveLook::Points {
            curve.spread = std::mem::take(&mut curve.band);
        }
    }
    let panels = vec![panel];
    let (title, width) = ("Time against non-zeros".to_owned(), Default::default());
    let caption = "Places are medians over the runs of a configuration; bands and bars lie between the quartiles. A \
                   line joins tensors of one recipe, which differ by their size; points alone are tensors that have \
                   nothing in common. Both axes are logarithmic.";
    sheet.curves("time-by-nonzeros", Curves { title, note, panels, width }, caption);
}

/// Returns a panel of lines; times are drawn on logarithmic axes.
fn panel((x_name, y_name): (&str, &str), lines: Vec<Line>, kind: ScaleKind) -> CurvePanel {
    let places = lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
    let mut places: Vec<f64> = places.collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    // Ranks are few and round; non-zeros are neither.
    let x_ticks = if x_name == "rank" && places.len() <= 12 { places } else { Vec::new() };
    CurvePanel {
        x_name: x_name.to_owned(),
        y_name: y_name.to_owned(),
        x: kind,
        y: kind,
        curves: lines.iter().map(Line::curve).collect(),
        x_ticks,
        ..CurvePanel::default()
    }
}

fn stem(measure: Measure) -> String {
    measure.name().to_lowercase().replace(' ', "-")
}
