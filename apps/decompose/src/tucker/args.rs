//! What the user typed after `decompose tucker`, checked word by word only.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::input::InputArgs;
use crate::run::args::{ComputeArgs, CourseArgs, OutputArgs, Switches, parse_count};
use crate::run::plan::PlanArgs;

/// Tucker decomposition by higher-order orthogonal iteration.
///
/// Approximates the tensor by a small core, multiplied in every mode by a matrix with orthonormal
/// columns.  Writes model.npz, history.csv, spectra.csv, run.json and figures of convergence, timing,
/// spectra and components into a new folder.  Modes count from 1.
#[derive(Args, Debug)]
#[command(mut_arg("out", |arg| arg.help(
    "The folder of the results.  [default: decompose-NAME-tucker-rRANKS, or -tucker-epsX]"
)))]
pub(crate) struct TuckerArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) switches: Switches,
}

/// What is fitted, and when to stop.
#[derive(Args, Debug)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// The rank of every mode, as 16,16,8, or one for all; this or --eps is required.
    #[arg(long, short, value_name = "R|R1,R2,...", value_delimiter = ',',
          value_parser = parse_count)]
    pub(crate) ranks: Vec<usize>,
    /// The least ranks of a HOSVD whose relative error is at most this, as 0.05.
    #[arg(long, value_name = "X", value_parser = parse_eps, conflicts_with = "ranks")]
    pub(crate) eps: Option<f64>,
    /// How factors are found: hooi iterates; hosvd takes the leading singular vectors of each
    /// unfolding; st-hosvd the same, each mode after the truncation of those before it.
    #[arg(long, value_name = "METHOD", default_value = "hooi")]
    pub(crate) method: MethodName,
    /// A core and factors without negative entries, by alternating least squares; only with hooi.
    #[arg(long)]
    pub(crate) nonneg: bool,
    #[command(flatten)]
    pub(crate) course: CourseArgs,
    /// Where hooi starts: random (the first update is a randomised range finder), hosvd, or a model
    /// file or folder of an earlier run.  [default: random; hosvd with --eps]
    #[arg(long, value_name = "HOW|FILE", value_parser = parse_init, conflicts_with = "resume")]
    pub(crate) init: Option<Init>,
    /// Whether hooi, begun elsewhere, ends no lower than a HOSVD of the same ranks: that is computed
    /// too, and continued from where all starts end below it.  auto: for tensors of up to 500,000
    /// non-zeros; of larger ones a HOSVD may take longer than the iterations.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) above_hosvd: AboveHosvd,
}

/// How factors are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MethodName {
    /// Higher-order orthogonal iteration.
    Hooi,
    /// Higher-order singular value decomposition.
    Hosvd,
    /// Sequentially truncated.
    StHosvd,
}

/// Whether a run is held above the HOSVD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AboveHosvd {
    /// For tensors of few non-zeros.
    Auto,
    /// Always.
    Yes,
    /// Never.
    No,
}

/// Where a run starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Init {
    /// From the seed.
    Random,
    /// From the leading singular vectors of the unfoldings.
    Hosvd,
    /// From a model file, or the folder of a run.
    File(PathBuf),
}

fn parse_init(text: &str) -> Result<Init, String> {
    Ok(match text {
        "random" => Init::Random,
        "hosvd" => Init::Hosvd,
        file => Init::File(file.into()),
    })
}

fn parse_eps(text: &str) -> Result<f64, String> {
    let eps = text.parse().ok().filter(|x: &f64| *x > 0.0 && *x < 1.0);
    eps.ok_or_else(|| format!("`{text}` is no relative error above 0 and below 1, as 0.05"))
}
