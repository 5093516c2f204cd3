//! The course and the seconds of earlier runs, side by side where they can be compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use decompose_common::progress::{Screen, Verbosity};
use decompose_common::stopping::StopReason;
use decompose_plot::{
    Convergence, ConvergencePoint, ConvergenceRun, Curve, CurveLook, CurvePanel, Curves, ScaleKind,
    Timing, TimingComponent, TimingPhase, TimingRun,
};
use serde_json::Value as Json;

use crate::cli::Done;
use crate::complete::figures::number;
use crate::experiment::report::results::is_truncation;
use crate::experiment::work::outcome::{Outcome, State};
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::plot::overlays::Axes;
use crate::plot::{PlotArgs, Sheet, overlays};
use crate::run::figures::step_name;

/// A run as its files tell.
pub(super) struct PlottedRun {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) record: Json,
    history_file: PathBuf,
    columns: Vec<String>,
    /// One row an iteration.
    history: Vec<Vec<f64>>,
}

/// Draws the runs, those that cannot be compared in figures of their own; runs of a study that have no course are left
/// out with a warning.
///
/// # Errors
///
/// A folder that holds no run, a metric or an option that it does not have, a figure that cannot be drawn.
pub(super) fn draw(args: &PlotArgs, paths: &[PathBuf], sheet: &Sheet<'_>) -> Result<Done, Failure> {
    let screen = Screen::new(Verbosity::Normal);
    let mut left_out: Vec<String> = Vec::new();
    let mut paths = paths.to_vec();
    paths.retain(|path| without_course(path).map(|why| left_out.push(why)).is_none());
    if let (true, Some(why)) = (paths.is_empty(), left_out.first()) {
        return Err(Failure::input(why).help("give folders that a solver - `decompose cp` - wrote"));
    }
    left_out.iter().for_each(|why| screen.warn(format!("{why}; it is left out")));
    let names = names(&paths);
    let runs = paths.iter().zip(&names).map(|(path, name)| PlottedRun::read(path, name));
    let runs = runs.collect::<Result<Vec<PlottedRun>, _>>()?;
    let mut groups: BTreeMap<Group, Vec<&PlottedRun>> = BTreeMap::new();
    let mut axes = Vec::new();
    for run in &runs {
        let group = run.group(args)?;
        axes.push(group.axes());
        if is_truncation(&run.record) {
            screen.line(format!("{} is a truncation, which has no iterations", run.name));
        } else {
            groups.entry(group).or_default().push(run);
        }
    }
    let one = groups.len() == 1;
    for ((group, runs), number) in groups.iter().zip(1..) {
        let stem = if one { "convergence".to_owned() } else { format!("convergence-{number}") };
        let title = match runs.as_slice() {
            [run] => run.name.clone(),
            _ => group.title(),
        };
        match group.metric.as_str() {
            "fit" => sheet.save(&convergence(runs, title), &stem)?,
            metric => sheet.save(&curves(runs, metric, title), &stem)?,
        }
    }
    let title = if let [name] = names.as_slice() { name.clone() } else { "comparison".to_owned() };
    let tensors =
        runs.iter().map(PlottedRun::tensor).collect::<std::collections::BTreeSet<_>>().len();
    let name = |run: &PlottedRun| match tensors {
        1 => run.name.clone(),
        // Seconds of different tensors say nothing of each other: the names tell.
        _ => format!("{} ({})", run.name, run.tensor_name()),
    };
    let timing = Timing { title, runs: runs.iter().map(|run| run.timing(name(run))).collect() };
    sheet.save(&timing, "timing")?;
    // Another column than that of the quality is compared run by run.
    if args.metric.is_none() && runs.len() > 1 {
        overlays::draw(&runs, &axes, sheet)?;
    }
    Ok(if left_out.is_empty() { Done::Complete } else { Done::Partly })
}

/// Says why a folder of a study holds no course; `None` of any other folder.
fn without_course(folder: &Path) -> Option<String> {
    if folder.join("run.json").exists() {
        return None;
    }
    let Outcome { state, command, .. } = Outcome::read(folder)?;
    let (folder, command) = (folder.display(), command.first().map_or("?", String::as_str));
    Some(match state {
        State::Failed => format!("{folder} holds a run of {command} that failed"),
        State::Finished => format!("{folder} holds a run of {command}, which has no iterations"),
    })
}

/// What runs share that are drawn on the same axes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    tensor_name: String,
    /// The hash of the tensor, or its path.
    tensor: String,
    metric: String,
    /// The option that runs are told apart by, with its value.
    option: Option<String>,
}

