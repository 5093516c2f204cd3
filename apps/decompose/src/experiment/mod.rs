//! `decompose experiment`: studies, that is many runs that one file describes, and their reports.
//!
//! ```text
//! study    the file, understood        plan     its runs, each with a key
//! work     how they are run            start    `experiment run`
//! report   tables and figures          rerun    a run once more, compared; recompute: a product
//! ```

pub(crate) mod plan;
mod recompute;
pub(crate) mod report;
mod rerun;
mod start;
mod study;
pub(crate) mod work;

use clap::{Args, Subcommand};

use crate::cli::Done;
use crate::experiment::report::ReportArgs;
use crate::experiment::start::StartArgs;
use crate::experiment::work::foresee::{self, ForeseeArgs};
use crate::failure::Failure;

pub(crate) use crate::experiment::rerun::{RerunArgs, run as rerun};
pub(crate) use crate::experiment::work::child::follow_parent;

/// Runs studies - many runs that one file describes - and reports them.
#[derive(Args, Debug)]
pub(crate) struct ExperimentArgs {
    #[command(subcommand)]
    task: Task,
}

/// What is done.
#[derive(Debug, Subcommand)]
enum Task {
    Run(StartArgs),
    Report(ReportArgs),
    #[command(hide = true)]
    Foresee(ForeseeArgs),
}

/// Runs the command.
///
/// # Errors
///
/// Those of its tasks.
pub(crate) fn run(args: &ExperimentArgs) -> Result<Done, Failure> {
    match &args.task {
        Task::Run(args) => start::run(args),
        Task::Report(args) => report::run(args),
        Task::Foresee(args) => foresee::answer(args),
    }
}
