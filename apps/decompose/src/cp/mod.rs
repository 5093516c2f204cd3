//! `decompose cp`: read, sort, plan, build, solve, write.

mod args;
mod compat;
mod console;
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

use decompose_common::output::OutputFolder;
use decompose_formats::Value;
use rayon::ThreadPoolBuilder;
use serde_json::json;

use crate::cli::Done;
use crate::cp::console::Console;
use crate::cp::prepare::Prepared;
use crate::cp::settings::{Settings, Task};
use crate::cp::solve::Solved;
use crate::failure::Failure;

pub(crate) use crate::cp::args::{CpArgs, Precision, parse_count, parse_seconds};

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: CpArgs) -> Result<Done, Failure> {
    let settings = Settings::new(args)?;
    ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .build_global()
        .map_err(|error| Failure::input(format!("cannot start the threads: {error}")))?;
    match settings.precision {
        Precision::F64 => run_in::<f64>(&settings),
        Precision::F32 => run_in::<f32>(&settings),
    }
}

fn run_in<V: Value + Into<f64>>(settings: &Settings) -> Result<Done, Failure> {
    let folder = match settings.task {
        Task::Write => Some(OutputFolder::check(&settings.folder, settings.existing)?),
        Task::Compute | Task::Explain => None,
    };
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
    let Prepared { engine, start, mut facts } = prepared;
    let solved = solve::solve(settings, (engine, start), folder.as_ref(), &mut console)?;
    facts.phases.add("solve", solved.seconds);
    finish(settings, &solved, facts, folder.as_ref(), &mut console)
}

/// Writes and tells the results.
fn finish<V: Value + Into<f64>>(
    settings: &Settings,
    solved: &Solved<V>,
    mut facts: prepare::Facts,
    folder: Option<&OutputFolder>,
    console: &mut Console,
) -> Result<Done, Failure> {
    if let Some(warning) = solved.outcome.gram.warning() {
        console.screen.warn(warning);
    }
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
    console.event("result", record::result(settings, solved, &facts))?;
    console.summary(summary::Summary { settings, solved, facts: &facts, files: &files })?;
    Ok(solved.done)
}
