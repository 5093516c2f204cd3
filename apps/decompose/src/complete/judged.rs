//! The figure of predictions: of numbers against what was observed and their residuals, of 0 and 1 the
//! operating curve and the calibration.

use decompose_formats::counted;
use decompose_plot::{Curve, CurveLook, CurveMark, CurvePanel, Curves};

use crate::complete::figures::number;
use crate::complete::predictions::Predictions;

/// The most points of predictions that are drawn: more only make the file large.
const MOST_POINTS: usize = 4000;
/// The most points of an operating curve.
const MOST_STEPS: usize = 400;
/// Bars of the histogram.
const BARS: usize = 41;
/// Groups of predictions whose means are compared.
const GROUPS: usize = 10;

/// Returns the figure.
pub(super) fn figure(predictions: &Predictions, title: &str) -> Curves {
    let pairs: Vec<(f64, f64)> = predictions.pairs().collect();
    let title = format!("{title}: {} entries", predictions.part);
    let binary = pairs.iter().all(|&(observed, _)| observed == 0.0 || observed == 1.0);
    match operating_curve(&pairs).filter(|_| binary) {
        Some(curve) => classified(&pairs, curve, title),
        None => residuals(&pairs, title),
    }
}

/// Returns the root mean square of the residuals, and the share of the variance that is predicted, where there
/// is any.
fn measures(pairs: &[(f64, f64)]) -> (f64, Option<f64>) {
    let count = pairs.len().max(1) as f64;
    let mean = pairs.iter().map(|(x, _)| x).sum::<f64>() / count;
    let sum =
        |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(|pair| of(pair).powi(2)).sum::<f64>();
    let (left, all) = (sum(&|(x, p)| x - p), sum(&|(x, _)| x - mean));
    ((left / count).sqrt(), (all > 0.0).then(|| 1.0 - left / all))
}

/// Returns the measures in words.
fn quality(pairs: &[(f64, f64)]) -> String {
    let (rmse, r_squared) = measures(pairs);
    let r_squared = r_squared.map(|r| format!(", R² {r:.4}")).unwrap_or_default();
    let entries = counted(pairs.len(), "entry", "entries");
    format!("{entries}: RMSE {}{r_squared}", number(rmse)).replace('-', "−")
}

/// Predicted against observed, and the histogram of residuals.
fn residuals(pairs: &[(f64, f64)], title: String) -> Curves {
    let every = pairs.len().div_ceil(MOST_POINTS).max(1);
    let shown = pairs.iter().step_by(every).copied().collect();
    let differences: Vec<f64> = pairs.iter().map(|(x, p)| x - p).collect();
    let (bars, left_out) = histogram(&differences);
    let outside = if left_out > 0 {
        format!("; {} outside", counted(left_out, "residual", "residuals"))
    } else {
        String::new()
    };
    let dots = Curve { points: shown, look: CurveLook::Dots, ..Curve::default() };
    let bars = Curve { points: bars, look: CurveLook::Bars, ..Curve::default() };
    Curves {
        title,
        note: format!("{}; dashed: predicted as observed{outside}", quality(pairs)),
        panels: vec![
            panel("observed", "predicted", dots, CurveMark::Diagonal),
            panel("observed − predicted", "entries", bars, CurveMark::None),
        ],
        ..Curves::default()
    }
}

/// The operating curve of predictions of 0 and 1, and their calibration.
fn classified(pairs: &[(f64, f64)], curve: OperatingCurve, title: String) -> Curves {
    let OperatingCurve { steps, area } = curve;
    let every = steps.len().div_ceil(MOST_STEPS).max(1);
    let last = steps.last().copied();
    let points = steps.into_iter().step_by(every).chain(last).collect();
    let operating = Curve { points, look: CurveLook::Line, ..Curve::default() };
    let quality = quality(pairs);
    Curves {
        title,
        note: format!(
            "{quality}, area under the curve {area:.4}; dashed: chance, and perfect calibration; \
             lines with caps: two standard errors"
        ),
        panels: vec![
            panel("zeros predicted above", "ones predicted above", operating, CurveMark::Diagonal),
            panel("mean prediction", "share of ones", calibration(pairs), CurveMark::Diagonal),
        ],
        ..Curves::default()
    }
}

fn panel(x_name: &str, y_name: &str, curve: Curve, mark: CurveMark) -> CurvePanel {
    let (x_name, y_name) = (x_name.into(), y_name.into());
    CurvePanel { x_name, y_name, curves: vec![curve], mark, ..CurvePanel::default() }
}

/// How predictions tell ones from zeros.
#[derive(Debug, PartialEq)]
struct OperatingCurve {
    /// The shares of zeros and of ones whose prediction is above each threshold.
    steps: Vec<(f64, f64)>,
    /// The area below.
    area: f64,
}

