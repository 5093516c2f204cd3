//! The starts of a fit, watched.

use decompose_common::history::IterationRecord;
use decompose_common::run_folder::RunFolder;
use decompose_complete::{
    CompleteConfig, CompleteOutcome, Data, EpochRecord, Loss, Parts, Scores, Start, StopReason,
    root_mean_square, saved_history,
};

use crate::cli::Done;
use crate::complete::history;
use crate::complete::settings::Settings;
use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::journal::{self, Course};

/// The end of all starts.
pub(crate) struct Solved {
    pub(crate) outcome: CompleteOutcome,
    pub(crate) done: Done,
}

/// Runs every start, from the beginning or from where a checkpoint stopped.
///
/// # Errors
///
/// As [`journal::watch`].
pub(crate) fn solve(
    settings: &Settings,
    parts: &Parts,
    folder: Option<&RunFolder>,
    console: &mut Console,
) -> Result<Solved, Failure> {
    let Parts { train, val, test } = parts;
    let data = Data { train, val: val.as_ref(), test: test.as_ref() };
    let loss = settings.loss();
    let size = root_mean_square(train.values());
    let saved = settings.saved.as_deref().map(saved_history).transpose()?.unwrap_or_default();
    let unjudged = history::unjudged(&settings.reg);
    let mut journal = EpochJournal { loss, size, unjudged, last: None };
    let earlier: Vec<IterationRecord> =
        saved.iter().map(|record| journal.iteration(record)).collect();
    let (layout, checkpoint) = (history::layout(loss, parts, &settings.reg), settings.checkpoint());
    let course = Course { layout, earlier, checkpoint: checkpoint.clone() };
    let config = CompleteConfig {
        restarts: settings.restarts,
        checkpoint,
        ..settings.config(train.order(), 0)
    };
    let start = settings.saved.clone().map_or(Start::Random, Start::Checkpoint);
    let toolchain = settings.toolchain();
    let outcome = journal::watch(settings, folder, course, console, |observer| {
        let mut see = |record: &EpochRecord| observer(&journal.iteration(record));
        decompose_complete::solve(data, start, &config, &toolchain, &mut see)
    })?;
    let interrupted = outcome.starts.iter().any(|start| start.stop == StopReason::Interrupted);
    let done = if interrupted { Done::Interrupted } else { Done::Complete };
    Ok(Solved { outcome, done })
}

/// Tells epochs in the words of the shared history.
struct EpochJournal {
    loss: Loss,
    /// The root mean square of the training entries.
    size: f64,
    /// Scores of validation entries where there are none.
    unjudged: Option<Scores>,
    last: Option<EpochRecord>,
}

impl EpochJournal {
    fn iteration(&mut self, record: &EpochRecord) -> IterationRecord {
        let last = self.last.replace(record.clone());
        let before = last.as_ref().filter(|last| last.restart == record.restart);
        history::iteration(self.loss, record, before, self.size, self.unjudged)
    }
}
