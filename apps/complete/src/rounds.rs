//! The rounds of a run: its starts and, where the ridge is chosen, the ridges of each start.
//!
//! A path of ridges leads from strong to weak, and every round goes on where the one before ended:
//! a strong ridge leaves few minima to end in, and a weak one then begins in a good place.
//!
//! ```text
//! reg = rho c/2
//! ```
//!
//! with `c` the curvature of the loss: where a model's values are as large as the entries, which are
//! measured in their [`unit`](crate::scaling), an entry adds about `c/2` to the diagonal of the normal
//! equations of its row, so the ridge weighs as much as `rho` entries.  `rho` falls by half powers of
//! ten.  The path of a start ends early where [`WORSE`] ridges in a row were worse: what is too weak
//! fits noise.  Source for paths with warm starts: Friedman, Hastie, Tibshirani, "Regularization
//! paths for generalized linear models via coordinate descent", J. Stat. Softw. 33, 2010.

use crate::config::{CompleteConfig, Reg};
use crate::objective::Objective;
use crate::outcome::StartReport;

/// The powers of ten of `rho` at the ends of the path, doubled.
const ENDS: [i32; 2] = [2, -8];
/// Ridges in a row that are worse than the best before and end a path.
const WORSE: usize = 3;
/// The share by which an error must be greater to be worse.
const MARGIN: f64 = 1e-3;

/// A round of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// Its start, from 0.
    pub(crate) start: usize,
    /// Which ridge of the path, from 0.
    pub(crate) step: usize,
}

/// The ridges of every start, each by block.
pub(crate) struct Rounds {
    ridges: Vec<Vec<f64>>,
}

impl Rounds {
    /// Lists the ridges that `config` asks for.
    pub(crate) fn new(config: &CompleteConfig, objective: &mut Objective) -> Rounds {
        let given = objective.reg().to_vec();
        if let Reg::Given(_) = config.reg {
            return Rounds { ridges: vec![given] };
        }
        let loss = objective.loss();
        let observed = objective.entries().observed();
        let mean = observed.iter().sum::<f64>() / observed.len().max(1) as f64;
        let entry = 0.5 * loss.curvature(mean);
        let ridge = |half: i32| vec![entry * 10_f64.powf(0.5 * f64::from(half)); given.len()];
        Rounds { ridges: (ENDS[1]..=ENDS[0]).rev().map(ridge).collect() }
    }

    /// Returns the ridge of a round, by block.
    pub(crate) fn ridge(&self, round: Round) -> &[f64] {
        &self.ridges[round.step]
    }

    /// Returns the round after those that are `finished`.
    pub(crate) fn after<'a>(
        &self,
        finished: impl DoubleEndedIterator<Item = &'a StartReport> + Clone,
    ) -> Round {
        let Some(last) = finished.clone().next_back() else { return Round { start: 0, step: 0 } };
        let path = finished.filter(|report| report.start == last.start);
        let errors: Vec<f64> = path.map(|report| report.best.deciding().error()).collect();
        let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
        let worse = |error: &&f64| **error > least * (1.0 + MARGIN);
        let step = errors.len();
        if step < self.ridges.len() && errors.iter().rev().take_while(worse).count() < WORSE {
            return Round { start: last.start, step };
        }
        Round { start: last.start + 1, step: 0 }
    }
}
