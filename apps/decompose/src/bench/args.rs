//! What the user typed after `decompose bench`, checked word by word only.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use decompose_core::optimisation::Optimisation;

use crate::bench::settings::What;
use crate::run::args::{FigureArgs, Precision, optimisation, parse_count, parse_threads};

/// Measures ingest, kernels and CP-ALS iterations, and what the machine could do at best.
///
/// Every configuration runs once to warm up, then they run in turn for some rounds; medians and
/// extremes are shown beside a bound: the time that the flops and bytes of the plan would take at the
/// limits of the machine, which are measured in the same run.  Writes bench.json, raw.csv,
/// summary.csv and a figure.  Leave the machine alone meanwhile.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed; `Settings` names them")]
pub(crate) struct BenchArgs {
    /// The tensors, as `decompose cp` reads them.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A tensor with extents and non-zeros of this FROSTT tensor, as `decompose generate --like`
    /// makes it (repeatable).
    #[arg(long, value_name = "NAME")]
    pub(crate) like: Vec<String>,
    /// Scale the non-zeros and long modes of --like.
    #[arg(long, value_name = "S", default_value = "1", requires = "like")]
    pub(crate) scale: f64,
    /// What is measured: ingest, kernels, sweep.  [default: all; sweep with --ablation]
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',')]
    pub(crate) what: Vec<What>,
    /// The kernels: mttkrp, ttmc (each in every mode), tttp.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "mttkrp",
          value_parser = ["mttkrp", "ttmc", "tttp"])]
    pub(crate) kernels: Vec<String>,
    /// The ranks.
    #[arg(long, short, value_name = "R,...", value_delimiter = ',', default_value = "16,50",
          value_parser = parse_count)]
    pub(crate) rank: Vec<usize>,
    /// The numbers of threads.  [default: 1 and all]
    #[arg(long, short, value_name = "N,...", value_delimiter = ',', value_parser = parse_threads)]
    pub(crate) threads: Vec<usize>,
    /// Rounds, at least 5.
    #[arg(long, value_name = "N", default_value = "5", value_parser = parse_rounds)]
    pub(crate) rounds: usize,
    /// How long a run waits while others slow the cores down, and is made again if they did: the threads must
    /// have 0.95 of their best speed before and after it.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    pub(crate) patience: Duration,
    /// The precision of values and factors.
    #[arg(long, value_name = "TYPE", default_value = "f64")]
    pub(crate) precision: Precision,
    /// Run sweeps also without these optimisations, each left out in turn: constants (ranks and sizes in
    /// generated code), registers (that hold sums), prefetch (of gathered rows), merging (of modes),
    /// fusing (of the last levels of trees), layouts (that are chosen), blocks (of which
    /// trees have a level), panels (in which factors are stored).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = optimisation(),
          hide_possible_values = true)]
    pub(crate) without: Vec<Optimisation>,
    /// Run sweeps also without each optimisation in turn, and without all of them.
    #[arg(long, conflicts_with = "without")]
    pub(crate) ablation: bool,
    /// Recorded results of other programs, to be shown beside: a CSV file with the columns program,
    /// tensor, rank, threads, quantity, value (seconds) and, if known, lowest and highest; rows of the
    /// same work are runs of it.
    #[arg(long, value_name = "FILE")]
    pub(crate) peer: Option<PathBuf>,
    /// The folder of the results.
    #[arg(long, short, value_name = "DIR", default_value = "decompose-bench")]
    pub(crate) out: PathBuf,
    /// Replace results in the folder.
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) figures: FigureArgs,
}

/// Parses a number of seconds.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds.ok_or_else(|| format!("`{text}` is not a number of seconds, 0 or more"))
}

/// Parses a number of rounds.
fn parse_rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(rounds) if rounds >= 5 => Ok(rounds),
        _ => Err("a median says little about fewer than 5 rounds".into()),
    }
}
