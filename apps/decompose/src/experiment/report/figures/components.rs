//! The components of the best model of each group and tensor, with their labels.

use std::fmt::Write;
use std::path::Path;

use decompose_common::model::{Model, Stored};
use decompose_plot::{ComponentChoice, Components};

use crate::experiment::report::configs::Config;
use crate::experiment::report::csv_field;
use crate::experiment::report::figures::Sheet;
use crate::experiment::report::results::RunResult;
use crate::failure::Failure;
use crate::input::name_of;
use crate::labels;
use crate::run::components::{Modes, of_cp, of_tucker};

/// Components of a figure.
const SHOWN: usize = 6;
/// Most figures of components.
const MOST: usize = 6;

/// Draws them.
pub(super) fn draw(configs: &[Config<'_>], folder: &Path, sheet: &mut Sheet) {
    let mut places: Vec<(&str, &str)> = Vec::new();
    for config in configs {
        let place = (config.group, config.tensor);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let mut shown = 0;
    for (group, tensor) in places {
        let same = configs.iter().filter(|config| config.group == group && config.tensor == tensor);
        let best = same.filter_map(Config::best).min_by(|a, b| {
            let error = |run: &RunResult| run.quality.map_or(f64::INFINITY, |q| q.error);
            error(a).total_cmp(&error(b))
        });
        let Some(run) = best else { continue };
        match figure(run, folder) {
            Ok(None) => {}
            Ok(Some(_)) if shown == MOST => {
                let why = format!("components of more than {MOST} models are not drawn");
                sheet.warnings.push(why);
                return;
            }
            Ok(Some(figure)) => {
                shown += 1;
                let caption = format!(
                    "The strongest components of the best model of the group, in runs/{}; each row is one, each \
                     column a mode.",
                    run.folder
                );
                let (stem, title) = (format!("components-{group}-{tensor}"), figure.title.clone());
                let csv = csv(&figure);
                sheet.add(&stem, &title, &caption, (&figure, csv));
            }
            Err(failure) => {
                let why = failure.message();
                sheet
                    .warnings
                    .push(format!("the components of runs/{} are left out: {why}", run.folder));
            }
        }
    }
}

/// Returns the figure of a run's model; `None` of models that have no components of their own.
fn figure(run: &RunResult, folder: &Path) -> Result<Option<Components>, Failure> {
    let folder = folder.join("runs").join(&run.folder);
    let file = folder.join("model.npz");
    if !file.is_file() {
        return Ok(None);
    }
    let model = Stored::<f64>::read(&file)?.model;
    let tensor = tensor_of(&folder);
    let given = run_labels(&folder);
    let name = name_of(&tensor);
    let found = labels::find(&tensor, &name, given.as_deref(), &model.extents());
    // Labels that are gone are no reason to leave components out.
    let found = found.or_else(|_| labels::find("x".as_ref(), "x", None, &model.extents()))?.0;
    let modes = Modes::new(&found);
    let choice = ComponentChoice { places: 0..SHOWN, ..ComponentChoice::default() };
    let settings = run.run.settings.iter().map(|(option, value)| format!(", {option} {value}"));
    let title = format!("{}, {}{}", run.run.tensor, run.run.group, settings.collect::<String>());
    match &model {
        Model::Cp(cp) => Ok(Some(of_cp(cp, &modes, &title, &choice)?)),
        Model::Tucker(tucker) => Ok(Some(of_tucker(tucker, &modes, &title, 0..SHOWN)?)),
        Model::Tt(_) => Ok(None),
    }
}

/// Returns the tensor that a run has read.
fn tensor_of(folder: &Path) -> std::path::PathBuf {
    let record = std::fs::read(folder.join("run.json")).ok();
    let record = record.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    let path = record.and_then(|record| record["input"]["path"].as_str().map(Into::into));
    path.unwrap_or_else(|| "tensor".into())
}

/// Returns the folder of labels that a run was given.
fn run_labels(folder: &Path) -> Option<std::path::PathBuf> {
    let outcome = crate::experiment::work::outcome::Outcome::read(folder)?;
    outcome.command.iter().find_map(|word| word.strip_prefix("--labels=").map(Into::into))
}

/// Returns the strongest entries of the components.
fn csv(figure: &Components) -> String {
    let mut csv = "component,weight,mode,place,index,label,value\n".to_owned();
    for row in &figure.rows {
        for (mode, profile) in figure.modes.iter().zip(&row.profiles) {
            let largest = profile.iter().flat_map(|profile| &profile.largest);
            for (entry, place) in largest.zip(1..) {
                let number = row.component + 1;
                let weight = row.weight.map(|weight| weight.to_string()).unwrap_or_default();
                let label = csv_field(entry.label.as_deref().unwrap_or_default());
                let (name, index, value) = (csv_field(&mode.name), entry.index + 1, entry.value);
                // Writing to a string cannot fail.
                let _ = writeln!(csv, "{number},{weight},{name},{place},{index},{label},{value}");
            }
        }
    }
    csv
}
