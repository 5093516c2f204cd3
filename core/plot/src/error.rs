//! What can go wrong while a figure is made.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A figure that could not be drawn or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The figure has nothing that can be drawn.
    #[error("figure `{figure}` has nothing to show: {reason}")]
    Empty {
        /// The kind of figure, for example `convergence`.
        figure: &'static str,
        /// What is missing, and what to give.
        reason: String,
    },
    /// The parts of the figure do not fit each other.
    #[error("figure `{figure}`: {reason}")]
    Mismatch {
        /// The kind of figure, for example `matrix`.
        figure: &'static str,
        /// Which sizes differ.
        reason: String,
    },
    /// The name of the files has a folder in it, or is empty.
    #[error("`{stem}` cannot name a figure: give a file name without folder and ending")]
    Stem {
        /// The name asked for.
        stem: String,
    },
    /// The drawing library refused.
    #[error("figure could not be rendered as {format}: {reason}")]
    Render {
        /// `SVG` or `PNG`.
        format: &'static str,
        /// The library's message.
        reason: String,
    },
    /// A file could not be written; what was there before is untouched.
    #[error("cannot write figure `{}`: {source}; check that the folder is writable", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl PlotError {
    /// Returns the error of a figure without anything to show.
    pub(crate) fn empty(figure: &'static str, reason: impl Into<String>) -> PlotError {
        PlotError::Empty { figure, reason: reason.into() }
    }

    /// Returns the error of a figure whose parts do not fit.
    pub(crate) fn mismatch(figure: &'static str, reason: impl Into<String>) -> PlotError {
        PlotError::Mismatch { figure, reason: reason.into() }
    }
}
