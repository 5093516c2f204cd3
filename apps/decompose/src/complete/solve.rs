//! The starts of a fit, watched.

use decompose_common::output::OutputFolder;
use decompose_complete::{
    CompleteError, CompleteOutcome, Data, EpochRecord, Parts, Start, StopReason,
};

use crate::cli::Done;
use crate::complete::history;
use crate::complete::settings::Settings;
use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::journal::{self, Course};

/// The end of all starts.
pub(crate) struct Solved {
    /// One a start.
    pub(crate) outcomes: Vec<CompleteOutcome>,
    /// The start with the least deciding error.
    pub(crate) best: usize,
    pub(crate) seconds: f64,
    pub(crate) done: Done,
}

impl Solved {
    /// Returns the outcome of the best start.
    pub(crate) fn outcome(&self) -> &CompleteOutcome {
        &self.outcomes[self.best]
    }
}

/// Runs every start.
///
/// # Errors
///
/// As [`journal::watch`].
pub(crate) fn solve(
    settings: &Settings,
    parts: &Parts,
    folder: Option<&OutputFolder>,
    console: &mut Console,
) -> Result<Solved, Failure> {
    let Parts { train, val, test } = parts;
    let data = Data { train, val: val.as_ref(), test: test.as_ref() };
    let loss = settings.loss();
    let layout = history::layout(loss, parts);
    let course = Course { layout, earlier: Vec::new() };
    let size = train.norm_squared().sqrt();
    let toolchain = settings.toolchain();
    let (outcomes, seconds) = journal::watch(settings, folder, course, console, |observer| {
        let mut outcomes: Vec<CompleteOutcome> = Vec::new();
        for restart in 0..settings.restarts {
            let config = settings.config(train.order(), restart);
            let mut last: Option<EpochRecord> = None;
            let mut see = |record: &EpochRecord| {
                let place = (restart + 1, size);
                let seen = history::iteration(loss, record, last.as_ref(), place);
                last = Some(record.clone());
                observer(&seen)
            };
            let outcome =
                decompose_complete::solve(data, Start::Random, &config, &toolchain, &mut see)?;
            let cut = matches!(outcome.stop, StopReason::Interrupted | StopReason::TimeLimit);
            outcomes.push(outcome);
            if cut {
                break;
            }
        }
        Ok::<_, CompleteError>(outcomes)
    })?;
    let error = |at: usize| outcomes[at].best.deciding().error();
    let best = (0..outcomes.len()).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(0);
    let interrupted = outcomes.iter().any(|outcome| outcome.stop == StopReason::Interrupted);
    let done = if interrupted { Done::Interrupted } else { Done::Complete };
    Ok(Solved { outcomes, best, seconds, done })
}
