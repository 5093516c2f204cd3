//! `decompose experiment run`: the plan is told, then all runs are made that have not been made yet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use decompose_common::interrupt;
use decompose_common::machine::size;
use decompose_common::progress::{Screen, Verbosity};
use decompose_formats::counted;

use crate::cli::Done;
use crate::experiment::plan::{Plan, PlannedRun};
use crate::experiment::study::Study;
use crate::experiment::work::clock::{Clock, duration};
use crate::experiment::work::execute::{Job, Limits, execute};
use crate::experiment::work::folder::{Begin, StudyFolder, by_key};
use crate::experiment::work::foresee::{Forecast, forecasts};
use crate::experiment::work::outcome::{Outcome, State};
use crate::experiment::work::tensors::{self, ReadyTensor};
use crate::failure::Failure;
use crate::run::args::parse_count;
use crate::stdout;

/// Runs a study: all that its file describes and that has not been run yet.
///
/// Every run is a folder in DIR/runs, as its command writes it.  A finished run is known by the content of its
/// tensor, its options, its threads and the version of the program, and is never repeated.  A run that fails is recorded, and
/// the others go on.  `decompose experiment report DIR` makes tables and figures.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed")]
pub(crate) struct StartArgs {
    /// The study, a TOML file.
    study: PathBuf,
    /// The folder of the study.  [default: decompose-study-NAME]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the plan, which runs their commands would refuse, and what is left; and run nothing.
    #[arg(long)]
    dry_run: bool,
    /// Go on with the study in the folder.
    #[arg(long)]
    resume: bool,
    /// Also repeat the runs that failed; with --resume.
    #[arg(long, requires = "resume")]
    retry_failed: bool,
    /// The most runs at once of those whose seconds do not count (timed = false).
    #[arg(long, short, value_name = "N", default_value = "1", value_parser = parse_count)]
    jobs: usize,
}

/// What runs that failed count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    /// Made.
    Made,
    /// Still to be made.
    Pending,
}

impl StartArgs {
    fn failed(&self) -> Failed {
        if self.retry_failed { Failed::Pending } else { Failed::Made }
    }
}

/// What is known of the runs of a plan.
struct Known {
    /// The outcomes of those that were made, by key.
    made: BTreeMap<String, Outcome>,
}

/// Runs the command.
///
/// # Errors
///
/// A study that is not understood, a folder that is not its own, a disk that is full.
pub(crate) fn run(args: &StartArgs) -> Result<Done, Failure> {
    let study = Study::read(&args.study)?;
    let path = args.out.clone();
    let path = path.unwrap_or_else(|| format!("decompose-study-{}", study.name).into());
    if args.dry_run {
        return dry_run(&study, &path, args);
    }
    let begin = if args.resume { Begin::Resume } else { Begin::Anew };
    let folder = StudyFolder::claim(&path, begin)?;
    interrupt::install_saying(
        "stopping: finished runs stay, and --resume goes on; once more ends at once",
    );
    let screen = Screen::new(Verbosity::Normal);
    let tell = |text: &str| screen.line(text);
    let Some(tensors) = tensors::ready(&study.tensors, &folder.tensors(), tell)? else {
        return Ok(Done::Interrupted);
    };
    let plan = Plan::of(&study, &tensors);
    folder.record(&study.text, &plan)?;
    let known = Known::of(&plan, &folder.runs(), args.failed());
    let pending = known.pending(&plan);
    let forecasts = forecasts(&known.of_interest(&plan), &tensors);
    let mut clock = known.clock(&plan, forecasts.known);
    tell_plan(&plan, (&known, &forecasts.refused), &clock, args.jobs)?;
    let ended = make(&pending, &tensors, (&folder, args.jobs), &mut clock, &screen)?;
    folder.clear()?;
    let after = Known::of(&plan, &folder.runs(), Failed::Made);
    let count = |state| after.made.values().filter(|outcome| outcome.state == state).count();
    let (finished, failed) = (count(State::Finished), count(State::Failed));
    let all = plan.runs.iter().map(|run| &run.key).collect::<BTreeSet<_>>().len();
    stdout::line(format!(
        "{finished} of {} finished, {failed} failed",
        counted(all, "run", "runs")
    ))?;
    let report = format!("report   decompose experiment report {}", folder.path().display());
    screen.line(report);
    Ok(match ended {
        false => Done::Interrupted,
        true if failed > 0 => Done::Partly,
        true => Done::Complete,
    })
}

