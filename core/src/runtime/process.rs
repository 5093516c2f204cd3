//! Other programs, run with a limit on their time.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a compiler may run: a hundred times what the largest kernels take.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// The longest pause between two looks at a program.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// The most bytes that a program may write.
const MOST_BYTES: u64 = 256 << 20;

/// What a program said, and how it ended.
pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Returns how long a compiler may run: `$DECOMPOSE_CC_SECONDS`, else two minutes.
///
/// # Errors
///
/// What is wrong with the variable.
pub(super) fn time_limit() -> Result<Duration, String> {
    let asked = std::env::var("DECOMPOSE_CC_SECONDS").ok();
    time_limit_of(asked.as_deref())
}

fn time_limit_of(asked: Option<&str>) -> Result<Duration, String> {
    let Some(text) = asked.filter(|text| !text.trim().is_empty()) else { return Ok(TIME_LIMIT) };
    let seconds = text.trim().parse().ok().filter(|&seconds| seconds > 0);
    let why = || format!("DECOMPOSE_CC_SECONDS is `{text}`; give whole seconds from 1 on");
    seconds.map(Duration::from_secs).ok_or_else(why)
}

/// The groups of the programs that run now.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every compiler that runs, with all that it started: for a process that ends before them.
///
/// Each has a group of its own, so that the terminal's interrupt does not reach it.
pub fn end_compilers() {
    for &group in running().iter() {
        // It may have ended meanwhile.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A program that runs; [`end_compilers`] knows its group until this is dropped.
struct Running(Option<Pid>);

impl Running {
    fn new(child: &Child) -> Running {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        running().extend(group);
        Running(group)
    }

    fn kill(&self) {
        // It may have ended meanwhile.
        let _ = self.0.map(|group| kill_process_group(group, Signal::KILL));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        running().retain(|&group| Some(group) != self.0);
    }
}

/// Runs `command` to its end, or kills it and all that it started after `limit`, or when it has written too much.
///
/// # Errors
///
/// The system's, [`io::ErrorKind::TimedOut`], or [`io::ErrorKind::FileTooLarge`].
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Output> {
    // Files instead of pipes: they never fill, so nothing has to be read meanwhile.
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    // A group of its own, so that what the compiler started ends with it.
    let mut child = command.process_group(0).spawn()?;
    let running = Running::new(&child);
    let status = match wait(&mut child, limit, &[&out, &err]) {
        Ok(status) => status,
        Err(error) => {
            running.kill();
            child.wait()?;
            return Err(error);
        }
    };
    Ok(Output { success: status.success(), out: text(&mut out)?, err: text(&mut err)? })
}

/// Waits for `child`, which writes to `said`; an error if it runs on after `limit`, or writes too much.
fn wait(child: &mut Child, limit: Duration, said: &[&File]) -> io::Result<ExitStatus> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > limit {
            let why = format!("it did not end within {} s", limit.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        for file in said {
            if file.metadata()?.len() > MOST_BYTES {
                let why = format!("it wrote more than {} MiB", MOST_BYTES >> 20);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{TIME_LIMIT, run, time_limit_of};

    #[test]
    fn a_time_limit_is_whole_seconds() {
        assert_eq!(time_limit_of(None), Ok(TIME_LIMIT));
        assert_eq!(time_limit_of(Some(" 7 ")), Ok(Duration::from_secs(7)));
        for wrong in ["abc", "-5", "0", "1.5"] {
            let why = time_limit_of(Some(wrong)).unwrap_err();
            assert!(why.contains(wrong) && why.contains("whole seconds"), "{why}");
        }
    }

    #[test]
    fn what_a_program_says_comes_back_whole() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "yes out | head -c 300000; echo err >&2; exit 3"]);
        let output = run(&mut shell, Duration::from_secs(60)).unwrap();
        assert!(!output.success && output.out.len() == 300_000 && output.err == "err\n");
        assert!(run(&mut Command::new("/no/such/program"), Duration::from_secs(60)).is_err());
    }

    #[test]
    fn a_program_that_writes_without_end_is_ended() {
        let error = run(&mut Command::new("yes"), Duration::from_secs(60)).err().unwrap();
        assert!(error.to_string().contains("more than 256 MiB"), "{error}");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $! > \"$0\"; wait"]).arg(&file);
        let error = run(&mut shell, Duration::from_secs(3)).err().unwrap();
        assert!(error.kind() == std::io::ErrorKind::TimedOut, "{error}");
        let pid = std::fs::read_to_string(&file).unwrap();
        // The orphan is gone, or a zombie until it is reaped; the signal may take a moment.
        let ended = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            state.map_or(true, |state| state.contains(") Z ") || state.contains(") X "))
        };
        let patience = std::time::Instant::now() + Duration::from_secs(20);
        while !ended() {
            assert!(std::time::Instant::now() < patience, "{pid} runs on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
