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
use decompose_formats::io::Format;
use decompose_tucker::Target;

use crate::cli::Done;
use crate::failure::Failure;
use crate::pattern;
use crate::run;
use crate::run::args::Precision;
use crate::run::console::Console;
use crate::run::memory::Foreseen;
use crate::run::preview::{Preview, Previewed};
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

/// Checks the options as a run does before it reads the tensor.
///
/// # Errors
///
/// Bad options.
pub(crate) fn check(args: TuckerArgs) -> Result<(), Failure> {
    Settings::new(args).map(drop)
}

/// Checks a run on its tensor and returns what it is foreseen to take; `None` if it has no double
/// precision, or where there is no time to plan.  Of ranks that a HOSVD finds the seconds are not known.
///
/// # Errors
///
/// Bad options, ones that do not suit the tensor, or a run that does not fit.
pub(crate) fn foresee(
    args: TuckerArgs,
    preview: &mut Preview,
) -> Result<Option<Foreseen>, Failure> {
    let settings = Settings::new(args)?;
    let has_time = preview.has_time();
    let Previewed { tensor, counts, seconds } = preview.of(&settings)?;
    let (target, floor, before) = prepare::admit(&settings, tensor, Format::Tns)?;
    if settings.precision != Precision::F64 || !has_time {
        return Ok(None);
    }
    let Target::Ranks(ranks) = target else {
        return Ok(Some(Foreseen { peak: before.peak, seconds: None }));
    };
    let most = before.peak;
    let before = before.without_start();
    memory::check_core(tensor, &ranks, before, &settings, floor)?;
    let pattern = pattern::of(counts);
    let (plan, forecast) = memory::plan(tensor, &pattern, &ranks, before, &settings, floor)?;
    let sweeps = (settings.stop.max_iters * settings.restarts) as f64;
    let seconds = Some(seconds + plan.seconds() * sweeps);
    Ok(Some(Foreseen { peak: forecast.peak.max(most), seconds }))
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
