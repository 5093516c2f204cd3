//! What fits at several ranks tell about the rank of a tensor.
//!
//! A scan fits a model at each rank from several starts.  A [`RankRow`] holds what they found at one rank: the errors
//! of the best start, and how many starts reach them with the same components.  [`crate::recommend`] chooses.

use decompose_common::SolverError;
use decompose_common::factor_match::factor_match_score;
use decompose_common::model::{CpModel, Model};
use decompose_formats::Coo;
use ndarray::Array2;

use crate::config::ModelKind;
use crate::mean::root_mean_square;
use crate::outcome::CompleteOutcome;

/// The part of a gain that may be missing: of errors that differ by less, none is better.
const NEARLY: f64 = 0.01;

/// What was found at one rank: errors are those of the start with the least deciding error.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RankRow {
    /// The rank.
    pub rank: usize,
    /// The error on the training entries.
    pub train: f64,
    /// The error on the validation entries.
    pub val: Option<f64>,
    /// The error on the test entries.
    pub test: Option<f64>,
    /// The deciding error of the worst start.
    pub worst: f64,
    /// The deciding error of the mean of all training entries.
    pub mean_of_all: f64,
    /// The best fit: `1 - ||X - M|| / ||X||`, over the training entries or, for cp, all entries.
    pub fit: f64,
    /// The mean factor match score between starts; none for one start.
    pub matched: Option<f64>,
    /// How many starts reached the least error, to 1% of what it gains.
    pub reached: usize,
    /// The mean factor match score between these; none for one.
    pub agreement: Option<f64>,
    /// Seconds of all starts.
    pub seconds: f64,
}

impl RankRow {
    /// Compares the starts of one rank, of which there is at least one, fitted to `train`.
    ///
    /// # Errors
    ///
    /// [`SolverError::Data`] if there is no start.
    pub fn of(rank: usize, fits: &[RankFit], train: &Coo<f64>) -> Result<RankRow, SolverError> {
        let by_error = |a: &&RankFit, b: &&RankFit| a.deciding().total_cmp(&b.deciding());
        let none = || SolverError::Data(format!("there is no start of rank {rank}"));
        let best = fits.iter().min_by(by_error).ok_or_else(none)?;
        let worst = fits.iter().max_by(by_error).ok_or_else(none)?;
        let size = root_mean_square(train.values());
        let least = fits.iter().map(|fit| fit.rmse).fold(f64::INFINITY, f64::min);
        let models: Vec<&CpModel<f64>> = fits.iter().map(|fit| &fit.model).collect();
        let bound = nearly(best.deciding(), best.mean_of_all);
        let reaching = fits.iter().filter(|fit| fit.deciding() <= bound);
        let reaching: Vec<&CpModel<f64>> = reaching.map(|fit| &fit.model).collect();
        Ok(RankRow {
            rank,
            train: best.train,
            val: best.val,
            test: best.test,
            worst: worst.deciding(),
            mean_of_all: best.mean_of_all,
            fit: 1.0 - least / size.max(f64::MIN_POSITIVE),
            matched: matched(&models),
            reached: reaching.len(),
            agreement: matched(&reaching),
            seconds: fits.iter().map(|fit| fit.seconds).sum(),
        })
    }

    /// Takes fit and match from CP decompositions of the whole tensor: the fit of each start, and the factor match
    /// scores between starts.
    pub fn decomposed(&mut self, fits: &[f64], match_scores: &Array2<f64>) {
        let best = fits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let bound = nearly(1.0 - best, 1.0);
        let reaching: Vec<usize> = (0..fits.len()).filter(|&at| 1.0 - fits[at] <= bound).collect();
        let all: Vec<usize> = (0..fits.len()).collect();
        let score = |starts: &[usize]| {
            let pairs = starts.iter().flat_map(|&a| starts.iter().map(move |&b| (a, b)));
            mean(pairs.filter(|(a, b)| a < b).map(|pair| match_scores[pair]).collect())
        };
        self.fit = best;
        self.matched = score(&all);
        self.reached = reaching.len();
        self.agreement = score(&reaching);
    }

    /// Returns the error that decides.
    pub fn deciding(&self) -> f64 {
        self.val.unwrap_or(self.train)
    }

    /// Returns its numbers, for a checkpoint; what there is not is no number.
    pub fn to_numbers(&self) -> [f64; 11] {
        let optional = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let [val, test] = [self.val, self.test].map(optional);
        let [matched, agreement] = [self.matched, self.agreement].map(optional);
        let (rank, reached) = (self.rank as f64, self.reached as f64);
        let RankRow { train, worst, mean_of_all, fit, seconds, .. } = *self;
        [rank, train, val, test, worst, mean_of_all, fit, matched, reached, agreement, seconds]
    }

