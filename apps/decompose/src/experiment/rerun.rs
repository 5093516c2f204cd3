//! `decompose rerun`: a run once more, from its `run.json`, and whether its results are the same.
//!
//! On the same machine model and history must agree bit by bit.  On another one the compiler or the width of vectors
//! may change the order of sums: then they must agree to a tolerance.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use decompose_common::interrupt;
use decompose_common::machine::MachineFacts;
use decompose_common::model::{Model, Stored};
use serde_json::Value as Json;

use crate::cli::Done;
use crate::experiment::recompute;
use crate::experiment::study::group::Task;
use crate::experiment::work::child;
use crate::experiment::work::outcome::{Outcome, State};
use crate::failure::Failure;
use crate::run::args::parse_from_zero;
use crate::stdout;

/// Repeats a run from its run.json, and compares the results.
///
/// On the same machine they must be the same bit by bit, on another one to a tolerance.  Exit code 1 says that they
/// are not.
#[derive(Args, Debug)]
pub(crate) struct RerunArgs {
    /// The folder of a run of cp, tucker, tt or complete, or of einsum in a study.
    pub(super) dir: PathBuf,
    /// Keep the repeated run in this folder.  [default: it is removed]
    #[arg(long, short, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// The tensor, if it is not where it was.
    #[arg(long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Compare to this tolerance, relative to the largest entry of an array, on the same machine too.
    /// [default: bit by bit; 1e-6 on another machine]
    #[arg(long, value_name = "X", value_parser = parse_from_zero)]
    pub(super) tolerance: Option<f64>,
}

/// Options with a value that the repeated run has otherwise: their long and short names.
const DROPPED: [&str; 8] =
    ["--out", "--output", "--stem", "-o", "-s", "--resume", "--seed", "--threads"];
/// What the command takes.
const GIVE: &str =
    "give the folder of a run of cp, tucker, tt or complete, or of einsum in a study";
/// The tolerance on another machine.
const ELSEWHERE: f64 = 1e-6;

/// Runs the command.
///
/// # Errors
///
/// A folder that holds no run, a tensor that is not there or not the same, a run that fails, results that differ.
pub(crate) fn run(args: &RerunArgs) -> Result<Done, Failure> {
    if let Some(outcome) = without_record(&args.dir) {
        return match outcome.command.first().map(String::as_str) {
            Some("einsum") if outcome.state == State::Finished => recompute::run(args, &outcome),
            command => Err(not_repeated(command.unwrap_or("another program"), outcome.state)),
        };
    }
    let record = read(&args.dir)?;
    let (input, place) = input(args, &record)?;
    let temporary = tempfile::tempdir()
        .map_err(|error| Failure::input(format!("cannot make a temporary folder: {error}")))?;
    let out = args.out.clone().unwrap_or_else(|| temporary.path().join("rerun"));
    let out = std::path::absolute(&out).unwrap_or(out);
    let words = words(&record, &input)?;
    interrupt::install_saying("stopping: the run is not repeated; once more ends at once");
    let mut command = child::command()?;
    command.args(&words).arg(format!("--out={}", out.display())).current_dir(place);
    command.stdout(std::process::Stdio::null());
    if let Done::Interrupted = repeat(&mut command, &words)? {
        return Ok(Done::Interrupted);
    }
    let again = read(&out)?;
    let (old, new) = (&record["input"]["blake3"], &again["input"]["blake3"]);
    if !old.is_null() && old != new {
        let why =
            format!("{} is not the tensor of the run: its content has changed", input.display());
        return Err(Failure::input(why).help("name the tensor that it was with --input"));
    }
    let here = serde_json::to_value(MachineFacts::here()).unwrap_or_default();
    let same_machine = record["machine"] == here && record["version"] == again["version"];
    compare(&args.dir, &out, args.tolerance.or((!same_machine).then_some(ELSEWHERE)))?;
    Ok(Done::Complete)
}

/// Runs a command of these words to its end.
///
/// # Errors
///
/// It does not start, or fails.
pub(super) fn repeat(command: &mut Command, words: &[String]) -> Result<Done, Failure> {
    let fail = |error| Failure::input(format!("cannot start the run: {error}"));
    match child::wait(&mut command.spawn().map_err(fail)?).map_err(fail)? {
        None => Ok(Done::Interrupted),
        Some(status) if status.success() => Ok(Done::Complete),
        Some(status) => {
            let line = words.join(" ");
            Err(Failure::input(format!("the repeated run failed: {status}"))
                .help(format!("its command is `decompose {line}`")))
        }
    }
}

