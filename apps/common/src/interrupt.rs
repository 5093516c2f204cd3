//! Stopping in good order when the user asks for it.
//!
//! ```text
//! before announce   a signal ends the process at once, silently
//! after announce    it ends the process with a line that says that nothing was written
//! after install     the first sets a flag, which the solver's observer reads after each iteration;
//!                   the second ends the process
//! ```

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use decompose_core::runtime::end_compilers;

use crate::run_folder;

/// The exit status of a process that the user interrupted: 128 + SIGINT, as shells count.
pub const EXIT_CODE: u8 = 130;

/// Whether there is something to save before the process ends.
static DEFERRED: AtomicBool = AtomicBool::new(false);
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// What the first deferred signal says.
static SAYING: OnceLock<&str> = OnceLock::new();

/// Catches SIGINT, SIGTERM and SIGHUP from now on, while there is nothing to save: one of them ends the
/// process with [`EXIT_CODE`] and a line on standard error.
///
/// If the system refuses, signals go on ending the process at once.
pub fn announce() {
    static CAUGHT: OnceLock<bool> = OnceLock::new();
    CAUGHT.get_or_init(|| ctrlc::set_handler(handle).is_ok());
}

/// Lets the first signal from now on set the flag that [`requested`] reads, since there is something to
/// save; later calls do nothing.
pub fn install() {
    DEFERRED.store(true, Ordering::Relaxed);
    announce();
}

/// Does what [`install`] does; the first signal says `text`.
pub fn install_saying(text: &'static str) {
    SAYING.get_or_init(|| text);
    install();
}

/// Tells whether the user has asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Runs on a thread of its own.
fn handle() {
    if !DEFERRED.load(Ordering::Relaxed) {
        run_folder::abandon_all();
        end_compilers();
        say("interrupted before there was a result: nothing was written");
        std::process::exit(EXIT_CODE.into());
    }
    if REQUESTED.swap(true, Ordering::Relaxed) {
        end_compilers();
        std::process::exit(EXIT_CODE.into());
    }
    say(SAYING.get().unwrap_or(
        &"stopping when the iteration ends, to write what there is; once more ends at once",
    ));
}

/// Writes a line, below the bar of a terminal.
fn say(text: &str) {
    let mut out = std::io::stderr();
    let start = if out.is_terminal() { "\n" } else { "" };
    // Nobody may be reading; the exit code still tells.
    let _ = writeln!(out, "{start}{text}");
}
