//! Modes and their orders.

use std::fmt;

/// An order of the modes of a tensor: a permutation of `0..order`, outermost mode first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct ModeOrder(Vec<usize>);

impl ModeOrder {
    /// Returns the order that lists `modes` outermost first; `None` unless it is a permutation.
    pub fn new(modes: Vec<usize>) -> Option<ModeOrder> {
        let mut seen = vec![false; modes.len()];
        for &mode in &modes {
            *seen.get_mut(mode).filter(|seen| !**seen)? = true;
        }
        Some(ModeOrder(modes))
    }

    /// Returns the order `0, 1, ..., order - 1`.
    pub fn natural(order: usize) -> ModeOrder {
        ModeOrder((0..order).collect())
    }

    /// Returns the order with `root` first and the others by increasing extent, ties by number.
    ///
    /// # Panics
    ///
    /// If `root` is not a mode of `extents`.
    pub fn rooted(root: usize, extents: &[u64]) -> ModeOrder {
        assert!(root < extents.len(), "mode {root} of an order-{} tensor", extents.len());
        let mut rest: Vec<usize> = (0..extents.len()).filter(|&mode| mode != root).collect();
        rest.sort_by_key(|&mode| (extents[mode], mode));
        ModeOrder(std::iter::once(root).chain(rest).collect())
    }

    /// Returns the modes, outermost first.
    pub fn modes(&self) -> &[usize] {
        &self.0
    }

    /// Returns the level at which `mode` stands; `None` if it is no mode of the tensor.
    pub fn level_of(&self, mode: usize) -> Option<usize> {
        self.0.iter().position(|&m| m == mode)
    }
}

impl fmt::Display for ModeOrder {
    /// Writes the modes counted from 1, as `2-1-3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, mode) in self.0.iter().enumerate() {
            let sep = if level == 0 { "" } else { "-" };
            write!(f, "{sep}{}", mode + 1)?;
        }
        Ok(())
    }
}
