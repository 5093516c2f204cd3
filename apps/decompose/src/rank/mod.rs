//! `decompose rank`: which rank to choose.

mod args;
mod checkpoint;
mod report;
mod scan;

use decompose_common::memory;
use decompose_complete::{Data, Parts, with_zeros};
use decompose_formats::counted;
use decompose_formats::io::Missing;
use serde_json::json;

use crate::cli::Done;
use crate::complete::data;
use crate::complete::settings::{HeldOut, Settings};
use crate::failure::Failure;
use crate::rank::args::ScanMethod;
use crate::rank::checkpoint::Signature;
use crate::rank::report::{Ending, Report};
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
        settings.run.work = settings.run.folder.clone();
    }
    if settings.task == Task::Explain {
        return Err(Failure::input("--explain belongs to a fit; use it with `decompose complete`"));
    }
    run::begin(settings.threads)?;
    let folder = settings.run.claim()?;
    let mut console = Console::new(&settings);
    let version = env!("CARGO_PKG_VERSION");
    let ranks = counted(args.ranks.0.len(), "rank", "ranks");
    console.screen.line(format!("decompose {version}: rank, {ranks}"));
    console.event("start", json!({ "version": version, "ranks": args.ranks.0 }))?;
    // The forecast is that of the largest rank.
    let largest = settings.with_rank(args.ranks.0.iter().copied().max().unwrap_or(1));
    let mut loaded = match args.method {
        ScanMethod::Complete => data::load(&largest, 1, &mut console, |tensor| Ok((tensor, None)))?,
        ScanMethod::Cp if matches!(settings.held_out, HeldOut::Files { .. }) => {
            return Err(Failure::input("--method cp divides the tensor itself; use --split"));
        }
        ScanMethod::Cp if settings.mask.is_some() => {
            return Err(Failure::input(
                "--mask needs --method complete: for cp no cell is unknown",
            ));
        }
        ScanMethod::Cp if settings.input.missing() != Missing::None => {
            return Err(Failure::input(
                "--missing needs --method complete: for cp no cell is unknown",
            ));
        }
        ScanMethod::Cp => data::load(&largest, 2, &mut console, |tensor| {
            let zeros = tensor.bytes().saturating_mul(2 + 1);
            memory::foresee(
                zeros,
                || "the list with as many zeros".into(),
                "use --method complete",
            )?;
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
    let resumed = settings.saved.as_deref().map(|folder| checkpoint::load(folder, &signature));
    let state = resumed.transpose()?.unwrap_or_default();
    let task = scan::ScanTask {
        settings: &settings,
        parts: &loaded.parts,
        whole: whole.as_ref(),
        signature,
    };
    let scan = scan::scan(&task, &args.ranks.0, state, &mut console)?;
    console.phases.add("fit", begun.elapsed().as_secs_f64());
    if scan.rows.is_empty() {
        let what = match settings.checkpoint() {
            Some(_) => "no rank was finished: only the checkpoint was written",
            None => "no rank was finished: nothing was written",
        };
        console.screen.line(what);
        return Ok(Done::Interrupted);
    }
    let mut report = Report::new(scan, args.method, settings.input.name());
    if loaded.parts.only_value().is_some() {
        report.tell_none_apart();
    }
    let ending = Ending { report: &report, settings: &settings, loaded: &loaded };
    run::finish(&ending, folder, &mut console)
}
