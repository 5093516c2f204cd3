//! Medians and spreads, computed from the samples alone, beside what they are held against.

use crate::bench::record::{BenchRecord, WorkKey};
use crate::bench::roofline::{Bound, Work};

/// One quantity of one configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) key: WorkKey,
    /// Seconds.
    pub(crate) median: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    pub(crate) rounds: usize,
    pub(crate) work: Option<Work>,
    pub(crate) bound: Option<Bound>,
}

impl Line {
    /// Returns how many times longer than the bound it took.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let bound = self.bound.filter(|bound| bound.seconds > 0.0)?;
        Some(self.median / bound.seconds)
    }

    /// Returns 10^9 multiplications and additions a second.
    pub(crate) fn gflops(&self) -> Option<f64> {
        self.work.map(|work| work.flops / self.median / 1e9)
    }

    /// Returns 10^9 bytes a second that were loaded, from whatever cache.
    pub(crate) fn gigabytes(&self) -> Option<f64> {
        self.work.map(|work| work.near_bytes / self.median / 1e9)
    }
}

/// Sums up all samples, in the order in which they came.
pub(crate) fn lines(record: &BenchRecord) -> Vec<Line> {
    let mut keys: Vec<&WorkKey> = Vec::new();
    for sample in record.counted() {
        if !keys.contains(&&sample.key) {
            keys.push(&sample.key);
        }
    }
    let line = |key: &WorkKey| {
        let samples = record.counted().filter(|sample| sample.key == *key);
        let mut seconds: Vec<f64> = samples.map(|sample| sample.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let task = record.tasks.iter().find(|task| task.key == *key);
        Line {
            key: key.clone(),
            median: median(&seconds),
            lowest: seconds.first().copied().unwrap_or(f64::NAN),
            highest: seconds.last().copied().unwrap_or(f64::NAN),
            rounds: seconds.len(),
            work: task.map(|task| task.work),
            bound: task.and_then(|task| task.bound),
        }
    };
    keys.into_iter().map(line).collect()
}

/// Returns the middle of sorted numbers; of an even number, the mean of the two in the middle.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => at(half),
        _ => (at(half - 1) + at(half)) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
        assert!(median(&[]).is_nan());
    }
}
