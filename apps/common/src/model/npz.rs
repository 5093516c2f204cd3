//! `model.npz`: `weights` and `factor_1`, `factor_2`, ... as numpy arrays.

use std::io;
use std::path::{Path, PathBuf};

use decompose_formats::{Matrix, Value};

use crate::error::CommonError;
use crate::model::CpModel;
use crate::npz::{self, NpzIn, NpzOut};

/// Writes `model.npz`.
pub(super) fn write<V: Value>(
    model: &CpModel<V>,
    folder: &Path,
) -> Result<Vec<PathBuf>, CommonError> {
    let path = folder.join("model.npz");
    npz::write(&path, |out| add(model, out))?;
    Ok(vec![path])
}

/// Adds the arrays of a model.
pub(super) fn add<V: Value>(model: &CpModel<V>, out: &mut NpzOut<'_>) -> io::Result<()> {
    out.numbers("weights", model.weights())?;
    add_factors(model.factors(), out)
}

/// Adds `factor_1`, `factor_2`, ...
pub(super) fn add_factors<V: Value>(factors: &[Matrix<V>], out: &mut NpzOut<'_>) -> io::Result<()> {
    let mut factors = factors.iter().zip(1..);
    factors.try_for_each(|(factor, mode)| out.matrix(&format!("factor_{mode}"), factor))
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
