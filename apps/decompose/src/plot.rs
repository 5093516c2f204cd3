//! `decompose plot`: the convergence and timing of earlier runs together.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use decompose_common::output::{Existing, OutputFolder};
use decompose_core::plot::{
    self, Convergence, ConvergencePoint, ConvergenceRun, Timing, TimingComponent, TimingPhase,
    TimingRun,
};
use serde_json::Value as Json;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::figures::step_name;
use crate::stdout;

/// Draws the convergence and timing of earlier runs together.
///
/// Reads run.json and history.csv of each folder.
#[derive(Args, Debug)]
pub(crate) struct PlotArgs {
    /// Folders of runs.
    #[arg(value_name = "RUN_DIR", required = true)]
    runs: Vec<PathBuf>,
    /// The folder of the figures.
    #[arg(long, short, value_name = "DIR", default_value = "decompose-plot")]
    out: PathBuf,
    /// Replace figures in the folder.
    #[arg(long)]
    overwrite: bool,
}

/// A run as its files tell.
struct Run {
    record: Json,
    columns: Vec<String>,
    /// One row an iteration.
    history: Vec<Vec<f64>>,
}

/// Runs the command.
///
/// # Errors
///
/// A folder that holds no run, or an output that exists or cannot be written.
pub(crate) fn run(args: &PlotArgs) -> Result<Done, Failure> {
    let existing = if args.overwrite { Existing::Replace } else { Existing::Refuse };
    let folder = OutputFolder::check(&args.out, existing)?;
    let runs = args.runs.iter().map(|path| Run::read(path)).collect::<Result<Vec<_>, _>>()?;
    let names = names(&args.runs);
    let title = if let [name] = names.as_slice() { name.clone() } else { "comparison".into() };
    let mut convergence =
        Convergence { title: title.clone(), tolerance: tolerance(&runs), runs: Vec::new() };
    let mut timing = Timing { title, runs: Vec::new() };
    for (run, name) in runs.iter().zip(&names) {
        convergence.runs.extend(run.convergence(name));
        timing.runs.push(run.timing(name));
    }
    for path in plot::save(&convergence, folder.path(), "convergence")? {
        stdout::line(path.display())?;
    }
    for path in plot::save(&timing, folder.path(), "timing")? {
        stdout::line(path.display())?;
    }
    Ok(Done::Complete)
}

/// Names the runs by their folders, with as many parents as tell them apart.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        name.strip_prefix("decompose-").map(str::to_owned).unwrap_or(name)
    };
    let shorts: Vec<String> = paths.iter().map(short).collect();
    let is_unique = |name: &String| shorts.iter().filter(|other| *other == name).count() == 1;
    let pairs = shorts.iter().zip(paths);
    pairs
        .map(|(name, path)| match is_unique(name) {
            true => name.clone(),
            false => path.display().to_string(),
        })
        .collect()
}

/// Returns the tolerance, if all runs had the same.
fn tolerance(runs: &[Run]) -> Option<f64> {
    let mut all = runs.iter().map(|run| run.record["options"]["tol"].as_f64());
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first).filter(|tol| *tol > 0.0)
}

impl Run {
    fn read(folder: &Path) -> Result<Run, Failure> {
        let (record, history) = (folder.join("run.json"), folder.join("history.csv"));
        let fault = |path: &Path, why: String| {
            Failure::input(format!("{}: {why}", path.display()))
                .help("give folders that a solver - `decompose cp` - wrote")
        };
        let text = fs::read(&record).map_err(|e| fault(&record, format!("cannot read: {e}")))?;
        let parsed =
            serde_json::from_slice(&text).map_err(|e| fault(&record, format!("not JSON: {e}")))?;
        let mut reader =
            csv::Reader::from_path(&history).map_err(|e| fault(&history, e.to_string()))?;
        let header = reader.headers().map_err(|e| fault(&history, e.to_string()))?;
        let columns = header.iter().map(str::to_owned).collect();
        let rows: Result<Vec<Vec<f64>>, csv::Error> = reader.deserialize().collect();
        let history = rows.map_err(|e| fault(&history, e.to_string()))?;
        Ok(Run { record: parsed, columns, history })
    }

    /// Returns the number in `column` of a row; NaN, which is not drawn, if there is none.
    fn number(&self, row: &[f64], column: &str) -> f64 {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| row.get(at)).copied().unwrap_or(f64::NAN)
    }

    /// Returns one line a start, timed from its own beginning.
    fn convergence(&self, name: &str) -> Vec<ConvergenceRun> {
        let starts = self.record["result"]["starts"].as_array().map_or(&[][..], Vec::as_slice);
        let restart_of = |row: &[f64]| self.number(row, "restart");
        let starts = starts.iter().zip(1..).map(|(start, number)| {
            let rows: Vec<&Vec<f64>> =
                self.history.iter().filter(|row| restart_of(row) == f64::from(number)).collect();
            let began = rows
                .first()
                .map_or(0.0, |row| self.number(row, "total_seconds") - self.number(row, "seconds"));
            let point = |row: &&Vec<f64>| ConvergencePoint {
                iteration: self.number(row, "iteration") as u64,
                seconds: self.number(row, "total_seconds") - began,
                fit: self.number(row, "fit"),
            };
            ConvergenceRun {
                name: if number == 1 { name.to_owned() } else { format!("{name}, start {number}") },
                points: rows.iter().map(point).collect(),
                stop: start["stop"].as_str().unwrap_or_default().replace('-', " "),
            }
        });
        starts.collect()
    }

    fn timing(&self, name: &str) -> TimingRun {
        let phases = self.record["phases"].as_array().map_or(&[][..], Vec::as_slice);
        let phase = |phase: &Json| TimingPhase {
            name: phase["name"].as_str().unwrap_or("?").to_owned(),
            seconds: phase["seconds"].as_f64().unwrap_or(0.0),
        };
        let component = |column: &str, name: String| TimingComponent {
            name,
            seconds: self.history.iter().map(|row| self.number(row, column)).collect(),
        };
        let steps = self.columns.iter().filter_map(|column| {
            let step = column.strip_suffix("_seconds").filter(|step| *step != "total")?;
            let by_mode = step.rsplit_once('_').map(|(step, mode)| (step, mode.parse().ok()));
            Some(component(
                column,
                match by_mode {
                    Some((step, Some(mode))) => step_name(step, Some(mode)),
                    _ => step_name(step, None),
                },
            ))
        });
        TimingRun {
            name: name.to_owned(),
            phases: phases.iter().map(phase).collect(),
            components: steps.collect(),
        }
    }
}
