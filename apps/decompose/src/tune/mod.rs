//! `decompose tune`: the constants of the cost model and of the greedy scheduler, fitted to this processor.
//!
//! 1. Kernels run on generated matrices and tensors, each with every loop order that is legal (`cases`, `measure`).
//! 2. The times of the cost model are fitted to those runs (`times`).
//! 3. The costs of the greedy scheduler are fitted by Bayesian optimisation (`greedy`, `bayes`; Scorch, section III-C).
//!
//! The result is a file of constants that `DECOMPOSE_MACHINE` names, and from which a family of processors is made.

mod bayes;
mod cases;
mod greedy;
mod measure;
mod times;
mod write;

use std::path::PathBuf;

use clap::Args;
use decompose_common::interrupt;
use decompose_common::overwrite::Existing;
use decompose_common::progress::{Screen, Verbosity};
use decompose_common::run_folder::{Contents, RunFolder};
use decompose_core::cost::Machine;
use decompose_core::runtime::Toolchain;
use rayon::ThreadPoolBuilder;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::args::parse_count;
use crate::run::memory::tell_peak;
use crate::tune::measure::Measured;

/// Fits the constants of the cost model and of the greedy scheduler to this processor.
///
/// Kernels run on one thread on generated matrices and tensors, with every loop order.  Writes machine.toml, the
/// constants, and timings.csv, the runs.  `DECOMPOSE_MACHINE=DIR/machine.toml` makes every command choose schedules by them.
/// Leave the machine alone meanwhile.
#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    /// The rows of the largest matrix; tensors have 25 times as many non-zeros.
    #[arg(long, value_name = "N", default_value = "32000", value_parser = parse_rows)]
    rows: u64,
    /// The kernels.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = cases::NAMES,
          default_values = cases::NAMES)]
    kernels: Vec<String>,
    /// Runs of each loop order, of which the median counts.
    #[arg(long, value_name = "N", default_value = "5", value_parser = parse_count)]
    rounds: usize,
    /// Settings of the greedy scheduler's costs that are tried.
    #[arg(long, value_name = "N", default_value = "60", value_parser = parse_count)]
    evaluations: usize,
    /// Chooses the settings that are tried first.
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// The folder of the results.
    #[arg(long, short, value_name = "DIR", default_value = "decompose-tune")]
    out: PathBuf,
    /// Replace results in the folder.
    #[arg(long)]
    overwrite: bool,
}

/// Parses a number of rows: the smallest matrix has an eighth.
fn parse_rows(text: &str) -> Result<u64, String> {
    let rows = text.parse().map_err(|_| "it is no whole number".to_owned())?;
    match rows {
        1024..=10_000_000 => Ok(rows),
        _ => Err("it must be 1,024 to 10,000,000".to_owned()),
    }
}

/// Runs the command.
///
/// # Errors
///
/// No C compiler, results that exist or cannot be written, no memory.
pub(crate) fn run(args: &TuneArgs) -> Result<Done, Failure> {
    let existing = if args.overwrite { Existing::Replace } else { Existing::Refuse };
    interrupt::announce();
    let folder = RunFolder::claim_for(&args.out, existing, Contents::Measures)?;
    let toolchain = Toolchain::detect();
    if matches!(toolchain, Toolchain::Interpreter(_)) {
        return Err(Failure::input("tuning needs a C compiler, and there is none")
            .help("install gcc or clang, or name one in the variable CC"));
    }
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    let pool =
        pool.map_err(|error| Failure::input(format!("no thread can be started: {error}")))?;
    let mut screen = Screen::new(Verbosity::Normal);
    interrupt::install();
    let before = Machine { threads: 1, ..Machine::here().clone() };
    screen.line(format!("tune     {}, one thread", before.name));
    let done = pool.install(|| tune(args, &before, toolchain, &mut screen, &folder));
    screen.stop();
    let (done, written) = done?;
    let written: Vec<PathBuf> = written.iter().map(|path| folder.will_be(path)).collect();
    folder.publish()?;
    for path in written {
        screen.line(format!("write    {}", path.display()));
    }
    tell_peak(&screen);
    Ok(done)
}

/// Measures, fits and writes; an interrupted measurement is fitted to what there is.
fn tune(
    args: &TuneArgs,
    before: &Machine,
    toolchain: Toolchain,
    screen: &mut Screen,
    folder: &RunFolder,
) -> Result<(Done, Vec<PathBuf>), Failure> {
    let mut measured = Measured::new(before.clone(), toolchain, args.rounds);
    let (result, seconds) = screen.phase("measure", || {
        cases::all(&args.kernels, args.rows, args.seed).try_for_each(|case| measured.add(case?))
    });
    result?;
    let done = if interrupt::requested() { Done::Interrupted } else { Done::Complete };
    if measured.is_empty() {
        return Err(Failure::input("not one kernel was measured; nothing is written"));
    }
    let (cases, runs) = measured.counts();
    screen.line(format!("measure  {runs} loop orders of {cases} kernels; {seconds:.0} s"));
    let (times, seconds) = screen.phase("fit", || times::fit(&measured, before));
    screen.line(format!("times    {}; {seconds:.1} s", times.describe()));
    let with_times = times.machine.clone();
    let tuned = screen
        .phase("fit", || greedy::fit(&mut measured, &with_times, args.evaluations, args.seed));
    let (tuned, seconds) = (tuned.0?, tuned.1);
    screen.line(format!("greedy   {}; {seconds:.1} s", tuned.describe()));
    let machine = Machine { greedy: tuned.costs, ..with_times };
    let comments = [times.describe(), tuned.describe()];
    let written = write::all(folder.work(), &measured, &machine, &comments)?;
    Ok((done, written))
}
