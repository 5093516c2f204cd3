//! Compressed sparse fibres: the non-zeros as a tree, one level a mode.
//!
//! Sorted by a mode order `(m_1, ..., m_N)`, entries that share their first `l` coordinates share
//! a node at level `l`.  Level `l` stores for each node its coordinate in mode `m_l`, and where
//! its children begin in level `l + 1`; the nodes of the last level are the non-zeros.
//! (Smith, Karypis: "Tensor-matrix products with a compressed sparse tensor", IA^3 2015.)

use crate::array::Array;
use crate::dims::ModeOrder;
use crate::ints::Ints;
use crate::value::Value;

/// A sparse tensor as compressed sparse fibres.
#[derive(Clone, Debug, PartialEq)]
pub struct Csf<V: Value> {
    extents: Vec<u64>,
    order: ModeOrder,
    levels: Vec<Level>,
    values: Array<V>,
}

/// One level of a [`Csf`].
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The coordinate of each node in the level's mode.
    pub coords: Ints,
    /// The children of node `p` are the nodes `pointers[p]..pointers[p + 1]` of the next level;
    /// empty for the last level.
    pub pointers: Ints,
}

impl<V: Value> Csf<V> {
    /// Returns the extents of the modes, by mode number.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the order in which the modes are the levels.
    pub fn mode_order(&self) -> &ModeOrder {
        &self.order
    }

    /// Returns the levels, root first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the values, one for each node of the last level.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Returns the exact prefix counts `nnz(X_{m_1})`, `nnz(X_{m_1 m_2})`, ..., `nnz(X)`.
    pub fn prefix_counts(&self) -> Vec<u64> {
        self.levels.iter().map(|level| level.coords.len() as u64).collect()
    }

    /// Returns the size of all arrays in bytes.
    pub fn bytes(&self) -> u64 {
        let levels: u64 = self.levels.iter().map(|l| l.coords.bytes() + l.pointers.bytes()).sum();
        levels + (self.values.len() * V::BYTES) as u64
    }
}
