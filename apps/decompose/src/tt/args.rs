//! What the user typed after `decompose tt`, checked word by word only.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use decompose_tt::{Method, TrainOrder};

use crate::input::InputArgs;
use crate::run::args::{
    ComputeArgs, CourseArgs, OutputArgs, Switches, parse_count, parse_from_zero, parse_order,
};

/// Tensor train of a sparse tensor.
///
/// Approximates the tensor by a chain of small cores, one a mode.  The ranks of the bonds between
/// them are given, or follow from a bound on the error.  The error is measured at the end.  Writes
/// model.npz, history.csv, spectra.csv, run.json and figures of convergence, timing, spectra and
/// components into a new folder.  Modes count from 1.
#[derive(Args, Debug)]
#[command(mut_arg("file", |arg| arg.help(
    "The tensor: .tns, .mtx or .ttx (text, also with .gz, .zst, .bz2), .npy or .dtb; `-` reads \
     standard input.  With --info or --round a train (.npz) or the folder of a run"
)))]
#[command(mut_arg("explain", |arg| arg.help(
    "Print the plan - the order of the modes, trees, and for each core loop nest, predicted cost and \
     generated C - and stop"
)))]
#[command(mut_arg("out", |arg| arg.help(
    "The folder of the results.  [default: decompose-NAME-tt-rRANKS, or -tt-epsX; with --round \
     decompose-NAME-tt-rounded; with --info none]"
)))]
pub(crate) struct TtArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) switches: Switches,
    #[command(flatten)]
    pub(crate) tasks: Tasks,
}

/// What is fitted, and when to stop.
#[derive(Args, Debug)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// The ranks of the bonds in train order, as 8,8, or one for all of them.
    #[arg(long, short, visible_alias = "rank", value_name = "R,...", value_delimiter = ',',
          value_parser = parse_count, conflicts_with = "eps")]
    pub(crate) ranks: Option<Vec<usize>>,
    /// Choose the ranks so that the relative error stays under this bound.
    #[arg(long, value_name = "X", value_parser = parse_from_zero)]
    pub(crate) eps: Option<f64>,
    /// The most of any rank that --eps may choose.
    #[arg(long, value_name = "R", value_parser = parse_count, requires = "eps")]
    pub(crate) max_rank: Option<usize>,
    /// als: one core at a time, with --ranks; dmrg: two at a time, ranks adapt; svd: truncated
    /// singular value decompositions, no iteration.  [default: als with --ranks, svd with --eps]
    #[arg(long, value_name = "METHOD", value_parser = Method::from_str)]
    pub(crate) method: Option<Method>,
    /// The order of the modes along the train: auto (the fewest numbers predicted), or as 3,1,2.
    /// [default: 1,2,...]
    #[arg(long, value_name = "auto|MODES", value_parser = parse_choice)]
    pub(crate) order: Option<TrainOrder>,
    /// Where als and dmrg start: random, or a train (.npz) or the folder of an earlier run.
    #[arg(long, value_name = "random|FILE", default_value = "random", value_parser = parse_init,
          conflicts_with = "resume")]
    pub(crate) init: Init,
    #[command(flatten)]
    pub(crate) course: CourseArgs,
}

/// What is done with FILE instead of decomposing it.
#[derive(Args, Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed")]
pub(crate) struct Tasks {
    /// FILE is a train or the folder of a run: print ranks, compression and the singular values at
    /// each bond, and with --out DIR draw them.
    #[arg(long, help_heading = "Trains", conflicts_with_all = ["round", "ranks", "eps", "resume"])]
    pub(crate) info: bool,
    /// FILE is a train or the folder of a run: make a smaller train of it, by --eps or --ranks.
    #[arg(long, help_heading = "Trains", conflicts_with = "resume")]
    pub(crate) round: bool,
}

/// Where a run starts, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Init {
    /// Orthonormal cores from random numbers.
    Random,
    /// A train, or the folder of a run.
    File(PathBuf),
}

fn parse_choice(text: &str) -> Result<TrainOrder, String> {
    match text {
        "auto" => Ok(TrainOrder::Fewest),
        modes => parse_order(modes).map(TrainOrder::Given),
    }
}

fn parse_init(text: &str) -> Result<Init, String> {
    Ok(if text == "random" { Init::Random } else { Init::File(text.into()) })
}
