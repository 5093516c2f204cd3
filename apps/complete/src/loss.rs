//! How far a model's value is from an entry.
//!
//! `x` is the entry, `m` the value of the model, `e = 1e-10` keeps logarithms finite
//! (Hong, Kolda, Duersch, SIAM Review 62, 2020, table 1):
//!
//! | loss      | `loss(x, m)`                                 | entries  | model   | says of an entry |
//! |-----------|----------------------------------------------|----------|---------|------------------|
//! | gaussian  | `(x - m)^2`                                  | any      | any     | `m`              |
//! | poisson   | `m - x ln(m + e)`                            | `>= 0`   | `>= 0`  | `m`              |
//! | bernoulli | `ln(1 + exp m) - x m` (log odds)             | 0 or 1   | any     | `1/(1+exp(-m))`  |
//! | huber     | `(x - m)^2`, beyond `D`: `2 D abs(x-m) - D^2` | any      | any     | `m`              |
//! | gamma     | `x / (m + e) + ln(m + e)`                    | `> 0`    | `>= 0`  | `m`              |

use std::fmt;

use decompose_common::model::Link;

use crate::mean::root_mean_square;

/// Keeps logarithms and quotients finite where the model is zero.
const TINY: f64 = 1e-10;

/// A loss function.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Least squares: real values with errors of equal size.
    Gaussian,
    /// Counts; the model is their mean.
    Poisson,
    /// Zeros and ones; the model is the logarithm of the odds.
    Bernoulli,
    /// Least squares that turn linear beyond this distance: values with outliers.
    Huber(f64),
    /// Positive values with errors in proportion; the model is their mean.
    Gamma,
}

/// Where the values of a model may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Anywhere.
    All,
    /// From zero on, so that every block must be so.
    NonNegative,
}

impl Loss {
    /// Returns the huber loss that is linear beyond the median distance of `values` from their median:
    /// outliers, as long as they are fewer than half, move it little.
    ///
    /// Where half of the values are equal, it is linear beyond their root mean square.
    pub fn huber_of(values: &[f64]) -> Loss {
        let middle = |values: &mut [f64]| match values.len() {
            0 => 0.0,
            count => *values.select_nth_unstable_by(count / 2, f64::total_cmp).1,
        };
        let mut copy = values.to_vec();
        let median = middle(&mut copy);
        copy.iter_mut().for_each(|x| *x = (*x - median).abs());
        let bend = [middle(&mut copy), root_mean_square(values)].into_iter().find(|b| *b > 0.0);
        Loss::Huber(bend.unwrap_or(1.0))
    }

    /// Returns the loss of the model's value `m` at an entry `x`.
    pub fn value(self, x: f64, m: f64) -> f64 {
        match self {
            Loss::Gaussian => (x - m) * (x - m),
            Loss::Poisson => m - x * (m + TINY).ln(),
            Loss::Bernoulli => softplus(m) - x * m,
            Loss::Huber(bend) => {
                let far = (x - m).abs();
                if far <= bend { far * far } else { 2.0 * bend * far - bend * bend }
            }
            Loss::Gamma => x / (m + TINY) + (m + TINY).ln(),
        }
    }

    /// Returns the derivative of the loss by `m`.
    pub fn slope(self, x: f64, m: f64) -> f64 {
        match self {
            Loss::Gaussian => 2.0 * (m - x),
            Loss::Poisson => 1.0 - x / (m + TINY),
            Loss::Bernoulli => Link::Logit.mean(m) - x,
            Loss::Huber(bend) => 2.0 * (m - x).clamp(-bend, bend),
            Loss::Gamma => (1.0 - x / (m + TINY)) / (m + TINY),
        }
    }

    /// Returns the curvature of the loss by `m`, where the model says `mean` of entries whose mean it
    /// is.
    pub fn curvature(self, mean: f64) -> f64 {
        match self {
            Loss::Gaussian | Loss::Huber(_) => 2.0,
            Loss::Poisson => 1.0 / mean.max(TINY),
            Loss::Bernoulli => 0.25,
            Loss::Gamma => 1.0 / (mean * mean).max(TINY * TINY),
        }
    }

    /// Returns how a model's values become those of the data.
    pub fn scale(self) -> Link {
        match self {
            Loss::Bernoulli => Link::Logit,
            _ => Link::Identity,
        }
    }

    /// Returns what the model's value `m` says of an entry: its mean.
    pub fn mean(self, m: f64) -> f64 {
        self.scale().mean(m)
    }

    /// Returns the value of a model that says `mean` of every entry: the inverse of
    /// [`Loss::mean`], kept finite.
    pub fn link(self, mean: f64) -> f64 {
        match self {
            Loss::Bernoulli => {
                let mean = mean.clamp(1e-6, 1.0 - 1e-6);
                (mean / (1.0 - mean)).ln()
            }
            _ => mean,
        }
    }