impl Group {
    /// Names what its runs have in common, which no other group's runs have.
    fn axes(&self) -> Axes {
        let with_option = |text: &str| match &self.option {
            Some(option) => format!("{text}, {option}"),
            None => text.to_owned(),
        };
        Axes { name: with_option(&self.tensor_name), key: with_option(&self.tensor) }
    }

    fn title(&self) -> String {
        let option = self.option.as_ref().map(|option| format!(", {option}")).unwrap_or_default();
        format!("{}{option}: comparison by {}", self.tensor_name, words(&self.metric))
    }
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

/// Returns the figure of fits.
fn convergence(runs: &[&PlottedRun], title: String) -> Convergence {
    let runs_of = |run: &&PlottedRun| {
        let starts = run.starts().into_iter().map(|(name, number, rows)| {
            let began = run.began(&rows);
            let point = |row: &&Vec<f64>| ConvergencePoint {
                iteration: run.number(row, "iteration") as u64,
                seconds: run.number(row, "total_seconds") - began,
                fit: run.number(row, "fit"),
            };
            let points = rows.iter().map(point).collect();
            ConvergenceRun { name, points, stop: run.stop(number) }
        });
        starts.collect::<Vec<_>>()
    };
    Convergence { title, tolerance: tolerance(runs), runs: runs.iter().flat_map(runs_of).collect() }
}

/// Returns the figure of any column, by iteration and by time.
fn curves(runs: &[&PlottedRun], metric: &str, title: String) -> Curves {
    let panel = |x_name: &str, by_time: bool| {
        let curves_of = |run: &&PlottedRun| {
            let starts = run.starts().into_iter().map(|(name, _, rows)| {
                let began = run.began(&rows);
                let place = |row: &[f64]| match by_time {
                    true => run.number(row, "total_seconds") - began,
                    false => run.number(row, "iteration"),
                };
                let points = rows.iter().map(|row| (place(row), run.number(row, metric)));
                let points: Vec<(f64, f64)> = points.filter(|point| point.1.is_finite()).collect();
                Curve { name, points, look: CurveLook::Line, ..Curve::default() }
            });
            starts.collect::<Vec<_>>()
        };
        let curves: Vec<Curve> = runs.iter().flat_map(curves_of).collect();
        let mut values = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1);
        // Errors span decades; what may be zero or below, as a fit or an area, does not.
        let spans = !metric.ends_with("_auc") && values.all(|value| value > 0.0);
        CurvePanel {
            x_name: x_name.to_owned(),
            y_name: if by_time { String::new() } else { words(metric) },
            y: if spans { ScaleKind::Log } else { ScaleKind::Linear },
            curves,
            ..CurvePanel::default()
        }
    };
    let panels = vec![panel("iteration", false), panel("time (s)", true)];
    Curves { title, note: best(runs, metric), panels, ..Curves::default() }
}

/// Says how good the runs were at their best.
fn best(runs: &[&PlottedRun], metric: &str) -> String {
    let rises = metric == "fit" || metric.ends_with("_auc");
    let best = |run: &&PlottedRun| {
        let values = run.history.iter().map(|row| run.number(row, metric));
        let values = values.filter(|value| value.is_finite());
        let best = values.reduce(if rises { f64::max } else { f64::min })?;
        Some(format!("{} at its best {}", run.name, number(best)))
    };
    runs.iter().filter_map(best).collect::<Vec<_>>().join("; ")
}

/// Returns a metric in words: `test_rmse` is `test RMSE`.
fn words(metric: &str) -> String {
    let known = |word: &str| match word {
        "rmse" | "mae" | "auc" => word.to_uppercase(),
        _ => word.to_owned(),
    };
    metric.split('_').map(known).collect::<Vec<_>>().join(" ")
}

/// Returns the tolerance, if all runs had the same.
fn tolerance(runs: &[&PlottedRun]) -> Option<f64> {
    let mut all = runs.iter().map(|run| run.record["options"]["tol"].as_f64());
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first).filter(|tol| *tol > 0.0)
}

impl PlottedRun {
    fn read(folder: &Path, name: &str) -> Result<PlottedRun, Failure> {
        let (record, history_file) = (folder.join("run.json"), folder.join("history.csv"));
        let fault = |path: &Path, why: String| {
            Failure::input(format!("{}: {why}", path.display()))
                .help("give folders that a solver - `decompose cp` - wrote")
        };
        let text = fs::read(&record).map_err(|e| fault(&record, format!("cannot read: {e}")))?;
        let parsed =
            serde_json::from_slice(&text).map_err(|e| fault(&record, format!("not JSON: {e}")))?;
        let bad = |error: csv::Error| fault(&history_file, error.to_string());
        let mut reader = csv::Reader::from_path(&history_file).map_err(bad)?;
        let columns = reader.headers().map_err(bad)?.iter().map(str::to_owned).collect();
        let history = reader.deserialize().collect::<Result<_, _>>().map_err(bad)?;
        let (name, folder) = (name.to_owned(), folder.to_owned());
        Ok(PlottedRun { name, folder, record: parsed, history_file, columns, history })
    }

