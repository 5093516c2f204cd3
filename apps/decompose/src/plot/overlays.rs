//! Many runs laid over each other, as in the report of a study: medians over seeds, and trends along ranks and sizes.
//!
//! Runs whose options differ by the seed alone are one configuration.  A configuration is named by the options that
//! differ between runs of its command.

use std::collections::{BTreeMap, BTreeSet};

use decompose_common::progress::{Screen, Verbosity};
use serde_json::Value as Json;

use crate::experiment::plan::PlannedRun;
use crate::experiment::report::configs::configs;
use crate::experiment::report::figures;
use crate::experiment::report::results::RunResult;
use crate::failure::Failure;
use crate::plot::Sheet;
use crate::plot::runs::PlottedRun;

/// Options that do not tell configurations apart.
const SAME: [&str; 6] = ["seed", "out", "resume", "checkpoint_every", "max_memory", "out_formats"];

/// What runs on the same axes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axes {
    /// For people.
    pub(super) name: String,
    /// What no others have.
    pub(super) key: String,
}

impl Axes {
    /// Returns a name that none of the others has.
    fn label(&self, all: &[Axes]) -> String {
        let mut same: Vec<&str> = Vec::new();
        for other in all.iter().filter(|other| other.name == self.name) {
            if !same.contains(&other.key.as_str()) {
                same.push(&other.key);
            }
        }
        match same.iter().position(|key| *key == self.key) {
            Some(at) if at > 0 => format!("{} ({})", self.name, at + 1),
            _ => self.name.clone(),
        }
    }
}

/// Draws what several runs have to show together; a figure that cannot be drawn is a warning.
///
/// `axes` names for each run what it shares with those on the same axes.
///
/// # Errors
///
/// A figure that cannot be written.
pub(super) fn draw(runs: &[PlottedRun], axes: &[Axes], sheet: &Sheet<'_>) -> Result<(), Failure> {
    let options: Vec<Vec<(String, String)>> = runs.iter().map(options).collect();
    let told = told_apart(runs, &options);
    let result = |((run, options), axes_of_run): ((&PlottedRun, &Vec<_>), &Axes)| {
        let planned = planned(run, options, &told, axes_of_run.label(axes));
        RunResult::of_folder(&planned, &run.record, &run.folder)
    };
    let results: Vec<RunResult> = runs.iter().zip(&options).zip(axes).map(result).collect();
    let drawn = figures::overlays(&configs(results.iter()), &sheet.formats);
    let screen = Screen::new(Verbosity::Normal);
    drawn.warnings.iter().for_each(|warning| screen.warn(warning));
    for figure in &drawn.drawn {
        if let Some(rendered) = &figure.rendered {
            let stem = plain(&figure.stem);
            // A tensor may have the name of a number, which figures of single runs end with.
            let stem = if sheet.has(&stem) { format!("{stem}-medians") } else { stem };
            sheet.save_rendered(rendered, &stem)?;
        }
    }
    Ok(())
}

/// Returns a run as a study would have planned it.
fn planned(
    run: &PlottedRun,
    options: &[(String, String)],
    told: &BTreeMap<String, BTreeSet<String>>,
    tensor: String,
) -> PlannedRun {
    let command = command(run);
    let told = told.get(&command);
    let is_told = |name: &String| told.is_some_and(|names| names.contains(name));
    PlannedRun {
        name: run.name.clone(),
        key: String::new(),
        group: command.clone(),
        command,
        tensor,
        settings: options.iter().filter(|(name, _)| is_told(name)).cloned().collect(),
        seed: run.record["options"]["seed"].as_u64(),
        repeat: 1,
        threads: run.record["options"]["threads"].as_u64().unwrap_or(1) as usize,
        timed: true,
        words: options.iter().map(|(name, value)| format!("--{name}={value}")).collect(),
        expression: None,
    }
}

/// Returns the command of a run: `cp`.
fn command(run: &PlottedRun) -> String {
    let program = run.record["program"].as_str().unwrap_or_default();
    program.strip_prefix("decompose ").unwrap_or(program).to_owned()
}

/// Returns the options that differ between runs of a command, by command.
fn told_apart(
    runs: &[PlottedRun],
    options: &[Vec<(String, String)>],
) -> BTreeMap<String, BTreeSet<String>> {
    let mut values: BTreeMap<(String, &str), BTreeSet<Option<&str>>> = BTreeMap::new();
    let names: BTreeSet<&str> = options.iter().flatten().map(|(name, _)| name.as_str()).collect();
    for (run, options) in runs.iter().zip(options) {
        for name in &names {
            let value = options.iter().find(|(other, _)| other == name);
            let place = values.entry((command(run), name)).or_default();
            place.insert(value.map(|(_, value)| value.as_str()));
        }
    }
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for ((command, name), _) in values.into_iter().filter(|(_, values)| values.len() > 1) {
        told.entry(command).or_default().insert(name.to_owned());
    }
    told
}

/// Returns the options of a run that are set, by the names on the command line.
fn options(run: &PlottedRun) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, value) in run.record["options"].as_object().into_iter().flatten() {
        flatten(name, value, &mut found);
    }
    found
}

/// Adds an option; of one with parts of its own, each of them.
fn flatten(name: &str, value: &Json, found: &mut Vec<(String, String)>) {
    let text = match value {
        _ if SAME.contains(&name) => return,
        Json::Null => return,
        Json::Object(parts) => {
            // `{"cp": {"rank": 2}}` is the choice `cp`, with an option.
            if let (1, Some((choice, Json::Object(_)))) = (parts.len(), parts.iter().next()) {
                found.push((name.replace('_', "-"), choice.clone()));
            }
            parts.iter().for_each(|(name, value)| flatten(name, value, found));
            return;
        }
        Json::Array(values) => {
            let word =
                |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            values.iter().map(word).collect::<Vec<_>>().join(",")
        }
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    found.push((name.replace('_', "-"), text));
}

/// Returns a stem with letters that every file system has.
fn plain(stem: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let words: String = stem.chars().map(plain).collect();
    words.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Axes, flatten};

    #[test]
    fn tensors_of_the_same_name_are_told_apart() {
        let axes = |key: &str| Axes { name: "x".into(), key: key.into() };
        let all = [axes("a"), axes("b"), axes("a")];
        assert_eq!(all.each_ref().map(|of| of.label(&all)), ["x", "x (2)", "x"]);
    }

    #[test]
    fn options_with_parts_are_options_of_their_own() {
        let mut found = Vec::new();
        flatten("model", &json!({"cp": {"rank": 2}}), &mut found);
        flatten("ranks", &json!([2, 3]), &mut found);
        flatten("max_iters", &json!(5), &mut found);
        flatten("held_out", &json!({"by": {"random": {"seed": 3}}, "mask": null}), &mut found);
        let want = [("model", "cp"), ("rank", "2"), ("ranks", "2,3"), ("max-iters", "5")];
        let want = want.into_iter().chain([("by", "random")]);
        assert_eq!(found, want.map(|(a, b)| (a.to_owned(), b.to_owned())).collect::<Vec<_>>());
    }
}
