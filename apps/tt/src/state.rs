//! What the iterations carry from sweep to sweep.

use std::time::Instant;

use decompose_common::history::{Detail, IterationRecord};
use decompose_common::standing::{Clock, Standing};

use crate::train::Train;

/// Where an iteration stands, its centre at the first core.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) train: Train,
    pub(crate) standing: Standing,
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
    pub(crate) clock: Clock,
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
        State { train, standing: Standing::BEGIN, ranks_changed: false }
    }
}

impl Run {
    pub(crate) fn new(state: State, norm_squared: f64) -> Run {
        let (history, clock) = (Vec::new(), Clock::after(0.0));
        Run { state, history, norm_squared, restart: 1, clock }
    }

    /// Takes in a sweep that left a train with this relative error.
    pub(crate) fn end_sweep(&mut self, relative_error: f64, seconds: Seconds, start: Instant) {
        let State { train, standing, .. } = &mut self.state;
        standing.advance(relative_error);
        let details = details(seconds, train.ranks().into_iter().max().unwrap_or(1));
        self.history.push(standing.record(self.restart, start, &self.clock, details));
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
