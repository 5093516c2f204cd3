//! `decompose tucker`: read, sort, start, plan, build, solve, write.

mod args;
mod explain;
mod memory;
mod prepare;
mod record;
mod report;
mod settings;
mod solve;

use decompose_common::run_folder::RunFolder;
use decompose_formats::Value;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run;
use crate::run::args::Precision;
use crate::run::console::Console;
use crate::run::settings::Task;
use crate::tucker::prepare::Prepared;
use crate::tucker::report::Report;
use crate::tucker::settings::Settings;

pub(crate) use crate::tucker::args::TuckerArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: TuckerArgs) -> Result<Done, Failure> {
    let mut settings = Settings::new(args)?;
    run::begin(settings.threads)?;
    let folder = settings.run.claim()?;
    match settings.precision {
        Precision::F64 => run_in::<f64>(&settings, folder),
        Precision::F32 => run_in::<f32>(&settings, folder),
    }
}

fn run_in<V: Value + Into<f64>>(
    settings: &Settings,
    folder: Option<RunFolder>,
) -> Result<Done, Failure> {
    let (method, seed) = (settings.method_name(), settings.seed);
    let what = format!("{method}, seed {seed}, threads {}, {}", settings.threads, V::NAME);
    let mut console = Console::begin(settings, what, &record::options(settings))?;
    let prepared = prepare::prepare::<V>(settings, &mut console)?;
    if settings.task == Task::Explain {
        explain::print(&prepared.facts, &prepared.engine)?;
        return Ok(Done::Complete);
    }
    let Prepared { mut engine, from, facts } = prepared;
    let place = folder.as_ref();
    let solved = solve::solve(settings, &mut engine, from, &facts, place, &mut console)?;
    let report = Report { settings, solved: &solved, facts: &facts };
    run::while_freeing(engine, || run::finish(&report, folder, &mut console))
}
