//! The components of a model in a file.

use std::ops::Range;
use std::path::Path;

use decompose_common::model::{Model, Stored};
use decompose_common::progress::{Screen, Verbosity};
use decompose_plot::{ComponentChoice, Components, ModeLook, PlotError};
use decompose_tt::Train;

use crate::failure::Failure;
use crate::input::InputArgs;
use crate::labels;
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
    let source = labels::source(path);
    let (labels, warnings) = labels::of_model(path, &args.labels, &model.extents())?;
    let screen = Screen::new(Verbosity::Normal);
    warnings.iter().for_each(|warning| screen.warn(warning));
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
