//! `decompose convert`: a tensor in another format.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use decompose_common::progress::{Screen, Verbosity};
use decompose_formats::FormatError;
use decompose_formats::io::{self, Dialect, Format, Overwrite, WriteOptions};

use crate::cli::Done;
use crate::failure::Failure;
use crate::input::InputArgs;

/// Writes a tensor in another format.
///
/// The format is told by the ending of OUT: .tns, .mtx or .ttx, also with .gz, .zst or .bz2, and
/// .dtb, the binary form that opens at once.  Entries are sorted and duplicates merged.
#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The file to write.
    out: PathBuf,
    /// The header of a .tns file; without one, empty slices at the end of a mode are lost.
    #[arg(long, value_name = "DIALECT", default_value = "plain")]
    header: Header,
    /// Replace OUT if it exists.
    #[arg(long)]
    overwrite: bool,
}

/// The header of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Header {
    /// None.
    Plain,
    /// `sptensor` of the Tensor Toolbox.
    Toolbox,
    /// Order and extents, as ParTI.
    Parti,
    /// Order, entries and extents behind a comment.
    ExtendedFrostt,
}

impl Header {
    fn dialect(self) -> Dialect {
        match self {
            Header::Plain => Dialect::Plain,
            Header::Toolbox => Dialect::Toolbox,
            Header::Parti => Dialect::Parti,
            Header::ExtendedFrostt => Dialect::ExtendedFrostt,
        }
    }
}

/// Runs the command.
///
/// # Errors
///
/// Bad input, or an output that exists or cannot be written.
pub(crate) fn run(args: &ConvertArgs) -> Result<Done, Failure> {
    let overwrite = if args.overwrite { Overwrite::Replace } else { Overwrite::Refuse };
    check_output(&args.out, overwrite)?;
    let mut screen = Screen::new(Verbosity::Normal);
    let mut input = args.input.read::<f64>(&mut screen)?;
    input.tidy(args.input.duplicates(), &mut screen)?;
    let options = WriteOptions { overwrite, dialect: args.header.dialect() };
    let writing = || io::write(&input.tensor, &args.out, &options);
    let (written, seconds) = screen.phase("write", writing);
    written?;
    screen.line(format!("write    {}; {seconds:.2} s", args.out.display()));
    Ok(Done::Complete)
}

/// Refuses, before any work, an output whose name tells no format or that is to stay.
pub(crate) fn check_output(out: &Path, overwrite: Overwrite) -> Result<(), Failure> {
    Format::of_path(out)?;
    if overwrite == Overwrite::Refuse && out.exists() {
        let failure = Failure::from(FormatError::Exists(out.to_owned()));
        return Err(failure.help("choose another name, or replace it with --overwrite"));
    }
    Ok(())
}
