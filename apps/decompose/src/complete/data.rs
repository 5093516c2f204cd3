//! From files to training, validation and test entries.

use std::path::Path;

use decompose_common::memory;
use decompose_complete::{Parts, Reg, fit_bytes, overlap, split};
use decompose_formats::io::{Base, Format, Missing};
use decompose_formats::{Coo, Ints, counted};
use serde_json::json;

use crate::complete::figures::short;
use crate::complete::mask;
use crate::complete::settings::{HeldOut, Settings};
use crate::failure::Failure;
use crate::labels::{self, ModeLabels};
use crate::run::console::Console;
use crate::run::memory::{Forecast, Needs, figure_bytes};
use crate::run::tensor::{self, TensorFacts};

/// What to do about a run that does not fit.
const REMEDY: &str = "lower --rank, use --alg lbfgs, which keeps one tree";

/// Entries that are ready, and what was found on the way.
pub(crate) struct Loaded {
    pub(crate) parts: Parts,
    pub(crate) tensor: TensorFacts,
    pub(crate) forecast: Forecast,
    /// What `prepare` kept.
    pub(crate) whole: Option<Coo<f64>>,
}

/// Reads the entries, hands them to `prepare`, and divides what it makes of them, `times` as many; the second
/// tensor that it returns is kept as it is.
///
/// # Errors
///
/// Everything that can be wrong with the input; nothing is written.
pub(crate) fn load(
    settings: &Settings,
    times: usize,
    console: &mut Console,
    prepare: impl FnOnce(Coo<f64>) -> Result<(Coo<f64>, Option<Coo<f64>>), Failure>,
) -> Result<Loaded, Failure> {
    let admit = |tensor: &Coo<f64>, format: Format| {
        let forecast = forecast(settings, times, tensor, format)?;
        forecast.check(REMEDY)?;
        forecast.sort(REMEDY)?;
        Ok((forecast, format))
    };
    let (tensor, facts, (forecast, format)) = tensor::load(settings, console, admit)?;
    forecast.tell(console)?;
    let taken = settings.mask.is_none() && settings.input.missing() == Missing::None;
    if format == Format::Npy && taken {
        let why = "zeros of a dense array are taken to be missing; where they were observed, use \
                   --missing nan, with NaN in the cells that were not";
        console.screen.warn(why);
    }
    let base = facts.report.text.as_ref().map(|text| text.base);
    let tensor = match &settings.mask {
        Some(file) => mask::apply(settings, file, base, &tensor, console)?,
        None => tensor,
    };
    let (tensor, whole) = prepare(tensor)?;
    let (parts, seconds) = match &settings.held_out {
        HeldOut::Split(share, rule) => {
            // A byte an entry tells where it goes.
            let bytes = tensor.bytes() + tensor.nnz() as u64;
            memory::foresee(bytes, || "the entries, divided,".into(), REMEDY)?;
            let (parts, seconds) = console.screen.phase("split", || split(&tensor, *share, *rule));
            drop(tensor);
            let named = |error| Failure::input(format!("{}: {error}", facts.report.file));
            (parts.map_err(named)?, seconds)
        }
        HeldOut::Files { val, test } => {
            let begun = std::time::Instant::now();
            let mut read = |file: Option<&Path>| {
                file.map(|file| held_out(settings, file, base, console)).transpose()
            };
            let (val, test) = (read(val.as_deref())?, read(test.as_deref())?);
            let parts = common_extents(Parts { train: tensor, val, test })?;
            (parts, begun.elapsed().as_secs_f64())
        }
    };
    console.phases.add("split", seconds);
    tell(settings, &parts, &facts.labels, console)?;
    if let Some(value) = parts.only_value() {
        console.screen.warn(nothing_to_learn(value));
    }
    Ok(Loaded { parts, tensor: facts, forecast, whole })
}

/// Checks the options that depend on the tensor, and foresees a run on `times` its entries.
///
/// # Errors
///
/// The option that does not suit it.
pub(super) fn forecast(
    settings: &Settings,
    times: usize,
    tensor: &Coo<f64>,
    format: Format,
) -> Result<Forecast, Failure> {
    settings.config(tensor.order(), 0).check(tensor.extents())?;
    let needs = needs(settings, times, tensor);
    Ok(Forecast::before_plan(tensor, format, settings, needs))
}

/// Says why entries that all have this value are nothing to complete.
fn nothing_to_learn(value: f64) -> String {
    format!(
        "every listed value is {}: cells that are not listed seem to be zeros that were not listed, and \
         a completion, for which they are unknown, has nothing to learn; list the zeros, say with --mask \
         which cells were observed, or use `decompose cp`, for which cells that are not listed are zero",
        short(value)
    )
}

