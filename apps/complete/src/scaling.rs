//! The unit in which a fit measures the entries.
//!
//! A fit sees `x / u`, with `u` the root mean square of the training entries about the offset of the
//! model, so that ridges, steps and tolerances mean the same whatever the entries are measured in:
//!
//! ```text
//! f = sum loss(x/u, m) + sum reg_b |theta_b|^2,     the model is u m
//! ```
//!
//! The fitted blocks bear `u^(1/B)` each, `B` their number.  Log-odds have no unit: `u` is 1 for the
//! bernoulli loss, and for entries that are all zero.

use std::borrow::Cow;

use decompose_formats::{Coo, Matrix};

use crate::config::Biases;
use crate::loss::Loss;
use crate::mean::{average, largest};
use crate::metrics::Scores;

/// The share of the largest entry below which a spread is rounding.
const ROUNDING: f64 = 1e-14;

/// A unit of the entries; 1 leaves them as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntryUnit(f64);

impl EntryUnit {
    /// Finds the unit of the training entries of a model with these `biases`.
    pub(crate) fn of(loss: Loss, train: &[f64], biases: Biases) -> EntryUnit {
        let most = largest(train);
        if loss == Loss::Bernoulli || most == 0.0 {
            return EntryUnit(1.0);
        }
        let mean = match biases {
            Biases::None => 0.0,
            Biases::Modes => average(train, |x| x / most),
        };
        let spread = average(train, |x| (x / most - mean).powi(2)).sqrt();
        EntryUnit(if spread > ROUNDING { most * spread } else { most })
    }

    /// Returns its size.
    pub(crate) fn size(self) -> f64 {
        self.0
    }

    /// Returns the entries measured in it.
    pub(crate) fn measured(self, tensor: &Coo<f64>) -> Cow<'_, Coo<f64>> {
        match self.0 {
            1.0 => Cow::Borrowed(tensor),
            unit => Cow::Owned(tensor.clone().map_values(|x| x / unit)),
        }
    }

    /// Returns the loss of entries that are measured in it.
    pub(crate) fn loss(self, loss: Loss) -> Loss {
        match loss {
            Loss::Huber(bend) => Loss::Huber(bend / self.0),
            other => other,
        }
    }

    /// Returns the errors of entries as they are, from those of entries measured in it.
    pub(crate) fn scores(self, loss: Loss, scores: Scores) -> Scores {
        Scores {
            rmse: self.0 * scores.rmse,
            mae: self.0 * scores.mae,
            huber: scores.huber.map(|huber| self.0 * huber),
            deviance: match loss {
                Loss::Poisson => scores.deviance.map(|deviance| self.0 * deviance),
                _ => scores.deviance,
            },
            ..scores
        }
    }

    /// Turns blocks of a model of measured entries into those of a model of the entries as they are.
    pub(crate) fn restore(self, blocks: &mut [Matrix<f64>]) {
        self.multiply(blocks, |factor, value| value * factor);
    }

    /// Undoes [`EntryUnit::restore`].
    pub(crate) fn measure(self, blocks: &mut [Matrix<f64>]) {
        self.multiply(blocks, |factor, value| value / factor);
    }

    fn multiply(self, blocks: &mut [Matrix<f64>], by: impl Fn(f64, f64) -> f64) {
        let factor = self.0.powf(1.0 / blocks.len().max(1) as f64);
        if factor != 1.0 {
            let elements = blocks.iter_mut().flat_map(|block| block.as_mut_slice());
            elements.for_each(|value| *value = by(factor, *value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EntryUnit;
    use crate::config::Biases;
    use crate::loss::Loss;
    use crate::mean::root_mean_square;

    #[test]
    fn units_are_spreads_of_whatever_size() {
        let unit = |values: &[f64], biases| EntryUnit::of(Loss::Gaussian, values, biases).size();
        for scale in [1e-200, 1e-12, 1.0, 1e200] {
            let values = [3.0, -4.0, 5.0, 0.0].map(|x| x * scale);
            assert!((unit(&values, Biases::None) / scale - 12.5_f64.sqrt()).abs() < 1e-14);
            // The mean is 1, the squares about it are 4, 25, 16, 1.
            assert!((unit(&values, Biases::Modes) / scale - 11.5_f64.sqrt()).abs() < 1e-14);
            assert!((root_mean_square(&values) / scale - 12.5_f64.sqrt()).abs() < 1e-14);
        }
        assert_eq!(unit(&[0.1; 9], Biases::Modes), 0.1);
        assert_eq!(unit(&[0.0; 9], Biases::None), 1.0);
        assert_eq!(EntryUnit::of(Loss::Bernoulli, &[0.0, 1.0], Biases::None).size(), 1.0);
    }
}
