//! The commands, and how the process ends.

use std::ffi::OsString;
use std::io::Write;
use std::panic;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use decompose_common::machine::parse_size;
use decompose_common::printable::printable_lines;
use decompose_common::restarts::RestartReport;
use decompose_common::stopping::StopReason;
use decompose_common::system;
use decompose_core::cost::{Family, Machine};
use decompose_core::runtime::KernelCache;

use crate::bench::BenchArgs;
use crate::cache::CacheArgs;
use crate::complete::CompleteArgs;
use crate::convert::ConvertArgs;
use crate::cp::CpArgs;
use crate::einsum::EinsumArgs;
use crate::evaluate::{EvalArgs, PredictArgs};
use crate::experiment::{ExperimentArgs, RerunArgs};
use crate::failure::{Failure, WRITING};
use crate::generate::GenerateArgs;
use crate::manual::{CompletionsArgs, ManArgs};
use crate::plot::PlotArgs;
use crate::rank::RankArgs;
use crate::run::memory::Foreseen;
use crate::run::preview::Preview;
use crate::schedule::ScheduleArgs;
use crate::stats::StatsArgs;
use crate::tt::TtArgs;
use crate::tucker::TuckerArgs;
use crate::tune::TuneArgs;
use crate::{
    bench, cache, complete, convert, cp, einsum, evaluate, experiment, generate, manual, plot,
    rank, schedule, stats, tt, tucker, tune,
};

/// Decomposes sparse tensors.
///
/// Reads FROSTT text (.tns, also .gz, .zst, .bz2), Matrix Market (.mtx), NumPy arrays (.npy) and
/// its own binary form (.dtb).  Modes count from 1 in all options and outputs.
#[derive(Debug, Parser)]
#[command(name = "decompose", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Keep compiled kernels of at most this size, such as 200M.
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size, default_value = "1G")]
    #[arg(env = "DECOMPOSE_CACHE_SIZE", hide_env_values = true, help_heading = "Kernel cache")]
    cache_size: u64,
    #[command(subcommand)]
    command: Command,
}

/// The commands; each is described where its arguments are.
#[derive(Debug, Subcommand)]
enum Command {
    Cp(Box<CpArgs>),
    Tt(Box<TtArgs>),
    Predict(PredictArgs),
    Eval(EvalArgs),
    Tucker(Box<TuckerArgs>),
    Complete(Box<CompleteArgs>),
    Rank(Box<RankArgs>),
    Stats(StatsArgs),
    Convert(ConvertArgs),
    Generate(GenerateArgs),
    Schedule(Box<ScheduleArgs>),
    Einsum(Box<EinsumArgs>),
    Plot(PlotArgs),
    Bench(Box<BenchArgs>),
    Experiment(ExperimentArgs),
    Rerun(RerunArgs),
    Tune(TuneArgs),
    Cache(CacheArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// As asked.
    Complete,
    /// The user stopped it; what there was is written.
    Interrupted,
    /// The model is written; something else that was asked for could not be.
    Partly,
}

impl Done {
    /// Tells how a run of these starts ended.
    pub(crate) fn after(starts: &[RestartReport]) -> Done {
        let stopped = starts.iter().any(|start| start.stop == StopReason::Interrupted);
        if stopped { Done::Interrupted } else { Done::Complete }
    }
}

/// What was typed after the name of a command whose runs are checked before they begin.
pub(crate) enum TaskArgs {
    Cp(Box<CpArgs>),
    Tucker(Box<TuckerArgs>),
    Tt(Box<TtArgs>),
    Complete(Box<CompleteArgs>),
    Einsum(Box<EinsumArgs>),
    Schedule(Box<ScheduleArgs>),
    Generate(GenerateArgs),
}

impl TaskArgs {
    /// Parses a command line without the name of the program; `None` for that of another command.
    ///
    /// # Errors
    ///
    /// Words that are no command line.
    pub(crate) fn parse(words: &[String]) -> Result<Option<TaskArgs>, clap::Error> {
        let program = ["decompose".to_owned()];
        Ok(match Cli::try_parse_from(program.iter().chain(words))?.command {
            Command::Cp(args) => Some(TaskArgs::Cp(args)),
            Command::Tucker(args) => Some(TaskArgs::Tucker(args)),
            Command::Tt(args) => Some(TaskArgs::Tt(args)),
            Command::Complete(args) => Some(TaskArgs::Complete(args)),
            Command::Einsum(args) => Some(TaskArgs::Einsum(args)),
            Command::Schedule(args) => Some(TaskArgs::Schedule(args)),
            Command::Generate(args) => Some(TaskArgs::Generate(args)),
            _ => None,
        })
    }

    /// Checks the options as the command does before it reads a tensor.
    ///
    /// # Errors
    ///
    /// Those of the command.
    pub(crate) fn check(self) -> Result<(), Failure> {
        match self {
            TaskArgs::Cp(args) => cp::check(*args),
            TaskArgs::Tucker(args) => tucker::check(*args),
            TaskArgs::Tt(args) => tt::check(&args),
            TaskArgs::Complete(args) => complete::check(&args),
            TaskArgs::Einsum(args) => einsum::check(&args),
            TaskArgs::Schedule(args) => schedule::check(&args),
            TaskArgs::Generate(args) => generate::check(&args),
        }
    }

