//! What a search believes of the times it has not measured, and random draws from that.
//!
//! Times are logarithms of seconds, since schedules differ by factors.  Those below one choice follow a normal distribution
//! whose mean and variance are estimated.  A prior counts as [`PRIOR_WEIGHT`] measurements:
//!
//! ```text
//! mean'     = (w mean + sum of times) / (w + n)
//! variance' = (w variance + squared distances from their mean + w n / (w + n) (their mean - mean)^2) / (w + n)
//! draw from   normal(mean', variance' (1 + 1 / (w + n)))
//! ```
//!
//! A draw stands for the time of one more schedule, not for the mean of all.  So a choice whose times differ much is
//! worth a try although its mean is poor.

use decompose_formats::mix::mix;

/// As how many measurements a prior counts.
const PRIOR_WEIGHT: f64 = 1.0;

/// A normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Normal {
    /// The mean.
    pub(super) mean: f64,
    /// The variance.
    pub(super) variance: f64,
}

/// The times that were measured below one choice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Belief {
    count: f64,
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
}

impl Belief {
    /// Adds a time (Welford, "Note on a method for calculating corrected sums of squares and products", 1962).
    pub(super) fn observe(&mut self, time: f64) {
        self.count += 1.0;
        let distance = time - self.mean;
        self.mean += distance / self.count;
        self.squares += distance * (time - self.mean);
    }

    /// Returns what to believe after `prior`.
    pub(super) fn after(&self, prior: Normal) -> Normal {
        let (w, n) = (PRIOR_WEIGHT, self.count);
        let mean = (w * prior.mean + n * self.mean) / (w + n);
        let apart = self.mean - prior.mean;
        let squares = w * prior.variance + self.squares + w * n / (w + n) * apart * apart;
        Normal { mean, variance: squares / (w + n) }
    }

    /// Draws the time of one more schedule.
    pub(super) fn draw(&self, prior: Normal, random: &mut Random) -> f64 {
        let after = self.after(prior);
        let spread = after.variance * (1.0 + 1.0 / (PRIOR_WEIGHT + self.count));
        after.mean + spread.sqrt() * random.normal()
    }
}

/// Random numbers that a seed decides.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

/// The odd number nearest to 2^64 over the golden ratio: counters times it are well spread.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sum of this many uniform numbers has the variance 1.
const UNIFORMS: u32 = 12;

impl Random {
    /// Returns the numbers of `seed`.
    pub(super) fn new(seed: u64) -> Random {
        Random { state: mix(seed.wrapping_add(GOLDEN)) }
    }

    /// Returns a number in `0.0..1.0`.
    pub(super) fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(GOLDEN);
        (mix(self.state) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number of about the standard normal distribution: a sum of uniform ones, the same on all machines.
    pub(super) fn normal(&mut self) -> f64 {
        let sum: f64 = (0..UNIFORMS).map(|_| self.unit()).sum();
        sum - f64::from(UNIFORMS) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Belief, Normal, Random};

    #[test]
    fn many_measurements_outweigh_the_prior() {
        let mut belief = Belief::default();
        let prior = Normal { mean: 10.0, variance: 4.0 };
        assert_eq!(belief.after(prior), prior);
        belief.observe(2.0);
        // Halfway, and wider than before.
        assert_eq!(belief.after(prior), Normal { mean: 6.0, variance: (4.0 + 32.0) / 2.0 });
        (0..999).for_each(|_| belief.observe(2.0));
        let after = belief.after(prior);
        assert!((after.mean - 2.0).abs() < 0.01 && after.variance < 0.1);
    }

    #[test]
    fn draws_have_the_moments_that_they_should() {
        let mut random = Random::new(7);
        let prior = Normal { mean: 3.0, variance: 2.0 };
        let draws: Vec<f64> =
            (0..20_000).map(|_| Belief::default().draw(prior, &mut random)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 3.0).abs() < 0.05, "{mean}");
        assert!((variance - 4.0).abs() < 0.15, "{variance}");
    }
}