    /// Returns how wrong `mean` is about `x`, 0 if it is right: the loss itself of gaussian and huber,
    /// the unit deviance (twice the log-likelihood lost) of poisson and gamma, the log-loss of
    /// bernoulli.
    pub fn deviance(self, x: f64, mean: f64) -> f64 {
        match self {
            Loss::Gaussian | Loss::Huber(_) => self.value(x, mean),
            Loss::Poisson => {
                let log = if x > 0.0 { x * (x / mean.max(TINY)).ln() } else { 0.0 };
                2.0 * (log - (x - mean))
            }
            Loss::Bernoulli => {
                let p = mean.clamp(1e-15, 1.0 - 1e-15);
                -(x * p.ln() + (1.0 - x) * (1.0 - p).ln())
            }
            Loss::Gamma => {
                let mean = mean.max(TINY);
                2.0 * ((x - mean) / mean - (x / mean).ln())
            }
        }
    }

    /// Returns where the values of a model may lie.
    pub fn range(self) -> Range {
        match self {
            Loss::Poisson | Loss::Gamma => Range::NonNegative,
            _ => Range::All,
        }
    }

    /// Tells whether an entry may have the value `x`.
    pub fn allows(self, x: f64) -> bool {
        x.is_finite()
            && match self {
                Loss::Gaussian | Loss::Huber(_) => true,
                Loss::Poisson => x >= 0.0,
                Loss::Bernoulli => x == 0.0 || x == 1.0,
                Loss::Gamma => x > 0.0,
            }
    }

    /// Says which values are allowed, and what to do about others.
    pub fn domain(self) -> &'static str {
        match self {
            Loss::Gaussian | Loss::Huber(_) => "any finite number",
            Loss::Poisson => "counts, from 0 on; use the gaussian loss for signed values",
            Loss::Bernoulli => "0 or 1; use the gaussian or the poisson loss for others",
            Loss::Gamma => "numbers above 0; use the poisson loss where zeros occur",
        }
    }

    /// Tells whether least squares over the entries minimise it.
    pub fn is_quadratic(self) -> bool {
        self == Loss::Gaussian
    }
}

impl fmt::Display for Loss {
    /// Writes the name on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Gaussian => "gaussian",
            Loss::Poisson => "poisson",
            Loss::Bernoulli => "bernoulli",
            Loss::Huber(_) => "huber",
            Loss::Gamma => "gamma",
        })
    }
}

/// `ln(1 + exp m)` without overflow.
fn softplus(m: f64) -> f64 {
    m.max(0.0) + (-m.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::Loss;

    const ALL: [(Loss, &[f64]); 5] = [
        (Loss::Gaussian, &[-2.0, 0.0, 3.5]),
        (Loss::Poisson, &[0.0, 1.0, 7.0]),
        (Loss::Bernoulli, &[0.0, 1.0]),
        (Loss::Huber(0.5), &[-2.0, 0.9, 3.5]),
        (Loss::Gamma, &[0.3, 1.0, 7.0]),
    ];

    #[test]
    fn slopes_are_derivatives() {
        // Central differences: error h^2 times the third derivative, at most a few hundred here.
        let h = 1e-6;
        for (loss, entries) in ALL {
            for &x in entries {
                // No entry is at the distance of the bend, where the slope has a corner.
                for m in [0.2, 0.8, 1.7, 4.1, 40.0] {
                    let numeric = (loss.value(x, m + h) - loss.value(x, m - h)) / (2.0 * h);
                    let slope = loss.slope(x, m);
                    let scale = 1.0 + loss.value(x, m).abs() + slope.abs();
                    assert!((numeric - slope).abs() < 1e-8 * scale, "{loss} {x} {m}");
                }
            }
        }
    }

    #[test]
    fn the_best_mean_is_the_entry_and_has_no_deviance() {
        for (loss, entries) in ALL {
            for &x in entries {
                let right = loss.deviance(x, loss.mean(loss.link(x)));
                assert!(right.abs() < 2e-6, "{loss} {x}: {right}");
                let means = [x + 0.05, (x - 0.05).max(1e-3)];
                let is_mean = |mean: &&f64| loss != Loss::Bernoulli || **mean < 1.0;
                for mean in means.iter().filter(is_mean) {
                    assert!(loss.deviance(x, *mean) >= right - 1e-9, "{loss} {x} {mean}");
                }
            }
        }
    }

    #[test]
    fn outliers_do_not_move_the_bend() {
        let values = [4.0, 1.0, 2.0, 3.0, 1e9];
        // Distances from 3: 1, 2, 1, 0, 1e9.
        assert_eq!(Loss::huber_of(&values), Loss::Huber(1.0));
        assert_eq!(Loss::huber_of(&[2.0, 2.0, 2.0, -2.0]), Loss::Huber(2.0));
        assert_eq!(Loss::huber_of(&[0.0; 3]), Loss::Huber(1.0));
    }

    #[test]
    fn extremes_stay_finite() {
        for m in [-800.0, -1e-3, 0.0, 800.0] {
            assert!(Loss::Bernoulli.value(1.0, m).is_finite());
            assert!(Loss::Bernoulli.slope(0.0, m).is_finite());
        }
        assert!(Loss::Poisson.value(3.0, 0.0).is_finite());
        assert!(Loss::Gamma.value(3.0, 0.0).is_finite());
        assert!(!Loss::Poisson.allows(-1.0) && !Loss::Bernoulli.allows(0.5));
        assert!(!Loss::Gamma.allows(0.0) && !Loss::Gaussian.allows(f64::NAN));
    }
}
