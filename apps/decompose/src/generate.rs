//! `decompose generate`: synthetic tensors.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use decompose_common::progress::{Screen, Verbosity};
use decompose_formats::catalog::{self, Shape};
use decompose_formats::io::{self, Overwrite};
use decompose_formats::synth::{
    self, LowRank, Pattern, SynthConfig, Values, generate as generate_pattern,
};
use decompose_formats::{Coo, FormatError, counted};

use crate::cli::Done;
use crate::convert::check_output;
use crate::failure::Failure;
use crate::input::parse_extent;
use crate::listing::ListArgs;
use crate::run::args::parse_count;

/// The exponent of the power law in every mode unless given: that of word frequencies.
const ZIPF: f64 = 1.0;

/// Writes a synthetic tensor; the same bytes for the same options and seed.
#[derive(Args, Debug)]
#[command(mut_arg("out_base", |arg| arg.help(
    "From where the indices of a text file count: 0 or 1.  [default: 1]"
)))]
pub(crate) struct GenerateArgs {
    /// Where non-zeros lie and what they are.
    #[arg(value_name = "KIND", default_value = "power-law")]
    kind: TensorKind,
    /// The file to write: .tns, .mtx, .ttx (also .gz, .zst, .bz2) or .dtb.
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// The extents: I1,I2,...
    #[arg(long, value_name = "EXTENTS", value_delimiter = ',', value_parser = parse_extent)]
    dims: Option<Vec<u64>>,
    /// The number of non-zeros.
    #[arg(long, value_name = "N")]
    nnz: Option<u64>,
    /// Take extents and non-zeros of this FROSTT tensor.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dims", "nnz"])]
    like: Option<String>,
    /// Scale the non-zeros and long modes of --like.
    #[arg(long, value_name = "S", default_value = "1", requires = "like")]
    scale: f64,
    /// One exponent a mode of the power law.  [default: 1 in every mode]
    #[arg(long, value_name = "S1,S2,...", value_delimiter = ',')]
    exponents: Option<Vec<f64>>,
    /// The values of uniform and power-law tensors.
    #[arg(long, value_name = "WHAT", default_value = "uniform")]
    values: ValuesKind,
    /// The rank of a low-rank tensor.
    #[arg(long, value_name = "R", default_value = "10", value_parser = parse_count)]
    rank: usize,
    /// The norm of the noise over the norm of a low-rank tensor.
    #[arg(long, value_name = "X", default_value = "0")]
    noise: f64,
    /// The seed.
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    #[command(flatten)]
    list: ListArgs,
    /// Replace the file if it exists.
    #[arg(long)]
    overwrite: bool,
}

/// The kind of tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TensorKind {
    /// All cells equally likely.
    Uniform,
    /// Few slices hold most non-zeros.
    PowerLaw,
    /// A sum of blocks of rank one, zero elsewhere, and noise.
    LowRank,
}

/// The kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ValuesKind {
    /// All 1.
    Ones,
    /// Uniform in [0, 1).
    Uniform,
    /// Integers from 1, with mean 2.
    Counts,
}

/// Runs the command.
///
/// # Errors
///
/// Numbers that make no tensor, an unknown name, an output that exists or cannot be written.
pub(crate) fn run(args: &GenerateArgs) -> Result<Done, Failure> {
    let overwrite = if args.overwrite { Overwrite::Replace } else { Overwrite::Refuse };
    check_output(&args.out, overwrite)?;
    let mut screen = Screen::new(Verbosity::Normal);
    let config = config(args)?;
    let (tensor, seconds) = screen.phase("generate", || generate(args, &config));
    let tensor = tensor?;
    let nonzeros = counted(tensor.nnz(), "non-zero", "non-zeros");
    screen.line(format!("generate {nonzeros}; {seconds:.2} s"));
    let options = args.list.options(&args.out, None, overwrite);
    let (written, seconds) = screen.phase("write", || io::write(&tensor, &args.out, &options));
    written?;
    screen.line(format!("write    {}; {seconds:.2} s", args.out.display()));
    Ok(Done::Complete)
}

/// Checks the options as a run does before it makes the tensor.
///
/// # Errors
///
/// Options that are missing, or an unknown name.
pub(crate) fn check(args: &GenerateArgs) -> Result<(), Failure> {
    config(args).map(drop)
}

/// Describes the tensor that `decompose generate --like NAME` makes unless told otherwise.
///
/// # Errors
///
/// An unknown name, or a scale that is not above 0.
pub(crate) fn like(name: &str, scale: f64) -> Result<SynthConfig, Failure> {
    let Shape { extents, nnz } = catalog::like(name, scale)?;
    let pattern = Pattern::PowerLaw(vec![ZIPF; extents.len()]);
    let values = Values::Uniform { low: 0.0, high: 1.0 };
    Ok(SynthConfig { extents, nnz, pattern, values, seed: 0 })
}

fn config(args: &GenerateArgs) -> Result<SynthConfig, Failure> {
    let shape = match (&args.like, &args.dims, args.nnz) {
        (Some(name), ..) => catalog::like(name, args.scale)?,
        (None, Some(extents), Some(nnz)) => Shape { extents: extents.clone(), nnz },
        (None, None, None) => {
            return Err(Failure::input("no shape given: neither extents nor non-zeros")
                .help("give --dims and --nnz, or --like NAME"));
        }
        (None, None, Some(_)) => {
            return Err(Failure::input("no extents given").help("give them with --dims I1,I2,..."));
        }
        (None, Some(_), None) => {
            return Err(Failure::input("no number of non-zeros given; it has no default")
                .help("give it with --nnz N"));
        }
    };
    let exponents = args.exponents.clone().unwrap_or_else(|| vec![ZIPF; shape.extents.len()]);
    Ok(SynthConfig {
        extents: shape.extents,
        nnz: shape.nnz,
        pattern: match args.kind {
            TensorKind::Uniform | TensorKind::LowRank => Pattern::Uniform,
            TensorKind::PowerLaw => Pattern::PowerLaw(exponents),
        },
        values: match args.values {
            ValuesKind::Ones => Values::Ones,
            ValuesKind::Uniform => Values::Uniform { low: 0.0, high: 1.0 },
            ValuesKind::Counts => Values::Counts { mean: 2.0 },
        },
        seed: args.seed,
    })
}

fn generate(args: &GenerateArgs, config: &SynthConfig) -> Result<Coo<f64>, FormatError> {
    match args.kind {
        TensorKind::Uniform | TensorKind::PowerLaw => generate_pattern(config),
        TensorKind::LowRank => {
            let model = LowRank { rank: args.rank, noise: args.noise };
            Ok(synth::low_rank(config, &model)?.tensor)
        }
    }
}
