//! What the iterations carry from sweep to sweep.

use std::time::Instant;

use decompose_common::history::{Detail, IterationRecord};
use decompose_common::stopping::{Standing, error_floor};
use decompose_formats::Value;

use crate::train::Train;

/// Where an iteration stands, its centre at the first core.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) train: Train,
    pub(crate) iteration: usize,
    /// `1 - ||X - T|| / ||X||`; 0 before the first iteration.
    pub(crate) fit: f64,
    pub(crate) change: f64,
    pub(crate) relative_error: f64,
    /// Whether the last sweep changed a rank.
    pub(crate) ranks_changed: bool,
}

/// An iteration in progress.
pub(crate) struct Run {
    pub(crate) state: State,
    pub(crate) history: Vec<IterationRecord>,
    pub(crate) norm_squared: f64,
    /// The start, counted from 1.
    pub(crate) restart: usize,
    /// When this process began.
    pub(crate) clock: Instant,
    /// Seconds before a resumption.
    pub(crate) earlier_seconds: f64,
}

/// Where a sweep spends its seconds.
#[derive(Clone, Debug)]
pub(crate) struct Seconds {
    /// Of the contractions with the tensor, by core or bond.
    pub(crate) contract: Vec<f64>,
    /// Of the dense algebra.
    pub(crate) dense: f64,
}

impl State {
    /// Starts from `train`, made right-orthogonal.
    pub(crate) fn new(mut train: Train) -> State {
        train.centre_first();
        State {
            train,
            iteration: 0,
            fit: 0.0,
            change: f64::INFINITY,
            relative_error: 1.0,
            ranks_changed: false,
        }
    }
}

impl Run {
    pub(crate) fn new(state: State, norm_squared: f64) -> Run {
        let (clock, earlier_seconds) = (Instant::now(), 0.0);
        Run { state, history: Vec::new(), norm_squared, restart: 1, clock, earlier_seconds }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.earlier_seconds + self.clock.elapsed().as_secs_f64()
    }

    /// Takes in a sweep that left a train with this relative error.
    pub(crate) fn end_sweep(&mut self, relative_error: f64, seconds: Seconds, start: Instant) {
        let state = &mut self.state;
        state.change = (1.0 - relative_error - state.fit).abs();
        state.fit = 1.0 - relative_error;
        state.relative_error = relative_error;
        state.iteration += 1;
        let record = IterationRecord {
            restart: self.restart,
            iteration: state.iteration,
            fit: state.fit,
            change: state.change,
            relative_error: state.relative_error,
            seconds: start.elapsed().as_secs_f64(),
            total_seconds: self.earlier_seconds + self.clock.elapsed().as_secs_f64(),
            details: details(seconds, state.train.ranks().into_iter().max().unwrap_or(1)),
        };
        self.history.push(record);
    }

    /// Tells the stopping rule where the iteration is.
    pub(crate) fn standing<V: Value>(&self) -> Standing {
        let State { iteration, change, relative_error, .. } = self.state;
        Standing {
            iteration,
            change,
            relative_error,
            error_floor: error_floor(V::EPSILON),
            elapsed: self.clock.elapsed(),
        }
    }
}

fn details(seconds: Seconds, largest_rank: usize) -> Vec<Detail> {
    vec![
        Detail::seconds_by_mode("tttc", seconds.contract),
        Detail::seconds("dense", seconds.dense),
        Detail::number("largest_rank", largest_rank as f64),
    ]
}

/// Returns the names and shapes of what is recorded of a sweep with `contractions` kinds of
/// contractions.
pub(crate) fn layout(contractions: usize) -> Vec<Detail> {
    details(Seconds { contract: vec![0.0; contractions], dense: 0.0 }, 0)
}
