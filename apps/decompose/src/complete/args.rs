//! What the user typed after `decompose complete`, checked word by word only.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use crate::help;
use crate::input::{InputArgs, MissingArgs};
use crate::run::args::{
    ComputeArgs, CourseArgs, OutputArgs, Switches, parse_count, parse_from_zero,
};

/// Completion of a tensor with missing entries.
///
/// Fits a model to the entries of the file - an entry that is not listed is unknown, a zero that is
/// listed counts - and judges it on entries that it has not seen.  Writes model.npz,
/// predictions.csv, history.csv, run.json and figures of errors, predictions, components and timing
/// into a new folder.  Modes count from 1.
#[derive(Args, Debug)]
#[command(mut_arg("duplicates", |arg| arg.help(help::DUPLICATES_MEAN)))]
#[command(mut_arg("max_iters", |arg| arg.help(help::EPOCHS)))]
#[command(mut_arg("tol", |arg| arg.help(help::GAIN)))]
#[command(mut_arg("seed", |arg| arg.help(help::SPLIT_SEED)))]
#[command(mut_arg("max_memory", |arg| arg.help(help::REFUSED_ABOVE)))]
#[command(mut_arg("precision", |arg| arg.hide(true)))]
#[command(mut_arg("restarts", |arg| arg.help(
    "Starts, from seed, seed + 1, ...; that with the least validation error is kept, or without \
     validation entries the least training error"
)))]
#[command(mut_arg("checkpoint_every", |arg| arg.help("Save the state every N epochs, for --resume")))]
#[command(mut_arg("print_every", |arg| arg.help("Print every N-th epoch; 0 prints none")))]
#[command(mut_arg("explain", |arg| arg.help("Print the expressions of the kernels, and stop")))]
#[command(mut_arg("out", |arg| arg.help(
    "The folder of the results.  [default: decompose-NAME-complete-MODEL-rRANK]"
)))]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) switches: Switches,
}

/// What is fitted.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// The kind of model.
    #[arg(long, value_name = "KIND", default_value = "cp")]
    pub(crate) model: ModelName,
    /// The number of components of a CP model; required there.
    #[arg(long, short, value_name = "R", value_parser = parse_count, conflicts_with = "ranks")]
    pub(crate) rank: Option<usize>,
    /// The ranks of a Tucker model, one a mode, or of a train, one a pair of neighbouring modes; one
    /// number stands for all.
    #[arg(long, value_name = "R1,R2,...", value_delimiter = ',', value_parser = parse_count)]
    pub(crate) ranks: Vec<usize>,
    #[command(flatten)]
    pub(crate) fit: FitArgs,
}

/// How a model is fitted, and when to stop.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Fit")]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed")]
pub(crate) struct FitArgs {
    /// The algorithm.  [default: als for the gaussian loss, lbfgs for others]
    #[arg(long, short, visible_alias = "algorithm", value_name = "NAME")]
    pub(crate) alg: Option<Alg>,
    /// The loss: gaussian (real values), poisson (counts), bernoulli (zeros and ones), huber
    /// (outliers) or gamma (positive values).
    #[arg(long, value_name = "NAME", default_value = "gaussian")]
    pub(crate) loss: LossName,
    /// The distance from which the huber loss is linear, in the unit of the values.  [default: the
    /// median distance of the training entries from their median]
    #[arg(long, value_name = "X", value_parser = parse_from_zero)]
    pub(crate) huber_delta: Option<f64>,
    /// The ridge: one number, or one for each mode (and the core of a Tucker model), for entries
    /// measured in their root mean square: their unit does not matter.  It is flat: a row bears it
    /// once, however many entries it has.  With `auto` the validation error chooses it;
    /// without validation entries, a tenth of the training entries does, and the model is then fitted
    /// to all of them.
    #[arg(
        long,
        visible_alias = "penalty",
        value_name = "X[,X...]|auto",
        value_delimiter = ',',
        default_value = "0.01"
    )]
    pub(crate) reg: Vec<Ridge>,
    /// No parameter may be negative (so for the losses poisson and gamma anyway).
    #[arg(long)]
    pub(crate) nonneg: bool,
    /// Adds a global offset and one for each index of each mode.
    #[arg(long)]
    pub(crate) biases: bool,
    #[command(flatten)]
    pub(crate) course: CourseArgs,
    /// Stop after this many epochs without an improvement of the validation error by the share
    /// --tol; the best model is kept.  Without validation entries the training error counts.
    #[arg(long, value_name = "N", default_value = "20", value_parser = parse_count)]
    pub(crate) patience: usize,
    /// The length of the first step of sgd (1 would fit an entry exactly) or adam (as a share of the
    /// size of the parameters).  [default: 0.03 for sgd, 0.05 for adam]
    #[arg(long, value_name = "X", value_parser = parse_from_zero)]
    pub(crate) step: Option<f64>,
    /// Components that ccd updates together; 1 is the textbook's CCD++.
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_count)]
    pub(crate) ccd_block: usize,
    /// Passes over the modes for each block of components of ccd.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) ccd_inner: usize,
}

