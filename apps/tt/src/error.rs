//! What can go wrong in a decomposition.

use decompose_common::CommonError;
use decompose_core::error::CoreError;
use decompose_formats::FormatError;
use thiserror::Error;

/// An error of this crate; the message quotes the input and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TtError {
    /// An option that makes no sense, or not for this tensor.
    #[error("{0}")]
    Config(String),
    /// A starting train or checkpoint that belongs to another tensor or other options.
    #[error("cannot start from {what}: {why}")]
    Start {
        /// The train or the checkpoint's file.
        what: String,
        /// What differs, with both values.
        why: String,
    },
    /// Every value of the tensor is zero.
    #[error("every value of the tensor is zero: there is nothing to decompose")]
    ZeroTensor,
    /// The numbers left the range of the precision.
    #[error("core {core} overflowed; scale the tensor's values or use double precision")]
    NotFinite {
        /// The core, counted from 1.
        core: usize,
    },
    /// A matrix that the method needs whole does not fit memory.
    #[error("{what} needs {need} but {limit} may be used; {remedy}")]
    Memory {
        /// The matrix, with its shape.
        what: String,
        /// How much, for people.
        need: String,
        /// The limit, for people.
        limit: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A kernel failed.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// Dense algebra, a model file or a checkpoint failed.
    #[error(transparent)]
    Common(#[from] CommonError),
    /// A tensor or matrix could not be made.
    #[error(transparent)]
    Format(#[from] FormatError),
}