/// Makes the pending runs and tells of each; returns whether all were made.
fn make(
    pending: &[&PlannedRun],
    tensors: &[ReadyTensor],
    (folder, jobs): (&StudyFolder, usize),
    clock: &mut Clock,
    screen: &Screen,
) -> Result<bool, Failure> {
    let all = pending.iter().copied().filter_map(|run| {
        let tensor = tensors.iter().find(|tensor| tensor.name == run.tensor)?;
        let memory = clock.forecast(run).map_or(0, |forecast| forecast.peak);
        Some(Job { run, tensor, memory })
    });
    let all: Vec<Job<'_>> = all.collect();
    let mut done = 0;
    let (count, width) = (all.len(), all.len().to_string().len());
    execute(&all, Limits::here(jobs), folder, |job, outcome, left| {
        done += 1;
        clock.learn(job.run, outcome.seconds);
        let left = match clock.guess_left(left.iter().map(|job| job.run), jobs) {
            Some(seconds) if !left.is_empty() => format!("; about {} left", duration(seconds)),
            _ => String::new(),
        };
        let how = match &outcome.message {
            None => format!("{:.2} s", outcome.seconds),
            Some(why) => format!("failed: {why}"),
        };
        screen.line(format!("{done:>width$}/{count}  {}  {how}{left}", job.run.name));
    })
}

/// Tells the plan without leaving anything.
fn dry_run(study: &Study, path: &Path, args: &StartArgs) -> Result<Done, Failure> {
    interrupt::install();
    let made = tempfile::tempdir()
        .map_err(|error| Failure::input(format!("cannot make a temporary folder: {error}")))?;
    // Those of a study that has begun are made already.
    let there = path.join("tensors");
    let folder = if there.is_dir() { &there } else { made.path() };
    let screen = Screen::new(Verbosity::Normal);
    let tell = |text: &str| screen.line(text);
    let Some(tensors) = tensors::ready(&study.tensors, folder, tell)? else {
        return Ok(Done::Interrupted);
    };
    let plan = Plan::of(study, &tensors);
    let known = Known::of(&plan, &path.join("runs"), args.failed());
    let pending = known.pending(&plan);
    let forecasts = forecasts(&known.of_interest(&plan), &tensors);
    let clock = known.clock(&plan, forecasts.known);
    tell_plan(&plan, (&known, &forecasts.refused), &clock, args.jobs)?;
    for run in &pending {
        stdout::line(format!("{}  {}", run.name, run.words.join(" ")))?;
    }
    let is_refused = |run: &&PlannedRun| forecasts.refused.contains_key(&run.key);
    Ok(if pending.iter().any(is_refused) { Done::Partly } else { Done::Complete })
}

/// Prints a line for each group and tensor, and one for all.
fn tell_plan(
    plan: &Plan,
    (known, refused): (&Known, &BTreeMap<String, String>),
    clock: &Clock,
    jobs: usize,
) -> Result<(), Failure> {
    let mut parts: Vec<((&str, &str), Vec<&PlannedRun>)> = Vec::new();
    for run in &plan.runs {
        let place = (run.group.as_str(), run.tensor.as_str());
        match parts.iter_mut().find(|(other, _)| *other == place) {
            Some((_, runs)) => runs.push(run),
            None => parts.push((place, vec![run])),
        }
    }
    stdout::line(format!(
        "{:<16} {:<16} {:>6} {:>6} {:>10} {:>10}",
        "group", "tensor", "runs", "done", "time", "memory"
    ))?;
    for ((group, tensor), runs) in &parts {
        let done = runs.iter().filter(|run| known.made.contains_key(&run.key)).count();
        // Those that are refused take next to nothing.
        let is_left = |key: &String| !known.made.contains_key(key) && !refused.contains_key(key);
        let left = || runs.iter().filter(|run| is_left(&run.key));
        let time = clock.left(left().copied(), jobs).map_or("?".to_owned(), duration);
        let peak = left().map(|run| clock.forecast(run).map(|forecast| forecast.peak));
        let peak = peak.collect::<Option<Vec<u64>>>().and_then(|peaks| peaks.into_iter().max());
        let peak = peak.map_or("?".to_owned(), size);
        let (time, peak) =
            if left().next().is_none() { ("-".into(), "-".into()) } else { (time, peak) };
        stdout::line(format!(
            "{group:<16} {tensor:<16} {:>6} {done:>6} {time:>10} {peak:>10}",
            runs.len()
        ))?;
    }
    let pending = known.pending(plan);
    let sound = pending.iter().copied().filter(|run| !refused.contains_key(&run.key));
    let sound: Vec<&PlannedRun> = sound.collect();
    for line in not_foreseen(&sound, clock).into_iter().chain(refusals(&pending, refused)) {
        stdout::line(line)?;
    }
    let alone = plan.peers_alone();
    if alone > 0 {
        let rows = counted(alone, "row of the peers is", "rows of the peers are");
        stdout::line(format!("{rows} of a rank or a number of threads that no run has"))?;
    }
    let time = match clock.left(sound.iter().copied(), jobs) {
        Some(_) if pending.is_empty() => "nothing is left to do".to_owned(),
        Some(_) if sound.is_empty() => "none of them can succeed".to_owned(),
        Some(seconds) => format!("at most about {} of kernels and reading", duration(seconds)),
        None => "no forecast before the first of each group has ended".to_owned(),
    };
    stdout::line(format!("{} to make; {time}", counted(pending.len(), "run", "runs")))
}

