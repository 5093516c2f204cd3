//! What finds the node of a coordinate without a search: bitmaps and tables.
//!
//! ```text
//! coordinates   1  3  6  7        a fibre of extent 8
//! bitmap        0 1 0 1 0 0 1 1   the node of 6 is the second: two bits are set before its own
//! table         - 7 3 - 1 - 6 -   two places a node; a coordinate stands behind where its hash points
//! ```
//!
//! Coordinates stay as they are, so that a level can be walked too.  Sources: rank directories of bitmaps, Jacobson,
//! "Space-efficient static trees and graphs", FOCS 1989; tables with linear probing and multiplicative hashing, Knuth,
//! "The Art of Computer Programming", volume 3, section 6.4.

use std::ops::Range;

use decompose_formats::{Ints, Level};

use crate::schedule::LevelKind;

/// Bits of a word of a bitmap.
pub(crate) const WORD: u64 = 64;

/// Places of a table for each node: half of them stay free, so that few coordinates meet others.
pub(crate) const PLACES: u64 = 2;

/// What a coordinate is multiplied by: 2^32 over the golden ratio, which spreads neighbours evenly.
pub(crate) const MULTIPLIER: u32 = 0x9E37_79B9;

/// What finds the nodes of the coordinates of a level.
#[derive(Debug, PartialEq, Eq)]
pub enum Locator {
    /// Bitmaps, one a fibre.
    Bitmap {
        /// A bit for each coordinate.
        words: Vec<u64>,
        /// For each word, the nodes of the fibre before its first bit.
        ranks: Vec<u32>,
    },
    /// Tables, one a fibre, with two places a node: the number of a node in its fibre, from 1 on; 0 is free.
    Table(Vec<u32>),
}

impl Locator {
    /// Makes what a level of `kind` needs: fibres are below the nodes that `above` points from, or one.
    pub(crate) fn of(
        kind: LevelKind,
        own: &Level,
        above: Option<&Ints>,
        extent: u64,
    ) -> Option<Locator> {
        let parents = above.map_or(1, |above| above.len().saturating_sub(1));
        let all = own.coords.len();
        let fibre = |parent: usize| match above {
            Some(above) => above.get(parent) as usize..above.get(parent + 1) as usize,
            None => 0..all,
        };
        match kind {
            LevelKind::Bitmap => {
                let words = extent.div_ceil(WORD) as usize;
                let mut bits = vec![0_u64; parents * words];
                let mut ranks = vec![0_u32; parents * words];
                for parent in 0..parents {
                    let own_words = parent * words..(parent + 1) * words;
                    for node in fibre(parent) {
                        let coord = own.coords.get(node);
                        bits[own_words.start + (coord / WORD) as usize] |= 1 << (coord % WORD);
                    }
                    let mut before = 0;
                    for word in own_words {
                        ranks[word] = before;
                        before += bits[word].count_ones();
                    }
                }
                Some(Locator::Bitmap { words: bits, ranks })
            }
            LevelKind::Hashed => {
                let mut table = vec![0_u32; all * PLACES as usize];
                for fibre in (0..parents).map(fibre) {
                    let places = &mut table[fibre.start * 2..fibre.end * 2];
                    for (number, node) in fibre.enumerate() {
                        let mut place = first_place(own.coords.get(node), places.len() as u64);
                        while places[place] != 0 {
                            place = (place + 1) % places.len();
                        }
                        places[place] = number as u32 + 1;
                    }
                }
                Some(Locator::Table(table))
            }
            LevelKind::Dense | LevelKind::Compressed | LevelKind::Singleton => None,
        }
    }

    /// Returns the node of `coord` in the fibre number `parent` of nodes `fibre`, in a level of `extent` whose coordinates
    /// are `coords`.
    pub(crate) fn find(
        &self,
        (coords, extent): (&Ints, u64),
        (parent, fibre): (usize, &Range<u64>),
        coord: u64,
    ) -> Option<u64> {
        match self {
            Locator::Bitmap { words, ranks } => {
                let at = parent * extent.div_ceil(WORD) as usize + (coord / WORD) as usize;
                let (word, bit) = (words[at], 1 << (coord % WORD));
                let before = u64::from(ranks[at] + (word & (bit - 1)).count_ones());
                (word & bit != 0).then_some(fibre.start + before)
            }
            Locator::Table(table) => {
                let places = &table[fibre.start as usize * 2..fibre.end as usize * 2];
                if places.is_empty() {
                    return None;
                }
                let mut place = first_place(coord, places.len() as u64);
                while places[place] != 0 {
                    let node = fibre.start + u64::from(places[place]) - 1;
                    if coords.get(node as usize) == coord {
                        return Some(node);
                    }
                    place = (place + 1) % places.len();
                }
                None
            }
        }
    }

    /// Tells whether `locator` is what a level of `kind` needs.
    pub(crate) fn fits(locator: Option<&Locator>, kind: LevelKind) -> bool {
        match kind {
            LevelKind::Bitmap => matches!(locator, Some(Locator::Bitmap { .. })),
            LevelKind::Hashed => matches!(locator, Some(Locator::Table(_))),
            LevelKind::Dense | LevelKind::Compressed | LevelKind::Singleton => locator.is_none(),
        }
    }

    /// Returns the bytes that it takes.
    pub fn bytes(&self) -> u64 {
        match self {
            Locator::Bitmap { words, ranks } => words.len() as u64 * 8 + ranks.len() as u64 * 4,
            Locator::Table(table) => table.len() as u64 * 4,
        }
    }
}

/// The place of a table of `places` where the search for `coord` begins.
fn first_place(coord: u64, places: u64) -> usize {
    let hash = u64::from((coord as u32).wrapping_mul(MULTIPLIER));
    ((hash * places) >> 32) as usize
}

/// Returns the bytes of the bitmaps or tables of a level of `kind` with fibres of `extent` below `above` nodes, and `nodes`
/// of its own.
pub(crate) fn locator_bytes(kind: LevelKind, (above, extent): (u64, u64), nodes: u64) -> u64 {
    match kind {
        LevelKind::Bitmap => above.saturating_mul(extent.div_ceil(WORD)).saturating_mul(12),
        LevelKind::Hashed => nodes.saturating_mul(4 * PLACES),
        LevelKind::Dense | LevelKind::Compressed | LevelKind::Singleton => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coordinate_is_found_and_no_other() {
        // Three fibres, of which the second is empty and the third has neighbours, far ones, and the first and the last.
        let coords: Vec<u32> = vec![5, 64, 0, 1, 2, 3, 63, 64, 65, 127, 128, 199];
        let above = Ints::from(vec![0_u16, 2, 2, 12]);
        let own = Level { coords: coords.clone().into(), pointers: Ints::from(Vec::<u16>::new()) };
        for kind in [LevelKind::Bitmap, LevelKind::Hashed] {
            let locator = Locator::of(kind, &own, Some(&above), 200).expect("a locator");
            assert!(Locator::fits(Some(&locator), kind));
            for (parent, fibre) in [0..2, 2..2, 2..12].into_iter().enumerate() {
                for coord in 0..200_u64 {
                    let node = fibre.clone().find(|&n| u64::from(coords[n as usize]) == coord);
                    let found = locator.find((&own.coords, 200), (parent, &fibre), coord);
                    assert_eq!(found, node, "{kind}, fibre {parent}, {coord}");
                }
            }
        }
    }
}