/// A ridge as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ridge {
    /// This one.
    Number(f64),
    /// The one that the validation error chooses.
    Auto,
}

impl FromStr for Ridge {
    type Err = String;

    fn from_str(text: &str) -> Result<Ridge, String> {
        match text {
            "auto" => Ok(Ridge::Auto),
            _ => {
                parse_from_zero(text).map(Ridge::Number).map_err(|why| format!("{why}, or `auto`"))
            }
        }
    }
}

/// Which entries are held out.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Held-out entries")]
pub(crate) struct DataArgs {
    /// The shares of training, validation and test entries, or of training and test.
    /// [default: 0.8,0.1,0.1 unless --val or --test is given]
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = parse_from_zero,
          conflicts_with_all = ["val", "test"])]
    pub(crate) split: Vec<f64>,
    /// How entries are divided: at random (the seed and the indices decide), or by time: the latest
    /// indices of --time-mode are the test.
    #[arg(long, value_name = "HOW", default_value = "random")]
    pub(crate) split_by: SplitBy,
    /// The mode of time, for --split-by time.
    #[arg(long, value_name = "MODE", value_parser = parse_count)]
    pub(crate) time_mode: Option<usize>,
    /// A file of the cells that were observed: those with a number other than zero.  An observed cell
    /// that the tensor does not list is a zero; an entry that the mask does not have is unknown.
    #[arg(long, value_name = "FILE")]
    pub(crate) mask: Option<PathBuf>,
    /// A file of validation entries, which end the fit and choose the model.
    #[arg(long, value_name = "FILE")]
    pub(crate) val: Option<PathBuf>,
    /// A file of test entries, which judge the model.
    #[arg(long, value_name = "FILE")]
    pub(crate) test: Option<PathBuf>,
}

/// A kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelName {
    /// A sum of components.
    Cp,
    /// A core and a factor a mode.
    Tucker,
    /// A tensor train.
    Tt,
}

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Alg {
    /// Alternating least squares, row by row.
    Als,
    /// Alternating least squares by conjugate gradients.
    AlsCg,
    /// Coordinate descent in blocks of components (CCD++ for blocks of one).
    #[value(alias = "ccd++")]
    Ccd,
    /// Stochastic gradient steps.
    Sgd,
    /// Adam on the full gradient.
    Adam,
    /// Limited-memory BFGS.
    Lbfgs,
}

/// A loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LossName {
    /// Least squares.
    Gaussian,
    /// Counts.
    Poisson,
    /// Zeros and ones, by log odds.
    #[value(alias = "bernoulli-logit")]
    Bernoulli,
    /// Least squares with outliers.
    Huber,
    /// Positive values.
    Gamma,
}

/// How entries are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SplitBy {
    /// At random.
    Random,
    /// The latest are held out.
    Time,
}
