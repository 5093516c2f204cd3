//! What can go wrong in a decomposition or a completion.

use thiserror::Error;

use crate::error::CommonError;

/// What to do about tensors whose sums leave the range of the precision.
const SCALE_DOWN: &str = "scale the tensor's values or use double precision";

/// An error of a solver; the message quotes the input and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SolverError {
    /// An option that makes no sense, or not with another one or for this tensor.
    #[error("{0}")]
    Config(String),
    /// Data that cannot be used as they are asked for.
    #[error("{0}")]
    Data(String),
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
    #[error("{what} overflowed; {remedy}")]
    NotFinite {
        /// The part of the model, and the iteration if there is one.
        what: String,
        /// What to try.
        remedy: &'static str,
    },
    /// A matrix that the method needs whole does not fit memory.
    #[error("{what} needs {need} of memory but {limit}; {remedy}")]
    Memory {
        /// The matrix, with its shape.
        what: String,
        /// How much, for people.
        need: String,
        /// What may be used, for people, and who says so.
        limit: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A kernel failed.
    #[error(transparent)]
    Core(#[from] decompose_core::error::CoreError),
    /// Dense algebra, a model file or a checkpoint failed.
    #[error(transparent)]
    Common(#[from] CommonError),
    /// A matrix or a tensor could not be made.
    #[error(transparent)]
    Format(#[from] decompose_formats::FormatError),
}

impl SolverError {
    /// Names the factor of `mode` that overflowed in `iteration`, both counted from 1.
    pub fn factor_overflow(iteration: usize, mode: usize) -> SolverError {
        SolverError::overflow(format!("iteration {iteration}: the factor of mode {mode}"))
    }

    /// Names the part of a model that overflowed, for which the values must be smaller.
    pub fn overflow(what: impl Into<String>) -> SolverError {
        SolverError::NotFinite { what: what.into(), remedy: SCALE_DOWN }
    }
}
