//! `decompose tt --round`: the smallest train near a given one.

use decompose_common::model::{Model, Stored};
use decompose_common::progress::Screen;
use decompose_tt::{Cut, Method, Ranks, Train, TtConfig};

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::figures::Sketches;
use crate::run::record;
use crate::run::settings::{RunArgs, RunDefaults, RunSettings};
use crate::stdout;
use crate::tt::args::TtArgs;
use crate::tt::settings::{joined, ranks};
use crate::tt::{info, spectra};

/// Runs the command.
///
/// # Errors
///
/// A file that is missing or no train, ranks that make no sense, a folder that cannot be written.
pub(crate) fn run(args: &TtArgs) -> Result<Done, Failure> {
    let asked = ranks(&args.model)?;
    let suffix = "tt-rounded".to_owned();
    let defaults = RunDefaults { max_iters: 0, tol: 0.0, seed: 0, suffix };
    let typed = RunArgs {
        input: args.input.clone(),
        course: &args.model.course,
        compute: &args.compute,
        output: &args.output,
        switches: args.switches,
    };
    let mut settings = RunSettings::new(typed, defaults)?;
    let folder = settings.claim()?;
    let (model, meaning) = info::read(args)?;
    let train = Train::of_model(&model);
    let norm = train.norm();
    let (before, parameters) = (train.ranks(), train.parameters());
    let cuts = cuts(&asked, &train, norm)?;
    let rounded = train.round(&cuts)?;
    let shares = rounded.bonds.iter().map(|bond| (bond.dropped() / norm).powi(2));
    let error = shares.sum::<f64>().sqrt();
    let after = rounded.train.ranks();
    stdout::line(format!("ranks        {} from {}", joined(&after, "-"), joined(&before, "-")))?;
    let numbers = rounded.train.parameters();
    stdout::line(format!("numbers      {numbers} from {parameters}"))?;
    let bound = asked.bound().map(|eps| format!("; the bound is {eps:e}")).unwrap_or_default();
    stdout::line(format!("error        at most {error:.6e} of the train{bound}"))?;
    let Some(mut folder) = folder else { return Ok(Done::Complete) };
    let order = model.order().clone();
    let values: Vec<Vec<f64>> = rounded.bonds.into_iter().map(|bond| bond.spectrum).collect();
    let title = format!("{}, rounded to ranks {}", settings.input.name(), joined(&after, "-"));
    let figure = spectra::figure(title, &values, &after);
    let model = Model::Tt(rounded.train.to_model::<f64>(order)?);
    let mut paths = vec![Stored { model, meaning }.write(folder.work())?];
    folder.keep();
    paths.push(spectra::write(&values, &after, folder.work())?);
    let mut sketches = Sketches::new(&settings.plots);
    sketches.add("spectra", || Ok(figure));
    paths.extend(sketches.write(folder.work()));
    let screen = Screen::new(settings.verbosity);
    sketches.warnings.iter().for_each(|warning| screen.warn(warning));
    let (place, files) = (folder.path().display().to_string(), record::names(&paths).join(" "));
    folder.publish()?;
    stdout::line(format!("files        {place}/: {files}"))?;
    Ok(Done::Complete)
}

/// Makes one cut a bond; ranks above those of the train are cut to them.
fn cuts(asked: &Ranks, train: &Train, norm: f64) -> Result<Vec<Cut>, Failure> {
    let extents = train.extents();
    TtConfig::new(Method::Svd, asked.clone()).check(&extents)?;
    let eps = asked.bound().unwrap_or(0.0);
    let largest = asked.largest(&extents)?.into_iter();
    Ok(largest.map(|rank| Cut::within(eps, norm, extents.len(), rank)).collect())
}
