//! What goes wrong, as Python exceptions with the words of the command.

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
                SolverError::Memory { .. } => PyMemoryError::new_err(error.to_string()),
                SolverError::Core(error) => Fault::Core(error).into(),
                SolverError::Common(error) => Fault::Common(error).into(),
                SolverError::Format(error) => Fault::Format(error).into(),
                error => PyValueError::new_err(error.to_string()),
            },
            Fault::Common(error) => match &error {
                CommonError::Io { source, .. } => of_io(source, error.to_string()),
                _ => PyValueError::new_err(error.to_string()),
            },
            Fault::Core(error) => match error {
                CoreError::Memory { .. } => PyMemoryError::new_err(error.to_string()),
                CoreError::Internal(_) => PyRuntimeError::new_err(error.to_string()),
                CoreError::Format(error) => Fault::Format(error).into(),
                error => PyValueError::new_err(error.to_string()),
            },
            Fault::Format(error) => match &error {
                FormatError::Io { source, .. } => of_io(source, error.to_string()),
                FormatError::Missing(_) => PyFileNotFoundError::new_err(error.to_string()),
                _ => PyValueError::new_err(error.to_string()),
            },
        }
    }
}

/// The system's error with the words of ours.
fn of_io(source: &std::io::Error, why: String) -> PyErr {
    match source.kind() {
        std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(why),
        _ => PyOSError::new_err(why),
    }
}
