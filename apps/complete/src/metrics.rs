//! How good a model is on a set of entries.

use rayon::prelude::{
    IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator, ParallelSlice,
    ParallelSliceMut,
};

use crate::loss::Loss;

/// Entries added up by one task: sums do not depend on the number of threads.
const BLOCK: usize = 1 << 13;

/// The errors of a model on a set of entries; `p` is the mean that the model gives an entry.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Scores {
    /// The number of entries.
    pub entries: usize,
    /// Root of the mean of `(x - p)^2`, in the unit of the entries.
    pub rmse: f64,
    /// Mean of `|x - p|`, in the unit of the entries.
    pub mae: f64,
    /// Bernoulli: mean of `-ln` of the probability given to what was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<f64>,
    /// Bernoulli: the share of pairs of a one and a zero that the model ranks rightly; one half is
    /// chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Poisson and gamma: mean unit deviance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviance: Option<f64>,
    /// Huber: root of the mean loss, in the unit of the entries; the RMSE if no entry is an outlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huber: Option<f64>,
}

impl Scores {
    /// Judges the values `model` (an `offset` to be added) at entries of the values `observed`.
    ///
    /// Time `O(n)`, for bernoulli `O(n log n)`; parallel.
    pub fn of(loss: Loss, observed: &[f64], model: &[f64], offset: f64) -> Scores {
        let mean = |m: f64| loss.mean(m + offset);
        let area = match loss {
            Loss::Bernoulli => {
                auc(observed, &model.par_iter().map(|&m| mean(m)).collect::<Vec<_>>())
            }
            _ => None,
        };
        Scores::judged(loss, observed, model, mean, area)
    }

    /// Judges the means that something gives entries.
    pub fn of_means(loss: Loss, observed: &[f64], means: &[f64]) -> Scores {
        let area = if loss == Loss::Bernoulli { auc(observed, means) } else { None };
        Scores::judged(loss, observed, means, |mean| mean, area)
    }

    /// Judges `values`, each of which says `mean` of an entry; `auc` is the area under the ROC curve.
    fn judged(
        loss: Loss,
        observed: &[f64],
        values: &[f64],
        mean: impl Fn(f64) -> f64 + Sync,
        auc: Option<f64>,
    ) -> Scores {
        let sums: Vec<[f64; 3]> = observed
            .par_chunks(BLOCK)
            .zip(values.par_chunks(BLOCK))
            .map(|(observed, values)| {
                observed.iter().zip(values).fold([0.0; 3], |[square, far, deviance], (&x, &m)| {
                    let p = mean(m);
                    let error = x - p;
                    let unit = loss.deviance(x, p);
                    [square + error * error, far + error.abs(), deviance + unit]
                })
            })
            .collect();
        let count = observed.len().max(1) as f64;
        let average = |at: usize| sums.iter().map(|sums| sums[at]).sum::<f64>() / count;
        let own = average(2);
        let bernoulli = loss == Loss::Bernoulli;
        Scores {
            entries: observed.len(),
            rmse: average(0).sqrt(),
            mae: average(1),
            log_loss: bernoulli.then_some(own),
            auc,
            deviance: matches!(loss, Loss::Poisson | Loss::Gamma).then_some(own),
            huber: matches!(loss, Loss::Huber(_)).then_some(own.sqrt()),
        }
    }

    /// Returns the error by which models of this loss are compared, which the loss itself decides: the
    /// deviance, the log-loss, the Huber error, or the RMSE of least squares.
    pub fn error(&self) -> f64 {
        self.deviance.or(self.log_loss).or(self.huber).unwrap_or(self.rmse)
    }

    /// Returns the name of [`Scores::error`].
    pub fn error_name(&self) -> &'static str {
        match self {
            Scores { deviance: Some(_), .. } => "deviance",
            Scores { log_loss: Some(_), .. } => "log-loss",
            Scores { huber: Some(_), .. } => "Huber error",
            _ => "RMSE",
        }
    }
}

