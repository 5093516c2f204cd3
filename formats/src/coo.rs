//! Coordinate lists.

use crate::array::Array;
use crate::dims::ModeOrder;
use crate::error::FormatError;
use crate::ints::Ints;
use crate::value::Value;

/// A sparse tensor as a list of coordinates and values, one array a mode ("structure of arrays").
///
/// Coordinates count from 0.  The non-zeros stand in any order and may repeat a coordinate until
/// they are sorted and summed.  Memory: `nnz * (sum of index widths + V::BYTES)` bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Coo<V: Value> {
    extents: Vec<u64>,
    coords: Vec<Ints>,
    values: Array<V>,
}

impl<V: Value> Coo<V> {
    /// Makes a tensor of extents `extents` from one coordinate array a mode and the values.
    ///
    /// Time `O(nnz * order)`: every coordinate is checked against its extent.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if there is no mode, the arrays differ in length, or a
    /// coordinate is not below its extent.
    pub fn new(
        extents: Vec<u64>,
        coords: Vec<Ints>,
        values: impl Into<Array<V>>,
    ) -> Result<Coo<V>, FormatError> {
        let coo = Coo { extents, coords, values: values.into() };
        coo.check()?;
        Ok(coo)
    }

    fn check(&self) -> Result<(), FormatError> {
        let fail = |why: String| Err(FormatError::NotATensor(why));
        if self.extents.is_empty() || self.extents.len() != self.coords.len() {
            return fail(format!("{} extents, {} modes", self.extents.len(), self.coords.len()));
        }
        for (mode, (coords, &extent)) in self.coords.iter().zip(&self.extents).enumerate() {
            if coords.len() != self.values.len() {
                let (have, want) = (coords.len(), self.values.len());
                return fail(format!("mode {} has {have} coordinates for {want} values", mode + 1));
            }
            if let Some(max) = coords.iter().max().filter(|&max| max >= extent) {
                return fail(format!("index {} in mode {} of extent {extent}", max + 1, mode + 1));
            }
        }
        Ok(())
    }

    /// Returns the number of modes.
    pub fn order(&self) -> usize {
        self.extents.len()
    }

    /// Returns the extent of every mode.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the number of listed entries (explicit zeros and duplicates included).
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Returns the coordinates in `mode`, one for each entry.
    pub fn coords(&self, mode: usize) -> &Ints {
        &self.coords[mode]
    }

    /// Returns the values.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Takes the tensor apart: extents, coordinates by mode, values.
    pub fn into_parts(self) -> (Vec<u64>, Vec<Ints>, Array<V>) {
        (self.extents, self.coords, self.values)
    }
}
