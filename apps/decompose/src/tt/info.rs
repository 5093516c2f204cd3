//! `decompose tt --info`: what a train is.

use std::path::PathBuf;

use decompose_common::interrupt;
use decompose_common::model::{Link, Meaning, Model, Stored, TtModel};
use decompose_common::overwrite::Existing;
use decompose_common::progress::{Screen, Verbosity};
use decompose_common::run_folder::{Contents, RunFolder};
use decompose_formats::stats::grouped;
use decompose_tt::Train;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::figures::Sketches;
use crate::stdout;
use crate::tt::args::TtArgs;
use crate::tt::settings::{joined, times};
use crate::tt::spectra;

/// Singular values shown of each bond.
const SHOWN: usize = 8;

/// Runs the command.
///
/// # Errors
///
/// A file that is missing or no train; a folder that cannot be written.
pub(crate) fn run(args: &TtArgs) -> Result<Done, Failure> {
    let folder = args.output.out.as_deref().map(|out| {
        let existing = if args.switches.overwrite { Existing::Replace } else { Existing::Refuse };
        interrupt::announce();
        RunFolder::claim_for(out, existing, Contents::Figures)
    });
    let folder = folder.transpose()?;
    let (model, meaning) = read(args)?;
    let train = Train::of_model(&model);
    let values = train.spectra()?;
    print(args, &model, &train, &values)?;
    if let Some(loss) = &meaning.loss {
        let scale = match meaning.link {
            Link::Identity => "on the scale of the data",
            Link::Logit => "log-odds",
        };
        stdout::line(format!("loss         {loss}; values are {scale}"))?;
    }
    let Some(folder) = folder else { return Ok(Done::Complete) };
    let title = format!("{}, ranks {}", args.input.file.display(), joined(&train.ranks(), "-"));
    let figure = spectra::figure(title, &values, &train.ranks());
    let mut paths = vec![spectra::write(&values, &train.ranks(), folder.work())?];
    let formats = args.output.figures.formats();
    let mut sketches = Sketches::new(&formats);
    sketches.add("spectra", || Ok(figure));
    paths.extend(sketches.write(folder.work()));
    let screen = Screen::new(Verbosity::Normal);
    sketches.warnings.iter().for_each(|warning| screen.warn(warning));
    let paths: Vec<PathBuf> = paths.iter().map(|path| folder.will_be(path)).collect();
    folder.publish()?;
    paths.iter().try_for_each(|path| stdout::line(path.display()))?;
    Ok(Done::Complete)
}

/// Reads the train that the command is about, with what its values say.
///
/// # Errors
///
/// A file that is missing or no train.
pub(crate) fn read(args: &TtArgs) -> Result<(TtModel<f64>, Meaning), Failure> {
    let path = &args.input.file;
    let Stored { model, meaning } = Stored::<f64>::read(path)?;
    match model {
        Model::Tt(model) => Ok((model, meaning)),
        other => Err(Failure::input(format!(
            "{} holds a {} model, not a train",
            path.display(),
            other.kind().name()
        ))),
    }
}

fn print(
    args: &TtArgs,
    model: &TtModel<f64>,
    train: &Train,
    spectra: &[Vec<f64>],
) -> Result<(), Failure> {
    let cells: f64 = train.extents().iter().map(|&extent| extent as f64).product();
    let numbers = train.parameters();
    stdout::line(format!("train        {}", args.input.file.display()))?;
    stdout::line(format!("modes        {} along the train", model.order()))?;
    stdout::line(format!("extents      {} in mode order", joined(&model.extents(), " x ")))?;
    stdout::line(format!("ranks        {}", joined(&train.ranks(), "-")))?;
    stdout::line(format!(
        "numbers      {}, {} times fewer than cells",
        grouped(numbers as u64),
        times(cells / numbers as f64)
    ))?;
    stdout::line(format!("norm         {:.9e}", train.norm()))?;
    for (values, bond) in spectra.iter().zip(1..) {
        let shown: Vec<String> =
            values.iter().take(SHOWN).map(|value| format!("{value:.3e}")).collect();
        let more = match values.len().checked_sub(SHOWN + 1) {
            None => String::new(),
            Some(_) => format!(" ... {:.3e}", values[values.len() - 1]),
        };
        let count = values.len();
        let text = shown.join(" ");
        stdout::line(format!("bond {bond:<8}{count} singular values: {text}{more}"))?;
    }
    Ok(())
}
