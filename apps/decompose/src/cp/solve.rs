//! The iterations, watched: history on disk as they end, interrupts obeyed.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use decompose_common::history::{HistoryWriter, IterationRecord};
use decompose_common::interrupt;
use decompose_common::output::OutputFolder;
use decompose_common::stopping::StopReason;
use decompose_core::sweep::{Engine, MttkrpSweep};
use decompose_cp::{CpOutcome, Start, saved_history};
use decompose_formats::Value;

use crate::cli::Done;
use crate::cp::console::Console;
use crate::cp::settings::{Settings, StartFrom};
use crate::cp::write::{CHECKPOINT, STALE};
use crate::failure::Failure;

/// The end of the iterations.
pub(crate) struct Solved<V: Value> {
    pub(crate) outcome: CpOutcome<V>,
    /// The files of the kernels, by mode; `None` where interpreted.
    pub(crate) sources: Vec<Option<PathBuf>>,
    /// Seconds of this process in the solver.
    pub(crate) seconds: f64,
    pub(crate) done: Done,
}

/// Runs the solver.
///
/// # Errors
///
/// Those of the solver, after which an output folder made here is gone again, and failures to
/// write the history.
pub(crate) fn solve<V: Value>(
    settings: &Settings,
    (mut engine, start): (Engine<V>, Start<V>),
    folder: Option<&OutputFolder>,
    console: &mut Console,
) -> Result<Solved<V>, Failure> {
    let mut journal = folder.map(|folder| Journal::open(settings, folder)).transpose()?;
    interrupt::install();
    console.screen.start_iterations(settings.config.stop.max_iters);
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
    let solved = decompose_cp::solve(&mut engine, start, &settings.config, &mut observer);
    let seconds = begun.elapsed().as_secs_f64();
    console.screen.stop();
    if let Some(failure) = failed {
        return Err(failure);
    }
    let outcome = match (solved, journal) {
        (Ok(outcome), journal) => {
            journal.map_or(Ok(()), |mut journal| journal.begin(engine.extents().len()))?;
            outcome
        }
        (Err(error), journal) => {
            journal.into_iter().for_each(Journal::discard);
            return Err(error.into());
        }
    };
    let interrupted = outcome.restarts.iter().any(|start| start.stop == StopReason::Interrupted);
    let done = if interrupted { Done::Interrupted } else { Done::Complete };
    let sources =
        engine.kernels().map(|kernel| kernel.origin().map(|o| o.source.clone())).collect();
    Ok(Solved { outcome, sources, seconds, done })
}

/// The output folder while the solver runs.
///
/// Files of an earlier run make way when the first iteration has ended: until then the solver may
/// still refuse its start, and must leave what was there.
struct Journal<'a> {
    settings: &'a Settings,
    folder: &'a OutputFolder,
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
    fn open(settings: &'a Settings, folder: &'a OutputFolder) -> Result<Journal<'a>, Failure> {
        let origin = if folder.path().exists() { Origin::Found } else { Origin::Made };
        folder.create()?;
        Ok(Journal { settings, folder, origin, history: None })
    }

    fn append(&mut self, record: &IterationRecord) -> Result<(), Failure> {
        self.begin(record.mttkrp_seconds.len())?;
        match self.history.as_mut().map(|history| history.append(record)) {
            Some(Err(error)) => Err(Failure::from(error).while_writing()),
            _ => Ok(()),
        }
    }

    /// Clears the folder and starts `history.csv`, with the iterations that a resumed run has
    /// behind it; does nothing the second time.
    fn begin(&mut self, order: usize) -> Result<(), Failure> {
        if self.history.is_some() {
            return Ok(());
        }
        let earlier = match &self.settings.start {
            StartFrom::Checkpoint(saved) => saved_history(saved)?,
            StartFrom::Init(_) => Vec::new(),
        };
        // The checkpoint may be of this run already.
        let keep = self.settings.config.checkpoint.is_some() || !earlier.is_empty();
        self.folder.clear(STALE.iter().copied().filter(|&name| !(keep && name == CHECKPOINT)))?;
        let mut history = HistoryWriter::create(&self.folder.path().join("history.csv"), order)?;
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
