//! What all methods have in common: an epoch makes the blocks better.

use std::io;

use decompose_common::SolverError;
use decompose_common::npz::{NpzIn, NpzOut};
use decompose_formats::Matrix;

use crate::objective::Objective;

/// Whether an epoch changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It did.
    Moved,
    /// There is no better place near.
    Stationary,
}

/// A way to fit a model.
pub(crate) trait Method {
    /// Improves `blocks`, at which the objective is `value`; it stands at them.
    ///
    /// # Errors
    ///
    /// If a kernel fails or numbers overflow.
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        value: f64,
    ) -> Result<Progress, SolverError>;

    /// Forgets the course so far: the objective, or the place, is another one now.
    fn forget(&mut self) {}

    /// Writes what the next epoch depends on beside the blocks; nothing where it depends on no more.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    fn save(&self, _out: &mut NpzOut<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Reads what [`Method::save`] wrote.
    ///
    /// # Errors
    ///
    /// If an array is missing or of another type.
    fn load(&mut self, _archive: &mut NpzIn) -> Result<(), SolverError> {
        Ok(())
    }
}
