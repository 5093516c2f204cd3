//! `decompose convert`: a tensor in another format, a table as a tensor, a tensor as a table.

use std::path::{Path, PathBuf};

use clap::Args;
use decompose_common::CommonError;
use decompose_common::memory::{left, note};
use decompose_common::progress::{Screen, Verbosity};
use decompose_core::kernels::MAX_ORDER;
use decompose_formats::io::{
    self, Base, Format, ModeNames, Overwrite, Progress, Source, TableFile, TableOptions,
};
use decompose_formats::{Coo, FormatError, ModeOrder, counted};

use crate::cli::Done;
use crate::failure::Failure;
use crate::input::{InputArgs, MissingArgs, name_of};
use crate::labels::{self, LabelPlace};
use crate::listing::ListArgs;
use crate::run::memory::{self, MemoryArgs};

/// Writes a tensor in another format.
///
/// The format is told by the ending of OUT: .tns, .mtx or .ttx, also with .gz, .zst or .bz2, and
/// .dtb, the binary form that opens at once.  Entries are sorted and duplicates merged.
///
/// A table of named categories, .csv or .tsv with a header row (also .gz, .zst, .bz2), becomes a
/// tensor: each different label of a column is an index, numbered in order, and its name a line of
/// NAME/mode-K-COLUMN.map beside OUT, where other commands find it.  A tensor is written as such a
/// table where OUT is one, with the labels found beside it.
#[derive(Args, Debug)]
#[command(mut_arg("file", |arg| arg.help(
    "The tensor: .tns, .mtx or .ttx (text), .npy or .dtb; or a table, .csv or .tsv; text also with \
     .gz, .zst or .bz2; `-` reads a tensor from standard input"
)))]
// Whose place is behind that of FILE, which the line above has moved.
#[command(mut_arg("out", |arg| arg))]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    missing: MissingArgs,
    #[command(flatten)]
    table: TableArgs,
    /// The file to write.
    out: PathBuf,
    #[command(flatten)]
    list: ListArgs,
    /// Replace OUT if it exists.
    #[arg(long, help_heading = "Output")]
    overwrite: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

/// How a table becomes a tensor and back.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tables")]
struct TableArgs {
    /// The columns of a table that become modes, by name or number.  [default: all but the values]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    modes: Vec<String>,
    /// The column of values.  [default: none; rows are counted]
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// The folder of files mode-K-NAME.map with a name for each index, or the file of a mode, for a table that is
    /// written.  [default: NAME/ beside the tensor, or its folder]
    #[arg(long, value_name = "DIR|MODE=FILE")]
    labels: Vec<LabelPlace>,
}

/// A tensor to be written.
struct Content {
    tensor: Coo<f64>,
    /// From where indices counted in the file.
    base: Option<Base>,
    /// Names of modes and indices, if the input was a table.
    modes: Option<Vec<ModeNames>>,
}

/// Runs the command.
///
/// # Errors
///
/// Bad input, or an output that exists or cannot be written.
pub(crate) fn run(args: &ConvertArgs) -> Result<Done, Failure> {
    let overwrite = if args.overwrite { Overwrite::Replace } else { Overwrite::Refuse };
    match TableFile::of_path(&args.out) {
        Some(_) => check_absent(&args.out, overwrite)?,
        None => check_output(&args.out, overwrite)?,
    }
    args.memory.begin();
    let mut screen = Screen::new(Verbosity::Normal);
    let content = match TableFile::of_path(&args.input.file) {
        Some(_) => read_table(args, overwrite, &mut screen)?,
        None => read_tensor(args, &mut screen)?,
    };
    // A column at a time is written from a copy as wide as in the file.
    note(content.tensor.nnz() as u64 * 4);
    let seconds = match TableFile::of_path(&args.out) {
        Some(_) => write_table(&content, args, overwrite, &mut screen)?,
        None => write_tensor(&content, args, overwrite, &mut screen)?,
    };
    screen.line(format!("write    {}; {seconds:.2} s", args.out.display()));
    memory::tell_peak(&screen);
    Ok(Done::Complete)
}

fn read_tensor(args: &ConvertArgs, screen: &mut Screen) -> Result<Content, Failure> {
    let TableArgs { modes, value, .. } = &args.table;
    if !modes.is_empty() || value.is_some() {
        let file = args.input.file.display();
        return Err(Failure::input(format!(
            "{file} is no table; --modes and --value name columns"
        ))
        .help("a table is called .csv or .tsv, also with .gz, .zst or .bz2"));
    }
    let mut input = args.input.clone().with_missing(args.missing).read::<f64>(screen)?;
    memory::sort_of(&input.tensor)?;
    input.tidy(args.input.duplicates(), screen)?;
    let base = input.base();
    Ok(Content { tensor: input.tensor, base, modes: None })
}

