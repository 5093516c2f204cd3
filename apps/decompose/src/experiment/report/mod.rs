//! `decompose experiment report`: tables and figures of a study.
//!
//! ```text
//! results  what runs have left     configs  runs that differ by seed and repeat alone
//! table    all runs, and medians   figures  each with the table that it draws
//! page     HTML, Markdown, LaTeX            peers    results of other programs
//! ```

pub(crate) mod configs;
pub(crate) mod figures;
mod page;
pub(crate) mod peers;
pub(crate) mod results;
mod table;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use decompose_common::files;
use decompose_common::progress::{Screen, Verbosity};

use crate::cli::Done;
use crate::experiment::report::page::Tables;
use crate::experiment::report::results::{End, Results};
use crate::failure::Failure;
use crate::stdout;

/// Makes a report of a study: one page, its figures, and all numbers as CSV and LaTeX.
///
/// The page needs neither network nor server.  A study that is not finished has a report of what there is; without
/// any result the exit code is 3.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The folder of the study.
    dir: PathBuf,
    /// The format of the page: html, or md with figures beside it.
    #[arg(long, value_name = "FORMAT", default_value = "html")]
    format: Format,
    /// The look: screen, or paper, whose figures are as wide as a column or a page.
    #[arg(long, value_name = "LOOK", default_value = "screen")]
    style: Style,
    /// The folder of the report, in which files of an earlier one are replaced.  [default: DIR/report]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Html,
    Md,
}

/// The look of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    Screen,
    Paper,
}

/// Runs the command.
///
/// # Errors
///
/// A folder that holds no study, a folder of other files to write to, or files that cannot be written.
pub(crate) fn run(args: &ReportArgs) -> Result<Done, Failure> {
    let results = Results::read(&args.dir)?;
    let configs = configs::configs(results.finished());
    let peers = peers::configs(&results.plan.peers);
    let sheet = figures::draw(&results, (&configs, &peers), &args.dir, args.style);
    let tables =
        Tables { runs: table::runs(&results), summary: table::summary(&results, &configs, &peers) };
    let page = page::page(&results, &tables, &sheet, (args.format, args.style))?;
    let latex = page::latex(&results.plan.title, &tables.summary)?;
    let screen = Screen::new(Verbosity::Normal);
    sheet.warnings.iter().for_each(|warning| screen.warn(warning));
    let folder = args.out.clone().unwrap_or_else(|| args.dir.join("report"));
    if args.out.is_some() {
        check_folder(&folder)?;
    }
    fs::create_dir_all(&folder).map_err(|error| {
        Failure::input(format!("cannot make {}: {error}", folder.display())).while_writing()
    })?;
    let name = match args.format {
        Format::Html => "report.html",
        Format::Md => "report.md",
    };
    let write = |name: &str, text: &str| write(&folder.join(name), text);
    write("runs.csv", &tables.runs.csv())?;
    write("summary.csv", &tables.summary.csv())?;
    write("summary.tex", &latex)?;
    for drawn in &sheet.drawn {
        write(&format!("{}.csv", drawn.stem), &drawn.csv)?;
        write(&format!("{}.svg", drawn.stem), &drawn.svg)?;
    }
    // The page comes last: where it is, all that it names is there.
    write(name, &page)?;
    stdout::line(folder.join(name).display())?;
    if results.finished().next().is_some() {
        return Ok(Done::Complete);
    }
    screen.warn(match results.runs.iter().any(|run| run.end != End::Missing) {
        true => "all runs failed: the report has their messages, and no results",
        false => "no run has ended: the report has no results",
    });
    Ok(Done::Partly)
}

/// Refuses a folder that holds files and no report.
fn check_folder(folder: &Path) -> Result<(), Failure> {
    let has_report = ["report.html", "report.md", "summary.tex"]
        .into_iter()
        .any(|file| folder.join(file).is_file());
    let is_empty = fs::read_dir(folder).map_or(true, |mut files| files.next().is_none());
    match has_report || is_empty {
        true => Ok(()),
        false => Err(Failure::input(format!("{} exists and holds no report", folder.display()))
            .help("choose another folder with --out; files of an earlier report are replaced")),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = files::replace(path, |out| out.write_all(text.as_bytes()));
    written.map_err(|error| Failure::from(error).while_writing())
}

/// Returns a text as a field of a CSV file.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
