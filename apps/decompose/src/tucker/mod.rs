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

use std::path::Path;

use decompose_common::output::OutputFolder;
use decompose_formats::Value;
use serde_json::json;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::run::console::Console;
use crate::run::figures::Sketches;
use crate::run::settings::Task;
use crate::run::{self, Phases};
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

fn run_in<V: Value + Into<f64>>(settings: &Settings) -> Result<Done, Failure> {
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
    let Prepared { mut engine, start, floor, facts } = prepared;
    let parts = (&mut engine, start, floor);
    let solved = solve::solve(settings, parts, &facts, (folder.as_ref(), &mut console))?;
    run::while_freeing(engine, || finish(settings, &solved, &facts, folder.as_ref(), &mut console))
}

/// Writes and tells the results.
fn finish<V: Value + Into<f64>>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    folder: Option<&OutputFolder>,
    console: &mut Console,
) -> Result<Done, Failure> {
    let (found, parts) = ((&facts.tensor, facts.forecast), record::parts(settings, solved, facts));
    let ending = run::Ending {
        write: |folder: &Path| write::results(solved, facts, folder),
        draw: |sketches: &mut Sketches<'_>| figures::draw(settings, solved, facts, sketches),
        timing: |phases: &Phases| figures::timing(settings, solved, facts, phases),
    };
    let files = run::finish(settings, found, &parts, folder, console, ending)?;
    let phases = &console.phases;
    console.summary(summary::Summary { settings, solved, facts, phases, files: &files })?;
    Ok(solved.done)
}
