//! Means of values of whatever size.
//!
//! Squares are of `x / max |x|`, which neither overflow nor vanish.

/// Values added up at a time: sums do not depend on the number of threads.
const BLOCK: usize = 1 << 13;

/// Returns the root of the mean of the squares of `values`, of whatever size.
pub fn root_mean_square(values: &[f64]) -> f64 {
    match largest(values) {
        0.0 => 0.0,
        most => most * average(values, |x| (x / most).powi(2)).sqrt(),
    }
}

/// Returns the largest magnitude of `values`.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, x| most.max(x.abs()))
}

/// Returns the mean of `of` each value.
pub(crate) fn average(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let sums = values.chunks(BLOCK).map(|block| block.iter().map(|&x| of(x)).sum::<f64>());
    sums.sum::<f64>() / values.len().max(1) as f64
}
