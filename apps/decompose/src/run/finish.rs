//! The end of a run: files are written, the result is told.

use std::path::{Path, PathBuf};

use decompose_common::output::OutputFolder;
use decompose_core::plot::Timing;
use serde::Serialize;

use crate::failure::Failure;
use crate::run::Phases;
use crate::run::console::Console;
use crate::run::figures::Sketches;
use crate::run::memory::Forecast;
use crate::run::record::{self, Parts};
use crate::run::settings::RunSettings;
use crate::run::tensor::TensorFacts;

/// Does `work` while another thread, unless one is all there may be, gives the memory of `done` back to the system.
///
/// For trees of some hundred megabytes that takes half as long as to write the files.
pub(crate) fn while_freeing<T: Send, R>(done: T, work: impl FnOnce() -> R) -> R {
    if rayon::current_num_threads() == 1 {
        drop(done);
        return work();
    }
    std::thread::scope(|scope| {
        // A thread that cannot be made drops what it was given.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || drop(done));
        work()
    })
}

/// What a command writes at its end.
pub(crate) struct Ending<W, D, T> {
    /// Writes the results and returns their files.
    pub(crate) write: W,
    /// Draws the figures, while results are written.
    pub(crate) draw: D,
    /// Returns the figure of the phases, of which writing is the last.
    pub(crate) timing: T,
}

/// Writes results, `run.json` and figures into `folder`, if there is one, and tells the result; returns
/// the names of the files.
///
/// Results and `run.json` are complete before the first figure is written.  A figure that cannot be
/// drawn or written is a warning, which `run.json` repeats.
///
/// # Errors
///
/// If a result or standard output cannot be written.
pub(crate) fn finish<O, P, R, W, D, T>(
    settings: &RunSettings,
    (tensor, forecast): (&TensorFacts, Forecast),
    parts: &Parts<O, P, R>,
    folder: Option<&OutputFolder>,
    console: &mut Console,
    ending: Ending<W, D, T>,
) -> Result<Vec<String>, Failure>
where
    O: Serialize,
    P: Serialize,
    R: Serialize,
    W: FnOnce(&Path) -> Result<Vec<PathBuf>, Failure> + Send,
    D: FnOnce(&mut Sketches<'_>) + Send,
    T: FnOnce(&Phases) -> Timing,
{
    let mut files = Vec::new();
    if let Some(folder) = folder.map(OutputFolder::path) {
        let Ending { write, draw, timing } = ending;
        let mut sketches = Sketches::new(&settings.plots);
        let results = || rayon::join(|| write(folder), || draw(&mut sketches));
        let (written, ()) = console.phase("write", results);
        let mut paths = written.map_err(Failure::while_writing)?;
        let phases = &console.phases;
        let record = |warnings: &[String]| {
            let facts = (tensor, forecast, phases);
            record::write(settings, facts, parts, (folder, warnings))
                .map_err(Failure::while_writing)
        };
        paths.push(record(&sketches.warnings)?);
        let recorded = sketches.warnings.len();
        sketches.add("timing", || Ok(timing(phases)));
        paths.extend(sketches.write(folder));
        if sketches.warnings.len() > recorded {
            record(&sketches.warnings)?;
        }
        sketches.warnings.iter().for_each(|warning| console.screen.warn(warning));
        files = record::names(&paths);
    }
    let told = record::result(settings, &forecast, &console.phases, &parts.result);
    console.event("result", told)?;
    Ok(files)
}
