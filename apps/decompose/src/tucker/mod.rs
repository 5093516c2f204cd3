//! `decompose tucker`: read, sort, start, plan, build, solve, write.

mod args;
mod explain;
mod figures;
mod memory;
mod prepare;
mod record;
mod settings;
mod solve;
mod summary;
mod write;

use decompose_common::output::OutputFolder;
use decompose_formats::Value;
use serde_json::json;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run;
use crate::run::args::Precision;
use crate::run::console::Console;
use crate::run::settings::Task;
use crate::tucker::prepare::{Facts, Prepared};
use crate::tucker::settings::Settings;
use crate::tucker::solve::Solved;

pub(crate) use crate::tucker::args::TuckerArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: TuckerArgs) -> Result<Done, Failure> {
    let settings = Settings::new(args)?;
    run::begin(settings.threads)?;
    match settings.precision {
        Precision::F64 => run_in::<f64>(&settings),
        Precision::F32 => run_in::<f32>(&settings),
    }
}

fn run_in<V: Value>(settings: &Settings) -> Result<Done, Failure> {
    let folder = settings.output()?;
    let mut console = Console::new(settings);
    let version = env!("CARGO_PKG_VERSION");
    console.screen.line(format!(
        "decompose {version}: {}, seed {}, threads {}, {}",
        settings.method_name(),
        settings.seed,
        settings.threads,
        V::NAME
    ));
    console.event("start", json!({ "version": version, "options": record::options(settings) }))?;
    let prepared = prepare::prepare::<V>(settings, &mut console)?;
    if settings.task == Task::Explain {
        explain::print(&prepared.facts, &prepared.engine)?;
        return Ok(Done::Complete);
    }
    let Prepared { engine, start, floor, mut facts } = prepared;
    let parts = (engine, start, floor, facts.ranks.clone());
    let solved = solve::solve(settings, parts, folder.as_ref(), &mut console)?;
    facts.phases.add("solve", solved.seconds);
    finish(settings, &solved, facts, folder.as_ref(), &mut console)
}

/// Writes and tells the results.
fn finish<V: Value>(
    settings: &Settings,
    solved: &Solved<V>,
    mut facts: Facts,
    folder: Option<&OutputFolder>,
    console: &mut Console,
) -> Result<Done, Failure> {
    let files = match folder {
        Some(folder) => {
            let (files, seconds) = console
                .screen
                .phase("write", || write::all(settings, solved, &facts, folder.path()));
            facts.phases.add("write", seconds);
            let mut files = files.map_err(Failure::while_writing)?;
            let record = record::write(settings, solved, &facts, folder.path());
            files.push(record.map_err(Failure::while_writing)?);
            files
        }
        None => Vec::new(),
    };
    let result = record::result(solved, &facts);
    let event = run::record::result(settings, &facts.forecast, &facts.phases, &result);
    console.event("result", event)?;
    console.summary(summary::Summary { settings, solved, facts: &facts, files: &files })?;
    Ok(solved.done)
}
