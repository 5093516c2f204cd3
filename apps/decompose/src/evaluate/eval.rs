//! `decompose eval`: how well a model describes a tensor.

use std::path::PathBuf;

use clap::Args;
use decompose_common::evaluate::values_at;
use decompose_formats::io::{Dialect, Overwrite, WriteOptions, write};
use decompose_formats::{Coo, Unit};
use serde::Serialize;

use crate::cli::Done;
use crate::convert::check_output;
use crate::evaluate::coords;
use crate::evaluate::predict::Unknown;
use crate::evaluate::{ComputeArgs, ModelArg, read_model};
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::stdout;

/// How well a CP, Tucker or tensor-train model describes a tensor.
///
/// Prints the fit and relative error over all cells, where cells that are not listed are zero, and
/// errors over the listed entries alone: root mean square, mean and largest absolute error.
#[derive(Args, Debug)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    input: InputArgs,
    /// Write the differences tensor - model at the listed entries to this file: .tns, .mtx, .ttx or
    /// .dtb.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    residuals: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    compute: ComputeArgs,
}

/// The measures.
#[derive(Serialize)]
struct Measures {
    model: &'static str,
    entries: usize,
    fit: f64,
    relative_error: f64,
    rmse: f64,
    mae: f64,
    largest_residual: f64,
    /// `sqrt(sum of squared residuals / sum of squares)` of the listed entries.
    relative_error_at_entries: f64,
    norm: f64,
    model_norm: f64,
    seconds: f64,
}

impl Measures {
    /// Returns the measures of data and model that were divided by `unit`.
    fn in_unit(mut self, unit: Unit) -> Measures {
        let sizes = [&mut self.rmse, &mut self.mae, &mut self.largest_residual];
        let norms = [&mut self.norm, &mut self.model_norm];
        sizes.into_iter().chain(norms).for_each(|size| *size = unit.multiply(*size));
        self
    }
}

/// Runs the command.
///
/// # Errors
///
/// A file that is no model or no list, coordinates outside of the model, an output that exists.
pub(crate) fn run(args: &EvalArgs) -> Result<Done, Failure> {
    let overwrite = if args.compute.overwrite { Overwrite::Replace } else { Overwrite::Refuse };
    if let Some(out) = &args.residuals {
        check_output(out, overwrite)?;
    }
    args.compute.start_threads()?;
    let mut screen = args.compute.screen();
    let model = read_model(&args.model.model, &screen)?;
    let mut input = args.input.read::<f64>(&mut screen)?;
    if input.tensor.order() != model.extents().len() {
        let (have, want) = (input.tensor.order(), model.extents().len());
        let why = format!("{} is of order {have}, the model of {want}", input.report.file);
        return Err(Failure::input(why));
    }
    // Before sorting, while entries are where the lines of the file are.
    coords::of_list(input.tensor.clone(), &input.report, &model.extents(), Unknown::Error)?;
    input.tidy(args.input.duplicates(), &mut screen)?;
    let unit = input.tensor.unit();
    let (_, coords, values) = input.tensor.divided_by(unit).into_parts();
    let model = model.in_unit(unit.inverse());
    let (copies, toolchain) = (coords.clone(), args.compute.toolchain());
    let (modelled, seconds) = screen.phase("evaluate", || values_at(&model, copies, &toolchain));
    let modelled = modelled?;
    let kind = model.kind().name();
    let cells = model.extents().iter().map(|&extent| extent as f64).product();
    let squares = (model.norm_squared(), cells);
    let measures = measure(&values, &modelled, squares, (kind, seconds)).in_unit(unit);
    match args.json {
        true => stdout::json(&measures)?,
        false => tell(&measures)?,
    }
    if let Some(out) = &args.residuals {
        let residuals: Vec<f64> =
            values.iter().zip(&modelled).map(|(x, m)| unit.multiply(x - m)).collect();
        let list = Coo::new(model.extents(), coords, residuals)?;
        write(&list, out, &WriteOptions { overwrite, dialect: Dialect::Plain })?;
        screen.line(format!("write    {}", out.display()));
    }
    Ok(Done::Complete)
}

/// Measures a model whose values at the entries are `modelled` on a tensor of `cells` cells.
///
/// `||X - M||^2` is what the entries show and what the model has elsewhere, `||M||^2` less its
/// squares at the entries: nothing, and exactly so, where every cell is listed.
fn measure(
    values: &[f64],
    modelled: &[f64],
    (model_square, cells): (f64, f64),
    (model, seconds): (&'static str, f64),
) -> Measures {
    let pairs = || values.iter().zip(modelled);
    let square = sum(values.iter().map(|x| x * x));
    let residual = sum(pairs().map(|(x, m)| (x - m).powi(2)));
    let elsewhere = match values.len() as f64 >= cells {
        true => 0.0,
        false => (model_square - sum(modelled.iter().map(|m| m * m))).max(0.0),
    };
    let count = values.len().max(1) as f64;
    let relative_error = ((residual + elsewhere) / square).sqrt();
    Measures {
        model,
        entries: values.len(),
        fit: 1.0 - relative_error,
        relative_error,
        rmse: (residual / count).sqrt(),
        mae: sum(pairs().map(|(x, m)| (x - m).abs())) / count,
        largest_residual: pairs().map(|(x, m)| (x - m).abs()).fold(0.0, f64::max),
        relative_error_at_entries: (residual / square).sqrt(),
        norm: square.sqrt(),
        model_norm: model_square.sqrt(),
        seconds,
    }
}

/// Sums by blocks, so that rounding grows with their number only.
fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut block) = (0.0, 0.0);
    for (at, number) in numbers.enumerate() {
        block += number;
        if at % 1024 == 1023 {
            total += block;
            block = 0.0;
        }
    }
    total + block
}

fn tell(measures: &Measures) -> Result<(), Failure> {
    let Measures { fit, relative_error, rmse, mae, largest_residual, .. } = measures;
    let error = format!("relative error {relative_error:.6e}");
    stdout::line(format!("fit          {fit:.9} over all cells ({error})"))?;
    stdout::line(format!("entries      {}", measures.entries))?;
    stdout::line(format!("RMSE         {rmse:.6e} at the entries"))?;
    stdout::line(format!("MAE          {mae:.6e} at the entries"))?;
    stdout::line(format!("largest      {largest_residual:.6e} at the entries"))?;
    let at_entries = measures.relative_error_at_entries;
    stdout::line(format!("relative     {at_entries:.6e} of the entries' norm"))?;
    stdout::line(format!(
        "norms        {:.9e} tensor, {:.9e} model",
        measures.norm, measures.model_norm
    ))
}