/// Returns how a run of a study ended that left no record of its own.
fn without_record(folder: &Path) -> Option<Outcome> {
    if folder.join("run.json").exists() { None } else { Outcome::read(folder) }
}

/// Says that a run is not repeated.
fn not_repeated(command: &str, state: State) -> Failure {
    let failed = if state == State::Failed { " that failed" } else { "" };
    Failure::input(format!("the folder holds a run of {command}{failed}, which is not repeated"))
        .help(GIVE)
}

/// Compares two runs; without a tolerance bit by bit.
fn compare(old: &Path, new: &Path, tolerance: Option<f64>) -> Result<(), Failure> {
    let [first, second] = [old, new].map(|folder| folder.join("model.npz"));
    let bytes = |path: &Path| {
        fs::read(path)
            .map_err(|error| Failure::input(format!("cannot read {}: {error}", path.display())))
    };
    let same = bytes(&first)? == bytes(&second)?;
    let courses = [course(old)?, course(new)?];
    let Some(tolerance) = tolerance else {
        if same && courses[0] == courses[1] {
            return stdout::line("same     model.npz and history.csv, bit by bit");
        }
        let what = if same { "history.csv differs" } else { "model.npz differs" };
        let most = distance(&first, &second)?.map_or("its shape is another".to_owned(), |most| {
            format!("by up to {most:.2e} of the largest entry of an array")
        });
        return Err(Failure::differs(format!("the results are not the same: {what}, {most}"))
            .help("--tolerance X compares to a tolerance"));
    };
    let most = distance(&first, &second)?.unwrap_or(f64::INFINITY);
    if most <= tolerance {
        return stdout::line(format!(
            "same     model.npz within {most:.2e} of the largest entries, {tolerance:e} allowed"
        ));
    }
    Err(Failure::differs(format!(
        "the results are not the same: model.npz differs by {most:.2e} of the largest entry of an array, \
         {tolerance:e} allowed"
    )))
}

/// Returns the largest difference between two models, over the largest entry of its array; `None` of models of
/// other shapes.
fn distance(first: &Path, second: &Path) -> Result<Option<f64>, Failure> {
    let (a, b) = (arrays(first)?, arrays(second)?);
    if a.len() != b.len() || a.iter().zip(&b).any(|(a, b)| a.len() != b.len()) {
        return Ok(None);
    }
    let of = a.iter().zip(&b).map(|(a, b)| largest_difference(a, b));
    Ok(Some(of.fold(0.0, f64::max)))
}

/// Returns the largest difference between two arrays of the same length, over their largest entry.
pub(super) fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    let largest = a.iter().chain(b).map(|x| x.abs()).fold(0.0, f64::max);
    let most = a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    if most == 0.0 { 0.0 } else { most / largest }
}

/// Returns the arrays of a model.
fn arrays(path: &Path) -> Result<Vec<Vec<f64>>, Failure> {
    fn list<'m>(values: impl Iterator<Item = &'m f64>) -> Vec<f64> {
        values.copied().collect()
    }
    Ok(match Stored::<f64>::read(path)?.model {
        Model::Cp(cp) => {
            let factors = cp.factors().iter().map(|factor| list(factor.view().iter()));
            std::iter::once(cp.weights().to_vec()).chain(factors).collect()
        }
        Model::Tucker(tucker) => {
            let factors = tucker.factors().iter().map(|factor| list(factor.view().iter()));
            std::iter::once(list(tucker.core().iter())).chain(factors).collect()
        }
        Model::Tt(train) => train.cores().iter().map(|core| list(core.iter())).collect(),
    })
}

/// Returns the history without its seconds.
fn course(folder: &Path) -> Result<Vec<Vec<String>>, Failure> {
    let path = folder.join("history.csv");
    let fault = |error: csv::Error| Failure::input(format!("{}: {error}", path.display()));
    let mut reader = csv::Reader::from_path(&path).map_err(fault)?;
    let heads = reader.headers().map_err(fault)?.clone();
    let kept = |at: &usize| heads.get(*at).is_some_and(|name| !name.ends_with("seconds"));
    let columns: Vec<usize> = (0..heads.len()).filter(kept).collect();
    let row = |row: Result<csv::StringRecord, csv::Error>| {
        let row = row.map_err(fault)?;
        Ok(columns.iter().map(|&at| row.get(at).unwrap_or_default().to_owned()).collect())
    };
    reader.records().map(row).collect()
}

