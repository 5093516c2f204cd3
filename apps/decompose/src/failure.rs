//! Errors as the user meets them: one message, the place, a remedy, an exit code.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use decompose_common::error::FolderTrouble;
use decompose_common::printable::printable_lines;
use decompose_common::{CommonError, SolverError};
use decompose_core::error::CoreError;
use decompose_formats::FormatError;
use decompose_plot::PlotError;

/// The exit code after a fault of this program, and where a run does not repeat.
const INTERNAL: u8 = 1;
/// The exit code after a bad input, option or place for the output.
const INPUT: u8 = 2;
/// The exit code if results could not be written, all or in part: a full disk, a closed output.
pub(crate) const WRITING: u8 = 3;

/// How the standard library begins a panic where the system refuses a thread.
const NO_THREAD: &str = "failed to spawn thread: ";

/// Why a command did not do its work.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    message: String,
    /// The line of a text file that is wrong: its number and the line.
    line: Option<(u64, String)>,
    help: Option<String>,
    code: u8,
}

impl Failure {
    /// Names a mistake in the input, with the remedy in the message.
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), line: None, help: None, code: INPUT }
    }

    /// Names a fault of this program.
    pub(crate) fn internal(message: impl Into<String>) -> Failure {
        let message = format!("internal error: {}", message.into());
        let help = "this is a fault of decompose, not of your input; please report it with the \
                    command line"
            .to_owned();
        Failure { message, line: None, help: Some(help), code: INTERNAL }
    }

    /// Names a panic, told in `text`: a fault of this program, unless the system refused a thread to a library.
    pub(crate) fn of_panic(payload: &(dyn Any + Send), text: &str) -> Failure {
        let message = payload.downcast_ref::<String>().map_or("", String::as_str);
        match message.strip_prefix(NO_THREAD) {
            Some(why) => Failure::input(format!("the system refused a thread: {why}")).help(
                "lower the number of threads, or raise the limit on memory (ulimit -v) or on \
                 processes (ulimit -u)",
            ),
            None => Failure::internal(text),
        }
    }

    /// Names a mistake in line `number`, counted from 1, of a text file, and shows the line.
    pub(crate) fn in_line(message: impl Into<String>, number: u64, text: &str) -> Failure {
        Failure { line: Some((number, text.to_owned())), ..Failure::input(message) }
    }

    /// Says that what should be the same is not.
    pub(crate) fn differs(message: impl Into<String>) -> Failure {
        Failure { code: INTERNAL, ..Failure::input(message) }
    }

    /// Adds what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// Counts as met when results were to be written, unless it is a fault of this program.
    pub(crate) fn while_writing(self) -> Failure {
        let code = if self.code == INTERNAL { INTERNAL } else { WRITING };
        Failure { code, ..self }
    }

    /// Names an error with what the operating system said in it: a disk that is full is no mistake in the input,
    /// wherever it is met.
    fn of(error: &(dyn Error + 'static)) -> Failure {
        use ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let failure = Failure::input(error.to_string());
        match decompose_common::files::kind(error) {
            Some(StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem) => {
                failure.while_writing()
            }
            _ => failure,
        }
    }

    /// Returns what happened, without the remedy.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to do, where that is known.
    pub(crate) fn remedy(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns what happened and what to do, in a line.
    pub(crate) fn told(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message.clone(),
        }
    }

    /// Writes it to standard error.
    pub(crate) fn print(&self) {
        // Nobody may be reading; the exit code still tells.
        let _ = write!(std::io::stderr(), "{}", printable_lines(&self.to_string()));
    }

    /// Returns the exit code of the process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        if let Some((number, text)) = &self.line {
            let margin = number.to_string().len();
            writeln!(f, "{:margin$} |\n{number} | {text}\n{:margin$} |", "", "")?;
        }
        match &self.help {
            Some(help) => writeln!(f, "help: {help}"),
            None => Ok(()),
        }
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Failure {
        match error {
            FormatError::Line(line) => {
                let message = format!("{}:{}: {}", line.file, line.line, line.fault);
                Failure { line: Some((line.line, line.text)), ..Failure::input(message) }
            }
            FormatError::Duplicate(_) => Failure::of(&error)
                .help("allow it with --duplicates sum, mean, first, last, min or max"),
            FormatError::NotFinite { value, .. } if value.is_nan() => {
                Failure::of(&error).help("`decompose complete --missing nan` takes NaN as unknown")
            }
            FormatError::ColumnTwice { .. } => {
                Failure::of(&error).help("name each column once, with --modes or with --value")
            }
            FormatError::NoModes(_) => Failure::of(&error).help("leave out --value to count rows"),
            FormatError::TooLarge { .. } => {
                Failure::of(&error).help("raise --max-memory if the machine has more")
            }
            other => Failure::of(&other),
        }
    }
}

impl From<CommonError> for Failure {
    fn from(error: CommonError) -> Failure {
        match error {
            CommonError::Format(inner) => inner.into(),
            CommonError::Core(inner) => inner.into(),
            CommonError::Folder { ref trouble, .. } => {
                let help = match trouble {
                    FolderTrouble::NotEmpty => {
                        "choose another folder with --out, or replace its files with --overwrite"
                    }
                    FolderTrouble::Resumable(_) => {
                        "continue it with --resume, or discard it by a run with --overwrite"
                    }
                    FolderTrouble::InUse => {
                        "choose another folder with --out, or wait until it has ended"
                    }
                    _ => "choose another folder with --out",
                };
                Failure::of(&error).help(help)
            }
            other => Failure::of(&other),
        }
    }
}

impl From<CoreError> for Failure {
    fn from(error: CoreError) -> Failure {
        match error {
            CoreError::Format(inner) => inner.into(),
            CoreError::Internal(why) => Failure::internal(why),
            CoreError::Memory { .. } => {
                Failure::of(&error).help("raise --max-memory if the machine has more")
            }
            CoreError::ResultMemory { .. } => Failure::of(&error)
                .help("use --precision f32, or raise --max-memory if the machine has more"),
            other => Failure::of(&other),
        }
    }
}

impl From<SolverError> for Failure {
    fn from(error: SolverError) -> Failure {
        match error {
            SolverError::Core(inner) => inner.into(),
            SolverError::Common(inner) => inner.into(),
            SolverError::Format(inner) => inner.into(),
            SolverError::Memory { .. } => {
                Failure::of(&error).help("raise --max-memory if the machine has more")
            }
            other => Failure::of(&other),
        }
    }
}

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Failure {
        Failure::of(&error)
    }
}
