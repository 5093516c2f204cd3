//! Where the iterations of a start stand, and the time that a run has taken.

use std::time::{Duration, Instant};

use crate::history::{Detail, IterationRecord};
use crate::restarts::RestartReport;
use crate::stopping::StopReason;

/// Where the iterations of a start stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Iterations done.
    pub iteration: usize,
    /// `1 - ||X - M|| / ||X||`; 0 before the first iteration.
    pub fit: f64,
    /// The absolute change of the fit in the last iteration; infinite before the first.
    pub change: f64,
    /// `||X - M|| / ||X||`; 1 before the first iteration.
    pub relative_error: f64,
}

impl Standing {
    /// Before the first iteration.
    pub const BEGIN: Standing =
        Standing { iteration: 0, fit: 0.0, change: f64::INFINITY, relative_error: 1.0 };

    /// Takes in the relative error at the end of an iteration.
    pub fn advance(&mut self, relative_error: f64) {
        let fit = 1.0 - relative_error;
        self.change = (fit - self.fit).abs();
        self.fit = fit;
        self.relative_error = relative_error;
        self.iteration += 1;
    }

    /// Records the iteration that began at `begun`, of start number `restart`, from 1.
    pub fn record(
        self,
        restart: usize,
        begun: Instant,
        clock: &Clock,
        details: Vec<Detail>,
    ) -> IterationRecord {
        let Standing { iteration, fit, change, relative_error } = self;
        let (seconds, total_seconds) = (begun.elapsed().as_secs_f64(), clock.seconds());
        IterationRecord {
            restart,
            iteration,
            fit,
            change,
            relative_error,
            seconds,
            total_seconds,
            details,
        }
    }

    /// Reports the end of a start that began from `seed`.
    pub fn report(self, seed: u64, stop: StopReason) -> RestartReport {
        let Standing { iteration: iterations, fit, relative_error, .. } = self;
        RestartReport { seed, fit, relative_error, iterations, stop }
    }
}

/// The time that a run has taken, over all processes that worked on it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// When this process began.
    begun: Instant,
    /// Seconds before a resumption.
    earlier: f64,
}

impl Clock {
    /// Begins, with the seconds that were spent before a resumption.
    pub fn after(earlier: f64) -> Clock {
        Clock { begun: Instant::now(), earlier }
    }

    /// Begins anew in this process.
    pub fn restart(&mut self) {
        self.begun = Instant::now();
    }

    /// Returns the seconds of all processes.
    pub fn seconds(&self) -> f64 {
        self.earlier + self.elapsed().as_secs_f64()
    }

    /// Returns the time in this process, which limits are for.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}
