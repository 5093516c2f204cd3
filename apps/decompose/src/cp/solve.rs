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
use crate::cp::write::STALE;
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
    let is_new = folder.is_some_and(|folder| !folder.path().exists());
    let order = engine.extents().len();
    let mut history = folder.map(|folder| begin_history(settings, folder, order)).transpose()?;
    interrupt::install();
    console.screen.start_iterations(settings.config.stop.max_iters);
    let mut failed = None;
    let mut observer = |record: &IterationRecord| {
        let written = history.as_mut().map_or(Ok(()), |history| history.append(record));
        let written = written.map_err(|error| Failure::from(error).while_writing());
        match written.and_then(|()| console.iteration(record)) {
            Ok(()) if interrupt::requested() => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        }
    };
    let start_time = Instant::now();
    let solved = decompose_cp::solve(&mut engine, start, &settings.config, &mut observer);
    let seconds = start_time.elapsed().as_secs_f64();
    console.screen.stop();
    if let Some(failure) = failed {
        return Err(failure);
    }
    let outcome = solved.map_err(|error| {
        if let Some(folder) = folder.filter(|_| is_new) {
            discard(folder);
        }
        Failure::from(error)
    })?;
    let interrupted = outcome.restarts.iter().any(|start| start.stop == StopReason::Interrupted);
    let done = if interrupted { Done::Interrupted } else { Done::Complete };
    let sources =
        engine.kernels().map(|kernel| kernel.origin().map(|o| o.source.clone())).collect();
    Ok(Solved { outcome, sources, seconds, done })
}

/// Makes the folder and its history, with the iterations that a resumed run has behind it.
fn begin_history(
    settings: &Settings,
    folder: &OutputFolder,
    order: usize,
) -> Result<HistoryWriter, Failure> {
    let (earlier, stale) = match &settings.start {
        StartFrom::Checkpoint(saved) => (saved_history(saved)?, &[][..]),
        StartFrom::Init(_) => (Vec::new(), STALE),
    };
    folder.create(stale)?;
    let mut history = HistoryWriter::create(&folder.path().join("history.csv"), order)?;
    for record in &earlier {
        history.append(record)?;
    }
    Ok(history)
}

/// Removes what was begun, so that a refused input leaves nothing; other files would stay.
fn discard(folder: &OutputFolder) {
    let _ = fs::remove_file(folder.path().join("history.csv"));
    let _ = fs::remove_dir(folder.path());
}
