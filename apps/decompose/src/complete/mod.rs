//! `decompose complete`: read, divide, fit, judge, write.

pub(crate) mod args;
pub(crate) mod data;
mod figures;
mod history;
mod predictions;
pub(crate) mod record;
pub(crate) mod settings;
mod solve;
pub(crate) mod summary;

use std::path::{Path, PathBuf};

use decompose_common::model::{self, Model, ModelFormat};
use decompose_common::output::OutputFolder;
use decompose_complete::ModelKind;
use serde_json::json;

use crate::cli::Done;
use crate::complete::data::Loaded;
use crate::complete::predictions::Predictions;
use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::figures::Sketches;
use crate::run::settings::Task;
use crate::run::{self, Phases};

pub(crate) use crate::complete::args::CompleteArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: &CompleteArgs) -> Result<Done, Failure> {
    let settings = Settings::new(args)?;
    run::begin(settings.threads)?;
    let folder = settings.output()?;
    let mut console = Console::new(&settings);
    let version = env!("CARGO_PKG_VERSION");
    console.screen.line(format!(
        "decompose {version}: completion, {}, {} loss, seed {}, threads {}",
        settings.model_name(),
        settings.loss(),
        settings.seed,
        settings.threads,
    ));
    let loaded = data::load(&settings, &mut console, |tensor| Ok((tensor, None)))?;
    let options = record::options(&settings, loaded.parts.train.order());
    console.event("start", json!({ "version": version, "options": options }))?;
    if settings.task == Task::Explain {
        return explain(&settings, &loaded);
    }
    let solved = solve::solve(&settings, &loaded.parts, folder.as_ref(), &mut console)?;
    finish(&settings, &solved, &loaded, folder.as_ref(), &mut console)
}

/// Prints the expressions of the kernels; `decompose schedule` explains each.
fn explain(settings: &Settings, loaded: &Loaded) -> Result<Done, Failure> {
    let train = &loaded.parts.train;
    let network = decompose_complete::Network::new(&settings.kind(train.order()), train.extents());
    crate::stdout::line(format!("values    {}", network.values()))?;
    for block in 0..network.blocks().len() {
        crate::stdout::line(format!("gradient  {}", network.gradient(block)))?;
    }
    Ok(Done::Complete)
}

/// Writes and tells the results.
fn finish(
    settings: &Settings,
    solved: &Solved,
    loaded: &Loaded,
    folder: Option<&OutputFolder>,
    console: &mut Console,
) -> Result<Done, Failure> {
    let outcome = &solved.outcome;
    if let Some(why) = &outcome.interpreted {
        console.screen.warn(format!("kernels run in the interpreter, many times slower: {why}"));
    }
    for (mode, &count) in outcome.unseen.iter().enumerate().filter(|(_, count)| **count > 0) {
        let extent = loaded.parts.train.extents()[mode];
        let mode = mode + 1;
        console.screen.warn(format!(
            "{count} of {extent} indices of mode {mode} have no training entry: the model knows \
             nothing of them"
        ));
    }
    let (found, parts) =
        ((&loaded.tensor, loaded.forecast), record::parts(settings, solved, loaded));
    let predictions = match folder {
        Some(_) => console.phase("predict", || Predictions::of(settings, solved, &loaded.parts))?,
        None => None,
    };
    let kind = settings.kind(loaded.parts.train.order());
    let ending = run::Ending {
        write: |folder: &Path| write(solved, &kind, predictions.as_ref(), folder),
        draw: |sketches: &mut Sketches<'_>| {
            figures::draw(settings, solved, predictions.as_ref(), sketches);
        },
        timing: |phases: &Phases| figures::timing(settings, solved, phases),
    };
    let files = run::finish(settings, found, &parts, folder, console, ending)?;
    let phases = &console.phases;
    console.summary(summary::Summary { settings, solved, loaded, phases, files: &files })?;
    Ok(solved.done)
}

/// Writes model and predictions; returns their files and the history, which is there already.
fn write(
    solved: &Solved,
    kind: &ModelKind,
    predictions: Option<&Predictions>,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let mut paths: Vec<PathBuf> = match solved.outcome.model(kind)? {
        Model::Cp(cp) => model::write(&cp, folder, ModelFormat::Npz)?,
        Model::Tucker(tucker) => vec![tucker.write(folder)?],
        Model::Tt(train) => vec![train.write(folder)?],
    };
    paths.push(folder.join("history.csv"));
    if let Some(predictions) = predictions {
        paths.push(predictions.write(folder)?);
    }
    Ok(paths)
}
