//! `decompose plot`: earlier runs side by side, or the components of a model.

mod components;
mod overlays;
mod runs;

use std::cell::RefCell;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use decompose_common::interrupt;
use decompose_common::overwrite::Existing;
use decompose_common::run_folder::{Contents, RunFolder};
use decompose_plot::{ComponentOrder, Figure, PlotFormat, Rendered};

use crate::cli::Done;
use crate::failure::Failure;
use crate::labels::LabelPlace;
use crate::run::args::{FormatArgs, parse_modes};
use crate::stdout;

/// Draws earlier runs side by side, or the components of a model.
///
/// Of runs it reads run.json and history.csv.  Runs of different tensors, or measured differently, never
/// share an axis: each of them has figures of its own.  Completions are compared by held-out error.  Runs that differ
/// by the seed alone are also drawn as medians with bands, and runs of several ranks or tensors as trends.  Of a model
/// file, or with --components of a folder, it draws the components.
#[derive(Args, Debug)]
pub(crate) struct PlotArgs {
    /// Folders of runs; or one model: .npz, ktensor, or the folder of a run with --components.
    #[arg(value_name = "RUN|MODEL", required = true)]
    paths: Vec<PathBuf>,
    /// The column of history.csv to compare runs by.  [default: fit; of completions the held-out error]
    #[arg(long, value_name = "COLUMN", help_heading = "Runs")]
    metric: Option<String>,
    /// Draw figures of their own for runs that differ in this option, by its name in run.json, as rank.
    #[arg(long, value_name = "OPTION", help_heading = "Runs")]
    by: Option<String>,
    /// Draw this many components of a model, or all.  [default: 8]
    #[arg(long, value_name = "N|all", help_heading = "Components")]
    components: Option<Count>,
    /// The order of components.
    #[arg(long, value_name = "ORDER", default_value = "weight", help_heading = "Components")]
    sort: Sort,
    /// Draw these modes as lines, in order: 1,3.  [default: modes whose labels are numbers or dates]
    #[arg(
        long,
        value_name = "MODES",
        default_value = "",
        hide_default_value = true,
        help_heading = "Components"
    )]
    lines: ModeList,
    /// Draw these modes as bars, one an index.  [default: modes with other labels]
    #[arg(
        long,
        value_name = "MODES",
        default_value = "",
        hide_default_value = true,
        help_heading = "Components"
    )]
    bars: ModeList,
    /// The folder of files mode-M-NAME.map with a name for each index, or the file of a mode.  [default: those of the
    /// model or of its run]
    #[arg(long, value_name = "DIR|MODE=FILE", help_heading = "Components")]
    labels: Vec<LabelPlace>,
    /// The folder of the figures.
    #[arg(long, short, value_name = "DIR", default_value = "decompose-plot")]
    out: PathBuf,
    /// Replace figures in the folder.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// How many components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// As many.
    Most(usize),
    /// All.
    All,
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Count, String> {
        match text {
            "all" => Ok(Count::All),
            _ => text.parse().ok().filter(|&count| count > 0).map(Count::Most).ok_or_else(|| {
                format!("`{text}` is no number of components; use one from 1 on, or `all`")
            }),
        }
    }
}

/// How components are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// The largest weight first.
    Weight,
    /// As in the model.
    Number,
}

impl From<Sort> for ComponentOrder {
    fn from(sort: Sort) -> ComponentOrder {
        match sort {
            Sort::Weight => ComponentOrder::Weight,
            Sort::Number => ComponentOrder::Number,
        }
    }
}

/// Modes, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ModeList(Vec<usize>);

impl FromStr for ModeList {
    type Err = String;

    fn from_str(text: &str) -> Result<ModeList, String> {
        match text {
            "" => Ok(ModeList(Vec::new())),
            _ => parse_modes(text, ',').map(ModeList),
        }
    }
}

/// Runs the command.
///
/// # Errors
///
/// A path that holds no run or no model, or an output that exists or cannot be written.
pub(crate) fn run(args: &PlotArgs) -> Result<Done, Failure> {
    if let Some(mode) = args.lines.0.iter().find(|mode| args.bars.0.contains(mode)) {
        let why = format!("mode {} is in both --lines and --bars", mode + 1);
        return Err(Failure::input(why).help("draw it as one of them"));
    }
    let existing = if args.overwrite { Existing::Replace } else { Existing::Refuse };
    interrupt::announce();
    let folder = RunFolder::claim_for(&args.out, existing, Contents::Figures)?;
    let (formats, saved) = (args.format.formats(), RefCell::default());
    let sheet = Sheet { folder: &folder, formats, saved };
    let models = args.paths.iter().any(|path| path.is_file());
    let done = match args.paths.as_slice() {
        [model] if models || args.components.is_some() => {
            components::draw(args, model, &sheet)?;
            Done::Complete
        }
        _ if models || args.components.is_some() => {
            let why =
                "components are of one model; folders of runs are compared without --components";
            return Err(Failure::input(why));
        }
        runs => runs::draw(args, runs, &sheet)?,
    };
    let saved = sheet.saved.into_inner();
    folder.publish()?;
    saved.iter().try_for_each(|path| stdout::line(path.display()))?;
    Ok(done)
}

/// Where figures go.
struct Sheet<'a> {
    folder: &'a RunFolder,
    formats: Vec<PlotFormat>,
    /// The files, where they will be.
    saved: RefCell<Vec<PathBuf>>,
}

impl Sheet<'_> {
    /// Writes a figure.
    fn save(&self, figure: &impl Figure, stem: &str) -> Result<(), Failure> {
        self.save_rendered(&decompose_plot::render(figure, &self.formats)?, stem)
    }

    /// Tells whether a figure has this name.
    fn has(&self, stem: &str) -> bool {
        self.saved.borrow().iter().any(|path| path.file_stem().is_some_and(|other| other == stem))
    }

    /// Writes a figure that is drawn.
    fn save_rendered(&self, rendered: &Rendered, stem: &str) -> Result<(), Failure> {
        let paths = rendered.write(self.folder.work(), stem)?;
        self.saved.borrow_mut().extend(paths.iter().map(|path| self.folder.will_be(path)));
        Ok(())
    }
}
