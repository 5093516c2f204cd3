//! The components of a model in a file.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use decompose_common::model::{Model, Stored};
use decompose_common::progress::{Screen, Verbosity};
use decompose_plot::{ComponentChoice, Components, ModeLook, PlotError};
use decompose_tt::Train;
use serde_json::Value as Json;

use crate::failure::Failure;
use crate::input::InputArgs;
use crate::labels::{self, ModeLabels};
use crate::plot::{Count, PlotArgs, Sheet};
use crate::run::components::{self, Modes, TrainVectors};

/// Components shown where nothing is said, and on one page at most.
const USUAL: usize = 8;
const PAGE: usize = 40;

/// Draws the components of the model at `path`, on as many pages as they need.
///
/// # Errors
///
/// A file that is no model, a mode that it lacks, no component to show.
pub(super) fn draw(args: &PlotArgs, path: &Path, sheet: &Sheet<'_>) -> Result<(), Failure> {
    let model = Stored::<f64>::read(path)?.model;
    let source = source(path);
    let labels = find_labels(args, &model, source.as_deref())?;
    let mut modes = Modes::new(&labels);
    modes.force(&args.lines.0, ModeLook::Lines)?;
    modes.force(&args.bars.0, ModeLook::Bars)?;
    let all = components::count(&model);
    let count = match args.components.unwrap_or(Count::Most(USUAL)) {
        Count::Most(count) => count.min(all),
        Count::All => all,
    };
    let title = format!("{}, {}", name(path, source.as_deref()), what(&model));
    let vectors = match &model {
        Model::Tt(model) => {
            let train = Train::of_model(model);
            TrainVectors::foresee(&train, count, 0)?;
            TrainVectors::of(&train, model.order().modes(), count)?
        }
        Model::Cp(_) | Model::Tucker(_) => TrainVectors::default(),
    };
    let page = |places: Range<usize>| -> Result<Components, PlotError> {
        match &model {
            Model::Tucker(tucker) => components::of_tucker(tucker, &modes, &title, places),
            Model::Tt(_) => vectors.figure(&modes, &title, places),
            Model::Cp(cp) => {
                let choice = ComponentChoice { places, order: args.sort.into() };
                components::of_cp(cp, &modes, &title, &choice)
            }
        }
    };
    if count <= PAGE {
        return sheet.save(&page(0..count)?, "components");
    }
    for (first, number) in (0..count).step_by(PAGE).zip(1..) {
        let places = first..count.min(first + PAGE);
        sheet.save(&page(places)?, &format!("components-{number}"))?;
    }
    Ok(())
}

/// Returns the tensor that a run in the same folder has read, if that is recorded.
fn source(path: &Path) -> Option<PathBuf> {
    let folder = if path.is_dir() { path } else { path.parent()? };
    let record: Json = serde_json::from_slice(&fs::read(folder.join("run.json")).ok()?).ok()?;
    record["input"]["path"].as_str().map(PathBuf::from)
}

/// Returns the labels of the modes: from the folder that was named, or beside the tensor of the run.
fn find_labels(
    args: &PlotArgs,
    model: &Model<f64>,
    source: Option<&Path>,
) -> Result<Vec<ModeLabels>, Failure> {
    let file = source.unwrap_or(Path::new("tensor"));
    let name = InputArgs::of_file(file).name();
    let (labels, warnings) = labels::find(file, &name, args.labels.as_deref(), &model.extents())?;
    let screen = Screen::new(Verbosity::Normal);
    warnings.iter().for_each(|warning| screen.warn(warning));
    Ok(labels)
}

/// Names the model by its tensor, or by itself.
fn name(path: &Path, source: Option<&Path>) -> String {
    match source {
        Some(file) => InputArgs::of_file(file).name(),
        None => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
    }
}

/// Says what a model is.
fn what(model: &Model<f64>) -> String {
    let joined = |ranks: Vec<usize>, between: &str| {
        ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
    };
    match model {
        Model::Cp(cp) => format!("CP, rank {}", cp.rank()),
        Model::Tucker(tucker) => format!("Tucker, ranks {}", joined(tucker.ranks(), "x")),
        Model::Tt(train) => format!("tensor train, ranks {}", joined(train.ranks(), "-")),
    }
}
