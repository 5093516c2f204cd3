//! The end of a run: files are written, the result is told.

use std::fmt;
use std::path::{Path, PathBuf};

use decompose_common::overwrite::Existing;
use decompose_common::restarts::RestartReport;
use decompose_common::run_folder::RunFolder;
use decompose_plot::Timing;
use ndarray::Array2;
use serde::Serialize;
use serde_json::Value as Json;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::Phases;
use crate::run::console::Console;
use crate::run::figures::Sketches;
use crate::run::memory::Forecast;
use crate::run::record::{self, Parts};
use crate::run::settings::RunSettings;
use crate::run::summary::Summary;
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

/// What every run that has ended tells of itself.
pub(crate) struct RunFacts<'a> {
    pub(crate) settings: &'a RunSettings,
    pub(crate) tensor: &'a TensorFacts,
    pub(crate) forecast: Forecast,
    /// How it ended, if all is written.
    pub(crate) done: Done,
}

/// A run that has ended: what it records, writes, draws and tells.
pub(crate) trait Ended: Sync {
    /// Returns the shared options, what was found in the file, the forecast, and the end.
    fn facts(&self) -> RunFacts<'_>;

    /// Returns what `run.json` says of the run.
    fn parts(&self) -> Parts<impl Serialize + Sync, impl Serialize + Sync, impl Serialize + Sync>;

    /// Writes the results but the history, which is there already: the model first.
    ///
    /// # Errors
    ///
    /// If the model cannot be written.
    fn write(&self, desk: &Desk<'_>) -> Result<Written, Failure>;

    /// Draws all figures but that of the phases, while results are written.
    fn draw(&self, sketches: &mut Sketches<'_>);

    /// Returns the figure of the phases, of which writing is the last, if there is one.
    fn timing(&self, _phases: &Phases) -> Option<Timing> {
        None
    }

    /// Writes the result in a few lines, for people.
    ///
    /// # Errors
    ///
    /// Those of `f`.
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Returns the facts of the event `result`, with the `result` of the record.
    fn told(&self, result: &impl Serialize, phases: &Phases) -> Json {
        record::result(&self.facts(), phases, result)
    }
}

/// Where the results of a run are written.
pub(crate) struct Desk<'a> {
    pub(crate) folder: &'a Path,
    record: &'a (dyn Fn() -> Result<PathBuf, Failure> + Sync),
}

impl Desk<'_> {
    /// Takes the files of the model, the first to be written, and adds the record, so that whatever happens
    /// to later files, model, history and record are there.
    ///
    /// # Errors
    ///
    /// If the model could not be written.
    pub(crate) fn model<E: Into<Failure>>(
        &self,
        written: Result<Vec<PathBuf>, E>,
    ) -> Result<Written, Failure> {
        let mut written = self.first(written)?;
        written.paths.push(self.folder.join("history.csv"));
        Ok(written)
    }

    /// Does [`Desk::model`] for a result that has no history.
    ///
    /// # Errors
    ///
    /// If the result could not be written.
    pub(crate) fn first<E: Into<Failure>>(
        &self,
        written: Result<Vec<PathBuf>, E>,
    ) -> Result<Written, Failure> {
        let paths = written.map_err(Into::into)?;
        // It is written again with the seconds of writing, and a failure told then.
        let _ = (self.record)();
        Ok(Written { paths, troubles: Vec::new() })
    }
}

/// The files of a run, and why others could not be written.
#[derive(Debug)]
pub(crate) struct Written {
    paths: Vec<PathBuf>,
    troubles: Vec<Failure>,
}

impl Written {
    /// Adds the files of a part, or why there are none.
    pub(crate) fn add<P: IntoIterator<Item = PathBuf>, E: Into<Failure>>(
        &mut self,
        part: Result<P, E>,
    ) {
        match part {
            Ok(paths) => self.paths.extend(paths),
            Err(error) => self.troubles.push(error.into()),
        }
    }

    /// Adds the table of several starts, with the score of each with each if given.
    pub(crate) fn add_restarts(
        &mut self,
        restarts: &[RestartReport],
        scores: Option<&Array2<f64>>,
        desk: &Desk<'_>,
    ) {
        if restarts.len() > 1 {
            self.add(record::restarts(restarts, scores, desk.folder).map(Some));
        }
    }
}

/// Writes results, `run.json` and figures into `folder`, which then takes the place of an earlier run, and tells
/// the result; returns how the run ended.
///
/// # Errors
///
/// As [`save`].
pub(crate) fn finish(
    ended: &impl Ended,
    folder: Option<RunFolder>,
    console: &mut Console,
) -> Result<Done, Failure> {
    let parts = ended.parts();
    let files = match folder {
        Some(folder) => save(ended, &parts, folder, console)?,
        None => Vec::new(),
    };
    console.tell("result", ended.told(&parts.result, &console.phases));
    let phases = &console.phases.clone();
    console.summary(Summary { ended, phases, files: &files });
    Ok(console.done(ended.facts().done))
}

/// Writes all files; returns their names.
///
/// Results and `run.json` are complete before the first figure is written.  What fails after the model is
/// written is a warning; where it is no matter of drawing, the run ends as [`Done::Partly`].
///
/// # Errors
///
/// If the model cannot be written, or the results cannot take their place.
fn save<O, P, R>(
    ended: &impl Ended,
    parts: &Parts<O, P, R>,
    mut folder: RunFolder,
    console: &mut Console,
) -> Result<Vec<String>, Failure>
where
    O: Serialize + Sync,
    P: Serialize + Sync,
    R: Serialize + Sync,
{
    let facts = ended.facts();
    let settings = facts.settings;
    folder.keep();
    facts.forecast.write();
    let (before, work) = (console.phases.clone(), folder.work().to_owned());
    let record = |phases: &Phases, warnings: &[String]| {
        record::write(&facts, phases, parts, &work, warnings)
    };
    let first = || record(&before, &[]);
    let desk = Desk { folder: &work, record: &first };
    let mut sketches = Sketches::new(&settings.plots);
    let results = || rayon::join(|| ended.write(&desk), || ended.draw(&mut sketches));
    let (written, ()) = console.phase("write", results);
    let Written { mut paths, troubles } = written.map_err(Failure::while_writing)?;
    troubles.iter().for_each(|trouble| console.trouble(trouble));
    let phases = console.phases.clone();
    match record(&phases, &sketches.warnings) {
        Ok(path) => paths.push(path),
        Err(failure) => console.trouble(&failure),
    }
    let recorded = sketches.warnings.len();
    if let Some(timing) = ended.timing(&phases) {
        sketches.add("timing", || Ok(timing));
    }
    paths.extend(sketches.write(&work));
    if sketches.warnings.len() > recorded
        && let Err(failure) = record(&phases, &sketches.warnings)
    {
        console.trouble(&failure);
    }
    console.figures(&sketches);
    if let (Existing::Resume, Some(saved)) = (settings.existing, &settings.saved)
        && let Err(error) = folder.take_checkpoint(saved)
    {
        console.trouble(&error.into());
    }
    folder.publish().map_err(|error| {
        let help = format!("the results are in {}", work.display());
        Failure::from(error).while_writing().help(help)
    })?;
    Ok(record::names(&paths))
}
