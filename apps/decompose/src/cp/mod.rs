//! `decompose cp`: read, sort, plan, build, solve, write.

mod args;
mod compat;
mod explain;
mod memory;
mod prepare;
mod record;
mod report;
mod settings;
mod solve;
mod start;

use decompose_common::run_folder::RunFolder;
use decompose_formats::Value;
use decompose_formats::io::Format;

use crate::cli::Done;
use crate::cp::prepare::Prepared;
use crate::cp::report::Report;
use crate::cp::settings::Settings;
use crate::failure::Failure;
use crate::run;
use crate::run::args::Precision;
use crate::run::console::Console;
use crate::run::memory::{Forecast, Foreseen};
use crate::run::preview::{Preview, Previewed};
use crate::run::settings::Task;

pub(crate) use crate::cp::args::CpArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: CpArgs) -> Result<Done, Failure> {
    let mut settings = Settings::new(args)?;
    run::begin(settings.threads)?;
    let folder = settings.run.claim()?;
    match settings.precision {
        Precision::F64 => run_in::<f64>(&settings, folder),
        Precision::F32 => run_in::<f32>(&settings, folder),
    }
}

/// Checks the options as a run does before it reads the tensor.
///
/// # Errors
///
/// Bad options.
pub(crate) fn check(args: CpArgs) -> Result<(), Failure> {
    Settings::new(args).map(drop)
}

/// Checks a run on its tensor and returns what it is foreseen to take; `None` if it has no double
/// precision, or where there is no time to plan.
///
/// # Errors
///
/// Bad options, ones that do not suit the tensor, or a run that does not fit.
pub(crate) fn foresee(args: CpArgs, preview: &mut Preview) -> Result<Option<Foreseen>, Failure> {
    let settings = Settings::new(args)?;
    let has_time = preview.has_time();
    let Previewed { tensor, counts, seconds } = preview.of(&settings)?;
    prepare::check(&settings, tensor)?;
    if settings.precision != Precision::F64 || !has_time {
        return Ok(None);
    }
    let needs = memory::needs(tensor, &settings);
    let before = Forecast::before_plan(tensor, Format::Tns, &settings, needs);
    let (plan, forecast) = memory::plan(tensor, counts, before, &settings)?;
    let sweeps = (settings.stop.max_iters * settings.config.restarts) as f64;
    Ok(Some(Foreseen { peak: forecast.peak, seconds: Some(seconds + plan.seconds() * sweeps) }))
}

fn run_in<V: Value + Into<f64>>(
    settings: &Settings,
    folder: Option<RunFolder>,
) -> Result<Done, Failure> {
    let (config, threads) = (&settings.config, settings.threads);
    let (rank, seed, name) = (config.rank, config.seed, V::NAME);
    let what = format!("CP-ALS, rank {rank}, seed {seed}, threads {threads}, {name}");
    let mut console = Console::begin(settings, what, &record::options(settings))?;
    let prepared = prepare::prepare::<V>(settings, &mut console)?;
    if settings.task == Task::Explain {
        explain::print(&prepared.facts, &prepared.engine)?;
        return Ok(Done::Complete);
    }
    let Prepared { mut engine, start, facts } = prepared;
    let (unit, place) = (facts.unit, folder.as_ref());
    let solved = solve::solve(settings, &mut engine, start, unit, place, &mut console)?;
    if let Some(warning) = solved.outcome.gram.warning() {
        console.screen.warn(warning);
    }
    let report = Report { settings, solved: &solved, facts: &facts };
    run::while_freeing(engine, || run::finish(&report, folder, &mut console))
}
