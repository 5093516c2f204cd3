//! What goes wrong, as Python exceptions with the words of the command.
//!
//! The command counts from 1.  Messages about files stay as they are, for files count so too; in all others the
//! numbers of modes, components, cores and bonds are those of Python.

use decompose_common::SolverError;
use decompose_common::error::CommonError;
use decompose_core::error::CoreError;
use decompose_formats::FormatError;
use pyo3::exceptions::{
    PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

/// An error of any layer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An argument that makes no sense.
    Input(String),
    /// A solver's.
    Solver(SolverError),
    /// Of a model's file.
    Common(CommonError),
    /// Of an expression or a kernel.
    Core(CoreError),
    /// Of a tensor or its file.
    Format(FormatError),
    /// A thread that panicked, or threads that cannot be started.
    Internal(String),
}

impl From<SolverError> for Fault {
    fn from(error: SolverError) -> Fault {
        Fault::Solver(error)
    }
}

impl From<CommonError> for Fault {
    fn from(error: CommonError) -> Fault {
        Fault::Common(error)
    }
}

impl From<CoreError> for Fault {
    fn from(error: CoreError) -> Fault {
        Fault::Core(error)
    }
}

impl From<FormatError> for Fault {
    fn from(error: FormatError) -> Fault {
        Fault::Format(error)
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> PyErr {
        match fault {
            Fault::Input(why) => PyValueError::new_err(why),
            Fault::Internal(why) => PyRuntimeError::new_err(why),
            Fault::Solver(error) => match error {
                SolverError::Memory { .. } => PyMemoryError::new_err(from_zero(&error.to_string())),
                SolverError::Core(error) => Fault::Core(error).into(),
                SolverError::Common(error) => Fault::Common(error).into(),
                SolverError::Format(error) => Fault::Format(error).into(),
                error => PyValueError::new_err(from_zero(&error.to_string())),
            },
            Fault::Common(error) => match &error {
                CommonError::Io { source, .. } => of_io(source, error.to_string()),
                _ => PyValueError::new_err(error.to_string()),
            },
            Fault::Core(error) => match error {
                CoreError::Memory { .. } => PyMemoryError::new_err(from_zero(&error.to_string())),
                CoreError::Internal(_) => PyRuntimeError::new_err(error.to_string()),
                CoreError::Format(error) => Fault::Format(error).into(),
                error => PyValueError::new_err(from_zero(&error.to_string())),
            },
            Fault::Format(error) => match &error {
                FormatError::Io { source, .. } => of_io(source, error.to_string()),
                FormatError::Missing(_) => PyFileNotFoundError::new_err(error.to_string()),
                _ => PyValueError::new_err(error.to_string()),
            },
        }
    }
}

/// What is counted, before its number.
const COUNTED: [&str; 4] = ["mode ", "component ", "core ", "bond "];

/// Returns a message of the suite, which counts modes and parts of a model from 1, with numbers that count from 0.
pub(crate) fn from_zero(message: &str) -> String {
    let mut told = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(number) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, from) = rest.split_at(number);
        let end = from.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(from.len());
        let (digits, after) = from.split_at(end);
        told.push_str(before);
        let counted = COUNTED.iter().any(|word| before.ends_with(word));
        match digits.parse::<u64>().ok().and_then(|number| number.checked_sub(1)) {
            Some(lower) if counted => told.push_str(&lower.to_string()),
            _ => told.push_str(digits),
        }
        rest = after;
    }
    told.push_str(rest);
    told
}

/// The system's error with the words of ours.
fn of_io(source: &std::io::Error, why: String) -> PyErr {
    match source.kind() {
        std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(why),
        _ => PyOSError::new_err(why),
    }
}
