//! The components of the best model of each group and tensor, with their labels.

use std::path::Path;

use decompose_common::model::{Model, Stored};
use decompose_plot::{ComponentChoice, Components};

use crate::experiment::report::configs::Config;
use crate::experiment::report::figures::Sheet;
use crate::experiment::report::results::RunResult;
use crate::failure::Failure;
use crate::labels;
use crate::run::components::{Modes, of_cp, of_tucker};
use crate::run::strongest::{Line, to_csv};

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
    let (found, _) = labels::of_model(&folder, &[], &model.extents())?;
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

/// Returns the strongest entries of the components.
fn csv(figure: &Components) -> String {
    let mut lines = Vec::new();
    for row in &figure.rows {
        for ((mode, profile), number) in figure.modes.iter().zip(&row.profiles).zip(1..) {
            let largest = profile.iter().flat_map(|profile| &profile.largest);
            lines.extend(largest.zip(1..).map(|(entry, place)| Line {
                component: row.component + 1,
                weight: row.weight,
                mode: number,
                name: &mode.name,
                place,
                index: entry.index + 1,
                label: entry.label.as_deref().unwrap_or_default(),
                value: entry.value,
            }));
        }
    }
    let mut csv = Vec::new();
    // Writing to a list cannot fail.
    let _ = to_csv(&lines, &mut csv);
    String::from_utf8_lossy(&csv).into_owned()
}
