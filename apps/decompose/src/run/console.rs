//! What a run tells: lines and bars on standard error, events on standard output.

use std::fmt::{Display, Write};

use decompose_common::history::{IterationRecord, Measure};
use decompose_common::machine::hardware_threads;
use decompose_common::progress::Screen;
use decompose_core::sweep::BuildReport;
use decompose_formats::counted;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::Phases;
use crate::run::figures::Sketches;
use crate::run::settings::{Results, RunSettings};
use crate::stdout;

/// The voice of one run, and its clock.
pub(crate) struct Console {
    pub(crate) screen: Screen,
    /// The phases that have ended.
    pub(crate) phases: Phases,
    results: Results,
    print_every: usize,
    restart: usize,
    restarts: usize,
    /// What the user asked for and did not get, beside the model.
    missing: usize,
    listener: Listener,
}

/// The reader of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listener {
    /// It has got everything so far.
    Here,
    /// Something could not be written, which the user knows.
    Lost,
}

impl Console {
    /// Makes the voice that the settings ask for.
    pub(crate) fn new(settings: &RunSettings) -> Console {
        let screen = Screen::new(settings.verbosity);
        let (threads, cores) = (settings.threads, hardware_threads());
        if threads > cores {
            let cores = counted(cores, "core", "cores");
            screen.warn(format!("{threads} threads share {cores}: fewer are mostly faster"));
        }
        Console {
            screen,
            phases: Phases::default(),
            results: settings.results,
            print_every: settings.print_every,
            restart: 0,
            restarts: settings.restarts,
            missing: 0,
            listener: Listener::Here,
        }
    }

    /// Makes the voice that the settings ask for, and says `what` is run with which `options`.
    ///
    /// # Errors
    ///
    /// If standard output cannot be written.
    pub(crate) fn begin(
        settings: &RunSettings,
        what: impl Display,
        options: &impl Serialize,
    ) -> Result<Console, Failure> {
        let (console, version) = (Console::new(settings), env!("CARGO_PKG_VERSION"));
        console.screen.line(format!("decompose {version}: {what}"));
        console.event("start", json!({ "version": version, "options": options }))?;
        Ok(console)
    }

    /// Runs `work` under a bar, as the phase `name`, whose seconds are kept.
    pub(crate) fn phase<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let (result, seconds) = self.screen.phase(name, work);
        self.phases.add(name, seconds);
        result
    }

    /// Writes the event `name` with its facts if standard output takes JSON.
    pub(crate) fn event(&self, name: &str, facts: Json) -> Result<(), Failure> {
        match self.results {
            Results::Json => stdout::json(&json!({ "event": name, "facts": facts })),
            Results::Summary | Results::None => Ok(()),
        }
    }

    /// Writes the event `name` as [`Console::event`]; if that fails, what is computed is not lost.
    pub(crate) fn tell(&mut self, name: &str, facts: Json) {
        let written = self.event(name, facts);
        self.heard(written);
    }

    /// Writes the summary of the run, if one is wanted.
    pub(crate) fn summary(&mut self, text: impl Display) {
        let written = match self.results {
            Results::Summary => stdout::line(text),
            Results::Json | Results::None => Ok(()),
        };
        self.heard(written);
    }

    /// Warns once that standard output cannot be written.
    fn heard(&mut self, written: Result<(), Failure>) {
        if let (Err(failure), Listener::Here) = (written, self.listener) {
            self.listener = Listener::Lost;
            self.trouble(&failure);
        }
    }

    /// Warns of something that the user asked for and does not get, while the model is there.
    pub(crate) fn trouble(&mut self, failure: &Failure) {
        self.missing += 1;
        self.screen.warn(failure.message());
    }

    /// Warns of figures that are missing.
    pub(crate) fn figures(&mut self, sketches: &Sketches<'_>) {
        self.missing += sketches.unwritten;
        sketches.warnings.iter().for_each(|warning| self.screen.warn(warning));
    }

    /// Returns how a run ended that ended so otherwise.
    pub(crate) fn done(&self, done: Done) -> Done {
        if self.missing > 0 { Done::Partly } else { done }
    }

    /// Says how trees and kernels were built.
    pub(crate) fn build(&self, build: &BuildReport) -> Result<(), Failure> {
        let BuildReport { build_seconds, compile_seconds, compiled, cached, .. } = build;
        let (unneeded, interpreted) = (build.unneeded, &build.interpreted);
        let kernels = match interpreted {
            Some(_) => "kernels are interpreted".to_owned(),
            None if unneeded > 0 => {
                let kernels = counted(unneeded, "kernel", "kernels");
                format!("{kernels} interpreted: compiling takes longer than it saves")
            }
            None => {
                let kernels = counted(*compiled, "kernel", "kernels");
                format!("{kernels} compiled, {cached} cached; {compile_seconds:.2} s")
            }
        };
        self.screen.line(format!("build    trees {build_seconds:.2} s; {kernels}"));
        if let Some(why) = interpreted {
            self.screen.warn(format!("kernels run in the interpreter, many times slower: {why}"));
        }
        self.event(
            "build",
            json!({
                "trees_seconds": build_seconds,
                "kernels_seconds": compile_seconds,
                "compiled": compiled,
                "cached": cached,
                "unneeded": unneeded,
                "interpreted": interpreted,
                "tree_bytes": build.tree_bytes,
                "private_bytes": build.side_bytes,
            }),
        )
    }

    /// Shows an iteration: its fit, change and seconds, and every number among its details.
    pub(crate) fn iteration(&mut self, record: &IterationRecord) {
        let IterationRecord { restart, iteration, fit, change, seconds, .. } = record;
        let numbers = || {
            record.details.iter().filter_map(|detail| match detail.value {
                Measure::Number(number) => Some((detail.name.replace('_', " "), number)),
                Measure::Seconds(_) | Measure::SecondsByMode(_) => None,
            })
        };
        if *restart != self.restart {
            self.restart = *restart;
            if self.restarts > 1 {
                self.screen.line(format!("restart  {restart} of {}", self.restarts));
            }
            if self.print_every > 0 {
                let mut heading = "iteration         fit     change  seconds".to_owned();
                numbers().for_each(|(name, _)| push(&mut heading, format_args!("{name:>11}")));
                self.screen.line(heading);
            }
        }
        if self.print_every > 0 && iteration.is_multiple_of(self.print_every) {
            let mut line = format!("{iteration:>9}  {fit:>10.8}  {change:>9.2e}  {seconds:>7.3}");
            numbers().for_each(|(name, number)| {
                let width = name.len().max(11);
                match number.fract() == 0.0 && number.abs() < 1e6 {
                    true => push(&mut line, format_args!("{number:>width$}")),
                    false => push(&mut line, format_args!("{number:>width$.4e}")),
                }
            });
            self.screen.line(line);
        }
        self.screen.iteration(*iteration, format!("fit {fit:.6}, change {change:.1e}"));
        self.tell("iteration", json!(record));
    }
}

/// Appends a column to a line.
fn push(line: &mut String, column: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = write!(line, "  {column}");
}
