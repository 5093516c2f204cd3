//! A run as a process of its own: its memory is its own, and a fault of it ends nothing else.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use decompose_common::interrupt;

use crate::failure::Failure;

/// Names the process that a child ends with.
const PARENT: &str = "DECOMPOSE_PARENT";
/// How long after its end a process is noticed, at the least and at the most.
const NOTICE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(25));

/// Returns this program as a command that ends when this process does, however it ends.
///
/// Signals of a terminal do not reach it: this process decides what becomes of it.
///
/// # Errors
///
/// If the system does not tell where this program is.
pub(crate) fn command() -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::input(format!("the system does not tell where this program is: {error}"))
    })?;
    let mut command = Command::new(program);
    command.env(PARENT, std::process::id().to_string()).stdin(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    Ok(command)
}

/// Ends this process with the one that has started it, if that asked for it.
pub(crate) fn follow_parent() {
    #[cfg(target_os = "linux")]
    if let Some(parent) = std::env::var_os(PARENT) {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        // Refused, the run goes on to its end, which does no harm.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let alive = getppid().map(|pid| pid.as_raw_nonzero().to_string());
        if alive.as_deref() != parent.to_str() {
            std::process::exit(interrupt::EXIT_CODE.into());
        }
    }
}

/// Waits until a process ends; `None` if the user wanted to stop before: then it is ended.
///
/// # Errors
///
/// What the system says.
pub(crate) fn wait(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if interrupt::requested() {
            // It may have ended in between.
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        sleep((begun.elapsed() / 100).clamp(NOTICE.0, NOTICE.1));
    }
}

/// Returns a file for what a process says.
///
/// # Errors
///
/// If it cannot be made.
pub(crate) fn log(path: &Path) -> Result<Stdio, Failure> {
    std::fs::File::create(path).map(Stdio::from).map_err(|error| refused(path, &error))
}

/// Returns a file for what a process prints and for what it says, in their order.
///
/// # Errors
///
/// If it cannot be made.
pub(crate) fn common_log(path: &Path) -> Result<(Stdio, Stdio), Failure> {
    let both = std::fs::File::create(path).and_then(|file| Ok((file.try_clone()?, file)));
    let (printed, said) = both.map_err(|error| refused(path, &error))?;
    Ok((printed.into(), said.into()))
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("cannot write {}: {error}", path.display())).while_writing()
}
