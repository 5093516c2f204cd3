//! What runs will take, foreseen before the first begins, and which their commands would refuse.
//!
//! The commands tell it themselves, of a tensor that is read once for all of its runs.  That is done in a process of its
//! own, since forecasts count what the process holds.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::cli::{Done, TaskArgs};
use crate::experiment::plan::PlannedRun;
use crate::experiment::study::group::Task;
use crate::experiment::work::child;
use crate::experiment::work::execute::asked;
use crate::experiment::work::tensors::ReadyTensor;
use crate::failure::Failure;
use crate::run::preview::Preview;
use crate::stdout;

/// How long the runs on one tensor are planned at most; the others are not foreseen.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Tells what runs will take, for `decompose experiment`.
#[derive(Args, Debug)]
pub(crate) struct ForeseeArgs {}

/// What a run is foreseen to take.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Forecast {
    /// Bytes held at the peak.
    pub(crate) peak: u64,
    /// Seconds; `None` where they cannot be foreseen.
    pub(crate) seconds: Option<f64>,
}

/// What is known of a run before it begins.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
enum Answer {
    Foreseen(Forecast),
    /// The command refuses it: why.
    Refused(String),
    Unknown,
}

/// What is known of the runs of a study, by their keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forecasts {
    pub(crate) known: BTreeMap<String, Forecast>,
    /// Why commands refuse them.
    pub(crate) refused: BTreeMap<String, String>,
}

/// Answers the command lines on standard input, a JSON array of lists of words, with a JSON array of answers.
///
/// # Errors
///
/// Input that is no such array.
pub(crate) fn answer(_: &ForeseeArgs) -> Result<Done, Failure> {
    let asked: Vec<Vec<String>> = serde_json::from_reader(std::io::stdin())
        .map_err(|error| Failure::input(format!("standard input: {error}")))?;
    let mut preview = Preview::new(MOST_TIME);
    let mut answer = |line: &Vec<String>| {
        // The words were understood when the study was read.
        let Ok(Some(args)) = TaskArgs::parse(line) else { return Answer::Unknown };
        match args.foresee(&mut preview) {
            Ok(Some(found)) => {
                Answer::Foreseen(Forecast { peak: found.peak, seconds: found.seconds })
            }
            Ok(None) => Answer::Unknown,
            Err(failure) => Answer::Refused(failure.told()),
        }
    };
    let answers: Vec<Answer> = asked.iter().map(&mut answer).collect();
    stdout::json(&answers)?;
    Ok(Done::Complete)
}

/// Returns what is known of runs; what cannot be foreseen has no forecast.
pub(crate) fn forecasts(runs: &[&PlannedRun], tensors: &[ReadyTensor]) -> Forecasts {
    let mut found = Forecasts::default();
    for tensor in tensors {
        // Runs that differ by the seed alone take the same.
        let mut keys: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
        let mut lines: Vec<Vec<String>> = Vec::new();
        for run in runs.iter().filter(|run| run.tensor == tensor.name) {
            let Some(task) = Task::of_command(&run.command).filter(|task| *task != Task::Bench)
            else {
                continue;
            };
            let result = run.expression.iter().flat_map(|expression| expression.any_result(task));
            let words = asked(run, tensor).into_iter().chain(result);
            let line: Vec<String> = words.filter(|word| !word.starts_with("--seed=")).collect();
            if !keys.contains_key(&line) {
                lines.push(line.clone());
            }
            keys.entry(line).or_default().push(&run.key);
        }
        let Some(answers) = ask(&lines) else { continue };
        for (line, answer) in lines.iter().zip(answers) {
            for key in keys[line].iter().map(|key| (*key).to_owned()) {
                match &answer {
                    Answer::Foreseen(forecast) => {
                        found.known.insert(key, *forecast);
                    }
                    Answer::Refused(why) => {
                        found.refused.insert(key, why.clone());
                    }
                    Answer::Unknown => {}
                }
            }
        }
    }
    found
}

/// Asks another process about command lines.
fn ask(lines: &[Vec<String>]) -> Option<Vec<Answer>> {
    if lines.is_empty() {
        return None;
    }
    let mut command = child::command().ok()?;
    command.arg("experiment").arg("foresee");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut asked = command.spawn().ok()?;
    let mut questions = asked.stdin.take()?;
    // It reads everything before it answers.
    let written = serde_json::to_writer(&mut questions, lines).is_ok() && questions.flush().is_ok();
    drop(questions);
    let output = asked.wait_with_output().ok()?;
    if !written {
        return None;
    }
    let answers: Vec<Answer> = serde_json::from_slice(&output.stdout).ok()?;
    (answers.len() == lines.len()).then_some(answers)
}
