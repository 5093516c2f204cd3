//! Stopping in good order when the user asks for it.
//!
//! Until [`install`] is called a signal ends the process at once, as it should while there is
//! nothing to save.  Afterwards the first one only sets a flag that the solver's observer reads
//! after each iteration; the second ends the process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of a process that the user interrupted: 128 + SIGINT, as shells count.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Catches SIGINT, SIGTERM and SIGHUP from now on; later calls do nothing.
///
/// If the system refuses, signals go on ending the process at once.
pub fn install() {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        ctrlc::set_handler(|| {
            if REQUESTED.swap(true, Ordering::Relaxed) {
                std::process::exit(EXIT_CODE.into());
            }
        })
        .is_ok()
    });
}

/// Tells whether the user has asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