/// Reads a file of held-out entries, its indices counted as those of the training entries.
fn held_out(
    settings: &Settings,
    file: &Path,
    base: Option<Base>,
    console: &mut Console,
) -> Result<Coo<f64>, Failure> {
    let mut input = settings.input.beside(file, base).read::<f64>(&mut console.screen)?;
    let (merged, _) = input.tidy(settings.duplicates(), &mut console.screen)?;
    if let Some(warning) = settings.input.warning_of(merged) {
        console.screen.warn(format!("{}: {warning}", file.display()));
    }
    Ok(input.tensor)
}

/// Gives all parts the largest of their extents.
fn common_extents(parts: Parts) -> Result<Parts, Failure> {
    let Parts { train, val, test } = parts;
    let mut extents = train.extents().to_vec();
    for (name, part) in [("validation", &val), ("test", &test)] {
        let Some(part) = part else { continue };
        if part.order() != train.order() {
            let (have, want) = (part.order(), train.order());
            let have = counted(have, "mode", "modes");
            let why = format!("the {name} entries have {have}, the training entries {want}");
            return Err(Failure::input(why));
        }
        extents.iter_mut().zip(part.extents()).for_each(|(e, &other)| *e = other.max(*e));
    }
    let widen = |part: Coo<f64>| -> Result<Coo<f64>, Failure> {
        let (_, coords, values) = part.into_parts();
        let coords: Vec<Ints> = coords;
        Ok(Coo::new(extents.clone(), coords, values)?)
    };
    let (val, test) = (val.map(&widen).transpose()?, test.map(&widen).transpose()?);
    let mut train = widen(train)?;
    train.sum_duplicates()?;
    Ok(Parts { train, val, test })
}

/// Says how the entries are divided, and warns of those that are in two parts.
fn tell(
    settings: &Settings,
    parts: &Parts,
    labels: &[ModeLabels],
    console: &Console,
) -> Result<(), Failure> {
    let count = |part: &Option<Coo<f64>>| part.as_ref().map_or(0, Coo::nnz);
    let (train, val, test) = (parts.train.nnz(), count(&parts.val), count(&parts.test));
    let text = format!("split    {train} training, {val} validation, {test} test entries");
    console.screen.line(text);
    console.event("split", json!({ "train": train, "val": val, "test": test }))?;
    // Parts of one list have no entry in common.
    let files = matches!(settings.held_out, HeldOut::Files { .. });
    for (name, part) in [("validation", &parts.val), ("test", &parts.test)] {
        let Some(part) = part.as_ref().filter(|_| files) else { continue };
        if let Some((count, first)) = overlap(&parts.train, part)? {
            let first = labels::cell(labels, first);
            let (one, many) = (format!("{name} entry has"), format!("{name} entries have"));
            console.screen.warn(format!(
                "{} the indices of a training entry (the first: {first}), so the {name} error is too low",
                counted(count, &one, &many)
            ));
        }
    }
    if val == 0 && settings.reg == Reg::Chosen {
        console.screen.line(
            "         a tenth of the training entries chooses the ridge; the model is then fitted to all"
                .to_owned(),
        );
    } else if val == 0 {
        let why = "there are no validation entries: the training error ends the fit and chooses the \
                   model, which may then fit noise";
        console.screen.warn(why);
    }
    Ok(())
}

/// Returns what the fit needs: the parts, which are a list of their own beside that of the file until it is
/// given up, and what the method works in.  Of `times` as many entries the list that was read is kept.
fn needs(settings: &Settings, times: usize, tensor: &Coo<f64>) -> Needs {
    let nnz = tensor.nnz() * times;
    let part = |share: f64| (nnz as f64 * share) as usize;
    let (entries, unheld) = match &settings.held_out {
        HeldOut::Split(share, _) => {
            ([part(share.train), part(share.val), part(share.test)], share.val == 0.0)
        }
        HeldOut::Files { val, .. } => ([nnz, 0, 0], val.is_none()),
    };
    let config = settings.config(tensor.order(), 0);
    let fit = fit_bytes(tensor.extents(), entries, &config, settings.threads);
    let list = tensor.bytes().saturating_mul(times as u64);
    let kept = if times > 1 { tensor.bytes() } else { 0 };
    // Training entries divided once more, to choose a ridge by.
    let divided = if unheld && settings.reg == Reg::Chosen { list } else { 0 };
    let work = list.saturating_add(fit.saturating_add(divided).max(list)).saturating_add(kept);
    let figures = figure_bytes(tensor.order(), settings);
    Needs { start: 0, factors: 0, work, figures }
}
