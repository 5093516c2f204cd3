//! What a run tells: lines and bars on standard error, events on standard output.

use std::fmt::Display;

use decompose_common::history::IterationRecord;
use decompose_common::progress::Screen;
use serde_json::{Value as Json, json};

use crate::cp::settings::{Results, Settings};
use crate::failure::Failure;
use crate::stdout;

/// The voice of one run.
pub(crate) struct Console {
    pub(crate) screen: Screen,
    results: Results,
    print_every: usize,
    restart: usize,
    restarts: usize,
}

impl Console {
    /// Makes the voice that the settings ask for.
    pub(crate) fn new(settings: &Settings) -> Console {
        Console {
            screen: Screen::new(settings.verbosity),
            results: settings.results,
            print_every: settings.print_every,
            restart: 0,
            restarts: settings.config.restarts,
        }
    }

    /// Writes the event `name` with its facts if standard output takes JSON.
    pub(crate) fn event(&self, name: &str, facts: Json) -> Result<(), Failure> {
        match self.results {
            Results::Json => stdout::json(&json!({ "event": name, "facts": facts })),
            Results::Summary | Results::None => Ok(()),
        }
    }

    /// Writes the summary of the run, if one is wanted.
    pub(crate) fn summary(&self, text: impl Display) -> Result<(), Failure> {
        match self.results {
            Results::Summary => stdout::line(text),
            Results::Json | Results::None => Ok(()),
        }
    }

    /// Shows an iteration.
    pub(crate) fn iteration(&mut self, record: &IterationRecord) -> Result<(), Failure> {
        let IterationRecord { restart, iteration, fit, change, seconds, .. } = record;
        if *restart != self.restart {
            self.restart = *restart;
            if self.restarts > 1 {
                self.screen.line(format!("restart  {restart} of {}", self.restarts));
            }
            if self.print_every > 0 {
                self.screen.line("iteration         fit     change  seconds");
            }
        }
        if self.print_every > 0 && iteration.is_multiple_of(self.print_every) {
            self.screen
                .line(format!("{iteration:>9}  {fit:>10.8}  {change:>9.2e}  {seconds:>7.3}"));
        }
        self.screen.iteration(*iteration, format!("fit {fit:.6}, change {change:.1e}"));
        self.event("iteration", json!(record))
    }
}
