//! When an iteration ends.

use std::fmt;
use std::time::Duration;

use crate::SolverError;
use crate::standing::Standing;

/// Why a solver stopped: one text for people and one key for `run.json` a reason, whatever the solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The change of the fit fell below the tolerance.
    Converged,
    /// The residual is as small as rounding lets it be told.
    PerfectFit,
    /// The most iterations were done.
    IterationLimit,
    /// The time was up.
    TimeLimit,
    /// The user asked to stop.
    Interrupted,
    /// A method that does not iterate ran to its end.
    Complete,
    /// The error has not become smaller for some iterations.
    Settled,
    /// No step makes the objective smaller.
    Stationary,
}

impl StopReason {
    /// All reasons, in the order of their numbers in checkpoints.
    pub const ALL: [StopReason; 8] = [
        StopReason::Converged,
        StopReason::PerfectFit,
        StopReason::IterationLimit,
        StopReason::TimeLimit,
        StopReason::Interrupted,
        StopReason::Complete,
        StopReason::Settled,
        StopReason::Stationary,
    ];

    /// Returns its key in `run.json`.
    pub fn key(self) -> &'static str {
        match self {
            StopReason::Converged => "converged",
            StopReason::PerfectFit => "perfect-fit",
            StopReason::IterationLimit => "iteration-limit",
            StopReason::TimeLimit => "time-limit",
            StopReason::Interrupted => "interrupted",
            StopReason::Complete => "complete",
            StopReason::Settled => "settled",
            StopReason::Stationary => "stationary",
        }
    }

    /// Returns the reason with this key.
    pub fn of_key(key: &str) -> Option<StopReason> {
        StopReason::ALL.into_iter().find(|reason| reason.key() == key)
    }

    /// Returns its number in checkpoints.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// Returns the reason with this number.
    pub fn of_number(number: u64) -> Option<StopReason> {
        StopReason::ALL.into_iter().find(|reason| reason.number() == number)
    }

    /// Tells whether the user, or a limit that he set, ended the whole run: no other start follows.
    pub fn is_cut_short(self) -> bool {
        matches!(self, StopReason::TimeLimit | StopReason::Interrupted)
    }
}

impl serde::Serialize for StopReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Converged => "the change fell below the tolerance",
            StopReason::PerfectFit => "the fit is perfect to rounding",
            StopReason::IterationLimit => "the iteration limit was reached",
            StopReason::TimeLimit => "the time limit was reached",
            StopReason::Interrupted => "interrupted",
            StopReason::Complete => "the method ran to its end",
            StopReason::Settled => "the error no longer became smaller",
            StopReason::Stationary => "no step makes the objective smaller",
        })
    }
}

/// The limits of an iterative solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopRule {
    /// Stop when the fit changes by less than this (strictly), tested from iteration 2 on.
    pub tol: f64,
    /// The most iterations.
    pub max_iters: usize,
    /// The most time, checked after each iteration.
    pub max_time: Option<Duration>,
}

impl Default for StopRule {
    /// Tolerance 1e-5, 50 iterations, no time limit.
    fn default() -> StopRule {
        StopRule { tol: 1e-5, max_iters: 50, max_time: None }
    }
}

impl StopRule {
    /// Checks the limits.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] with the option, its value and the remedy.
    pub fn validate(&self) -> Result<(), SolverError> {
        if self.max_iters == 0 {
            return Err(SolverError::Config("max_iters is 0; use at least 1".into()));
        }
        match self.tol >= 0.0 && self.tol.is_finite() {
            true => Ok(()),
            false => {
                Err(SolverError::Config(format!("tol is {}; use a number from 0 on", self.tol)))
            }
        }
    }

    /// Decides whether to stop after an iteration of a model whose numbers are rounded to `epsilon`; the first
    /// reason in the order of [`StopReason`] counts.  Nothing stops before the first iteration.
    pub fn check(
        &self,
        standing: &Standing,
        elapsed: Duration,
        epsilon: f64,
    ) -> Option<StopReason> {
        if standing.iteration == 0 {
            None
        } else if standing.iteration >= 2 && standing.change < self.tol {
            Some(StopReason::Converged)
        } else if standing.relative_error <= error_floor(epsilon) {
            Some(StopReason::PerfectFit)
        } else if standing.iteration >= self.max_iters {
            Some(StopReason::IterationLimit)
        } else if self.max_time.is_some_and(|limit| elapsed >= limit) {
            Some(StopReason::TimeLimit)
        } else {
            None
        }
    }
}

/// Returns the relative error up to which the fit of a model whose numbers are rounded to `epsilon` counts as
/// perfect: 3e-8 for doubles, 8e-6 in single precision.
///
/// The first is what a difference of squares in double precision can tell, the square root of four roundings; the
/// second, 64 roundings, is what factors in single precision can be expected to reach.  An error that looks smaller
/// than what its formula can tell is measured at the cells before it stops a run: see [`crate::residual`].
pub fn error_floor(epsilon: f64) -> f64 {
    (4.0 * f64::EPSILON).sqrt().max(64.0 * epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_numbers_name_one_reason_each() {
        for (at, reason) in StopReason::ALL.into_iter().enumerate() {
            assert_eq!(reason.number(), at as u64);
            assert_eq!(StopReason::of_number(reason.number()), Some(reason));
            assert_eq!(StopReason::of_key(reason.key()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.key());
            let same = StopReason::ALL.into_iter().filter(|r| r.to_string() == reason.to_string());
            assert_eq!(same.count(), 1, "{reason}");
        }
        assert_eq!(StopReason::of_number(8), None);
        assert_eq!(StopReason::of_key("epoch-limit"), None);
    }

    #[test]
    fn each_limit_stops_and_convergence_needs_two_iterations() {
        let rule = StopRule { max_time: Some(Duration::from_secs(9)), ..StopRule::default() };
        let check = |standing| rule.check(&standing, Duration::ZERO, f64::EPSILON);
        let going = Standing { iteration: 1, fit: 0.5, change: 0.0, relative_error: 0.5 };
        assert_eq!(check(going), None);
        let second = Standing { iteration: 2, ..going };
        assert_eq!(check(second), Some(StopReason::Converged));
        let on_the_edge = Standing { change: 1e-5, ..second };
        assert_eq!(check(on_the_edge), None);
        let perfect = Standing { relative_error: 1e-9, ..going };
        assert_eq!(check(perfect), Some(StopReason::PerfectFit));
        let last = Standing { iteration: 50, ..on_the_edge };
        assert_eq!(check(last), Some(StopReason::IterationLimit));
        let late = rule.check(&on_the_edge, Duration::from_secs(9), f64::EPSILON);
        assert_eq!(late, Some(StopReason::TimeLimit));
    }
}
