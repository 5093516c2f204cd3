//! The iterations, watched: history on disk as they end, interrupts obeyed.

use std::ops::ControlFlow;
use std::time::Instant;

use decompose_common::checkpoint::CheckpointRule;
use decompose_common::history::{Detail, HistoryWriter, IterationRecord, Observer};
use decompose_common::interrupt;
use decompose_common::run_folder::RunFolder;

use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::settings::RunSettings;

/// What the journal must know of a solver.
pub(crate) struct Course {
    /// The names and shapes of the details of its iterations.
    pub(crate) layout: Vec<Detail>,
    /// The iterations that a resumed run has behind it.
    pub(crate) earlier: Vec<IterationRecord>,
    /// Where it saves checkpoints, and what went wrong with them.
    pub(crate) checkpoint: Option<CheckpointRule>,
}

/// Runs `solve` with an observer that shows every iteration, writes it to `history.csv` and stops
/// the solver when the user asks for it; returns its outcome and keeps its seconds as the phase `solve`.
///
/// What cannot be written meanwhile - history, checkpoints, events - is no reason to stop: it is told.
///
/// # Errors
///
/// Those of the solver.
pub(crate) fn watch<T, E: Into<Failure>>(
    settings: &RunSettings,
    folder: Option<&RunFolder>,
    course: Course,
    console: &mut Console,
    solve: impl FnOnce(&mut Observer<'_>) -> Result<T, E>,
) -> Result<T, Failure> {
    interrupt::install();
    let mut journal = folder.map(|folder| Journal::new(folder, &course));
    let checkpoint = course.checkpoint;
    console.screen.start_iterations(settings.stop.max_iters);
    let mut observer = |record: &IterationRecord| {
        if let Some(journal) = &mut journal {
            journal.append(record, console);
        }
        for why in checkpoint.iter().flat_map(CheckpointRule::take_troubles) {
            console.screen.warn(format!("no checkpoint was saved: {why}"));
        }
        console.iteration(record);
        match interrupt::requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let begun = Instant::now();
    let solved = solve(&mut observer);
    console.phases.add("solve", begun.elapsed().as_secs_f64());
    console.screen.stop();
    let outcome = solved.map_err(Into::into)?;
    for why in checkpoint.iter().flat_map(CheckpointRule::take_troubles) {
        console.trouble(&Failure::input(format!("the last checkpoint was not saved: {why}")));
    }
    if let Some(Err(error)) = journal.map(|mut journal| journal.history.flush()) {
        console.trouble(&Failure::from(error));
    }
    Ok(outcome)
}

/// The history while the solver runs.
///
/// Nothing is on disk before the first iteration has ended: until then the solver may still refuse its start.
struct Journal {
    history: HistoryWriter,
    health: Health,
}

/// Whether the history can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    /// The last time it could.
    Written,
    /// It could not, which the user knows.
    Pending,
}

impl Journal {
    fn new(folder: &RunFolder, course: &Course) -> Journal {
        let mut history = HistoryWriter::new(&folder.work().join("history.csv"), &course.layout);
        course.earlier.iter().for_each(|record| history.push(record));
        Journal { history, health: Health::Written }
    }

    fn append(&mut self, record: &IterationRecord, console: &Console) {
        self.history.push(record);
        let health = match self.history.flush() {
            Ok(()) => Health::Written,
            Err(error) => {
                if self.health == Health::Written {
                    console.screen.warn(format!("{error}; it is tried again as the run goes on"));
                }
                Health::Pending
            }
        };
        self.health = health;
    }
}