/// Says of which groups the seconds or the memory are not foreseen.
fn not_foreseen(pending: &[&PlannedRun], clock: &Clock) -> Vec<String> {
    let groups = |lacks: &dyn Fn(Option<Forecast>) -> bool| {
        // What a run of the group took on the tensor is a forecast of seconds too.
        let unknown = pending.iter().filter(|run| clock.expect(run).is_none());
        let lacking = unknown.filter(|run| lacks(clock.forecast(run)));
        let names: BTreeSet<&str> = lacking.map(|run| run.group.as_str()).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let neither = groups(&|forecast| forecast.is_none());
    let untimed = groups(&|forecast| forecast.is_some_and(|of| of.seconds.is_none()));
    [("no forecast for runs of", neither), ("no forecast of seconds for runs of", untimed)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {names}"))
        .collect()
}

/// Says which runs their commands refuse, and why: a line for each reason, group and tensor.
fn refusals(pending: &[&PlannedRun], refused: &BTreeMap<String, String>) -> Vec<String> {
    let mut counts: Vec<((&str, &str, &str), usize)> = Vec::new();
    for run in pending {
        let Some(why) = refused.get(&run.key) else { continue };
        let place = (run.group.as_str(), run.tensor.as_str(), why.as_str());
        match counts.iter_mut().find(|(other, _)| *other == place) {
            Some((_, count)) => *count += 1,
            None => counts.push((place, 1)),
        }
    }
    let line = |((group, tensor, why), count): ((&str, &str, &str), usize)| {
        format!("{} of {group} on {tensor} will fail: {why}", counted(count, "run", "runs"))
    };
    counts.into_iter().map(line).collect()
}

impl Known {
    /// Looks for the runs of a plan.
    fn of(plan: &Plan, runs: &Path, failed: Failed) -> Known {
        let folders = by_key(runs);
        let outcome = |run: &PlannedRun| {
            let folder = runs.join(folders.get(&run.key)?);
            let outcome = Outcome::read(&folder)?;
            let counts = outcome.state == State::Finished || failed == Failed::Made;
            counts.then(|| (run.key.clone(), outcome))
        };
        Known { made: plan.runs.iter().filter_map(outcome).collect() }
    }

    /// Returns a clock that has learned what the finished runs took.
    fn clock(&self, plan: &Plan, forecasts: BTreeMap<String, Forecast>) -> Clock {
        let mut clock = Clock::new(forecasts);
        for run in &plan.runs {
            if let Some(outcome) = self.made.get(&run.key).filter(|o| o.state == State::Finished) {
                clock.learn(run, outcome.seconds);
            }
        }
        clock
    }

    /// Returns the runs whose forecasts matter: those that are to be made, and those whose seconds correct them.
    fn of_interest<'p>(&self, plan: &'p Plan) -> Vec<&'p PlannedRun> {
        let mut runs = self.pending(plan);
        if !runs.is_empty() {
            runs.extend(plan.runs.iter().filter(|run| self.made.contains_key(&run.key)));
        }
        runs
    }

    /// Returns the runs that are to be made, each once.
    fn pending<'p>(&self, plan: &'p Plan) -> Vec<&'p PlannedRun> {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut pending: Vec<&PlannedRun> = Vec::new();
        for run in plan.runs.iter().filter(|run| !self.made.contains_key(&run.key)) {
            if seen.insert(&run.key) {
                pending.push(run);
            }
        }
        pending
    }
}
