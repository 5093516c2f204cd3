//! What can go wrong in a completion.

use decompose_common::CommonError;
use decompose_core::error::CoreError;
use decompose_formats::FormatError;
use thiserror::Error;

/// An error of this crate; the message quotes the input and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CompleteError {
    /// An option that makes no sense, or not with another one or for this tensor.
    #[error("{0}")]
    Config(String),
    /// Data that cannot be used as they are asked for.
    #[error("{0}")]
    Data(String),
    /// A starting model or a checkpoint that belongs to another tensor or other options.
    #[error("cannot start from {what}: {why}")]
    Start {
        /// The model or the file.
        what: String,
        /// What differs, with both values.
        why: String,
    },
    /// The numbers left the range of doubles.
    #[error("epoch {epoch}: the model overflowed; {remedy}")]
    NotFinite {
        /// The epoch, counted from 1.
        epoch: usize,
        /// What to try.
        remedy: &'static str,
    },
    /// A kernel failed.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// Dense algebra or a file failed.
    #[error(transparent)]
    Common(#[from] CommonError),
    /// A matrix or a list of entries could not be made.
    #[error(transparent)]
    Format(#[from] FormatError),
}
