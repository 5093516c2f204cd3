//! What the runs of a study have left, as numbers.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::experiment::plan::{Plan, PlannedRun};
use crate::experiment::work::folder::by_key;
use crate::experiment::work::outcome::{Outcome, State};
use crate::failure::Failure;

/// A study with the results of its runs.
pub(crate) struct Results {
    pub(crate) plan: Plan,
    /// In the order of the plan.
    pub(crate) runs: Vec<RunResult>,
}

/// A run and what it left.
#[derive(Clone, Debug)]
pub(crate) struct RunResult {
    pub(crate) run: PlannedRun,
    /// The name of its folder in `runs`.
    pub(crate) folder: String,
    pub(crate) end: End,
    /// From start to end of the process.
    pub(crate) wall: Option<f64>,
    pub(crate) quality: Option<Quality>,
    pub(crate) iterations: Option<u64>,
    pub(crate) stop: Option<String>,
    /// Seconds of the iterations.
    pub(crate) solve: Option<f64>,
    pub(crate) per_iteration: Option<f64>,
    /// Seconds that `schedule` predicts for its choice.
    pub(crate) predicted: Option<f64>,
    pub(crate) phases: Vec<(String, f64)>,
    /// Bytes held at the peak, and what was foreseen.
    pub(crate) peak: Option<u64>,
    pub(crate) foreseen: Option<u64>,
    pub(crate) model_bytes: Option<u64>,
    pub(crate) nnz: Option<u64>,
    pub(crate) course: Vec<Moment>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    Failed(String),
    /// It was not made yet.
    Missing,
}

/// How good a model is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quality {
    pub(crate) measure: Measure,
    pub(crate) value: f64,
    /// What is smaller for a better model: the relative error, or the error itself.
    pub(crate) error: f64,
}

/// What models are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    Fit,
    TestRmse,
    ValidationRmse,
    TrainRmse,
}

impl Measure {
    /// Those of completions, the most telling first: part of the data, and column of the history.
    const OF_COMPLETIONS: [(Measure, &'static str); 3] = [
        (Measure::TestRmse, "test"),
        (Measure::ValidationRmse, "val"),
        (Measure::TrainRmse, "train"),
    ];

    /// Its name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Measure::Fit => "fit",
            Measure::TestRmse => "test RMSE",
            Measure::ValidationRmse => "validation RMSE",
            Measure::TrainRmse => "training RMSE",
        }
    }

    /// The name of its error for people.
    pub(crate) fn error_name(self) -> &'static str {
        match self {
            Measure::Fit => "relative error",
            other => other.name(),
        }
    }

    /// Its column in `history.csv`.
    fn column(self) -> String {
        let part = Measure::OF_COMPLETIONS.iter().find(|(measure, _)| *measure == self);
        part.map_or_else(|| "fit".to_owned(), |(_, part)| format!("{part}_rmse"))
    }

    /// Tells whether a larger value is better.
    pub(crate) fn rises(self) -> bool {
        self == Measure::Fit
    }
}

/// A model at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    pub(crate) iteration: u64,
    /// Since the first iteration began.
    pub(crate) seconds: f64,
    pub(crate) value: f64,
}

impl Results {
    /// Reads the folder of a study.
    ///
    /// # Errors
    ///
    /// A folder that holds none.
    pub(crate) fn read(folder: &Path) -> Result<Results, Failure> {
        let path = folder.join("study.json");
        let fault = |why: String| {
            Failure::input(format!("{}: {why}", path.display()))
                .help("give the folder that `decompose experiment run` wrote")
        };
        let text = fs::read(&path).map_err(|error| fault(format!("cannot read: {error}")))?;
        let plan: Plan = serde_json::from_slice(&text).map_err(|error| fault(error.to_string()))?;
        let runs = folder.join("runs");
        let folders = by_key(&runs);
        let result = |run: &PlannedRun| match folders.get(&run.key) {
            Some(name) => RunResult::read(run, name, &runs.join(name)),
            None => RunResult::missing(run),
        };
        let runs = plan.runs.iter().map(result).collect();
        Ok(Results { plan, runs })
    }

    /// Returns the runs that have a result.
    pub(crate) fn finished(&self) -> impl Iterator<Item = &RunResult> {
        self.runs.iter().filter(|run| run.end == End::Finished)
    }
}

impl RunResult {
    fn missing(run: &PlannedRun) -> RunResult {
        RunResult {
            run: run.clone(),
            folder: run.name.clone(),
            end: End::Missing,
            wall: None,
            quality: None,
            iterations: None,
            stop: None,
            solve: None,
            per_iteration: None,
            predicted: None,
            phases: Vec::new(),
            peak: None,
            foreseen: None,
            model_bytes: None,
            nnz: None,
            course: Vec::new(),
        }
    }

