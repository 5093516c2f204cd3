//! What runs will take, foreseen before the first begins.
//!
//! The planners of the solvers tell it from a tensor that is read once for all of its runs.  That is done in a
//! process of its own, since forecasts count what the process holds.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;
use decompose_common::progress::{Screen, Verbosity};
use decompose_formats::PatternCounts;
use serde::{Deserialize, Serialize};

use crate::cli::{self, Done, SolverArgs};
use crate::complete;
use crate::cp;
use crate::experiment::plan::PlannedRun;
use crate::experiment::study::group::Task;
use crate::experiment::work::child;
use crate::experiment::work::tensors::ReadyTensor;
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::stdout;
use crate::tt;
use crate::tucker;

/// How long the runs on one tensor are planned at most; the others are not foreseen.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Tells what runs of solvers will take, for `decompose experiment`.
#[derive(Args, Debug)]
pub(crate) struct ForeseeArgs {
    /// The tensor.
    file: PathBuf,
}

/// What a run is foreseen to take.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Forecast {
    /// Bytes held at the peak.
    pub(crate) peak: u64,
    /// Seconds; `None` where they cannot be foreseen.
    pub(crate) seconds: Option<f64>,
}

/// Answers the word lists on standard input, a JSON array, each beginning with a command, with a JSON array of forecasts.
///
/// # Errors
///
/// Input that is no such array, or a tensor that cannot be read.
pub(crate) fn answer(args: &ForeseeArgs) -> Result<Done, Failure> {
    let begun = Instant::now();
    let asked: Vec<Vec<String>> = serde_json::from_reader(std::io::stdin())
        .map_err(|error| Failure::input(format!("standard input: {error}")))?;
    let mut screen = Screen::new(Verbosity::Quiet);
    let input = InputArgs::of_file(&args.file);
    let mut read = input.read::<f64>(&mut screen)?;
    read.tidy(input.duplicates(), &mut screen)?;
    let counts = PatternCounts::of(&read.tensor);
    let before = begun.elapsed().as_secs_f64();
    let file = args.file.to_string_lossy();
    let forecast = |words: &Vec<String>| {
        if begun.elapsed() > MOST_TIME {
            return None;
        }
        let (command, options) = words.split_first()?;
        let options = options.iter().map(String::as_str);
        let line = ["decompose", command, &*file].into_iter().chain(options);
        let found = match cli::parse_solver(line).ok()?? {
            SolverArgs::Cp(args) => cp::foresee(*args, &read.tensor, &counts).ok()??,
            SolverArgs::Tucker(args) => tucker::foresee(*args, &read.tensor, &counts).ok()??,
            SolverArgs::Tt(args) => tt::foresee(&args, &read.tensor, &counts).ok()??,
            SolverArgs::Complete(args) => complete::foresee(&args, &read.tensor).ok()?,
        };
        let seconds = found.seconds.map(|seconds| before + seconds);
        Some(Forecast { peak: found.peak, seconds })
    };
    let answers: Vec<Option<Forecast>> = asked.iter().map(forecast).collect();
    stdout::json(&answers)?;
    Ok(Done::Complete)
}

/// Returns the forecasts of runs, by key; what cannot be foreseen has none.
pub(crate) fn forecasts(
    runs: &[&PlannedRun],
    tensors: &[ReadyTensor],
) -> BTreeMap<String, Forecast> {
    let mut found = BTreeMap::new();
    for tensor in tensors {
        let is_solver =
            |run: &PlannedRun| Task::of_command(&run.command).is_some_and(Task::is_solver);
        let of_tensor = runs.iter().filter(|run| run.tensor == tensor.name && is_solver(run));
        // Runs that differ by the seed alone take the same.
        let mut asked: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
        for run in of_tensor {
            let words = run.words.iter().filter(|word| !word.starts_with("--seed=")).cloned();
            let line = std::iter::once(run.command.clone()).chain(words);
            asked.entry(line.collect()).or_default().push(&run.key);
        }
        let lists: Vec<&Vec<String>> = asked.keys().collect();
        let Some(answers) = ask(tensor, &lists) else { continue };
        for (keys, answer) in asked.values().zip(answers) {
            let answer = answer.into_iter();
            let named = answer.flat_map(|forecast| keys.iter().map(move |key| (*key, forecast)));
            found.extend(named.map(|(key, forecast)| (key.to_owned(), forecast)));
        }
    }
    found
}

/// Asks another process for forecasts.
fn ask(tensor: &ReadyTensor, lists: &[&Vec<String>]) -> Option<Vec<Option<Forecast>>> {
    if lists.is_empty() {
        return None;
    }
    let mut command = child::command().ok()?;
    command.arg("experiment").arg("foresee").arg(&tensor.path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut asked = command.spawn().ok()?;
    let mut questions = asked.stdin.take()?;
    // It reads everything before it answers.
    let written = serde_json::to_writer(&mut questions, lists).is_ok() && questions.flush().is_ok();
    drop(questions);
    let output = asked.wait_with_output().ok()?;
    if !written {
        return None;
    }
    let answers: Vec<Option<Forecast>> = serde_json::from_slice(&output.stdout).ok()?;
    (answers.len() == lists.len()).then_some(answers)
}
