//! Indices, sets of them, and their extents.

use std::fmt;
use std::ops::{BitAnd, BitOr, Sub};

/// An index of an expression: a letter, or `_` for the blocks of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index(u8);

impl Index {
    /// The index of the blocks of a tensor that is stored block by block ([`Blocking`]): `_`.
    ///
    /// Only the tensor has it, as its first index; what is contracted inside a block is summed over
    /// the blocks at the very end.
    ///
    /// [`Blocking`]: decompose_formats::Blocking
    pub const BLOCK: Index = Index(52);

    /// Returns the index named `letter`; `None` unless it is an ASCII letter or `_`.
    pub fn new(letter: char) -> Option<Index> {
        match letter {
            'a'..='z' => Some(Index(letter as u8 - b'a')),
            'A'..='Z' => Some(Index(letter as u8 - b'A' + 26)),
            '_' => Some(Index::BLOCK),
            _ => None,
        }
    }

    /// Returns the index that an expression names `letter`; `None` unless it is an ASCII letter.
    pub fn named(letter: char) -> Option<Index> {
        Index::new(letter).filter(|&index| index != Index::BLOCK)
    }

    /// Returns the letter.
    pub fn letter(self) -> char {
        match self.0 {
            0..26 => char::from(b'a' + self.0),
            26..52 => char::from(b'A' - 26 + self.0),
            _ => '_',
        }
    }

    /// Returns its number, below [`Index::COUNT`]: a place in a table of indices.
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// How many indices there can be.
    pub const COUNT: usize = 53;
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the indices named by `letters`.
///
/// # Panics
///
/// If `letters` holds something else than ASCII letters.
pub fn indices(letters: &str) -> Vec<Index> {
    letters.chars().map(|letter| Index::new(letter).expect("an ASCII letter")).collect()
}

/// A set of indices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct IndexSet(u64);

impl IndexSet {
    /// The empty set.
    pub const EMPTY: IndexSet = IndexSet(0);

    /// Tells whether `index` is in the set.
    pub fn contains(self, index: Index) -> bool {
        self.0 >> index.0 & 1 == 1
    }

    /// Returns the set with `index`.
    pub fn with(self, index: Index) -> IndexSet {
        IndexSet(self.0 | 1 << index.0)
    }

    /// Tells whether every member is in `other`.
    pub fn is_subset(self, other: IndexSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// Tells whether there is no member.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of members.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Iterates over the members by number.
    pub fn iter(self) -> impl Iterator<Item = Index> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let least = (rest != 0).then(|| Index(rest.trailing_zeros() as u8));
            rest &= rest.wrapping_sub(1);
            least
        })
    }
}

impl FromIterator<Index> for IndexSet {
    fn from_iter<I: IntoIterator<Item = Index>>(members: I) -> IndexSet {
        members.into_iter().fold(IndexSet::EMPTY, IndexSet::with)
    }
}

impl BitOr for IndexSet {
    type Output = IndexSet;

    fn bitor(self, other: IndexSet) -> IndexSet {
        IndexSet(self.0 | other.0)
    }
}

impl BitAnd for IndexSet {
    type Output = IndexSet;

    fn bitand(self, other: IndexSet) -> IndexSet {
        IndexSet(self.0 & other.0)
    }
}

impl Sub for IndexSet {
    type Output = IndexSet;

    fn sub(self, other: IndexSet) -> IndexSet {
        IndexSet(self.0 & !other.0)
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|index| write!(f, "{index}"))
    }
}

impl fmt::Debug for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// The extent of each index of an expression.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Extents {
    known: IndexSet,
    /// By number; 0 where it was never set.
    extents: [u64; Index::COUNT],
}

impl Extents {
    /// Sets the extent of `index` and returns the one it had.
    pub fn set(&mut self, index: Index, extent: u64) -> Option<u64> {
        let old = std::mem::replace(&mut self.extents[index.number()], extent);
        let known = self.known.contains(index).then_some(old);
        self.known = self.known.with(index);
        known
    }

    /// Returns the extent of `index`.
    ///
    /// # Panics
    ///
    /// If it was never set.
    pub fn of(&self, index: Index) -> u64 {
        assert!(self.known.contains(index), "the extent of {index} was never set");
        self.extents[index.number()]
    }
}

impl Default for Extents {
    fn default() -> Extents {
        Extents { known: IndexSet::EMPTY, extents: [0; Index::COUNT] }
    }
}

impl fmt::Debug for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.known.iter().map(|index| (index, self.of(index)))).finish()
    }
}

impl FromIterator<(Index, u64)> for Extents {
    fn from_iter<I: IntoIterator<Item = (Index, u64)>>(pairs: I) -> Extents {
        let mut all = Extents::default();
        for (index, extent) in pairs {
            all.set(index, extent);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{Index, IndexSet, indices};

    #[test]
    fn letters_are_numbered_once() {
        let all: String = ('a'..='z').chain('A'..='Z').chain(['_']).collect();
        let numbers: Vec<usize> = indices(&all).into_iter().map(Index::number).collect();
        assert_eq!(numbers, (0..Index::COUNT).collect::<Vec<_>>());
        assert_eq!(indices(&all).into_iter().collect::<IndexSet>().to_string(), all);
        assert_eq!(Index::new('_'), Some(Index::BLOCK));
        assert_eq!(Index::new('1'), None);
    }
}