/// Reads `run.json` of a folder.
fn read(folder: &Path) -> Result<Json, Failure> {
    let path = folder.join("run.json");
    let fault = |why: String| Failure::input(format!("{}: {why}", path.display())).help(GIVE);
    let text = fs::read(&path).map_err(|error| fault(format!("cannot read: {error}")))?;
    serde_json::from_slice(&text).map_err(|error| fault(format!("not JSON: {error}")))
}

/// Returns the tensor of a run, and the folder to repeat it in: this one, or that in which the run's folder is.
fn input(args: &RerunArgs, record: &Json) -> Result<(PathBuf, PathBuf), Failure> {
    let here = std::env::current_dir().unwrap_or_else(|_| ".".into());
    let recorded = PathBuf::from(record["input"]["path"].as_str().unwrap_or_default());
    let parent = fs::canonicalize(&args.dir).ok();
    let parent = parent.and_then(|dir| dir.parent().map(Path::to_owned));
    let given = args.input.clone().map(|path| std::path::absolute(&path).unwrap_or(path));
    let path = given.as_ref().unwrap_or(&recorded);
    for place in [Some(here), parent].into_iter().flatten() {
        if place.join(path).is_file() {
            return Ok((path.clone(), place));
        }
    }
    let why = format!("the tensor {} is not there", path.display());
    Err(Failure::input(why).help("name it with --input FILE"))
}

/// Returns what is typed to repeat a run, without its folder.
fn words(record: &Json, input: &Path) -> Result<Vec<String>, Failure> {
    let command = record["program"].as_str().and_then(|name| name.strip_prefix("decompose "));
    let solver = command.and_then(Task::of_command).filter(|task| task.is_solver());
    let Some(solver) = solver else {
        return Err(not_repeated(command.unwrap_or("another program"), State::Finished));
    };
    let recorded = record["input"]["path"].as_str().unwrap_or_default();
    let typed = record["command"].as_array().map_or(&[][..], Vec::as_slice);
    let typed: Vec<&str> = typed.iter().skip(1).filter_map(Json::as_str).collect();
    let mut words = Vec::new();
    let mut rest = typed.into_iter();
    while let Some(word) = rest.next() {
        let long = word.split_once('=').map_or(word, |(name, _)| name);
        if DROPPED.contains(&word) || word == "-t" {
            rest.next();
        } else if DROPPED.contains(&long) || ["--overwrite", "--quiet", "-q"].contains(&word) {
        } else if word == recorded {
            words.push(input.to_string_lossy().into_owned());
        } else {
            words.push(word.to_owned());
        }
    }
    if words.first().map(String::as_str) != Some(solver.command()) {
        return Err(Failure::input("run.json does not say how the run was started"));
    }
    let options = &record["options"];
    for name in ["seed", "threads"] {
        if let Some(value) = options[name].as_u64() {
            words.push(format!("--{name}={value}"));
        }
    }
    words.push("--quiet".to_owned());
    Ok(words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::words;

    #[test]
    fn a_command_is_repeated_with_its_seed_and_threads() {
        let record = |command: &[&str]| {
            json!({
                "program": "decompose cp",
                "command": command,
                "options": { "seed": 7, "threads": 2 },
                "input": { "path": "x.tns" },
            })
        };
        let typed =
            ["decompose", "cp", "-r", "3", "x.tns", "--out", "a", "--seed=random", "--overwrite"];
        let found = words(&record(&typed), "/y.tns".as_ref()).unwrap();
        assert_eq!(found, ["cp", "-r", "3", "/y.tns", "--seed=7", "--threads=2", "--quiet"]);
        let typed =
            ["decompose", "cp", "x.tns", "-o", "b", "-t", "4", "-q", "--rank=2", "--resume=b"];
        let found = words(&record(&typed), "x.tns".as_ref()).unwrap();
        assert_eq!(found, ["cp", "x.tns", "--rank=2", "--seed=7", "--threads=2", "--quiet"]);
        assert!(words(&record(&["decompose"]), "x.tns".as_ref()).is_err());
    }
}
