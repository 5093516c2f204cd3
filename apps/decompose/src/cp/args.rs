//! What the user typed after `decompose cp`, checked word by word only.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use decompose_common::machine::parse_size;
use decompose_common::model::ModelFormat;
use decompose_core::sweep::TreeLayout;
use decompose_cp::NonNegModes;
use decompose_formats::ModeOrder;

use crate::cp::compat::Compat;
use crate::input::InputArgs;

/// CP decomposition by alternating least squares.
///
/// Approximates the tensor by R rank-one terms.  Writes model.npz, history.csv, run.json and
/// figures of convergence, timing and components into a new folder.  Modes count from 1.
#[derive(Args, Debug)]
pub(crate) struct CpArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) switches: Switches,
}

/// What is fitted, and when to stop.
#[derive(Args, Debug)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// The number of components R; required.
    #[arg(long, short, value_name = "R", value_parser = parse_count)]
    pub(crate) rank: Option<usize>,
    /// The most iterations.  [default: 50]
    #[arg(long, short = 'i', visible_aliases = ["maxiters", "iters"], value_name = "N",
          value_parser = parse_count)]
    pub(crate) max_iters: Option<usize>,
    /// Stop when the fit changes by less than this.  [default: 1e-5]
    #[arg(long, value_name = "X", value_parser = parse_from_zero)]
    pub(crate) tol: Option<f64>,
    /// Stop after this many seconds (also 90s, 15m, 2h).
    #[arg(long, visible_alias = "maxsecs", value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) max_time: Option<f64>,
    /// Ridge added to the normal equations.
    #[arg(long, visible_alias = "penalty", value_name = "X", default_value = "0",
          value_parser = parse_from_zero)]
    pub(crate) reg: f64,
    /// Factors without negative entries: of all modes, or of those listed, as --nonneg=1,3.
    #[arg(long, value_name = "MODES", num_args = 0..=1, require_equals = true,
          default_missing_value = "", value_parser = parse_nonneg)]
    pub(crate) nonneg: Option<NonNegModes>,
    /// The same in SPLATT's words: nonneg, or nonneg,1,3.
    #[arg(long, value_name = "nonneg[,MODES]", conflicts_with = "nonneg",
          value_parser = parse_con)]
    pub(crate) con: Option<NonNegModes>,
    /// Where to start: random, nvecs (leading singular vectors), or a model file (.npz, ktensor)
    /// or folder of an earlier run.  [default: random]
    #[arg(long, value_name = "HOW|FILE", value_parser = parse_init)]
    pub(crate) init: Option<Init>,
    /// The seed of random starts: a number, or `random`.  [default: 0]
    #[arg(long, value_name = "N|random")]
    pub(crate) seed: Option<Seed>,
    /// Starts, from seed, seed + 1, ...; the best fit is kept.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) restarts: usize,
    /// The order in which modes are updated, as 3,1,2.  [default: 1,2,...]
    #[arg(long, value_name = "MODES", value_parser = parse_order)]
    pub(crate) dimorder: Option<ModeOrder>,
    /// Default options and outputs of another program; options given explicitly win.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compat: Option<Compat>,
}

/// How it is computed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Computation")]
pub(crate) struct RunArgs {
    /// Threads.  [default: all]
    #[arg(long, short, value_name = "N", value_parser = parse_count)]
    pub(crate) threads: Option<usize>,
    /// The precision of values and factors; sums are always in f64.
    #[arg(long, value_name = "TYPE", default_value = "f64")]
    pub(crate) precision: Precision,
    /// The most memory, as 16G or 512M; a leaner plan is chosen, or the run refused, if needed.
    /// [default: what is available]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_memory: Option<u64>,
    /// Trees of the tensor to keep: choose, or mode orders as 1-3-2, with fused last levels as
    /// 1-3+2 (repeatable).
    /// [default: choose]
    #[arg(long, value_name = "ORDER", value_parser = parse_tree)]
    pub(crate) trees: Vec<Tree>,
    /// Save the state every N iterations, for --resume.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) checkpoint_every: Option<usize>,
    /// Continue the run whose checkpoint is in this folder, bit by bit; give the same options.
    #[arg(long, value_name = "DIR", conflicts_with = "init")]
    pub(crate) resume: Option<PathBuf>,
}

