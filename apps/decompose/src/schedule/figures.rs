//! The figures of `decompose schedule`.

use std::path::{Path, PathBuf};

use decompose_common::progress::Screen;
use decompose_formats::io::Overwrite;
use decompose_plot::{Figure, Race, RaceCandidate};

use crate::cli::Done;
use crate::convert::check_absent;
use crate::failure::Failure;
use crate::schedule::args::ScheduleArgs;
use crate::schedule::choose::{How, Pick, Selection};
use crate::schedule::frontier::Compared;
use crate::schedule::outline::{nest_figure, network_figure};
use crate::schedule::table;

/// The figures of a search over templates.
pub(crate) const TEMPLATES: [&str; 3] = ["space", "trimming", "times"];

/// From so many operands on a product has a tree of contractions, which is drawn.
const NETWORK: usize = 3;

/// Refuses, before any work, figures without a folder, and those that exist and are to stay.
pub(crate) fn check(args: &ScheduleArgs) -> Result<(), Failure> {
    let overwrite = if args.output.overwrite { Overwrite::Replace } else { Overwrite::Refuse };
    let shown = args.output.plot.iter().chain(&args.output.plot_race);
    let single = shown.chain(&args.frontier.plot_frontier).cloned();
    let of_templates = args.partition.plot_templates.iter();
    let of_templates = of_templates.flat_map(|file| TEMPLATES.map(|kind| (file, kind)));
    let mut all: Vec<PathBuf> = single.collect();
    for (file, kind) in of_templates {
        all.push(beside(file, kind)?);
    }
    for file in &all {
        let (folder, stem) = place(file)?;
        if !folder.is_dir() {
            let (file, folder) = (file.display(), folder.display());
            let why = format!("cannot write {file}: there is no folder {folder}");
            return Err(Failure::input(why).help("make the folder first, or choose another place"));
        }
        for ending in ["svg", "png"] {
            check_absent(&folder.join(format!("{stem}.{ending}")), overwrite)?;
        }
    }
    Ok(())
}

/// Draws the figures that were asked for and names their files.
///
/// A figure that cannot be drawn or written is a warning: it never costs the answer.
pub(crate) fn draw(
    args: &ScheduleArgs,
    (plan, pick): (&Selection, &Pick),
    stages: Option<&Compared>,
    screen: &Screen,
) -> Done {
    let mut done = Done::Complete;
    let mut tell = |drawn| {
        if told(drawn, screen) == Done::Partly {
            done = Done::Partly;
        }
    };
    if let Some(file) = &args.output.plot {
        let Pick { problem, schedule, .. } = pick;
        tell(match problem.expr.inputs.len() {
            0..NETWORK => nest_figure(problem, schedule)
                .map_err(Failure::from)
                .and_then(|figure| save(&figure, file)),
            _ => network_figure(problem, schedule)
                .map_err(Failure::from)
                .and_then(|figure| save(&figure, file)),
        });
    }
    if let (Some(file), How::Measured(_)) = (&args.output.plot_race, &plan.how) {
        tell(save(&race(plan), file));
    }
    if let (Some(file), Some(stages)) = (&args.frontier.plot_frontier, stages) {
        tell(save(&stages.figure(plan), file));
    }
    done
}

/// Draws the figures of a search over templates, and names their files.
pub(crate) fn draw_templates(
    file: &Path,
    figures: &[(&str, &dyn Figure)],
    screen: &Screen,
) -> Done {
    let mut done = Done::Complete;
    for &(kind, figure) in figures {
        let drawn = beside(file, kind).and_then(|path| save(figure, &path));
        if told(drawn, screen) == Done::Partly {
            done = Done::Partly;
        }
    }
    done
}

/// Names the files of a figure, or tells that it is missing.
fn told(drawn: Result<Vec<PathBuf>, Failure>, screen: &Screen) -> Done {
    match drawn {
        Ok(files) => {
            files.iter().for_each(|path| screen.line(format!("figure   {}", path.display())));
            Done::Complete
        }
        Err(failure) => {
            screen.warn(format!("a figure is missing: {}", failure.message()));
            Done::Partly
        }
    }
}

/// Returns the file of one of the figures of templates.
fn beside(file: &Path, kind: &str) -> Result<PathBuf, Failure> {
    let (folder, stem) = place(file)?;
    Ok(folder.join(format!("{stem}-{kind}")))
}

fn save(figure: &(impl Figure + ?Sized), file: &Path) -> Result<Vec<PathBuf>, Failure> {
    let (folder, stem) = place(file)?;
    Ok(decompose_plot::save(figure, &folder, &stem)?)
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
