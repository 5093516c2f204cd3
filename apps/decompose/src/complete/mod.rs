//! `decompose complete`: read, divide, fit, judge, write.

pub(crate) mod args;
pub(crate) mod data;
mod figures;
mod history;
mod judged;
mod mask;
mod predictions;
pub(crate) mod record;
pub(crate) mod settings;
mod solve;
pub(crate) mod summary;

use decompose_common::model::{Meaning, Model, Stored};
use decompose_common::run_folder::RunFolder;
use decompose_complete::Loss;
use decompose_formats::counted;
use serde_json::json;

use crate::cli::Done;
use crate::complete::data::Loaded;
use crate::complete::predictions::Predictions;
use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::failure::Failure;
use crate::labels::ModeLabels;
use crate::run::console::Console;
use crate::run::figures::Sketches;
use crate::run::settings::Task;
use crate::run::{self, Desk, Phases, Written};

pub(crate) use crate::complete::args::CompleteArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: &CompleteArgs) -> Result<Done, Failure> {
    let mut settings = Settings::new(args)?;
    run::begin(settings.threads)?;
    let folder = settings.run.claim()?;
    let mut console = Console::new(&settings);
    let version = env!("CARGO_PKG_VERSION");
    console.screen.line(format!(
        "decompose {version}: completion, {}, {} loss, seed {}, threads {}",
        settings.model_name(),
        settings.loss(),
        settings.seed,
        settings.threads,
    ));
    let loaded = data::load((&settings, 1), &mut console, |tensor| Ok((tensor, None)))?;
    settings.see(&loaded.parts.train);
    if let Loss::Huber(bend) = settings.loss() {
        console.screen.line(format!("loss     huber, linear beyond {bend}"));
    }
    let options = record::options(&settings, loaded.parts.train.order());
    console.event("start", json!({ "version": version, "options": options }))?;
    if settings.task == Task::Explain {
        return explain(&settings, &loaded);
    }
    let solved = solve::solve(&settings, &loaded.parts, folder.as_ref(), &mut console)?;
    finish(&settings, &solved, &loaded, folder, &mut console)
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
    folder: Option<RunFolder>,
    console: &mut Console,
) -> Result<Done, Failure> {
    let outcome = &solved.outcome;
    if let Some(why) = &outcome.interpreted {
        console.screen.warn(format!("kernels run in the interpreter, many times slower: {why}"));
    }
    for (mode, &count) in outcome.unseen.iter().enumerate().filter(|(_, count)| **count > 0) {
        let extent = counted(loaded.parts.train.extents()[mode], "index", "indices");
        let (mode, have) = (mode + 1, if count == 1 { "has" } else { "have" });
        console.screen.warn(format!(
            "{count} of {extent} of mode {mode} {have} no training entry, of which the model knows nothing"
        ));
    }
    if solved.done == Done::Complete && outcome.is_unfinished() {
        console.screen.warn(
            "the fit ended far from a minimum of its objective; give it more epochs (--max-iters, \
             --patience), another --seed or more --restarts",
        );
    }
    let predict = || Predictions::of(settings, solved, &loaded.parts);
    let predictions = console.phase("predict", predict).unwrap_or_else(|failure| {
        console.trouble(&failure);
        None
    });
    let quality = predictions.as_ref().map(Predictions::quality);
    let parts = record::parts(settings, solved, loaded, quality);
    let found = (&loaded.tensor, loaded.forecast);
    let stored = stored(settings, solved, loaded)?;
    let ending = run::Ending {
        write: |desk: &Desk<'_>| {
            write(&stored, (predictions.as_ref(), &loaded.tensor.labels), desk)
        },
        draw: |sketches: &mut Sketches<'_>| {
            figures::draw(
                settings,
                solved,
                (&stored.model, predictions.as_ref()),
                loaded,
                sketches,
            );
        },
        timing: |phases: &Phases| Some(figures::timing(settings, solved, phases)),
    };
    let files = run::finish(settings, found, &parts, folder, console, ending)?;
    let (phases, files) = (&console.phases.clone(), files.as_slice());
    console.summary(summary::Summary { settings, solved, loaded, quality, phases, files });
    Ok(console.done(solved.done))
}

/// Returns the model as it is written, with what its values mean.
fn stored(settings: &Settings, solved: &Solved, loaded: &Loaded) -> Result<Stored<f64>, Failure> {
    let loss: Loss = settings.loss();
    let model = solved.outcome.model(&settings.kind(loaded.parts.train.order()))?;
    let meaning = Meaning {
        loss: Some(loss.to_string()),
        link: loss.scale(),
        biases: match &model {
            Model::Cp(cp) => cp.rank() - solved.outcome.rank,
            Model::Tucker(_) | Model::Tt(_) => 0,
        },
    };
    Ok(Stored { model, meaning })
}

/// Writes model and predictions, the model first.
fn write(
    stored: &Stored<f64>,
    (predictions, labels): (Option<&Predictions>, &[ModeLabels]),
    desk: &Desk<'_>,
) -> Result<Written, Failure> {
    let folder = desk.folder;
    let mut written = desk.model(stored.write(folder).map(|path| vec![path]))?;
    if let Some(predictions) = predictions {
        written.add(predictions.write(folder, labels).map(Some));
    }
    Ok(written)
}
