//! What can go wrong between an expression and a running kernel.

use thiserror::Error;

/// An error of this crate; messages quote the input and say what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoreError {
    /// A tensor could not be made or converted.
    #[error(transparent)]
    Format(#[from] decompose_formats::FormatError),
}
