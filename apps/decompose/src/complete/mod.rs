//! `decompose complete`: read, divide, fit, judge, write.

pub(crate) mod args;
pub(crate) mod data;
pub(crate) mod figures;
mod history;
mod judged;
mod mask;
mod predictions;
pub(crate) mod record;
mod report;
pub(crate) mod settings;
mod solve;

use decompose_common::run_folder::RunFolder;
use decompose_complete::Loss;
use decompose_formats::counted;
use decompose_formats::io::Format;
use serde_json::json;

use crate::cli::Done;
use crate::complete::data::Loaded;
use crate::complete::report::Report;
use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::failure::Failure;
use crate::run;
use crate::run::console::Console;
use crate::run::memory::Foreseen;
use crate::run::preview::Preview;
use crate::run::settings::Task;

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
    let loaded = data::load(&settings, 1, &mut console, |tensor| Ok((tensor, None)))?;
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

/// Checks the options as a run does before it reads the tensor.
///
/// # Errors
///
/// Bad options.
pub(crate) fn check(args: &CompleteArgs) -> Result<(), Failure> {
    Settings::new(args).map(drop)
}

/// Checks a run on its tensor, and returns what it is foreseen to take.  The seconds of a completion are not known.
///
/// # Errors
///
/// Bad options, or ones that do not suit the tensor.
pub(crate) fn foresee(
    args: &CompleteArgs,
    preview: &mut Preview,
) -> Result<Option<Foreseen>, Failure> {
    let settings = Settings::new(args)?;
    let tensor = &preview.of(&settings)?.tensor;
    let forecast = data::forecast(&settings, 1, tensor, Format::Tns)?;
    Ok(Some(Foreseen { peak: forecast.peak, seconds: None }))
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
    let report = Report::new(settings, solved, loaded, console)?;
    run::finish(&report, folder, console)
}
