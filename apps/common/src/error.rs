//! What can go wrong in the parts shared by all solvers.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of this crate; the message quotes the input and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommonError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb: `open`, `read`, `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is not what its place or its name promises.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was found, what was expected, and the remedy.
        why: String,
    },
    /// A folder cannot take results.
    #[error("{}: {trouble}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What keeps it from that.
        trouble: FolderTrouble,
    },
    /// A line of a text file cannot be understood.
    #[error("{}:{line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What was found, what was expected, and the remedy.
        why: String,
    },
    /// A matrix has an entry that is infinite or not a number.
    #[error(
        "a number overflowed: the {0} holds an infinite or undefined value; scale the tensor's \
         values down or use double precision"
    )]
    NotFinite(&'static str),
    /// Weights and factors that do not make a model.
    #[error("not a model: {0}")]
    NotAModel(String),
    /// A kernel failed.
    #[error(transparent)]
    Core(#[from] decompose_core::error::CoreError),
    /// A matrix could not be made.
    #[error(transparent)]
    Format(#[from] decompose_formats::FormatError),
}

/// Why a folder cannot take results.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FolderTrouble {
    /// A file stands there.
    #[error("is a file, not a folder")]
    File,
    /// A link without an end stands there.
    #[error("is a link to a folder that does not exist")]
    Dangling,
    /// Another process holds it.
    #[error("another run is writing to it")]
    InUse,
    /// It has files that may not be replaced.
    #[error("exists already and is not empty")]
    NotEmpty,
    /// A run into it was cut short, and left this folder with a checkpoint.
    #[error("a run that was cut short has left a checkpoint for it in {}", .0.display())]
    Resumable(PathBuf),
}

impl CommonError {
    /// Names what keeps a folder from taking results.
    pub(crate) fn folder(path: &Path, trouble: FolderTrouble) -> CommonError {
        CommonError::Folder { path: path.to_owned(), trouble }
    }

    /// Names a refusal of the operating system.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> CommonError {
        CommonError::Io { action, path: path.to_owned(), source }
    }

    /// Names a fault in the content of a file.
    pub fn content(path: &Path, why: impl Into<String>) -> CommonError {
        CommonError::Content { path: path.to_owned(), why: why.into() }
    }
}
