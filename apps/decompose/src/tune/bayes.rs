//! Bayesian optimisation: the least value of a function that is known at few points.
//!
//! A Gaussian process with a squared-exponential kernel interpolates the values; the next point is the one with the
//! greatest expected improvement (Jones, Schonlau, Welch, "Efficient global optimization of expensive black-box
//! functions", 1998) among random ones.

use decompose_common::linalg::invert_spd;
use decompose_formats::mix::mix;
use ndarray::{Array1, Array2};

/// Points at which the expected improvement is looked at before each evaluation.
const LOOKED_AT: u64 = 1024;

/// Points that are tried before the process is asked.
const FIRST: usize = 12;

/// The distance over which values are alike, in the unit cube.
const LENGTH: f64 = 0.3;

/// The variance of the noise, where values have variance 1.
const NOISE: f64 = 1e-4;

/// What a search found.
#[derive(Clone, Debug)]
pub(super) struct Least<const N: usize> {
    /// The point, in the unit cube.
    pub(super) point: [f64; N],
    /// The value there.
    pub(super) value: f64,
}

/// Finds a point of the unit cube at which `value` is small, with at most `evaluations` of it; the first is at `start`, which wins where
/// nothing is less.
///
/// # Errors
///
/// Those of `value`.
pub(super) fn minimise<const N: usize, E>(
    start: [f64; N],
    evaluations: usize,
    seed: u64,
    mut value: impl FnMut(&[f64; N]) -> Result<f64, E>,
) -> Result<Least<N>, E> {
    let mut counter = seed << 32;
    let mut random = || {
        std::array::from_fn(|_| {
            counter += 1;
            (mix(counter) >> 11) as f64 / (1_u64 << 53) as f64
        })
    };
    let mut known = vec![(start, value(&start)?)];
    while known.len() < evaluations {
        let candidates: Vec<[f64; N]> = (0..LOOKED_AT).map(|_| random()).collect();
        let next = match Process::of(&known) {
            Some(process) if known.len() >= FIRST => best_of(&process, &candidates),
            _ => candidates[0],
        };
        let found = value(&next)?;
        known.push((next, found));
    }
    let mut least = known[0];
    for &(point, value) in &known[1..] {
        if value < least.1 {
            least = (point, value);
        }
    }
    Ok(Least { point: least.0, value: least.1 })
}

/// Returns the candidate with the greatest expected improvement.
fn best_of<const N: usize>(process: &Process<N>, candidates: &[[f64; N]]) -> [f64; N] {
    let improvement = |point: &[f64; N]| process.expected_improvement(point);
    let best = candidates.iter().max_by(|a, b| improvement(a).total_cmp(&improvement(b)));
    best.copied().expect("candidates")
}

/// A Gaussian process through known values, which are scaled to mean 0 and variance 1.
struct Process<const N: usize> {
    points: Vec<[f64; N]>,
    inverse: Array2<f64>,
    weights: Array1<f64>,
    least: f64,
}

impl<const N: usize> Process<N> {
    fn of(known: &[([f64; N], f64)]) -> Option<Process<N>> {
        let count = known.len() as f64;
        let mean = known.iter().map(|(_, value)| value).sum::<f64>() / count;
        let variance = known.iter().map(|(_, value)| (value - mean).powi(2)).sum::<f64>() / count;
        let scale = variance.sqrt().max(f64::MIN_POSITIVE);
        let values: Array1<f64> = known.iter().map(|(_, value)| (value - mean) / scale).collect();
        let points: Vec<[f64; N]> = known.iter().map(|(point, _)| *point).collect();
        let covariance = Array2::from_shape_fn((points.len(), points.len()), |(a, b)| {
            kernel(&points[a], &points[b]) + if a == b { NOISE } else { 0.0 }
        });
        let inverse = invert_spd(covariance.view(), f64::EPSILON).ok()?.matrix;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        Some(Process { weights: inverse.dot(&values), inverse, points, least })
    }

    /// Returns by how much the value at `point` is expected to be less than the least known.
    fn expected_improvement(&self, point: &[f64; N]) -> f64 {
        let near: Array1<f64> = self.points.iter().map(|known| kernel(known, point)).collect();
        let mean = near.dot(&self.weights);
        let deviation = (1.0 - near.dot(&self.inverse.dot(&near))).max(1e-12).sqrt();
        let by = (self.least - mean) / deviation;
        deviation * (by * normal_below(by) + normal_density(by))
    }
}

fn kernel<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    (-squares / (2.0 * LENGTH * LENGTH)).exp()
}

/// The density of the standard normal distribution.
fn normal_density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The standard normal distribution below `x`, to 1e-7 (Abramowitz, Stegun 1964, 26.2.17).
fn normal_below(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let sum = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    let above = normal_density(x) * sum;
    if x < 0.0 { above } else { 1.0 - above }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::{minimise, normal_below};

    #[test]
    fn the_normal_distribution_is_that_of_tables() {
        for (x, below) in [(0.0, 0.5), (1.0, 0.841_344_7), (-1.959_964, 0.025), (3.0, 0.998_650_1)]
        {
            assert!((normal_below(x) - below).abs() < 2e-7, "{x}: {}", normal_below(x));
        }
    }

    #[test]
    fn the_least_value_of_a_bowl_is_found_where_random_points_do_not_find_it() {
        let bowl = |point: &[f64; 3]| {
            let squares = point.iter().zip([0.3, 0.7, 0.52]).map(|(x, c)| (x - c).powi(2));
            Ok::<f64, Infallible>(squares.sum())
        };
        let Ok(least) = minimise([0.5; 3], 60, 1, bowl);
        assert!(least.value < 2e-3, "{least:?}");
    }

    #[test]
    fn the_start_wins_where_nothing_is_less() {
        let Ok(least) = minimise([0.25; 2], 20, 3, |_| Ok::<f64, Infallible>(1.0));
        assert_eq!(least.point, [0.25; 2]);
    }
}
