//! All runs of a study, in its order.
//!
//! A run whose seconds count has the machine for itself.  Others share it, as many at a time as `--jobs` says, while
//! their threads have cores and their memory is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::Scope;
use std::time::{Duration, Instant};

use decompose_common::interrupt;
use decompose_common::machine::hardware_threads;

use crate::experiment::plan::PlannedRun;
use crate::experiment::study::group::Task;
use crate::experiment::work::child;
use crate::experiment::work::folder::{StudyFolder, write_json};
use crate::experiment::work::outcome::{self, Outcome, State, reason};
use crate::experiment::work::tensors::ReadyTensor;
use crate::failure::Failure;

/// How often an interrupt is looked for while runs go on.
const LOOK: Duration = Duration::from_millis(50);

/// A run that is to be made.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) run: &'a PlannedRun,
    pub(crate) tensor: &'a ReadyTensor,
    /// The bytes that it is foreseen to hold; 0 where that is not known.
    pub(crate) memory: u64,
}

/// What may be used at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) jobs: usize,
    pub(crate) cores: usize,
    /// In bytes.
    pub(crate) memory: u64,
}

impl Limits {
    /// Returns those of this machine.
    pub(crate) fn here(jobs: usize) -> Limits {
        let memory = decompose_common::memory::limit(None).map_or(u64::MAX, |limit| limit.bytes);
        Limits { jobs, cores: hardware_threads(), memory }
    }

    /// Tells whether a run may begin beside others.
    fn admit(&self, next: &Job<'_>, active: &[Job<'_>]) -> bool {
        let threads: usize = active.iter().map(|job| job.run.threads).sum();
        let memory: u64 = active.iter().map(|job| job.memory).sum();
        active.is_empty()
            || (!next.run.timed
                && active.iter().all(|job| !job.run.timed)
                && active.len() < self.jobs
                && threads + next.run.threads <= self.cores
                && memory.saturating_add(next.memory) <= self.memory)
    }
}

/// Makes all runs; `ended` hears of each, with those that are not made yet.  Returns whether all were made.
///
/// # Errors
///
/// If a run cannot be recorded: the disk is full, for example.
pub(crate) fn execute<'a>(
    jobs: &[Job<'a>],
    limits: Limits,
    folder: &StudyFolder,
    mut ended: impl FnMut(&Job<'a>, &Outcome, &[Job<'a>]),
) -> Result<bool, Failure> {
    let mut waiting: Vec<Job<'a>> = jobs.to_vec();
    let mut active: Vec<Job<'a>> = Vec::new();
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        loop {
            while !interrupt::requested()
                && let Some(at) = waiting.iter().position(|job| limits.admit(job, &active))
            {
                let job = waiting.remove(at);
                active.push(job);
                start(scope, job, folder, send.clone())?;
            }
            if active.is_empty() {
                return Ok(waiting.is_empty());
            }
            let (key, made) = match receive.recv_timeout(LOOK) {
                Ok(ended) => ended,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
            };
            let Some(at) = active.iter().position(|job| job.run.key == key) else { continue };
            let job = active.remove(at);
            match made? {
                Some(outcome) => {
                    let left: Vec<Job<'a>> = active.iter().chain(&waiting).copied().collect();
                    ended(&job, &outcome, &left);
                }
                None => waiting.push(job),
            }
        }
    })
}

/// The key of a run, and how it ended; `None` if the user wanted to stop.
type Made = (String, Result<Option<Outcome>, Failure>);

/// Starts a thread that makes a run.
fn start<'scope, 'a: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    job: Job<'a>,
    folder: &'scope StudyFolder,
    send: Sender<Made>,
) -> Result<(), Failure> {
    let work = move || {
        let made = make(&job, folder);
        // Nobody listens after a failure.
        let _ = send.send((job.run.key.clone(), made));
    };
    let started = std::thread::Builder::new().spawn_scoped(scope, work);
    started.map(drop).map_err(|error| {
        Failure::input(format!("the system refused a thread: {error}"))
            .help("lower --jobs, or raise the limit on processes (ulimit -u)")
    })
}

