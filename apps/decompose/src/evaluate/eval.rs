//! `decompose eval`: how well a model describes a tensor.

use std::path::PathBuf;

use clap::Args;
use decompose_common::evaluate::values_at;
use decompose_common::memory::note;
use decompose_common::model::{Link, Stored};
use decompose_complete::{BitQuality, Loss, Quality, Scores};
use decompose_formats::io::{Overwrite, TableFile, write};
use decompose_formats::{Coo, counted};
use serde::Serialize;

use crate::cli::Done;
use crate::convert::check_output;
use crate::evaluate::coords;
use crate::evaluate::predict::Unknown;
use crate::evaluate::{ComputeArgs, ModelArg, foresee, read_model};
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::listing::ListArgs;
use crate::run::memory;
use crate::stdout;

/// How well a CP, Tucker or tensor-train model describes a tensor.
///
/// Prints the fit and relative error over all cells, where cells that are not listed are zero, and
/// errors over the listed entries alone: root mean square, mean and largest absolute error, and the
/// share of their variance that the model explains.  All are on the scale of the data; of a model
/// that was fitted by a loss its deviance or log-loss is told too, and of zeros and ones the area under
/// the ROC curve and how well calibrated the model is.
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
    #[command(flatten)]
    list: ListArgs,
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
    /// The loss that the model was fitted by, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<String>,
    entries: usize,
    /// Over all cells, as the next; neither is known of a model of log-odds.
    fit: Option<f64>,
    relative_error: Option<f64>,
    rmse: f64,
    mae: f64,
    largest_residual: f64,
    /// `sqrt(sum of squared residuals / sum of squares)` of the listed entries.
    relative_error_at_entries: f64,
    #[serde(flatten)]
    quality: Quality,
    /// Poisson and gamma: mean unit deviance.
    #[serde(skip_serializing_if = "Option::is_none")]
    deviance: Option<f64>,
    norm: f64,
    model_norm: Option<f64>,
    seconds: f64,
}

/// Runs the command.
///
/// # Errors
///
/// A file that is no model or no list, coordinates outside of the model, an output that exists.
pub(crate) fn run(args: &EvalArgs) -> Result<Done, Failure> {
    let overwrite = if args.compute.overwrite { Overwrite::Replace } else { Overwrite::Refuse };
    if let Some(out) = &args.residuals {
        if TableFile::of_path(out).is_some() {
            let why = format!("{}: residuals are written as a list, not as a table", out.display());
            return Err(Failure::input(why)
                .help("use .tns or .dtb; `decompose convert` makes a table of such a list"));
        }
        check_output(out, overwrite)?;
    }
    args.compute.begin()?;
    let mut screen = args.compute.screen();
    let Stored { model, meaning } = read_model(&args.model.model, &screen)?;
    let mut input = args.input.read::<f64>(&mut screen)?;
    if input.tensor.order() != model.extents().len() {
        let (have, want) = (input.tensor.order(), model.extents().len());
        let why = format!("{} is of order {have}, the model of {want}", input.report.file);
        return Err(Failure::input(why));
    }
    let copy = input.tensor.coordinate_bytes();
    note(input.tensor.bytes());
    // Before sorting, while entries are where the lines of the file are.
    coords::of_list(input.tensor.clone(), &input.report, &model.extents(), Unknown::Error)?;
    memory::sort_of(&input.tensor)?;
    input.tidy(args.input.duplicates(), &mut screen)?;
    let base = input.base();
    foresee(&model, input.tensor.nnz(), copy)?;
    let (_, coords, values) = input.tensor.into_parts();
    let (copies, toolchain) = (coords.clone(), args.compute.toolchain());
    let (modelled, seconds) = screen.phase("evaluate", || values_at(&model, copies, &toolchain));
    let mut modelled = modelled?;
    modelled.iter_mut().for_each(|value| *value = meaning.link.mean(*value));
    let whole = (meaning.link == Link::Identity).then(|| Whole {
        norm: model.norm(),
        cells: model.extents().iter().map(|&extent| extent as f64).product(),
    });
    let measures = Measures {
        model: model.kind().name(),
        seconds,
        ..measure(&values, &modelled, whole, meaning.loss)
    };
    match args.json {
        true => stdout::json(&measures)?,
        false => tell(&measures)?,
    }
    if let Some(out) = &args.residuals {
        let residuals: Vec<f64> = values.iter().zip(&modelled).map(|(x, m)| x - m).collect();
        let list = Coo::new(model.extents(), coords, residuals)?;
        write(&list, out, &args.list.options(out, base, overwrite))?;
        screen.line(format!("write    {}", out.display()));
    }
    memory::tell_peak(&screen);
    Ok(Done::Complete)
}

