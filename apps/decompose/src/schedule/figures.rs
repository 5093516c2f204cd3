//! The figures of `decompose schedule`.

use std::path::{Path, PathBuf};

use decompose_formats::FormatError;
use decompose_plot::{Figure, Race, RaceCandidate};

use crate::failure::Failure;
use crate::schedule::args::ScheduleArgs;
use crate::schedule::choose::{How, Pick, Selection};
use crate::schedule::frontier::Compared;
use crate::schedule::outline::{nest_figure, network_figure};
use crate::schedule::table;

/// From so many operands on a product has a tree of contractions, which is drawn.
const NETWORK: usize = 3;

/// Refuses, before any work, figures that exist and are to stay.
pub(crate) fn check(args: &ScheduleArgs) -> Result<(), Failure> {
    if args.output.overwrite {
        return Ok(());
    }
    let shown = args.output.plot.iter().chain(&args.output.plot_race);
    for file in shown.chain(&args.frontier.plot_frontier) {
        let (folder, stem) = place(file)?;
        let files = ["svg", "png"].map(|ending| folder.join(format!("{stem}.{ending}")));
        if let Some(exists) = files.into_iter().find(|file| file.exists()) {
            return Err(Failure::from(FormatError::Exists(exists))
                .help("choose another name, or replace it with --overwrite"));
        }
    }
    Ok(())
}

/// Draws the figures that were asked for and returns their files.
pub(crate) fn draw(
    args: &ScheduleArgs,
    plan: &Selection,
    stages: Option<&Compared>,
) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    if let Some(file) = &args.output.plot {
        let pick = plan.choice();
        let Pick { problem, schedule, .. } = pick;
        match problem.expr.inputs.len() {
            0..NETWORK => save(&nest_figure(problem, schedule)?, file, &mut files)?,
            _ => save(&network_figure(problem, schedule)?, file, &mut files)?,
        }
    }
    if let (Some(file), How::Measured(_)) = (&args.output.plot_race, &plan.how) {
        save(&race(plan), file, &mut files)?;
    }
    if let (Some(file), Some(stages)) = (&args.frontier.plot_frontier, stages) {
        save(&stages.figure(plan), file, &mut files)?;
    }
    Ok(files)
}

fn save(figure: &impl Figure, file: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let (folder, stem) = place(file)?;
    files.extend(decompose_plot::save(figure, &folder, &stem)?);
    Ok(())
}

/// The candidates that were measured; the one chosen is the one predicted to be the fastest.
fn race(plan: &Selection) -> Race {
    let times = match &plan.how {
        How::Measured(race) => race.times.as_slice(),
        _ => &[],
    };
    let candidate = |(pick, time): (&Pick, &Option<_>)| RaceCandidate {
        label: table::label(pick),
        predicted_seconds: pick.seconds,
        measured_seconds: time
            .map_or(f64::NAN, |time: decompose_core::contract::RaceTime| time.median_seconds),
    };
    Race {
        title: plan.choice().problem.expr.to_string(),
        candidates: plan.picks.iter().zip(times).map(candidate).collect(),
        chosen: (!plan.picks.is_empty()).then_some(0),
    }
}

/// Folder and stem of a figure: its ending, .svg or .png, is that of both files.
fn place(file: &Path) -> Result<(PathBuf, String), Failure> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let stem = name.map(|name| {
        let stem = name.strip_suffix(".svg").or(name.strip_suffix(".png")).map(str::to_owned);
        stem.unwrap_or(name)
    });
    let stem = stem.filter(|stem| !stem.is_empty());
    let bad = || Failure::input(format!("{} is no name for a figure", file.display()));
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")).to_owned(), stem.ok_or_else(bad)?))
}