    /// Returns what this run has in common with those on the same axes.
    fn group(&self, args: &PlotArgs) -> Result<Group, Failure> {
        let option = args.by.as_ref().map(|name| self.option(name)).transpose()?;
        let (tensor_name, tensor) = (self.tensor_name(), self.tensor());
        Ok(Group { tensor_name, tensor, metric: self.metric(args.metric.as_deref())?, option })
    }

    /// Returns an option with its value: `rank 8`.
    fn option(&self, name: &str) -> Result<String, Failure> {
        let options = self.record["options"].as_object();
        let known = || {
            let names = options.map(|options| options.keys().cloned().collect::<Vec<_>>());
            names.unwrap_or_default().join(", ")
        };
        match &self.record["options"][name] {
            Json::Null => {
                let why = format!("{} has no option `{name}`", self.name);
                Err(Failure::input(why).help(format!("its run.json has {}", known())))
            }
            Json::String(value) => Ok(format!("{name} {value}")),
            value => Ok(format!("{name} {value}")),
        }
    }

    /// Returns the column to compare by: the one asked for, else held-out errors before fits.
    fn metric(&self, asked: Option<&str>) -> Result<String, Failure> {
        let has = |name: &str| self.columns.iter().any(|column| column == name);
        if let Some(name) = asked {
            let help = || format!("it has {}", self.columns.join(", "));
            let file = self.history_file.display();
            let why = || Failure::input(format!("{file} has no column `{name}`")).help(help());
            return has(name).then(|| name.to_owned()).ok_or_else(why);
        }
        let parts = ["test", "val", "train"].into_iter();
        let scores = parts.flat_map(|part| {
            ["log_loss", "deviance", "rmse"].map(|score| format!("{part}_{score}"))
        });
        // Validation entries may have no scores in some rounds.
        let scored =
            |name: &String| self.history.iter().any(|row| self.number(row, name).is_finite());
        Ok(scores.into_iter().find(scored).unwrap_or_else(|| "fit".to_owned()))
    }

    fn tensor(&self) -> String {
        let input = &self.record["input"];
        let known = input["blake3"].as_str().or(input["path"].as_str());
        known.unwrap_or_default().to_owned()
    }

    fn tensor_name(&self) -> String {
        let path = self.record["input"]["path"].as_str().unwrap_or("tensor");
        InputArgs::of_file(Path::new(path)).name()
    }

    /// Returns the number in `column` of a row; NaN, which is not drawn, if there is none.
    fn number(&self, row: &[f64], column: &str) -> f64 {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| row.get(at)).copied().unwrap_or(f64::NAN)
    }

    /// Returns every start: its name, its number and its rows.
    fn starts(&self) -> Vec<(String, usize, Vec<&Vec<f64>>)> {
        let mut starts: Vec<(String, usize, Vec<&Vec<f64>>)> = Vec::new();
        for row in &self.history {
            let number = self.number(row, "restart") as usize;
            match starts.last_mut().filter(|start| start.1 == number) {
                Some((_, _, rows)) => rows.push(row),
                None => {
                    let name = match starts.is_empty() {
                        true => self.name.clone(),
                        false => format!("{}, start {number}", self.name),
                    };
                    starts.push((name, number, vec![row]));
                }
            }
        }
        starts
    }

    /// Returns when a start began: before its first row.
    fn began(&self, rows: &[&Vec<f64>]) -> f64 {
        let first =
            |row: &&Vec<f64>| self.number(row, "total_seconds") - self.number(row, "seconds");
        rows.first().map_or(0.0, first)
    }

    /// Returns why a start, counted from 1, stopped, if that is recorded.
    fn stop(&self, number: usize) -> String {
        let start = &self.record["result"]["starts"][number.saturating_sub(1)];
        let key = start["stop"].as_str().unwrap_or_default();
        // A key of another version stands for itself.
        let text = StopReason::of_key(key).map(|reason| reason.to_string());
        text.unwrap_or_else(|| key.replace('-', " "))
    }

    fn timing(&self, name: String) -> TimingRun {
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
        let (phases, components) = (phases.iter().map(phase).collect(), steps.collect());
        TimingRun { name, phases, components }
    }
}
