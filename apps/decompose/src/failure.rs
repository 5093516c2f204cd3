//! Errors as the user meets them: one message, the place, a remedy, an exit code.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use decompose_common::{CommonError, SolverError};
use decompose_core::error::CoreError;
use decompose_core::plot::PlotError;
use decompose_formats::FormatError;

/// The exit code after a fault of this program.
pub(crate) const INTERNAL: u8 = 1;
/// The exit code after a bad input, option or place for the output.
const INPUT: u8 = 2;

/// Why a command did not do its work.
#[derive(Debug)]
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

    /// Adds what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// Returns what went wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Counts as a fault of the machine, met when results were to be written.
    pub(crate) fn while_writing(self) -> Failure {
        Failure { code: INTERNAL, ..self }
    }

    /// Writes it to standard error.
    pub(crate) fn print(&self) {
        // Nobody may be reading; the exit code still tells.
        let _ = write!(std::io::stderr(), "{self}");
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
            other => Failure::input(other.to_string()),
        }
    }
}

impl From<CommonError> for Failure {
    fn from(error: CommonError) -> Failure {
        match error {
            CommonError::Format(inner) => inner.into(),
            CommonError::Core(inner) => inner.into(),
            other => Failure::input(other.to_string()),
        }
    }
}

impl From<CoreError> for Failure {
    fn from(error: CoreError) -> Failure {
        match error {
            CoreError::Format(inner) => inner.into(),
            CoreError::Internal(why) => Failure::internal(why),
            other => Failure::input(other.to_string()),
        }
    }
}

impl From<SolverError> for Failure {
    fn from(error: SolverError) -> Failure {
        match error {
            SolverError::Core(inner) => inner.into(),
            SolverError::Common(inner) => inner.into(),
            SolverError::Format(inner) => inner.into(),
            other => Failure::input(other.to_string()),
        }
    }
}

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Failure {
        Failure::input(error.to_string())
    }
}
