//! The end of a run: files are written, the result is told.

use std::path::Path;

use decompose_common::output::OutputFolder;
use serde::Serialize;

use crate::failure::Failure;
use crate::run::Phases;
use crate::run::console::Console;
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

/// Writes what `write` does and `run.json` into `folder`, if there is one, and tells the result; returns
/// the names of the files.  `write` is given the phases before it.
///
/// # Errors
///
/// If a file or standard output cannot be written.
pub(crate) fn finish<O: Serialize, P: Serialize, R: Serialize>(
    settings: &RunSettings,
    (tensor, forecast): (&TensorFacts, Forecast),
    parts: &Parts<O, P, R>,
    folder: Option<&OutputFolder>,
    console: &mut Console,
    write: impl FnOnce(&Phases, &Path) -> Result<Vec<String>, Failure>,
) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    if let Some(folder) = folder.map(OutputFolder::path) {
        let before = console.phases.clone();
        let written = console.phase("write", || write(&before, folder));
        files = written.map_err(Failure::while_writing)?;
        let record = record::write(settings, (tensor, forecast, &console.phases), parts, folder);
        files.push(record.map_err(Failure::while_writing)?);
    }
    let told = record::result(settings, &forecast, &console.phases, &parts.result);
    console.event("result", told)?;
    Ok(files)
}
