//! `decompose tt`: read, sort, order the modes, plan, build, solve, verify, write.

mod args;
mod explain;
mod info;
mod memory;
mod prepare;
mod record;
mod report;
mod round;
mod settings;
mod solve;
mod spectra;

use decompose_common::run_folder::RunFolder;
use decompose_formats::Value;
use decompose_formats::io::Format;
use decompose_tt::Planner;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run;
use crate::run::args::Precision;
use crate::run::console::Console;
use crate::run::memory::{Forecast, Foreseen, Needs};
use crate::run::preview::{Preview, Previewed};
use crate::run::settings::Task;
use crate::tt::prepare::Prepared;
use crate::tt::report::Report;
use crate::tt::settings::Settings;

pub(crate) use crate::tt::args::TtArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: &TtArgs) -> Result<Done, Failure> {
    if args.tasks.info {
        return info::run(args);
    }
    if args.tasks.round {
        return round::run(args);
    }
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
pub(crate) fn check(args: &TtArgs) -> Result<(), Failure> {
    Settings::new(args).map(drop)
}

/// Checks a run on its tensor and returns what it is foreseen to take; `None` if it has no double
/// precision, or where there is no time to plan.  The seconds of a truncation are not known.
///
/// # Errors
///
/// Bad options, ones that do not suit the tensor, or a run that does not fit.
pub(crate) fn foresee(args: &TtArgs, preview: &mut Preview) -> Result<Option<Foreseen>, Failure> {
    let settings = Settings::new(args)?;
    let has_time = preview.has_time();
    let Previewed { tensor, counts, seconds: before_plan } = preview.of(&settings)?;
    let given = prepare::given(&settings.init)?;
    let request = prepare::request::<f64>(&settings, given.as_ref(), tensor.order());
    request.check(tensor.extents())?;
    if settings.precision != Precision::F64 || !has_time {
        return Ok(None);
    }
    let before = Forecast::before_plan(tensor, Format::Tns, &settings, Needs::default());
    let planner = Planner::new(counts, &request)?;
    let tensor = tensor.clone().permute_modes(&planner.ordering().order)?;
    let (plan, forecast) = memory::plan(&tensor, &planner, request.options, before, &settings)?;
    let sweeps = (settings.stop.max_iters * settings.restarts) as f64;
    let seconds = plan.seconds.map(|seconds| before_plan + seconds * sweeps);
    Ok(Some(Foreseen { peak: forecast.peak, seconds }))
}

fn run_in<V: Value>(settings: &Settings, folder: Option<RunFolder>) -> Result<Done, Failure> {
    let (config, threads) = (&settings.config, settings.threads);
    let what = format!(
        "tensor train by {}, {}, seed {}, threads {threads}, {}",
        config.method,
        settings::asked(&config.ranks),
        config.seed,
        V::NAME
    );
    let mut console = Console::begin(settings, what, &record::options(settings))?;
    let prepared = prepare::prepare::<V>(settings, &mut console)?;
    if settings.task == Task::Explain {
        explain::print(&prepared)?;
        return Ok(Done::Complete);
    }
    let Prepared { work, facts } = prepared;
    let order = facts.ordering.order.modes().len();
    let mut solved = solve::solve(settings, work, order, folder.as_ref(), &mut console)?;
    solved.outcome = solved.outcome.in_unit::<V>(facts.unit)?;
    if solved.outcome.keeps_bound() == Some(false) {
        console.screen.warn(
            "the error exceeds the bound that was asked for: allow more with --max-rank or \
             --max-iters",
        );
    }
    run::finish(&Report::<V>::new(settings, &solved, &facts), folder, &mut console)
}
