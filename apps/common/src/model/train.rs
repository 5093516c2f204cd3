//! Tensor trains: one core of three indices a mode.

use std::io;
use std::path::{Path, PathBuf};

use decompose_formats::{ModeOrder, Unit, Value};
use ndarray::Array3;

use crate::error::CommonError;
use crate::npz::{self, NpzIn, NpzOut};

/// A chain of cores: entry `(i_1, .., i_N)` is the product of the matrices `core_k[:, i_k, :]`.
///
/// Core `k` belongs to mode `order[k]` of the tensor.  The first has one row, the last one column.
/// Memory: `sum r_(k-1) * I_k * r_k` values.
pub struct TtModel<V> {
    cores: Vec<Array3<V>>,
    order: ModeOrder,
}

impl<V: Value> TtModel<V> {
    /// Makes a model of cores of `r_(k-1) x I x r_k`, in the order in which `order` names their
    /// modes.
    ///
    /// # Errors
    ///
    /// [`CommonError::NotAModel`] if neighbours do not fit, the ends are not 1, or there are not
    /// as many cores as modes.
    pub fn new(cores: Vec<Array3<V>>, order: ModeOrder) -> Result<TtModel<V>, CommonError> {
        let ranks = |at: usize| cores.iter().map(move |core| core.shape()[at]);
        let left = ranks(0).chain([1]);
        let right = [1].into_iter().chain(ranks(2));
        let empty = cores.is_empty() || cores.iter().any(|core| core.is_empty());
        if empty || cores.len() != order.modes().len() || !left.eq(right) {
            let shapes: Vec<&[usize]> = cores.iter().map(|core| core.shape()).collect();
            let why = format!("cores of {shapes:?} for modes {order}");
            return Err(CommonError::NotAModel(why));
        }
        Ok(TtModel { cores, order })
    }

    /// Returns the cores, `r_(k-1) x I x r_k`, in train order.
    pub fn cores(&self) -> &[Array3<V>] {
        &self.cores
    }

    /// Returns the mode of each core.
    pub fn order(&self) -> &ModeOrder {
        &self.order
    }

    /// Returns the ranks of the bonds between neighbours, one fewer than cores.
    pub fn ranks(&self) -> Vec<usize> {
        self.cores.iter().skip(1).map(|core| core.shape()[0]).collect()
    }

    /// Returns the extents of the tensor it models, by mode.
    pub fn extents(&self) -> Vec<u64> {
        let mut extents = vec![0; self.cores.len()];
        for (core, &mode) in self.cores.iter().zip(self.order.modes()) {
            extents[mode] = core.shape()[1] as u64;
        }
        extents
    }

    /// Takes the model apart: cores, and the mode of each.
    pub fn into_parts(self) -> (Vec<Array3<V>>, ModeOrder) {
        (self.cores, self.order)
    }

    /// Returns the model of data of which this models the values divided by `unit`.
    pub fn in_unit(mut self, unit: Unit) -> TtModel<V> {
        if let Some(first) = self.cores.first_mut() {
            first.mapv_inplace(|x| V::from_f64(unit.multiply(x.to_f64())));
        }
        self
    }

    /// Writes `model.npz` into `folder`: `core_1`, `core_2`, ... in train order and in the
    /// precision of the model, and `mode_order`, the mode of each, from 1; returns its path.
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
        let modes: Vec<u64> = self.order.modes().iter().map(|&mode| mode as u64 + 1).collect();
        out.numbers("mode_order", &modes)?;
        let mut cores = self.cores.iter().zip(1..);
        cores.try_for_each(|(core, k)| out.values(&format!("core_{k}"), core))
    }
}

/// Reads a model; without `mode_order` the modes come in their natural order.
pub(super) fn read<V: Value>(archive: &mut NpzIn) -> Result<TtModel<V>, CommonError> {
    let mut cores = vec![archive.values("core_1")?];
    while archive.has(&format!("core_{}", cores.len() + 1)) {
        cores.push(archive.values(&format!("core_{}", cores.len() + 1))?);
    }
    let order = match archive.has("mode_order") {
        true => {
            let modes: Vec<u64> = archive.numbers("mode_order")?;
            let from_zero = modes.iter().map(|&mode| (mode as usize).wrapping_sub(1)).collect();
            ModeOrder::new(from_zero).ok_or_else(|| {
                let why = format!("mode_order {modes:?} does not list each mode once");
                CommonError::content(archive.path(), why)
            })?
        }
        false => ModeOrder::natural(cores.len()),
    };
    TtModel::new(cores, order)
        .map_err(|error| CommonError::content(archive.path(), error.to_string()))
}