    /// Checks the run on its tensors as the command does, and foresees what it takes; `None` where that is not known.
    ///
    /// # Errors
    ///
    /// Those of the command.
    pub(crate) fn foresee(self, preview: &mut Preview) -> Result<Option<Foreseen>, Failure> {
        match self {
            TaskArgs::Cp(args) => cp::foresee(*args, preview),
            TaskArgs::Tucker(args) => tucker::foresee(*args, preview),
            TaskArgs::Tt(args) => tt::foresee(&args, preview),
            TaskArgs::Complete(args) => complete::foresee(&args, preview),
            TaskArgs::Einsum(args) if preview.has_time() => einsum::admit(&args).map(|()| None),
            TaskArgs::Schedule(args) if preview.has_time() => schedule::admit(&args).map(|()| None),
            TaskArgs::Einsum(_) | TaskArgs::Schedule(_) | TaskArgs::Generate(_) => Ok(None),
        }
    }
}

/// Runs the command line of this process.
pub(crate) fn main() -> ExitCode {
    experiment::follow_parent();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Printing fails only if nobody reads it.
            let _ = usage.print();
            if let Some(hint) = hint(std::env::args_os().skip(1)) {
                let _ = writeln!(std::io::stderr(), "\n{hint}");
            }
            return ExitCode::from(usage.exit_code() as u8);
        }
    };
    panic::set_hook(Box::new(|info| {
        if info.location().is_some_and(system::is_refused_stack) {
            system::end_without_stack();
        }
        Failure::of_panic(info.payload(), &info.to_string()).print();
    }));
    decompose_common::machine::return_large_blocks();
    decompose_common::machine::share_arenas();
    system::let_large_writes_fail();
    KernelCache::set_limit(cli.cache_size);
    let ended = panic::catch_unwind(|| dispatch(cli.command));
    warn_of_lost_kernels(KernelCache::close());
    match ended {
        Ok(Ok(Done::Complete)) => ExitCode::SUCCESS,
        Ok(Ok(Done::Interrupted)) => ExitCode::from(decompose_common::interrupt::EXIT_CODE),
        Ok(Ok(Done::Partly)) => ExitCode::from(WRITING),
        Ok(Err(failure)) => {
            failure.print();
            failure.exit_code()
        }
        // The hook has printed why.
        Err(payload) => Failure::of_panic(&*payload, "").exit_code(),
    }
}

/// Returns what to write instead of modes behind an option that takes them behind `=` only.
fn hint(words: impl Iterator<Item = OsString>) -> Option<String> {
    let words: Vec<OsString> = words.collect();
    let modes = words.windows(2).find(|pair| pair[0] == "--nonneg")?[1].to_str()?;
    let are_modes = modes.split(',').all(|mode| mode.parse::<u16>().is_ok());
    are_modes.then(|| format!("help: the modes belong to the option: write --nonneg={modes}"))
}

/// Says that the kernels of this run are not kept, and what to do about it.
fn warn_of_lost_kernels(why: Option<String>) {
    let Some(why) = why else { return };
    let text = format!(
        "warning: compiled kernels are not kept, and every run compiles them anew: {why}; name a folder that can be \
         written with DECOMPOSE_CACHE"
    );
    // Nobody may be reading.
    let _ = writeln!(std::io::stderr(), "{}", printable_lines(&text));
}

/// Says that schedules are chosen by costs that were not measured on a processor like this one, where they are.
fn warn_of_unknown_processor(command: &Command) {
    let plans = matches!(
        command,
        Command::Cp(_)
            | Command::Tt(_)
            | Command::Tucker(_)
            | Command::Complete(_)
            | Command::Rank(_)
            | Command::Schedule(_)
            | Command::Einsum(_)
            | Command::Bench(_)
    );
    let machine = Machine::here();
    // Constants from a file were fitted to some processor.
    let fitted = machine.name.ends_with(".toml");
    if plans && machine.family == Family::Neutral && !fitted {
        eprintln!(
            "warning: speeds were never measured on a processor like {}: results are the same, but kernels may be \
             slower than they could be",
            machine.name
        );
    }
}

fn dispatch(command: Command) -> Result<Done, Failure> {
    Machine::of_environment().map_err(Failure::input)?;
    warn_of_unknown_processor(&command);
    match command {
        Command::Cp(args) => cp::run(*args),
        Command::Tt(args) => tt::run(&args),
        Command::Predict(args) => evaluate::predict(&args),
        Command::Eval(args) => evaluate::eval(&args),
        Command::Tucker(args) => tucker::run(*args),
        Command::Complete(args) => complete::run(&args),
        Command::Rank(args) => rank::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Schedule(args) => schedule::run(&args),
        Command::Einsum(args) => einsum::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::Bench(args) => bench::run(*args),
        Command::Experiment(args) => experiment::run(&args),
        Command::Rerun(args) => experiment::rerun(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    }
}
