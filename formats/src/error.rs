//! What can go wrong with files and tensors.

use std::path::PathBuf;

use thiserror::Error;

/// An error of this crate; the message quotes the input and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Coordinates, values or extents that do not make a tensor.
    #[error("not a tensor: {0}")]
    NotATensor(String),
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried, as a verb: `open`, `read`, `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}
