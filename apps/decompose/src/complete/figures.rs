//! The figure of errors by epoch and time.

pub(crate) use decompose_complete::six_digits as number;
use decompose_complete::{EpochRecord, Scores};
use decompose_plot::{Curve, CurveLook, CurvePanel, Curves, ScaleKind};

use crate::complete::solve::Solved;

/// Errors on all parts against epochs and seconds, with the baselines.
pub(crate) fn errors(solved: &Solved, title: &str) -> Curves {
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
        ..Curves::default()
    }
}

/// All digits of a value, with an exponent where it would be long.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && !(1e-4..1e15).contains(&size) => format!("{value:e}"),
        _ => value.to_string(),
    }
}
