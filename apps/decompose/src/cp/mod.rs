//! `decompose cp`: read, sort, plan, build, solve, write.

mod args;
mod compat;
mod explain;
mod figures;
mod memory;
mod prepare;
mod record;
mod settings;
mod solve;
mod start;
mod summary;
mod write;

use decompose_common::run_folder::RunFolder;
use decompose_formats::Value;
use serde_json::json;

use crate::cli::Done;
use crate::cp::prepare::{Facts, Prepared};
use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::run::console::Console;
use crate::run::figures::Sketches;
use crate::run::settings::Task;
use crate::run::{self, Desk, Phases};

pub(crate) use crate::cp::args::CpArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: CpArgs) -> Result<Done, Failure> {
    let mut settings = Settings::new(args)?;
    run::begin(settings.threads)?;
    let folder = settings.claim()?;
    settings.techniques.pages().during(|| match settings.precision {
        Precision::F64 => run_in::<f64>(&settings, folder),
        Precision::F32 => run_in::<f32>(&settings, folder),
    })
}

fn run_in<V: Value + Into<f64>>(
    settings: &Settings,
    folder: Option<RunFolder>,
) -> Result<Done, Failure> {
    let mut console = Console::new(settings);
    let (version, config) = (env!("CARGO_PKG_VERSION"), &settings.config);
    console.screen.line(format!(
        "decompose {version}: CP-ALS, rank {}, seed {}, threads {}, {}",
        config.rank,
        config.seed,
        settings.threads,
        V::NAME
    ));
    console.event("start", json!({ "version": version, "options": record::options(settings) }))?;
    let prepared = prepare::prepare::<V>(settings, &mut console)?;
    if settings.task == Task::Explain {
        explain::print(&prepared.facts, &prepared.engine)?;
        return Ok(Done::Complete);
    }
    let Prepared { mut engine, start, facts } = prepared;
    let parts = (&mut engine, start, facts.unit);
    let solved = solve::solve(settings, parts, folder.as_ref(), &mut console)?;
    run::while_freeing(engine, || finish(settings, &solved, &facts, folder, &mut console))
}

/// Writes and tells the results.
fn finish<V: Value + Into<f64>>(
    settings: &Settings,
    solved: &Solved<V>,
    facts: &Facts,
    folder: Option<RunFolder>,
    console: &mut Console,
) -> Result<Done, Failure> {
    if let Some(warning) = solved.outcome.gram.warning() {
        console.screen.warn(warning);
    }
    let (found, parts) = ((&facts.tensor, facts.forecast), record::parts(settings, solved, facts));
    let ending = run::Ending {
        write: |desk: &Desk<'_>| write::results(settings, (solved, &facts.tensor.labels), desk),
        draw: |sketches: &mut Sketches<'_>| figures::draw(settings, solved, facts, sketches),
        timing: |phases: &Phases| Some(figures::timing(settings, solved, phases)),
    };
    let files = run::finish(settings, found, &parts, folder, console, ending)?;
    let phases = &console.phases.clone();
    console.summary(summary::Summary { settings, solved, facts, phases, files: &files });
    Ok(console.done(solved.done))
}
