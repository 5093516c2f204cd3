//! How good predictions are, once, when a fit is done: what it costs to tell is no part of an epoch.

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::loss::Loss;
use crate::mean::root_mean_square;
use crate::metrics::auc;

/// Bins of predicted probabilities, of equal width.
const BINS: usize = 10;

/// What observed values and predictions have in common.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Quality {
    /// `1 - sum (x - p)^2 / sum (x - mean of x)^2`: 1 for a perfect prediction, 0 for one that is no
    /// better than the mean of what it predicts; `None` if all observed values are equal.
    pub r2: Option<f64>,
    /// Where all observed values are zeros and ones, and both occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<BitQuality>,
}

/// How good predictions of zeros and ones are.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct BitQuality {
    /// The area under the ROC curve: the share of pairs of a one and a zero that are ranked rightly.
    pub auc: f64,
    /// Mean of `-ln` of the probability given to what was observed; predictions outside of `[0, 1]`
    /// are clipped.
    pub log_loss: f64,
    /// Mean of `(x - p)^2`.
    pub brier: f64,
    /// Mean of `|share of ones - mean of p|` over ten bins of `p`, weighed by their entries: 0 if
    /// probabilities are what they say.
    pub calibration_error: f64,
    /// The share of ones among the observed values.
    pub observed_ones: f64,
    /// The mean prediction, which should be that share.
    pub predicted_ones: f64,
    /// Predictions outside of `[0, 1]`.
    pub outside: usize,
}

impl Quality {
    /// Compares observed values with their predictions, on the scale of the data.
    ///
    /// Time `O(n)`, for zeros and ones `O(n log n)`.
    pub fn of(observed: &[f64], predicted: &[f64]) -> Quality {
        Quality { r2: r2(observed, predicted), bits: BitQuality::of(observed, predicted) }
    }
}

impl BitQuality {
    fn of(observed: &[f64], predicted: &[f64]) -> Option<BitQuality> {
        if !observed.par_iter().all(|&x| x == 0.0 || x == 1.0) {
            return None;
        }
        let auc = auc(observed, predicted)?;
        let count = observed.len() as f64;
        let average = |of: &dyn Fn(f64, f64) -> f64| {
            observed.iter().zip(predicted).map(|(&x, &p)| of(x, p)).sum::<f64>() / count
        };
        let mut bins = [[0.0; 2]; BINS];
        for (x, p) in observed.iter().zip(predicted) {
            // What is below the first bin, or above the last, belongs to it.
            let bin = &mut bins[((p * BINS as f64) as usize).min(BINS - 1)];
            *bin = [bin[0] + x, bin[1] + p];
        }
        Some(BitQuality {
            auc,
            log_loss: average(&|x, p| Loss::Bernoulli.deviance(x, p)),
            brier: average(&|x, p| (x - p).powi(2)),
            calibration_error: bins.iter().map(|[x, p]| (x - p).abs()).sum::<f64>() / count,
            observed_ones: average(&|x, _| x),
            predicted_ones: average(&|_, p| p),
            outside: predicted.iter().filter(|p| !(0.0..=1.0).contains(*p)).count(),
        })
    }
}

/// The share of the variance of the observed values that the predictions explain.
fn r2(observed: &[f64], predicted: &[f64]) -> Option<f64> {
    let most = observed.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let mean = observed.iter().map(|x| x / most).sum::<f64>() / observed.len().max(1) as f64;
    let about: Vec<f64> = observed.iter().map(|x| x / most - mean).collect();
    let off: Vec<f64> = observed.iter().zip(predicted).map(|(x, p)| (x - p) / most).collect();
    let (spread, error) = (root_mean_square(&about), root_mean_square(&off));
    // Below this the spread is rounding of the mean.
    (spread > 1e-14).then(|| 1.0 - (error / spread).powi(2))
}

#[cfg(test)]
mod tests {
    use super::Quality;

    #[test]
    fn shares_of_variance_are_those_of_the_definition() {
        for scale in [1e-200, 1.0, 1e200] {
            let observed = [1.0, 2.0, 3.0, 6.0].map(|x| x * scale);
            let predicted = [1.0, 2.0, 4.0, 5.0].map(|x| x * scale);
            // Squares about the mean: 4, 1, 0, 9; of the errors: 0, 0, 1, 1.
            let r2 = Quality::of(&observed, &predicted).r2.unwrap();
            assert!((r2 - (1.0 - 2.0 / 14.0)).abs() < 1e-14, "{scale}: {r2}");
        }
        assert_eq!(Quality::of(&[0.1; 7], &[0.3; 7]).r2, None);
        assert_eq!(Quality::of(&[0.0; 7], &[0.3; 7]).r2, None);
    }

    #[test]
    fn probabilities_are_judged() {
        let bits = Quality::of(&[1.0, 0.0, 1.0, 0.0], &[0.85, 0.15, 0.45, 0.46]).bits.unwrap();
        assert_eq!(bits.auc, 0.75);
        let log_loss = -(0.85_f64.ln() + 0.85_f64.ln() + 0.45_f64.ln() + 0.54_f64.ln()) / 4.0;
        assert!((bits.log_loss - log_loss).abs() < 1e-15);
        let brier = (0.15_f64.powi(2) * 2.0 + 0.55_f64.powi(2) + 0.46_f64.powi(2)) / 4.0;
        assert!((bits.brier - brier).abs() < 1e-15);
        // Bins: {1 | 0.85}, {0 | 0.15}, {1, 0 | 0.45, 0.46}.
        assert!((bits.calibration_error - (0.15 + 0.15 + 0.09) / 4.0).abs() < 1e-15);
        assert_eq!((bits.observed_ones, bits.outside), (0.5, 0));
        assert!(Quality::of(&[1.0, 1.0], &[0.2, 0.3]).bits.is_none());
        assert!(Quality::of(&[1.0, 2.0], &[0.2, 0.3]).bits.is_none());
        assert_eq!(Quality::of(&[1.0, 0.0], &[1.2, -0.1]).bits.unwrap().outside, 2);
    }
}
