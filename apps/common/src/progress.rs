//! What a person sees while a command runs, all of it on standard error.
//!
//! On a terminal the current phase shows a moving bar below the lines already written; elsewhere
//! there are lines only, and a long phase of known size adds one now and then.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use decompose_formats::io::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::printable::printable_lines;

/// How often a bar is redrawn.
const TICK: Duration = Duration::from_millis(100);
/// How often a long phase adds a line where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Warnings and errors only.
    Quiet,
    /// Phases, iterations and decisions too.
    #[default]
    Normal,
}

/// The display of one command.
pub struct Screen {
    verbosity: Verbosity,
    /// The bar of the current phase; hidden unless there is a terminal.
    bar: ProgressBar,
    is_terminal: bool,
}

impl Screen {
    /// Makes the display of this process.
    pub fn new(verbosity: Verbosity) -> Screen {
        let is_terminal = verbosity == Verbosity::Normal && std::io::stderr().is_terminal();
        Screen { verbosity, bar: ProgressBar::hidden(), is_terminal }
    }

    /// Writes a line, above the bar.
    pub fn line(&self, text: impl Display) {
        if self.verbosity == Verbosity::Normal {
            self.write(&text.to_string());
        }
    }

    /// Writes a warning, also where the user wants quiet.
    pub fn warn(&self, text: impl Display) {
        self.write(&format!("warning: {text}"));
    }

    fn write(&self, text: &str) {
        // A reader that went away is no reason to stop computing.
        let text = printable_lines(text);
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{text}");
        });
    }

    /// Runs `work` under a bar that turns; returns its result and its seconds.
    pub fn phase<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> (T, f64) {
        self.start("{spinner} {prefix} {elapsed}", name, None);
        self.bar.enable_steady_tick(TICK);
        let start = Instant::now();
        let result = work();
        self.stop();
        (result, start.elapsed().as_secs_f64())
    }

    /// Runs `work` under a bar of the bytes that `progress` counts; returns its result and its
    /// seconds.
    pub fn reading<T>(
        &mut self,
        name: &'static str,
        progress: &Progress,
        work: impl FnOnce() -> T,
    ) -> (T, f64) {
        let template = "{spinner} {prefix} {wide_bar} {bytes} of {total_bytes} ({bytes_per_sec})";
        self.start(template, name, Some(0));
        let start = Instant::now();
        let (end, ended) = mpsc::channel::<()>();
        let result = std::thread::scope(|scope| {
            let screen = &*self;
            let watch = move || screen.watch(name, progress, &ended);
            // Without a thread the bar stands still.
            let _ = std::thread::Builder::new().spawn_scoped(scope, watch);
            let result = work();
            drop(end);
            result
        });
        self.stop();
        (result, start.elapsed().as_secs_f64())
    }

    /// Shows `progress` until the other end of `ended` is dropped.
    fn watch(&self, name: &str, progress: &Progress, ended: &mpsc::Receiver<()>) {
        let mut written = Instant::now();
        while ended.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
            let (done, total) = (progress.done(), progress.total());
            self.bar.set_length(total.max(done));
            self.bar.set_position(done);
            if !self.is_terminal && written.elapsed() >= LINE_EVERY {
                written = Instant::now();
                self.line(format!("{name}: {} of {} MB", done / 1_000_000, total / 1_000_000));
            }
        }
    }

    /// Starts a bar of `most` iterations; [`Screen::iteration`] moves it.
    pub fn start_iterations(&mut self, most: usize) {
        self.start("{prefix} {pos}/{len} {wide_bar} {msg} {eta}", "iteration", Some(most as u64));
    }

    /// Moves the bar to iteration `number`.
    pub fn iteration(&self, number: usize, message: String) {
        self.bar.set_position(number as u64);
        self.bar.set_message(message);
    }

    /// Removes the bar.
    pub fn stop(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
    }

    fn start(&mut self, template: &str, prefix: &'static str, len: Option<u64>) {
        self.stop();
        if !self.is_terminal {
            return;
        }
        let style = ProgressStyle::with_template(template);
        self.bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_prefix(prefix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_and_is_timed() {
        let mut screen = Screen::new(Verbosity::Quiet);
        let (value, seconds) = screen.phase("sort", || 7);
        assert!(value == 7 && seconds >= 0.0);
        let (value, _) = screen.reading("read", &Progress::new(), || "text");
        assert_eq!(value, "text");
        screen.start_iterations(3);
        screen.iteration(1, "fit 0.5".into());
        screen.stop();
    }
}
