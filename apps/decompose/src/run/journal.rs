//! The iterations, watched: history on disk as they end, interrupts obeyed.

use std::fs;
use std::ops::ControlFlow;
use std::time::Instant;

use decompose_common::history::{Detail, HistoryWriter, IterationRecord, Observer};
use decompose_common::interrupt;
use decompose_common::output::OutputFolder;

use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::settings::RunSettings;
use crate::run::{CHECKPOINT, STALE};

/// What the journal must know of a solver.
pub(crate) struct Course {
    /// The names and shapes of the details of its iterations.
    pub(crate) layout: Vec<Detail>,
    /// The iterations that a resumed run has behind it.
    pub(crate) earlier: Vec<IterationRecord>,
}

/// Runs `solve` with an observer that shows every iteration, writes it to `history.csv` and stops
/// the solver when the user asks for it; returns its outcome and keeps its seconds as the phase `solve`.
///
/// # Errors
///
/// Those of the solver, after which an output folder made here is gone again, and failures to
/// write the history.
pub(crate) fn watch<T, E: Into<Failure>>(
    settings: &RunSettings,
    folder: Option<&OutputFolder>,
    course: Course,
    console: &mut Console,
    solve: impl FnOnce(&mut Observer<'_>) -> Result<T, E>,
) -> Result<T, Failure> {
    interrupt::install();
    let mut journal = folder.map(|folder| Journal::open(settings, folder, course)).transpose()?;
    console.screen.start_iterations(settings.stop.max_iters);
    let mut failed = None;
    let mut observer = |record: &IterationRecord| {
        let written = journal.as_mut().map_or(Ok(()), |journal| journal.append(record));
        match written.and_then(|()| console.iteration(record)) {
            Ok(()) if interrupt::requested() => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        }
    };
    let begun = Instant::now();
    let solved = solve(&mut observer);
    console.phases.add("solve", begun.elapsed().as_secs_f64());
    console.screen.stop();
    if let Some(failure) = failed {
        return Err(failure);
    }
    match (solved, journal) {
        (Ok(outcome), journal) => {
            journal.map_or(Ok(()), |mut journal| journal.begin())?;
            Ok(outcome)
        }
        (Err(error), journal) => {
            journal.into_iter().for_each(Journal::discard);
            Err(error.into())
        }
    }
}

/// The output folder while the solver runs.
///
/// Files of an earlier run make way when the first iteration has ended: until then the solver may
/// still refuse its start, and must leave what was there.
struct Journal<'a> {
    settings: &'a RunSettings,
    folder: &'a OutputFolder,
    course: Course,
    /// Whether the folder was made here.
    origin: Origin,
    history: Option<HistoryWriter>,
}

/// Where a folder comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// It was there.
    Found,
    /// It was made for this run.
    Made,
}

impl<'a> Journal<'a> {
    /// Makes the folder, into which the solver may save checkpoints.
    fn open(
        settings: &'a RunSettings,
        folder: &'a OutputFolder,
        course: Course,
    ) -> Result<Journal<'a>, Failure> {
        let origin = if folder.path().exists() { Origin::Found } else { Origin::Made };
        folder.create()?;
        Ok(Journal { settings, folder, course, origin, history: None })
    }

    fn append(&mut self, record: &IterationRecord) -> Result<(), Failure> {
        self.begin()?;
        match self.history.as_mut().map(|history| history.append(record)) {
            Some(Err(error)) => Err(Failure::from(error).while_writing()),
            _ => Ok(()),
        }
    }

    /// Clears the folder and starts `history.csv`, with the iterations that a resumed run has
    /// behind it; does nothing the second time.
    fn begin(&mut self) -> Result<(), Failure> {
        if self.history.is_some() {
            return Ok(());
        }
        let Course { layout, earlier } = &self.course;
        // The checkpoint may be of this run already.
        let keep = self.settings.checkpoint_every.is_some() || !earlier.is_empty();
        self.folder.clear(STALE.iter().copied().filter(|&name| !(keep && name == CHECKPOINT)))?;
        let mut history = HistoryWriter::create(&self.folder.path().join("history.csv"), layout)?;
        earlier.iter().try_for_each(|record| history.append(record))?;
        self.history = Some(history);
        Ok(())
    }

    /// Removes what was begun, so that a refused input leaves nothing; other files stay.
    fn discard(self) {
        if self.history.is_some() {
            let _ = fs::remove_file(self.folder.path().join("history.csv"));
        }
        if self.origin == Origin::Made {
            let _ = fs::remove_dir(self.folder.path());
        }
    }
}
