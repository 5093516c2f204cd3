//! Modes and their orders.

use std::fmt;

/// An order of the modes of a tensor: a permutation of `0..order`, outermost mode first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

    /// Returns the `order` modes by increasing `key`, ties by number.
    pub fn by_key<K: Ord>(order: usize, key: impl FnMut(&usize) -> K) -> ModeOrder {
        let mut modes: Vec<usize> = (0..order).collect();
        modes.sort_by_key(key);
        ModeOrder(modes)
    }

    /// Returns the order with `root` first and the others by increasing extent, ties by number.
    ///
    /// # Panics
    ///
    /// If `root` is not a mode of `extents`.
    pub fn rooted(root: usize, extents: &[u64]) -> ModeOrder {
        assert!(root < extents.len(), "mode {root} of an order-{} tensor", extents.len());
        ModeOrder::by_key(extents.len(), |&mode| (mode != root, extents[mode]))
    }

    /// Returns the order with `mode` moved to the innermost place.
    pub fn ending_with(&self, mode: usize) -> ModeOrder {
        let (last, mut modes): (Vec<usize>, Vec<usize>) =
            self.0.iter().partition(|&&other| other == mode);
        modes.extend(last);
        ModeOrder(modes)
    }

    /// Returns the order with the modes below the first one turned round.
    pub fn reversed_below_root(mut self) -> ModeOrder {
        if let [_, below @ ..] = self.0.as_mut_slice() {
            below.reverse();
        }
        self
    }

    /// Returns the order with one more mode, the innermost.
    pub(crate) fn with_mode(mut self) -> ModeOrder {
        self.0.push(self.0.len());
        self
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

/// A set of modes: bit `m` stands for mode `m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModeSet(u64);

impl ModeSet {
    /// Most modes that a set can tell apart.
    pub const MODES: usize = 64;

    /// Returns the set of `modes`; modes from [`ModeSet::MODES`] on are left out.
    pub fn of(modes: &[usize]) -> ModeSet {
        let bits = modes.iter().filter(|&&mode| mode < ModeSet::MODES).map(|&mode| 1 << mode);
        ModeSet(bits.fold(0, |set, bit| set | bit))
    }

    /// Returns the set of the modes `0..order`, of at most [`ModeSet::MODES`].
    pub fn all(order: usize) -> ModeSet {
        ModeSet(1u64.unbounded_shl(order as u32).wrapping_sub(1))
    }

    /// Returns the set whose bits are `bits`.
    pub fn from_bits(bits: u64) -> ModeSet {
        ModeSet(bits)
    }

    /// Returns the bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the number of modes in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Tells whether the set has no mode.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Tells whether `mode` is in the set.
    pub fn contains(self, mode: usize) -> bool {
        mode < ModeSet::MODES && self.0 >> mode & 1 == 1
    }

    /// Returns the set without `mode`.
    pub fn without(self, mode: usize) -> ModeSet {
        ModeSet(self.0 & !ModeSet::of(&[mode]).0)
    }

    /// Iterates over the modes, lowest first.
    pub fn modes(self) -> impl Iterator<Item = usize> {
        (0..ModeSet::MODES).filter(move |&mode| self.contains(mode))
    }
}

impl serde::Serialize for ModeOrder {
    /// Writes the text that [`ModeOrder`] displays: modes in files count from 1.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for ModeSet {
    /// Writes the modes counted from 1, as `1,3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, mode) in self.modes().enumerate() {
            let sep = if position == 0 { "" } else { "," };
            write!(f, "{sep}{}", mode + 1)?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::ModeOrder;

    #[test]
    fn moved_modes_leave_the_others_in_place() {
        let order = ModeOrder::new(vec![2, 0, 3, 1]).unwrap();
        assert_eq!(order.ending_with(0).modes(), [2, 3, 1, 0]);
        assert_eq!(order.ending_with(1), order);
        assert_eq!(order.reversed_below_root().modes(), [2, 1, 3, 0]);
        assert_eq!(ModeOrder::natural(1).reversed_below_root().modes(), [0]);
    }
}
