//! What can go wrong in a decomposition.

use decompose_common::CommonError;
use decompose_core::error::CoreError;
use decompose_formats::FormatError;
use thiserror::Error;

/// An error of this crate; the message quotes the input and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TuckerError {
    /// An option that makes no sense, or not for this tensor.
    #[error("{0}")]
    Config(String),
    /// A starting model or checkpoint that belongs to another tensor or other options.
    #[error("cannot start from {what}: {why}")]
    Start {
        /// The model or the checkpoint's file.
        what: String,
        /// What differs, with both values.
        why: String,
    },
    /// Every value of the tensor is zero.
    #[error("every value of the tensor is zero: there is nothing to decompose")]
    ZeroTensor,
    /// The numbers left the range of the precision.
    #[error(
        "iteration {iteration}: the factor of mode {mode} overflowed; scale the tensor's values \
         or use double precision"
    )]
    NotFinite {
        /// The iteration, counted from 1.
        iteration: usize,
        /// The mode, counted from 1.
        mode: usize,
    },
    /// A kernel failed.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// Dense algebra, a model file or a checkpoint failed.
    #[error(transparent)]
    Common(#[from] CommonError),
    /// A matrix or a tensor could not be made.
    #[error(transparent)]
    Format(#[from] FormatError),
}
