//! How the starts of a run ended, and which was best.

use crate::stopping::StopReason;

/// The end of one start.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct RestartReport {
    /// The seed; it has no meaning for a given start.
    pub seed: u64,
    /// `1 - ||X - M|| / ||X||`.
    pub fit: f64,
    /// `||X - M|| / ||X||`.
    pub relative_error: f64,
    /// Iterations done.
    pub iterations: usize,
    /// Why it stopped.
    pub stop: StopReason,
}

/// Returns the number of the start with the best fit; of equal fits, the earliest.
pub fn best(restarts: &[RestartReport]) -> usize {
    let better =
        |best: usize, k: usize| if restarts[k].fit > restarts[best].fit { k } else { best };
    (1..restarts.len()).fold(0, better)
}

/// Returns the seed of restart number `restart`, from 0, in a run with `seed`.
pub fn seed_of(seed: u64, restart: usize) -> u64 {
    seed.wrapping_add(restart as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_of_equal_fits_is_best() {
        let report = |fit| RestartReport {
            seed: 0,
            fit,
            relative_error: 1.0 - fit,
            iterations: 1,
            stop: StopReason::Converged,
        };
        assert_eq!(best(&[0.1, 0.7, 0.7, 0.2].map(report)), 1);
        assert_eq!(best(&[0.1].map(report)), 0);
    }
}