    /// Reads what [`RankRow::to_numbers`] made.
    pub fn from_numbers(numbers: [f64; 11]) -> RankRow {
        let [rank, train, val, test, worst, mean_of_all, fit, matched, reached, agreement, seconds] =
            numbers;
        let [val, test, matched, agreement] = [val, test, matched, agreement].map(known);
        let (rank, reached) = (rank as usize, reached as usize);
        RankRow {
            rank,
            train,
            val,
            test,
            worst,
            mean_of_all,
            fit,
            matched,
            reached,
            agreement,
            seconds,
        }
    }
}

/// What a scan keeps of a fit.
pub struct RankFit {
    train: f64,
    val: Option<f64>,
    test: Option<f64>,
    /// The RMSE on the training entries, whatever the loss.
    rmse: f64,
    mean_of_all: f64,
    seconds: f64,
    /// The model.
    pub model: CpModel<f64>,
}

impl RankFit {
    /// Takes the model of rank `rank` and its errors from a fit of that many seconds.
    ///
    /// # Errors
    ///
    /// If there is no memory, or the model is no CP model.
    pub fn of(
        outcome: &CompleteOutcome,
        rank: usize,
        seconds: f64,
    ) -> Result<RankFit, SolverError> {
        let Model::Cp(model) = outcome.model(&ModelKind::Cp { rank })? else {
            return Err(SolverError::Data("ranks are of CP models".into()));
        };
        let (best, plain) = (&outcome.best, &outcome.baselines[0]);
        Ok(RankFit {
            train: best.train.error(),
            val: best.val.map(|scores| scores.error()),
            test: best.test.map(|scores| scores.error()),
            rmse: best.train.rmse,
            mean_of_all: plain.val.unwrap_or(plain.train).error(),
            seconds,
            model,
        })
    }

    /// Returns the error that decides.
    pub fn deciding(&self) -> f64 {
        self.val.unwrap_or(self.train)
    }

    /// Returns all but the model, for a checkpoint; what there is not is no number.
    pub fn to_numbers(&self) -> [f64; 6] {
        let optional = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let RankFit { train, val, test, rmse, mean_of_all, seconds, .. } = self;
        [*train, optional(*val), optional(*test), *rmse, *mean_of_all, *seconds]
    }

    /// Reads what [`RankFit::to_numbers`] made.
    pub fn from_numbers(numbers: [f64; 6], model: CpModel<f64>) -> RankFit {
        let [train, val, test, rmse, mean_of_all, seconds] = numbers;
        RankFit { train, val: known(val), test: known(test), rmse, mean_of_all, seconds, model }
    }
}

fn known(number: f64) -> Option<f64> {
    Some(number).filter(|number| !number.is_nan())
}

/// Returns up to which error 99% of what `least` gains over `none` is gained.
pub(crate) fn nearly(least: f64, none: f64) -> f64 {
    least + NEARLY * (none - least).max(0.0)
}

/// The mean factor match score of all pairs.
fn matched(models: &[&CpModel<f64>]) -> Option<f64> {
    let pairs = (0..models.len()).flat_map(|a| (a + 1..models.len()).map(move |b| (a, b)));
    mean(pairs.filter_map(|(a, b)| factor_match_score(models[a], models[b])).collect())
}

/// The mean; none of nothing.
fn mean(scores: Vec<f64>) -> Option<f64> {
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::RankRow;

    #[test]
    fn starts_of_decompositions_are_compared() {
        let [none, zero] = [f64::NAN, 0.0];
        let numbers = [2.0, 1.0, none, none, 1.0, 5.0, zero, none, 1.0, none, 0.5];
        let mut row = RankRow::from_numbers(numbers);
        assert_eq!((row.rank, row.val, row.agreement), (2, None, None));
        let scores = array![[1.0, 0.9, 0.3], [0.9, 1.0, 0.6], [0.3, 0.6, 1.0]];
        row.decomposed(&[0.8, 0.799, 0.5], &scores);
        assert_eq!((row.fit, row.reached, row.agreement), (0.8, 2, Some(0.9)));
        assert!((row.matched.unwrap() - 0.6).abs() < 1e-15);
        row.decomposed(&[0.8], &array![[1.0]]);
        assert_eq!((row.reached, row.agreement, row.matched), (1, None, None));
    }
}
