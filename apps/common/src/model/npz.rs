//! `model.npz`: `weights` and `factor_1`, `factor_2`, ... as numpy arrays.

use std::path::{Path, PathBuf};

use decompose_formats::{Matrix, Value};

use crate::error::CommonError;
use crate::model::CpModel;
use crate::npz::{self, NpzIn};

/// Writes `model.npz`.
pub(super) fn write<V: Value>(
    model: &CpModel<V>,
    folder: &Path,
) -> Result<Vec<PathBuf>, CommonError> {
    let path = folder.join("model.npz");
    npz::write(&path, |out| {
        out.numbers("weights", model.weights())?;
        let mut factors = model.factors().iter().zip(1..);
        factors.try_for_each(|(factor, mode)| out.matrix(&format!("factor_{mode}"), factor))
    })?;
    Ok(vec![path])
}

/// Reads a model; where there are no weights they are one.
pub(super) fn read<V: Value>(archive: &mut NpzIn) -> Result<CpModel<V>, CommonError> {
    let factors = read_factors::<V>(archive)?;
    let weights = if archive.has("weights") {
        archive.numbers("weights")?
    } else {
        vec![1.0; factors[0].cols()]
    };
    CpModel::new(weights, factors)
        .map_err(|error| CommonError::content(archive.path(), error.to_string()))
}

/// Reads `factor_1` and those that follow it.
pub(super) fn read_factors<V: Value>(archive: &mut NpzIn) -> Result<Vec<Matrix<V>>, CommonError> {
    let mut factors = vec![archive.matrix("factor_1")?];
    while archive.has(&format!("factor_{}", factors.len() + 1)) {
        factors.push(archive.matrix(&format!("factor_{}", factors.len() + 1))?);
    }
    Ok(factors)
}