/// Returns an error in six digits, with an exponent where they would be zeros.
pub fn six_digits(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && !(1e-4..1e7).contains(&size) => format!("{value:.5e}"),
        size => format!("{value:.*}", 5_usize.saturating_sub(size.max(1.0).log10() as usize)),
    }
}

/// Returns the area under the ROC curve by ranks, ties counted half (Mann and Whitney); `None` if
/// all entries are alike.
pub(crate) fn auc(observed: &[f64], means: &[f64]) -> Option<f64> {
    let mut pairs: Vec<(f64, bool)> =
        means.iter().zip(observed).map(|(&mean, &x)| (mean, x == 1.0)).collect();
    pairs.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let ones = pairs.iter().filter(|pair| pair.1).count() as f64;
    let zeros = pairs.len() as f64 - ones;
    let (mut below, mut right) = (0.0, 0.0);
    for tied in pairs.chunk_by(|a, b| a.0 == b.0) {
        let tied_ones = tied.iter().filter(|pair| pair.1).count() as f64;
        let tied_zeros = tied.len() as f64 - tied_ones;
        right += tied_ones * (below + tied_zeros / 2.0);
        below += tied_zeros;
    }
    (ones > 0.0 && zeros > 0.0).then(|| right / (ones * zeros))
}

#[cfg(test)]
mod tests {
    use super::{Scores, auc};
    use crate::loss::Loss;

    #[test]
    fn scores_are_the_textbook_ones() {
        let scores = Scores::of(Loss::Gaussian, &[1.0, 2.0, 4.0], &[0.0, 1.0, 1.0], 1.0);
        // Errors 0, 0, 2.
        assert!((scores.rmse - (4.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((scores.mae - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!(scores.error(), scores.rmse);
        let scores = Scores::of(Loss::Bernoulli, &[1.0, 0.0], &[0.0, 0.0], 0.0);
        assert!((scores.log_loss.unwrap() - 2.0_f64.ln()).abs() < 1e-15);
        assert_eq!(scores.auc, Some(0.5));
        let scores = Scores::of(Loss::Poisson, &[2.0], &[1.0], 0.0);
        assert!((scores.deviance.unwrap() - 2.0 * (2.0 * 2.0_f64.ln() - 1.0)).abs() < 1e-14);
    }

    #[test]
    fn outliers_count_linearly_in_the_huber_error() {
        let loss = Loss::Huber(1.0);
        // Residuals 0.5, 0, 10: losses 0.25, 0, 2 * 10 - 1.
        let scores = Scores::of(loss, &[1.5, 2.0, 13.0], &[1.0, 2.0, 3.0], 0.0);
        assert!((scores.error() - (19.25_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((scores.rmse - (100.25_f64 / 3.0).sqrt()).abs() < 1e-14);
        // A model that errs a little everywhere is worse than one that misses an outlier.
        let far = Scores::of(loss, &[0.0, 0.0, 30.0], &[0.0, 0.0, 0.0], 0.0);
        let near = Scores::of(loss, &[0.0, 0.0, 30.0], &[4.0, 4.0, 26.0], 0.0);
        assert!(near.rmse < far.rmse && near.error() < far.error());
        let near = Scores::of(loss, &[0.0; 9], &[3.0; 9], 0.0);
        let far = Scores::of(loss, &[0.0; 9], &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0], 0.0);
        assert!(near.rmse < far.rmse && near.error() > far.error());
    }

    #[test]
    fn auc_counts_pairs() {
        let observed = [1.0, 0.0, 1.0, 0.0, 0.0];
        let means = [0.9, 0.8, 0.4, 0.4, 0.1];
        // Right: 0.9 beats three; 0.4 beats 0.1 and half of 0.4.
        assert_eq!(auc(&observed, &means), Some(4.5 / 6.0));
        assert_eq!(auc(&[1.0, 1.0], &[0.1, 0.2]), None);
    }
}
