//! `decompose predict`: the values of a model at coordinates.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use decompose_common::evaluate::values_at;
use decompose_common::files;
use decompose_common::model::{Link, Stored};
use decompose_common::progress::Screen;
use decompose_formats::io::{Base, Overwrite, TableFile, write as write_list, write_table};
use decompose_formats::{Coo, Ints, counted};
use ndarray::Array1;
use ndarray_npy::WriteNpyExt;

use crate::cli::Done;
use crate::convert::{check_absent, check_output};
use crate::evaluate::coords;
use crate::evaluate::{ComputeArgs, ModelArg, foresee, read_model};
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::labels::{self, LabelPlace};
use crate::listing::ListArgs;
use crate::run::memory;

/// The values of a CP, Tucker or tensor-train model at coordinates.
///
/// The coordinates are those of FILE, a list as `decompose stats` reads it; its values, if it has
/// any, are not looked at.  The result lists the coordinates in their order with the values of the
/// model, as .tns, .mtx, .ttx or .dtb; as .csv or .tsv with the labels of the indices, where there are
/// any; as .npy the values alone.  Values are on the scale of the data: probabilities, for a model that
/// was fitted with the bernoulli loss.
#[derive(Args, Debug)]
#[command(mut_arg("file", |arg| arg.help(
    "The coordinates, with values or without: .tns, .mtx or .ttx (text, also with .gz, .zst, .bz2), \
     .npy or .dtb; `-` reads standard input"
)))]
#[command(mut_arg("duplicates", |arg| arg.hide(true)))]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    input: InputArgs,
    /// The file of the values: .tns, .mtx, .ttx, .dtb, .csv, .tsv or .npy.
    #[arg(long, short, value_name = "FILE", required = true, help_heading = "Output")]
    out: PathBuf,
    #[command(flatten)]
    list: ListArgs,
    /// The folder of files mode-K-NAME.map with a name for each index, or the file of a mode, for .csv and .tsv.
    /// [default: those beside FILE, or those of the model]
    #[arg(long, value_name = "DIR|MODE=FILE", help_heading = "Output")]
    labels: Vec<LabelPlace>,
    /// What an index outside of the model is: an error, or mean: the mean of the mode's other indices
    /// stands for it, so that the value is the model's mean over that mode.
    #[arg(long, value_name = "WHAT", default_value = "error")]
    unknown: Unknown,
    /// Write the model's own values, which for the bernoulli loss are log-odds, not probabilities.
    #[arg(long, help_heading = "Output")]
    link: bool,
    #[command(flatten)]
    compute: ComputeArgs,
}

/// What becomes of an index outside of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unknown {
    /// It is refused.
    Error,
    /// The mean of the mode's indices stands for it.
    Mean,
}

/// Runs the command.
///
/// # Errors
///
/// A file that is no model or no list, coordinates outside of the model, an output that exists.
pub(crate) fn run(args: &PredictArgs) -> Result<Done, Failure> {
    let overwrite = if args.compute.overwrite { Overwrite::Replace } else { Overwrite::Refuse };
    match TableFile::of_path(&args.out) {
        Some(_) => check_absent(&args.out, overwrite)?,
        None => check_output(&args.out, overwrite)?,
    }
    args.compute.begin()?;
    let mut screen = args.compute.screen();
    let Stored { model, meaning } = read_model(&args.model.model, &screen)?;
    let input = args.input.read::<f64>(&mut screen)?;
    let (extents, base) = (model.extents(), input.base());
    let known = extents.clone();
    let coords = coords::of_list(input.tensor, &input.report, &extents, args.unknown)?;
    let copy: u64 = coords.iter().map(Ints::bytes).sum();
    foresee(&model, coords.first().map_or(0, Ints::len), copy)?;
    let (model, asked) = match args.unknown {
        Unknown::Error => (model, coords.clone()),
        Unknown::Mean => {
            let model = model.with_means()?;
            let (asked, outside) = coords::within(&coords, &model.extents());
            if outside > 0 {
                screen.warn(format!(
                    "{} outside of the model: means over modes stand for what is not known",
                    counted(outside, "coordinate is", "coordinates are")
                ));
            }
            (model, asked)
        }
    };
    let toolchain = args.compute.toolchain();
    let (values, seconds) = screen.phase("predict", || values_at(&model, asked, &toolchain));
    let mut values = values?;
    let link = if args.link { Link::Identity } else { meaning.link };
    values.iter_mut().for_each(|value| *value = link.mean(*value));
    let (one, several) = match (meaning.link, args.link) {
        (Link::Identity, _) => ("value", "values"),
        (Link::Logit, false) => ("probability", "probabilities"),
        (Link::Logit, true) => ("log-odds", "log-odds"),
    };
    screen.line(format!("predict  {}; {seconds:.2} s", counted(values.len(), one, several)));
    let needed =
        |(column, extent): (&Ints, u64)| column.max().map_or(extent, |m| extent.max(m + 1));
    let extents: Vec<u64> = coords.iter().zip(extents).map(needed).collect();
    let list = Coo::new(extents, coords, values)?;
    write(args, list, base, (overwrite, &known), &screen)?;
    screen.line(format!("write    {}", args.out.display()));
    memory::tell_peak(&screen);
    Ok(Done::Complete)
}

fn write(
    args: &PredictArgs,
    list: Coo<f64>,
    base: Option<Base>,
    (overwrite, known): (Overwrite, &[u64]),
    screen: &Screen,
) -> Result<(), Failure> {
    let out = &args.out;
    if out.extension().is_some_and(|extension| extension == "npy") {
        let (_, _, values) = list.into_parts();
        let values = Array1::from(values.into_vec());
        return Ok(files::replace(out, |file| values.write_npy(file).map_err(io::Error::other))?);
    }
    if TableFile::of_path(out).is_none() {
        return Ok(write_list(&list, out, &args.list.options(out, base, overwrite))?);
    }
    let (input, asked) = (&args.input, &args.labels);
    let (mut found, warnings) = labels::find(&input.file, &input.name(), asked, list.extents())?;
    warnings.iter().for_each(|warning| screen.warn(warning));
    let (of_model, _) = labels::of_model(&args.model.model, &[], known)?;
    for (mode, of_model) in found.iter_mut().zip(of_model) {
        if mode.file.is_none() {
            *mode = of_model;
        }
    }
    labels::told(&found).into_iter().for_each(|line| screen.line(line));
    let base = args.list.table_base(base);
    Ok(write_table(&list, &labels::names(&found), out, base, overwrite)?)
}
