//! `decompose rank`: which rank to choose.

mod args;
mod checkpoint;
mod recommend;
mod report;
mod scan;

use decompose_complete::{Data, Parts, with_zeros};
use serde_json::json;

use crate::cli::Done;
use crate::complete::data;
use crate::complete::settings::{HeldOut, Settings};
use crate::failure::Failure;
use crate::rank::args::Method;
use crate::rank::checkpoint::Signature;
use crate::rank::report::Report;
use crate::run;
use crate::run::console::Console;
use crate::run::settings::Task;

pub(crate) use crate::rank::args::RankArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: &RankArgs) -> Result<Done, Failure> {
    let mut settings = Settings::new(&args.completion())?;
    if args.output.out.is_none() && settings.resume.is_none() {
        settings.run.folder = format!("decompose-{}-rank", settings.input.name()).into();
    }
    if settings.task == Task::Explain {
        return Err(Failure::input("--explain belongs to a fit; use it with `decompose complete`"));
    }
    run::begin(settings.threads)?;
    let folder = settings.output()?;
    let mut console = Console::new(&settings);
    let version = env!("CARGO_PKG_VERSION");
    console.screen.line(format!("decompose {version}: rank, {} ranks", args.ranks.0.len()));
    console.event("start", json!({ "version": version, "ranks": args.ranks.0 }))?;
    let mut loaded = match args.method {
        Method::Complete => data::load(&settings, &mut console, |tensor| Ok((tensor, None)))?,
        Method::Cp if matches!(settings.held_out, HeldOut::Files { .. }) => {
            return Err(Failure::input("--method cp divides the tensor itself; use --split"));
        }
        Method::Cp if settings.mask.is_some() => {
            return Err(Failure::input(
                "--mask needs --method complete: for cp no cell is unknown",
            ));
        }
        Method::Cp => data::load(&settings, &mut console, |tensor| {
            let sampled = with_zeros(&tensor, tensor.nnz() as u64, settings.seed)?;
            Ok((sampled, Some(tensor)))
        })?,
    };
    settings.see(&loaded.parts.train);
    let begun = std::time::Instant::now();
    let whole = loaded.whole.take();
    let Parts { train, val, test } = &loaded.parts;
    let data = Data { train, val: val.as_ref(), test: test.as_ref() };
    let signature = Signature::new(&settings, args.method, data);
    let resumed = settings.resume.as_deref().map(|folder| checkpoint::load(folder, &signature));
    let state = resumed.transpose()?.unwrap_or_default();
    if let Some(folder) = folder.as_ref().filter(|_| settings.checkpoint_every.is_some()) {
        folder.create()?;
    }
    let task =
        scan::Task { settings: &settings, parts: &loaded.parts, whole: whole.as_ref(), signature };
    let scan = scan::scan(&task, &args.ranks.0, state, &mut console)?;
    console.phases.add("fit", begun.elapsed().as_secs_f64());
    if scan.rows.is_empty() {
        return Ok(Done::Interrupted);
    }
    let report = Report::new(scan, args.method, settings.input.name());
    let files = match &folder {
        Some(folder) => {
            folder.create()?;
            if settings.checkpoint_every.is_none() && settings.resume.is_none() {
                folder.clear([run::CHECKPOINT])?;
            }
            let (files, warnings) = report
                .write(&settings, &loaded, &console.phases, folder.path())
                .map_err(Failure::while_writing)?;
            warnings.iter().for_each(|warning| console.screen.warn(warning));
            files
        }
        None => Vec::new(),
    };
    console.event("result", json!(report.record()))?;
    console.summary(report.summary(&settings, (&loaded, &console.phases), &files))?;
    Ok(report.done())
}