/// What a model is over all cells.
struct Whole {
    norm: f64,
    cells: f64,
}

/// Measures a model whose values at the entries are `modelled`.
///
/// `||X - M||^2` is what the entries show and what the model has elsewhere, `||M||^2` less its
/// squares at the entries: nothing, and exactly so, where every cell is listed.  Squares are of numbers
/// divided by the largest, so that they neither overflow nor vanish.
fn measure(
    values: &[f64],
    modelled: &[f64],
    whole: Option<Whole>,
    loss: Option<String>,
) -> Measures {
    let pairs = || values.iter().zip(modelled);
    let largest = |most: f64, (x, m): (&f64, &f64)| most.max(x.abs()).max(m.abs());
    let unit = Some(pairs().fold(0.0, largest)).filter(|most| *most > 0.0).unwrap_or(1.0);
    let square = sum(values.iter().map(|x| (x / unit).powi(2)));
    let residual = sum(pairs().map(|(x, m)| ((x - m) / unit).powi(2)));
    let relative_error = whole.as_ref().map(|whole| {
        let elsewhere = match values.len() as f64 >= whole.cells {
            true => 0.0,
            false => {
                let listed = sum(modelled.iter().map(|m| (m / unit).powi(2)));
                ((whole.norm / unit).powi(2) - listed).max(0.0)
            }
        };
        ((residual + elsewhere) / square).sqrt()
    });
    let count = values.len().max(1) as f64;
    let deviance = |loss: Loss| {
        let sound = values.iter().all(|&x| loss.allows(x));
        sound.then(|| Scores::of_means(loss, values, modelled).deviance).flatten()
    };
    Measures {
        model: "",
        entries: values.len(),
        fit: relative_error.map(|error| 1.0 - error),
        relative_error,
        rmse: unit * (residual / count).sqrt(),
        mae: unit * (sum(pairs().map(|(x, m)| ((x - m) / unit).abs())) / count),
        largest_residual: pairs().map(|(x, m)| (x - m).abs()).fold(0.0, f64::max),
        relative_error_at_entries: (residual / square).sqrt(),
        quality: Quality::of(values, modelled),
        deviance: match loss.as_deref() {
            Some("poisson") => deviance(Loss::Poisson),
            Some("gamma") => deviance(Loss::Gamma),
            _ => None,
        },
        loss,
        norm: unit * square.sqrt(),
        model_norm: whole.map(|whole| whole.norm),
        seconds: 0.0,
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
    let Measures { rmse, mae, largest_residual, .. } = measures;
    match (measures.fit, measures.relative_error) {
        (Some(fit), Some(error)) => stdout::line(format!(
            "fit          {fit:.9} over all cells (relative error {error:.6e})"
        ))?,
        _ => stdout::line("fit          not told: probabilities of all cells, none of them zero")?,
    }
    stdout::line(format!("entries      {}", measures.entries))?;
    stdout::line(format!("RMSE         {rmse:.6e} at the entries"))?;
    stdout::line(format!("MAE          {mae:.6e} at the entries"))?;
    stdout::line(format!("largest      {largest_residual:.6e} at the entries"))?;
    if let Some(r2) = measures.quality.r2 {
        stdout::line(format!("R2           {r2:.6} of the entries' variance"))?;
    }
    if let Some(deviance) = measures.deviance {
        stdout::line(format!("deviance     {deviance:.6e} at the entries"))?;
    }
    for (name, text) in measures.quality.bits.iter().flat_map(bits) {
        stdout::line(format!("{name:<13}{text}"))?;
    }
    let at_entries = measures.relative_error_at_entries;
    stdout::line(format!("relative     {at_entries:.6e} of the entries' norm"))?;
    let model = measures.model_norm.map(|norm| format!(", {norm:.9e} model")).unwrap_or_default();
    stdout::line(format!("norms        {:.9e} tensor{model}", measures.norm))
}

/// What is told of predictions of zeros and ones, with the name of each line.
pub(crate) fn bits(bits: &BitQuality) -> [(&'static str, String); 3] {
    let clipped = match bits.outside {
        0 => String::new(),
        count => {
            format!(", {} outside of 0 to 1 clipped", counted(count, "prediction", "predictions"))
        }
    };
    [
        ("AUC", format!("{:.6} under the ROC curve", bits.auc)),
        ("log-loss", format!("{:.6}, Brier score {:.6}{clipped}", bits.log_loss, bits.brier)),
        (
            "calibration",
            format!(
                "error {:.6}; mean prediction {:.6}, share of ones {:.6}",
                bits.calibration_error, bits.predicted_ones, bits.observed_ones
            ),
        ),
    ]
}