fn read_table(
    args: &ConvertArgs,
    overwrite: Overwrite,
    screen: &mut Screen,
) -> Result<Content, Failure> {
    args.input.refuse_for_tables()?;
    let options = TableOptions {
        modes: args.table.modes.clone(),
        value: args.table.value.clone(),
        missing: args.missing.asked(),
        max_order: MAX_ORDER,
        max_bytes: left(),
    };
    let (source, progress) = (Source::new(&args.input.file), Progress::new());
    let reading = || io::read_table::<f64>(&source, &options, &progress);
    let (table, seconds) = screen.reading("read", &progress, reading);
    let io::Table { mut tensor, modes, missing } = table?;
    let extents: Vec<String> =
        modes.iter().map(|mode| format!("{} {}", mode.labels.len(), mode.name)).collect();
    let left_out = if missing > 0 { format!(", {missing} missing") } else { String::new() };
    let (rows, extents) = (counted(tensor.nnz(), "row", "rows"), extents.join(" x "));
    screen.line(format!("read     {source}: {rows}{left_out}; {extents}; {seconds:.2} s"));
    if TableFile::of_path(&args.out).is_none() {
        let folder = args.out.with_file_name(name_of(&args.out));
        let paths = labels::paths(&folder, &modes);
        paths.iter().try_for_each(|path| check_absent(path, overwrite))?;
    }
    let policy = args.input.duplicates();
    memory::sort_of(&tensor)?;
    let (merged, seconds) = screen.phase("sort", || {
        tensor.sort(&ModeOrder::natural(tensor.order()))?;
        tensor.merge_duplicates(policy)
    });
    let (merged, nnz) = (merged?, tensor.nnz());
    let how = match args.table.value {
        None => "rows counted".to_owned(),
        Some(_) => {
            format!("{} merged ({policy})", counted(merged, "duplicate", "duplicates"))
        }
    };
    let entries = counted(nnz, "entry", "entries");
    screen.line(format!("sort     {entries}, {how}; {seconds:.2} s"));
    Ok(Content { tensor, base: None, modes: Some(modes) })
}

fn write_tensor(
    content: &Content,
    args: &ConvertArgs,
    overwrite: Overwrite,
    screen: &mut Screen,
) -> Result<f64, Failure> {
    let options = args.list.options(&args.out, content.base, overwrite);
    let writing = || io::write(&content.tensor, &args.out, &options);
    let (written, seconds) = screen.phase("write", writing);
    written?;
    if let Some(modes) = &content.modes {
        for path in labels::write(&args.out, &name_of(&args.out), modes)? {
            screen.line(format!("write    {}", path.display()));
        }
    }
    Ok(seconds)
}

fn write_table(
    content: &Content,
    args: &ConvertArgs,
    overwrite: Overwrite,
    screen: &mut Screen,
) -> Result<f64, Failure> {
    let base = args.list.table_base(content.base);
    let modes = match &content.modes {
        Some(modes) => modes.clone(),
        None => {
            let (input, asked) = (&args.input, &args.table.labels);
            let extents = content.tensor.extents();
            let (found, warnings) = labels::find(&input.file, &input.name(), asked, extents)?;
            warnings.iter().for_each(|warning| screen.warn(warning));
            labels::told(&found).into_iter().for_each(|line| screen.line(line));
            let (names, warnings) = labels::distinct(labels::names(&found));
            warnings.iter().for_each(|warning| screen.warn(warning));
            names
        }
    };
    let writing = || io::write_table(&content.tensor, &modes, &args.out, base, overwrite);
    let (written, seconds) = screen.phase("write", writing);
    written?;
    Ok(seconds)
}

/// Refuses, before any work, an output whose name tells no format, that is to stay, or whose folder cannot be written.
pub(crate) fn check_output(out: &Path, overwrite: Overwrite) -> Result<(), Failure> {
    Format::of_path(out)?;
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let why =
            format!("cannot write {}: there is no folder {}", out.display(), folder.display());
        return Err(Failure::input(why).help("make the folder first, or choose another place"));
    }
    if out.is_dir() {
        let why = format!("cannot write {}: it is a folder", out.display());
        return Err(Failure::input(why).help("add the name of a file"));
    }
    check_absent(out, overwrite)?;
    match io::temporary(folder.unwrap_or(Path::new("")), "") {
        Ok(_) => Ok(()),
        // Of the error only what the system said: its name is the temporary one.
        Err(error) => Err(CommonError::io("write", out, error.kind().into()).into()),
    }
}

/// Refuses, before any work, an output that is to stay.
pub(crate) fn check_absent(out: &Path, overwrite: Overwrite) -> Result<(), Failure> {
    if overwrite == Overwrite::Refuse && out.exists() {
        let failure = Failure::from(FormatError::Exists(out.to_owned()));
        return Err(failure.help("choose another name, or replace it with --overwrite"));
    }
    Ok(())
}
