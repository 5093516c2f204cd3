//! The figures of a run: errors by epoch and time, predictions and residuals.

use decompose_complete::{EpochRecord, Scores};
use decompose_core::plot::{
    Curve, CurveLook, CurveMark, CurvePanel, Curves, ScaleKind, Timing, TimingComponent,
    TimingPhase, TimingRun,
};

use crate::complete::predictions::Predictions;
use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::complete::summary::number;
use crate::run::Phases;
use crate::run::figures::Sketches;

/// The most points of predictions that are drawn: more only make the file large.
const MOST_POINTS: usize = 4000;
/// Bars of the histogram.
const BARS: usize = 41;

/// Draws all figures but that of the phases.
pub(crate) fn draw(
    settings: &Settings,
    solved: &Solved,
    predictions: Option<&Predictions>,
    sketches: &mut Sketches<'_>,
) {
    let title = title(settings);
    sketches.add("convergence", || Ok(errors(solved, &title)));
    if let Some(predictions) = predictions {
        sketches.add("predictions", || Ok(residuals(predictions, &title)));
    }
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
        Curve { name: name.into(), points, look: CurveLook::Line }
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
            mark: CurveMark::None,
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

/// Predicted against observed, and the histogram of residuals.
fn residuals(predictions: &Predictions, title: &str) -> Curves {
    let pairs: Vec<(f64, f64)> = predictions.pairs().collect();
    let every = pairs.len().div_ceil(MOST_POINTS).max(1);
    let shown = pairs.iter().step_by(every).copied().collect();
    let differences: Vec<f64> = pairs.iter().map(|(x, p)| x - p).collect();
    let panel = |x_name: &str, y_name: &str, curve: Curve, mark| CurvePanel {
        x_name: x_name.into(),
        y_name: y_name.into(),
        x: ScaleKind::Linear,
        y: ScaleKind::Linear,
        curves: vec![curve],
        levels: Vec::new(),
        mark,
    };
    let dots = Curve { name: String::new(), points: shown, look: CurveLook::Dots };
    let (bars, left_out) = histogram(&differences);
    let bars = Curve { name: String::new(), points: bars, look: CurveLook::Bars };
    let outside =
        if left_out > 0 { format!("; {left_out} residuals outside") } else { String::new() };
    Curves {
        title: format!("{title}: {} entries", predictions.part),
        note: format!("{} entries; dashed: predicted as observed{outside}", pairs.len()),
        panels: vec![
            panel("observed", "predicted", dots, CurveMark::Diagonal),
            panel("observed - predicted", "entries", bars, CurveMark::None),
        ],
    }
}

/// Counts residuals in bars of equal width around zero, out to four root mean squares; returns the
/// bars and how many lie outside.
fn histogram(differences: &[f64]) -> (Vec<(f64, f64)>, usize) {
    let squares: f64 = differences.iter().map(|d| d * d).sum();
    let size = (squares / differences.len().max(1) as f64).sqrt();
    let reach = if size > 0.0 { 4.0 * size } else { 1.0 };
    let width = 2.0 * reach / BARS as f64;
    let mut counts = vec![0_usize; BARS];
    let mut outside = 0;
    for difference in differences {
        let bar = ((difference + reach) / width).floor();
        match counts.get_mut(bar.max(-1.0) as usize).filter(|_| bar >= 0.0) {
            Some(count) => *count += 1,
            None => outside += 1,
        }
    }
    let centre = |bar: usize| (bar as f64 + 0.5) * width - reach;
    (counts.iter().enumerate().map(|(bar, &n)| (centre(bar), n as f64)).collect(), outside)
}

#[cfg(test)]
mod tests {
    use super::histogram;

    #[test]
    fn every_residual_is_counted_once() {
        let residuals: Vec<f64> = (-50..=50).map(|k| f64::from(k) / 10.0).chain([1e3]).collect();
        let (bars, outside) = histogram(&residuals);
        let inside: f64 = bars.iter().map(|bar| bar.1).sum();
        assert_eq!(inside as usize + outside, residuals.len());
        assert_eq!(outside, 1);
        assert!(histogram(&[0.0; 3]).0.iter().any(|bar| bar.1 == 3.0));
    }
}
