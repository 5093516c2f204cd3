//! The options that solver commands share, checked word by word only; flattened into theirs.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use decompose_common::machine::{hardware_threads, parse_size};
use decompose_core::optimisation::Optimisation;
use decompose_formats::{ModeOrder, counted};
use decompose_plot::PlotFormat;

use crate::labels::LabelPlace;

/// When to stop, and how often to start.
#[derive(Args, Clone, Debug)]
pub(crate) struct CourseArgs {
    /// The most iterations.  [default: 50]
    #[arg(long, short = 'i', visible_aliases = ["maxiters", "iters"], value_name = "N",
          value_parser = parse_count)]
    pub(crate) max_iters: Option<usize>,
    /// Stop when the fit changes by less than this.  [default: 1e-5]
    #[arg(long, value_name = "X", value_parser = parse_from_zero)]
    pub(crate) tol: Option<f64>,
    /// Stop iterating after this many seconds (also 90s, 15m, 2h); what comes before is not counted.
    #[arg(long, visible_alias = "maxsecs", value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) max_time: Option<f64>,
    /// The seed of random starts: a number, or `random`.  [default: 0]
    #[arg(long, value_name = "N|random")]
    pub(crate) seed: Option<Seed>,
    /// Starts, from seed, seed + 1, ...; the best fit is kept.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) restarts: usize,
}

/// How it is computed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Computation")]
pub(crate) struct ComputeArgs {
    /// Threads.  [default: all]
    #[arg(long, short, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// The precision of values and factors; sums are always in f64.
    #[arg(long, value_name = "TYPE", default_value = "f64")]
    pub(crate) precision: Precision,
    /// The most memory, as 16G or 512M; a leaner plan is chosen, or the run refused, if needed.
    /// Control groups and `ulimit -v` limit too.  [default: what is available]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_memory: Option<u64>,
    /// Save the state every N iterations, for --resume.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) checkpoint_every: Option<usize>,
    /// Continue the run whose checkpoint is in this folder, bit by bit; give the same options.
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
}

/// What is written and where.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The folder of the results.  [default: decompose-NAME-cp-rRANK]
    #[arg(
        long,
        short = 'o',
        visible_aliases = ["output", "stem"],
        visible_short_alias = 's',
        value_name = "DIR"
    )]
    pub(crate) out: Option<PathBuf>,
    /// The folder of files mode-K-NAME.map, mode-K.map or K.map with a name for each index; or the file of one mode,
    /// as 2=cities.map.  May be repeated.
    /// [default: NAME/ beside the tensor, or NAME.K.map and K.map in its folder]
    #[arg(long, value_name = "DIR|MODE=FILE")]
    pub(crate) labels: Vec<LabelPlace>,
    /// Print every N-th iteration; 0 prints none.
    #[arg(long, visible_alias = "printitn", value_name = "N", default_value = "1")]
    pub(crate) print_every: usize,
    #[command(flatten)]
    pub(crate) figures: FigureArgs,
}

/// How figures are written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct FigureArgs {
    #[command(flatten)]
    format: FormatArgs,
    /// Draw no figures.
    #[arg(long, conflicts_with = "plot_format")]
    no_plots: bool,
}

/// The formats of figures.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormatArgs {
    /// The formats of figures: svg, png.
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',', default_value = "svg,png",
          value_parser = plot_format(), hide_possible_values = true)]
    plot_format: Vec<PlotFormat>,
}

impl FigureArgs {
    /// Returns the formats that were asked for; none for no figures.
    pub(crate) fn formats(&self) -> Vec<PlotFormat> {
        if self.no_plots { Vec::new() } else { self.format.formats() }
    }
}

impl FormatArgs {
    /// Returns the formats that were asked for, each once.
    pub(crate) fn formats(&self) -> Vec<PlotFormat> {
        let asked = |format: &PlotFormat| self.plot_format.contains(format);
        PlotFormat::ALL.into_iter().filter(asked).collect()
    }
}

/// Parses the name of a format of figures; an error lists all.
fn plot_format() -> impl TypedValueParser<Value = PlotFormat> {
    let names = PossibleValuesParser::new(PlotFormat::ALL.map(PlotFormat::ending));
    names.map(|name| if name == "svg" { PlotFormat::Svg } else { PlotFormat::Png })
}

/// What is on or off.
#[derive(Args, Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one a switch, as typed; `RunSettings` names them"
)]
pub(crate) struct Switches {
    /// Write no files.
    #[arg(long, help_heading = "Output")]
    pub(crate) nowrite: bool,
    /// Replace the files of an earlier run in the folder, when this one has ended; others stay.
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

/// Parses the name of an optimisation; an error lists all.
pub(crate) fn optimisation() -> impl TypedValueParser<Value = Optimisation> {
    let names = PossibleValuesParser::new(Optimisation::ALL.map(Optimisation::name));
    names.try_map(|name| name.parse::<Optimisation>())
}

/// Parses an integer from 1 on.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a number from 1 on")),
        Ok(count) => Ok(count),
    }
}

/// The most threads that may be asked for: more than any machine has cores, and few enough for any system to start.
const MOST_THREADS: usize = 1024;

/// Parses a number of threads.
pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    match parse_count(text)? {
        count if count > MOST_THREADS => {
            let hardware = hardware_threads();
            let cores = counted(hardware, "core", "cores");
            Err(format!(
                "{count} threads are more than {MOST_THREADS}; this process may use {cores}"
            ))
        }
        count => Ok(count),
    }
}

/// Parses a number from 0 on.
pub(crate) fn parse_from_zero(text: &str) -> Result<f64, String> {
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
pub(crate) fn parse_modes(text: &str, separator: char) -> Result<Vec<usize>, String> {
    let mode = |word: &str| match word.trim().parse::<usize>() {
        Ok(0) | Err(_) => Err(format!("`{word}` is no mode; modes count from 1")),
        Ok(mode) => Ok(mode - 1),
    };
    text.split(separator).map(mode).collect()
}

/// Parses an order of the modes, counted from 1, as 3,1,2 or 3-1-2.
pub(crate) fn parse_order(text: &str) -> Result<ModeOrder, String> {
    let separator = if text.contains(',') { ',' } else { '-' };
    let modes = parse_modes(text, separator)?;
    let example = "list each mode once, as 3,1,2 or 3-1-2";
    ModeOrder::new(modes).ok_or_else(|| format!("`{text}` is no order of the modes; {example}"))
}
