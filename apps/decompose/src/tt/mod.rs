//! `decompose tt`: read, sort, order the modes, plan, build, solve, verify, write.

mod args;
mod explain;
mod figures;
mod info;
mod memory;
mod prepare;
mod record;
mod round;
mod settings;
mod solve;
mod summary;
mod write;

use decompose_common::run_folder::RunFolder;
use decompose_formats::Value;
use serde_json::json;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::run::console::Console;
use crate::run::figures::Sketches;
use crate::run::settings::Task;
use crate::run::{self, Desk, Phases};
use crate::tt::prepare::{Facts, Prepared};
use crate::tt::settings::Settings;
use crate::tt::solve::Solved;

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
    let folder = settings.claim()?;
    match settings.precision {
        Precision::F64 => run_in::<f64>(&settings, folder),
        Precision::F32 => run_in::<f32>(&settings, folder),
    }
}

fn run_in<V: Value>(settings: &Settings, folder: Option<RunFolder>) -> Result<Done, Failure> {
    let mut console = Console::new(settings);
    let (version, config) = (env!("CARGO_PKG_VERSION"), &settings.config);
    console.screen.line(format!(
        "decompose {version}: tensor train by {}, {}, seed {}, threads {}, {}",
        config.method,
        summary::asked(&config.ranks),
        config.seed,
        settings.threads,
        V::NAME
    ));
    console.event("start", json!({ "version": version, "options": record::options(settings) }))?;
    let prepared = prepare::prepare::<V>(settings, &mut console)?;
    if settings.task == Task::Explain {
        explain::print(&prepared)?;
        return Ok(Done::Complete);
    }
    let Prepared { work, facts } = prepared;
    let order = facts.ordering.order.modes().len();
    let mut solved =
        solve::solve(settings, (work, &settings.config, order), folder.as_ref(), &mut console)?;
    solved.outcome = solved.outcome.in_unit(facts.unit);
    finish::<V>(settings, &solved, &facts, folder, &mut console)
}

/// Writes and tells the results.
fn finish<V: Value>(
    settings: &Settings,
    solved: &Solved,
    facts: &Facts,
    folder: Option<RunFolder>,
    console: &mut Console,
) -> Result<Done, Failure> {
    if solved.outcome.keeps_bound() == Some(false) {
        console.screen.warn(
            "the error exceeds the bound that was asked for: allow more with --max-rank or \
             --max-iters",
        );
    }
    let (found, parts) = ((&facts.tensor, facts.forecast), record::parts(settings, solved, facts));
    let room = figures::foresee::<V>(settings, solved);
    let ending = run::Ending {
        write: |desk: &Desk<'_>| write::results::<V>(solved, facts, desk),
        draw: |sketches: &mut Sketches<'_>| {
            figures::draw(settings, solved, (facts, room), sketches);
        },
        timing: |phases: &Phases| Some(figures::timing(settings, solved, phases)),
    };
    let files = run::finish(settings, found, &parts, folder, console, ending)?;
    let phases = &console.phases.clone();
    console.summary(summary::Summary { settings, solved, facts, phases, files: &files });
    Ok(console.done(solved.done))
}