/// Returns the operating curve of pairs of what was observed and predicted; `None` without a one or a zero.
fn operating_curve(pairs: &[(f64, f64)]) -> Option<OperatingCurve> {
    let mut sorted: Vec<(f64, f64)> = pairs.to_vec();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ones = pairs.iter().filter(|pair| pair.0 > 0.5).count();
    let (all_zeros, all_ones) = ((pairs.len() - ones) as f64, ones as f64);
    if all_zeros == 0.0 || all_ones == 0.0 {
        return None;
    }
    let (mut steps, mut area) = (vec![(0.0, 0.0)], 0.0);
    let (mut zeros, mut ones) = (0, 0);
    for equal in sorted.chunk_by(|a, b| a.1 == b.1) {
        let more = equal.iter().filter(|pair| pair.0 > 0.5).count();
        let before = (zeros as f64 / all_zeros, ones as f64 / all_ones);
        ones += more;
        zeros += equal.len() - more;
        let after = (zeros as f64 / all_zeros, ones as f64 / all_ones);
        area += (after.0 - before.0) * (before.1 + after.1) / 2.0;
        steps.push(after);
    }
    Some(OperatingCurve { steps, area })
}

/// Returns the share of ones by mean prediction, in groups of as many entries each, with two standard errors.
fn calibration(pairs: &[(f64, f64)]) -> Curve {
    let mut sorted: Vec<(f64, f64)> = pairs.to_vec();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let size = sorted.len().div_ceil(GROUPS).max(1);
    let mut curve = Curve { look: CurveLook::Line, ..Curve::default() };
    for group in sorted.chunks(size) {
        let count = group.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| group.iter().map(of).sum::<f64>() / count;
        let (observed, predicted) = (mean(|pair| pair.0), mean(|pair| pair.1));
        let error = 2.0 * (observed * (1.0 - observed) / count).sqrt();
        curve.points.push((predicted, observed));
        let spread = ((observed - error).max(0.0), (observed + error).min(1.0));
        curve.spread.push((predicted, spread));
    }
    curve
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
    use super::{OperatingCurve, calibration, histogram, measures, operating_curve};

    #[test]
    fn every_residual_is_counted_once() {
        let residuals: Vec<f64> = (-50..=50).map(|k| f64::from(k) / 10.0).chain([1e3]).collect();
        let (bars, outside) = histogram(&residuals);
        let inside: f64 = bars.iter().map(|bar| bar.1).sum();
        assert_eq!(inside as usize + outside, residuals.len());
        assert_eq!(outside, 1);
        assert!(histogram(&[0.0; 3]).0.iter().any(|bar| bar.1 == 3.0));
    }

    #[test]
    fn measures_are_those_of_the_pairs() {
        // Residuals 1, -1, 0 around the mean 2: squares 2 of 2.
        let (rmse, r_squared) = measures(&[(1.0, 0.0), (2.0, 3.0), (3.0, 3.0)]);
        assert!((rmse - (2.0_f64 / 3.0).sqrt()).abs() < 1e-15 && r_squared == Some(0.0));
        assert_eq!(measures(&[(1.0, 2.0), (1.0, 0.0)]), (1.0, None));
    }

    #[test]
    fn the_operating_curve_counts_pairs_in_order() {
        // One of four pairs of a 1 and a 0 is in the wrong order: the area is 3/4.
        let pairs = [(1.0, 0.9), (0.0, 0.6), (1.0, 0.5), (0.0, 0.1)];
        let OperatingCurve { steps, area } = operating_curve(&pairs).unwrap();
        assert_eq!(steps, [(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)]);
        assert_eq!(area, 0.75);
        // Equal predictions are one step: chance.
        let chance = OperatingCurve { steps: vec![(0.0, 0.0), (1.0, 1.0)], area: 0.5 };
        assert_eq!(operating_curve(&[(1.0, 0.5), (0.0, 0.5)]), Some(chance));
        assert_eq!(operating_curve(&[(1.0, 0.5)]), None);
    }

    #[test]
    fn calibration_compares_means_of_groups() {
        let pairs: Vec<(f64, f64)> = (0..100)
            .map(|k| (f64::from(u8::from(k % 10 < k / 10)), f64::from(k / 10) / 10.0))
            .collect();
        let curve = calibration(&pairs);
        assert_eq!(curve.points.len(), 10);
        for (at, (predicted, observed)) in curve.points.iter().enumerate() {
            let share = at as f64 / 10.0;
            assert!((predicted - share).abs() < 1e-12 && (observed - share).abs() < 1e-12);
        }
    }
}
