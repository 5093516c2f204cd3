//! What the user typed after `decompose cp`, checked word by word only.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use decompose_common::model::ModelFormat;
use decompose_core::optimisation::Optimisation;
use decompose_cp::NonNegModes;
use decompose_formats::ModeOrder;

use crate::cp::compat::Compat;
use crate::input::InputArgs;
use crate::run::args::{
    ComputeArgs, CourseArgs, OutputArgs, Switches, optimisation, parse_count, parse_from_zero,
    parse_modes, parse_order,
};
use crate::run::plan::PlanArgs;

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
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Do without optimisations, to see what they bring: constants (ranks and sizes in generated code),
    /// registers (that hold sums), prefetch (of gathered rows), blocks (of which trees have a level),
    /// panels (in which factors are stored), merging (of modes), fusing (of the last levels of trees),
    /// layouts (that are chosen).  Results differ by rounding.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = optimisation(),
          hide_possible_values = true, help_heading = "Computation")]
    pub(crate) without: Vec<Optimisation>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Model files beside model.npz: splatt, ttb, csv (comma-separated).
    #[arg(long, value_name = "FORMATS", value_delimiter = ',',
          value_parser = ModelFormat::from_str, help_heading = "Output")]
    pub(crate) out_format: Vec<ModelFormat>,
    #[command(flatten)]
    pub(crate) switches: Switches,
    /// Leave components in the order and with the signs in which they were computed.
    #[arg(long, help_heading = "Model")]
    pub(crate) no_arrange: bool,
}

/// What is fitted, and when to stop.
#[derive(Args, Debug)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// The number of components R; required.
    #[arg(long, short, value_name = "R", value_parser = parse_count)]
    pub(crate) rank: Option<usize>,
    #[command(flatten)]
    pub(crate) course: CourseArgs,
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
    #[arg(long, value_name = "HOW|FILE", value_parser = parse_init, conflicts_with = "resume")]
    pub(crate) init: Option<Init>,
    /// The order in which modes are updated, as 3,1,2.  [default: 1,2,...]
    #[arg(long, value_name = "MODES", value_parser = parse_order)]
    pub(crate) dimorder: Option<ModeOrder>,
    /// Default options and outputs of another program; options given explicitly win.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compat: Option<Compat>,
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
