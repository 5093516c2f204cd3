//! Tucker models: a small dense core and one factor a mode.

use std::io;
use std::path::{Path, PathBuf};

use decompose_formats::{Matrix, Unit, Value};
use ndarray::ArrayD;

use crate::error::CommonError;
use crate::model::check_rows;
use crate::model::npz::{add_factors, read_factors};
use crate::npz::{self, NpzIn, NpzOut};

/// A core multiplied in every mode by a factor:
/// `sum core[r, s, ..] * factor_1[:, r] o factor_2[:, s] o ...`.
///
/// Memory: `prod R_n` doubles and `sum I_n * R_n` values, rows padded.
pub struct TuckerModel<V> {
    core: ArrayD<f64>,
    factors: Vec<Matrix<V>>,
}

impl<V: Value> TuckerModel<V> {
    /// Makes a model of a core of `R_1 x ... x R_N` and one factor of `I_n x R_n` a mode.
    ///
    /// # Errors
    ///
    /// [`CommonError::NotAModel`] if there is no factor or one of another width than the core has.
    pub fn new(core: ArrayD<f64>, factors: Vec<Matrix<V>>) -> Result<TuckerModel<V>, CommonError> {
        let widths: Vec<usize> = factors.iter().map(Matrix::cols).collect();
        if factors.is_empty() || core.shape() != widths || core.is_empty() {
            let shape = core.shape();
            let why = format!("a core of {shape:?} and factors with {widths:?} columns");
            return Err(CommonError::NotAModel(why));
        }
        check_rows(&factors)?;
        Ok(TuckerModel { core, factors })
    }

    /// Returns the core, `R_1 x ... x R_N`.
    pub fn core(&self) -> &ArrayD<f64> {
        &self.core
    }

    /// Returns one factor a mode, `I_n x R_n`.
    pub fn factors(&self) -> &[Matrix<V>] {
        &self.factors
    }

    /// Returns the rank of every mode.
    pub fn ranks(&self) -> Vec<usize> {
        self.core.shape().to_vec()
    }

    /// Returns the extents of the tensor it models, by mode.
    pub fn extents(&self) -> Vec<u64> {
        self.factors.iter().map(|factor| factor.rows() as u64).collect()
    }

    /// Takes the model apart: core, factors by mode.
    pub fn into_parts(self) -> (ArrayD<f64>, Vec<Matrix<V>>) {
        (self.core, self.factors)
    }

    /// Returns the model of data of which this models the values divided by `unit`.
    pub fn in_unit(mut self, unit: Unit) -> TuckerModel<V> {
        self.core.mapv_inplace(|g| unit.multiply(g));
        self
    }

    /// Writes `model.npz` into `folder`: `core` in double precision, `factor_1`, `factor_2`, ...
    /// in that of the model; returns its path.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`] if it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, CommonError> {
        let path = folder.join("model.npz");
        npz::write(&path, |out| self.add(out))?;
        Ok(path)
    }

    /// Adds the arrays of the model.
    pub(super) fn add(&self, out: &mut NpzOut<'_>) -> io::Result<()> {
        out.array("core", self.core.view())?;
        add_factors(&self.factors, out)
    }
}

/// Reads a model.
pub(super) fn read<V: Value>(archive: &mut NpzIn) -> Result<TuckerModel<V>, CommonError> {
    let core = archive.array("core")?;
    let factors = read_factors(archive)?;
    TuckerModel::new(core, factors)
        .map_err(|error| CommonError::content(archive.path(), error.to_string()))
}