    /// Returns what the folder of a run holds that belongs to no study.
    pub(crate) fn of_folder(run: &PlannedRun, record: &Json, folder: &Path) -> RunResult {
        let finished = RunResult { end: End::Finished, ..RunResult::missing(run) };
        finished.with_record(record, folder)
    }

    fn read(run: &PlannedRun, name: &str, folder: &Path) -> RunResult {
        let nothing = RunResult { folder: name.to_owned(), ..RunResult::missing(run) };
        let Some(outcome) = Outcome::read(folder) else { return nothing };
        let end = match outcome.state {
            State::Finished => End::Finished,
            State::Failed => End::Failed(outcome.message.unwrap_or_default()),
        };
        let read = RunResult { end, wall: Some(outcome.seconds), ..nothing };
        let json = |name: &str| {
            let text = fs::read(folder.join(name)).ok()?;
            serde_json::from_slice::<Json>(&text).ok()
        };
        match (json("run.json"), json("schedule.json")) {
            (Some(record), _) => read.with_record(&record, folder),
            (None, Some(schedule)) => {
                // The first is the best.
                let predicted = schedule["candidates"][0]["predicted_seconds"].as_f64();
                RunResult { predicted, ..read }
            }
            (None, None) => read,
        }
    }

    /// Adds what `run.json` and `history.csv` say.
    fn with_record(self, record: &Json, folder: &Path) -> RunResult {
        let (result, memory) = (&record["result"], &record["memory"]);
        let quality = quality(result);
        let phases = record["phases"].as_array().map_or(&[][..], Vec::as_slice);
        let phase =
            |phase: &Json| Some((phase["name"].as_str()?.to_owned(), phase["seconds"].as_f64()?));
        // The rows of a truncation are the bonds of a train, and no iterations.
        let iterates = !is_truncation(record);
        let per_iteration = result["seconds_per_iteration"].as_f64().filter(|_| iterates);
        let best = result["best_start"].as_u64().unwrap_or(1);
        let column = quality.filter(|_| iterates).map(|quality| quality.measure.column());
        let course = column.map(|column| course(&folder.join("history.csv"), &column, best));
        RunResult {
            quality,
            iterations: result["iterations"].as_u64().filter(|_| iterates),
            stop: result["stop"].as_str().map(str::to_owned),
            solve: result["solver_seconds"].as_f64(),
            per_iteration: per_iteration.or_else(|| result["seconds_per_epoch"].as_f64()),
            phases: phases.iter().filter_map(phase).collect(),
            peak: memory["actual_peak"].as_u64(),
            foreseen: memory["predicted_peak"].as_u64(),
            model_bytes: fs::metadata(folder.join("model.npz")).ok().map(|data| data.len()),
            nnz: record["input"]["nnz"].as_u64(),
            course: course.flatten().unwrap_or_default(),
            ..self
        }
    }

    /// Returns the rank of the model: the largest of several.
    pub(crate) fn rank(&self) -> Option<f64> {
        self.run.rank()
    }
}

/// Tells whether a record is of a truncation of a train, which does not iterate.
pub(crate) fn is_truncation(record: &Json) -> bool {
    record["program"] == "decompose tt" && record["options"]["method"] == "svd"
}

/// Returns how good a model is: by held-out entries before others, by the fit where none are held out.
fn quality(result: &Json) -> Option<Quality> {
    let best = &result["best"];
    for (measure, part) in Measure::OF_COMPLETIONS {
        if let Some(rmse) = best[part]["rmse"].as_f64() {
            return Some(Quality { measure, value: rmse, error: rmse });
        }
    }
    let value = result["fit"].as_f64()?;
    let error = result["relative_error"].as_f64().unwrap_or(1.0 - value);
    Some(Quality { measure: Measure::Fit, value, error })
}

/// Returns the course of a start by a column of the history; `None` if it cannot be read.
fn course(history: &Path, column: &str, start: u64) -> Option<Vec<Moment>> {
    let mut reader = csv::Reader::from_path(history).ok()?;
    let names: Vec<String> = reader.headers().ok()?.iter().map(str::to_owned).collect();
    let at = |name: &str| names.iter().position(|other| other == name);
    let (value, iteration) = (at(column)?, at("iteration")?);
    let (total, own, restart) = (at("total_seconds")?, at("seconds")?, at("restart"));
    let mut began = None;
    let mut course = Vec::new();
    for row in reader.deserialize::<Vec<f64>>() {
        let row = row.ok()?;
        if restart.is_some_and(|restart| row[restart] as u64 != start) {
            continue;
        }
        let began = *began.get_or_insert(row[total] - row[own]);
        if row[value].is_finite() {
            let (iteration, seconds) = (row[iteration] as u64, row[total] - began);
            course.push(Moment { iteration, seconds, value: row[value] });
        }
    }
    Some(course)
}