/// What is written and where.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The folder of the results.  [default: decompose-NAME-cp-rR]
    #[arg(
        long,
        short = 'o',
        visible_alias = "stem",
        visible_short_alias = 's',
        value_name = "DIR"
    )]
    pub(crate) out: Option<PathBuf>,
    /// Model files beside model.npz: splatt, ttb, csv (comma-separated).
    #[arg(long, value_name = "FORMATS", value_delimiter = ',', value_parser = ModelFormat::from_str)]
    pub(crate) out_format: Vec<ModelFormat>,
    /// The folder of files mode-M-NAME.map with a name for each index.  [default: NAME/ beside
    /// the tensor]
    #[arg(long, value_name = "DIR")]
    pub(crate) labels: Option<PathBuf>,
    /// Print every N-th iteration; 0 prints none.
    #[arg(long, visible_alias = "printitn", value_name = "N", default_value = "1")]
    pub(crate) print_every: usize,
}

/// What is on or off.
#[derive(Args, Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed; `Settings` names them")]
pub(crate) struct Switches {
    /// Write no files.
    #[arg(long, help_heading = "Output")]
    pub(crate) nowrite: bool,
    /// Replace the files of an earlier run in the folder.
    #[arg(long, help_heading = "Output")]
    pub(crate) overwrite: bool,
    /// Show warnings and errors only.
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print events and the result to standard output, one JSON object a line.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the plan - trees, and for each mode's kernel path, loop nest, buffers, predicted cost
    /// and generated C - and stop.
    #[arg(long, help_heading = "Computation")]
    pub(crate) explain: bool,
    /// Interpret the kernels instead of compiling C.
    #[arg(long, help_heading = "Computation")]
    pub(crate) no_codegen: bool,
    /// Leave components in the order and with the signs in which they were computed.
    #[arg(long, help_heading = "Model")]
    pub(crate) no_arrange: bool,
}

/// Where a run starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Init {
    /// Uniform in [0, 1).
    Random,
    /// Leading left singular vectors of the unfoldings.
    Nvecs,
    /// A model file, or the folder of a run.
    File(PathBuf),
}

/// The seed as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seed {
    /// This one.
    Number(u64),
    /// One that differs from run to run.
    Random,
}

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Seed, String> {
        match text {
            "random" => Ok(Seed::Random),
            _ => text
                .parse()
                .map(Seed::Number)
                .map_err(|_| format!("`{text}` is no seed; use an integer from 0 on, or `random`")),
        }
    }
}

/// The precision of stored numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Precision {
    /// Double.
    F64,
    /// Single.
    F32,
}

/// A word of `--trees`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// The planner chooses.
    Choose,
    /// This tree is kept.
    Layout(TreeLayout),
}

/// Parses an integer from 1 on.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a number from 1 on")),
        Ok(count) => Ok(count),
    }
}

fn parse_from_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x: &f64| *x >= 0.0 && x.is_finite());
    number.ok_or_else(|| format!("`{text}` is not a number from 0 on"))
}

/// Parses a time of more than 0 seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1.0),
        Some('m') => (&text[..text.len() - 1], 60.0),
        Some('h') => (&text[..text.len() - 1], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = digits.parse().ok().map(|x: f64| x * unit);
    let seconds = seconds.filter(|x| *x > 0.0 && *x <= 1e9);
    seconds.ok_or_else(|| format!("`{text}` is no time; use seconds, or 90s, 15m, 2h"))
}

/// Parses modes counted from 1, separated by `separator`.
fn parse_modes(text: &str, separator: char) -> Result<Vec<usize>, String> {
    let mode = |word: &str| match word.trim().parse::<usize>() {
        Ok(0) | Err(_) => Err(format!("`{word}` is no mode; modes count from 1")),
        Ok(mode) => Ok(mode - 1),
    };
    text.split(separator).map(mode).collect()
}

fn parse_nonneg(text: &str) -> Result<NonNegModes, String> {
    match text {
        "" | "all" => Ok(NonNegModes::All),
        _ => parse_modes(text, ',').map(NonNegModes::Listed),
    }
}

fn parse_con(text: &str) -> Result<NonNegModes, String> {
    match text.split_once(',').unwrap_or((text, "")) {
        ("nonneg", modes) => parse_nonneg(modes),
        _ => Err(format!("`{text}` is no constraint known here; use nonneg or nonneg,1,3")),
    }
}

fn parse_init(text: &str) -> Result<Init, String> {
    Ok(match text {
        "random" => Init::Random,
        "nvecs" => Init::Nvecs,
        file => Init::File(file.into()),
    })
}

fn parse_order(text: &str) -> Result<ModeOrder, String> {
    let separator = if text.contains(',') { ',' } else { '-' };
    let modes = parse_modes(text, separator)?;
    let example = "list each mode once, as 3,1,2 or 3-1-2";
    ModeOrder::new(modes).ok_or_else(|| format!("`{text}` is no order of the modes; {example}"))
}

fn parse_tree(text: &str) -> Result<Tree, String> {
    if text == "choose" { Ok(Tree::Choose) } else { text.parse().map(Tree::Layout) }
}