/// Makes a run in `.work`, and moves it to `runs` when it has ended.
fn make(job: &Job<'_>, folder: &StudyFolder) -> Result<Option<Outcome>, Failure> {
    let (work, name) = (folder.work(), job.run.name.as_str());
    let place = work.join(name);
    let fail = |what: &str, error: std::io::Error| {
        Failure::input(format!("cannot {what} {}: {error}", place.display())).while_writing()
    };
    let log = work.join(format!("{name}.log"));
    let command = command_of(job);
    let mut run = child::command()?;
    let output = work.join(format!("{name}.out"));
    // What a solver prints is a summary, which belongs to what it says.
    let (printed, said) = match is_solver(job.run) {
        true => child::common_log(&log)?,
        false => (child::log(&output)?, child::log(&log)?),
    };
    run.args(&command).current_dir(&work).stdout(printed).stderr(said);
    if !writes_folder(job.run) {
        fs::create_dir_all(&place).map_err(|error| fail("make", error))?;
    }
    let begun = Instant::now();
    let waited = run.spawn().and_then(|mut child| child::wait(&mut child));
    let seconds = begun.elapsed().as_secs_f64();
    let status = match waited {
        Ok(None) => return Ok(None),
        Ok(Some(status)) => Ok(status),
        Err(error) => Err(error.to_string()),
    };
    let said = fs::read_to_string(&log).unwrap_or_default();
    let code = status.as_ref().ok().and_then(std::process::ExitStatus::code);
    // A run that could not write all of its files has a model.
    let state = match code {
        Some(0 | 3) => State::Finished,
        _ => State::Failed,
    };
    let told = |status: &Result<std::process::ExitStatus, String>| match status {
        Ok(status) => reason(&said).unwrap_or_else(|| status.to_string()),
        Err(error) => format!("cannot be started: {error}"),
    };
    let message = (state == State::Failed).then(|| told(&status));
    let outcome = Outcome { state, exit_code: code, seconds, message, command };
    fs::create_dir_all(&place).map_err(|error| fail("make", error))?;
    keep(&log, &place.join(outcome::LOG));
    let printed = match job.run.command.as_str() {
        "schedule" => "schedule.json",
        _ => "output.txt",
    };
    keep(&output, &place.join(printed));
    write_json(&place.join(outcome::FILE), &outcome)?;
    let runs = folder.runs();
    let target = runs.join(name);
    if target.exists() {
        fs::remove_dir_all(&target).map_err(|error| fail("replace", error))?;
    }
    fs::rename(&place, &target).map_err(|error| fail("move", error))?;
    Ok(Some(outcome))
}

/// Moves what a run said to its folder, unless it said nothing.
fn keep(from: &Path, to: &Path) {
    let is_empty = fs::metadata(from).is_ok_and(|data| data.len() == 0);
    // The result is what counts: what was said may be lost.
    let _ = if is_empty { fs::remove_file(from) } else { fs::rename(from, to) };
}

/// Tells whether a command fits a model.
fn is_solver(run: &PlannedRun) -> bool {
    Task::of_command(&run.command).is_some_and(Task::is_solver)
}

/// Tells whether a command makes its own folder.
fn writes_folder(run: &PlannedRun) -> bool {
    is_solver(run) || Task::of_command(&run.command) == Some(Task::Bench)
}

/// Returns what is typed after the name of the program, in the folder that runs write to.
pub(crate) fn command_of(job: &Job<'_>) -> Vec<String> {
    let (run, name) = (job.run, job.run.name.as_str());
    let mut command = asked(run, job.tensor);
    let task = Task::of_command(&run.command);
    match (task, &run.expression) {
        (Some(Task::Schedule), _) => command.push("--json".to_owned()),
        (Some(task), Some(expression)) => {
            let file: PathBuf = [name, "result.dtb"].iter().collect();
            command.extend(expression.result(task, &file));
        }
        _ => command.push(format!("--out={name}")),
    }
    command
}

/// Returns what is typed but where the results go: the command, its tensors and its options.
pub(crate) fn asked(run: &PlannedRun, tensor: &ReadyTensor) -> Vec<String> {
    let path = tensor.path.to_string_lossy().into_owned();
    let task = Task::of_command(&run.command);
    let mut asked = match (&run.expression, task) {
        (Some(expression), Some(task)) => expression.words(task, &path),
        _ => vec![run.command.clone(), path],
    };
    asked.extend(run.words.iter().cloned());
    if task.is_some_and(Task::is_solver) {
        asked.extend(tensor.labels.iter().map(|place| format!("--labels={place}")));
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::{Job, Limits};
    use crate::experiment::plan::PlannedRun;
    use crate::experiment::work::tensors::ReadyTensor;

    #[test]
    fn runs_that_are_timed_are_alone() {
        let run = |threads, timed| PlannedRun {
            name: String::new(),
            key: String::new(),
            group: String::new(),
            command: "cp".into(),
            tensor: "x".into(),
            settings: Vec::new(),
            seed: None,
            repeat: 1,
            threads,
            timed,
            words: Vec::new(),
            expression: None,
        };
        let tensor = ReadyTensor {
            name: "x".into(),
            path: "x.tns".into(),
            blake3: String::new(),
            labels: Vec::new(),
            family: None,
        };
        let (timed, one, two) = (run(1, true), run(1, false), run(2, false));
        let job = |run, memory| Job { run, tensor: &tensor, memory };
        let limits = Limits { jobs: 3, cores: 4, memory: 100 };
        let admits = |next: Job<'_>, active: &[Job<'_>]| limits.admit(&next, active);
        assert!(admits(job(&timed, 200), &[]));
        assert!(!admits(job(&timed, 0), &[job(&one, 0)]));
        assert!(!admits(job(&one, 0), &[job(&timed, 0)]));
        assert!(admits(job(&two, 50), &[job(&two, 50)]));
        assert!(!admits(job(&two, 50), &[job(&two, 51)]));
        assert!(!admits(job(&two, 0), &[job(&two, 0), job(&one, 0)]));
        assert!(!admits(job(&one, 0), &[job(&one, 0), job(&one, 0), job(&one, 0)]));
    }
}
