//! What locates the node of a coordinate without a search: bitmaps and hash tables.
//!
//! ```text
//! coordinates   1  3  6  7        a fibre of extent 8
//! bitmap        0 1 0 1 0 0 1 1   the node of 6 is number 3: two bits are set before its own
//! hash table    - - 4 - 1 3 2 -   two slots a node; a slot holds the number of a node, from 1 on
//! ```
//!
//! The number of a node is in the slot of its coordinate's hash, or in the next free one.
//!
//! Coordinates stay as they are, so that a level can be walked too.  Sources: rank directories of bitmaps, Jacobson,
//! "Space-efficient static trees and graphs", FOCS 1989; tables with linear probing and multiplicative hashing, Knuth,
//! "The Art of Computer Programming", volume 3, section 6.4.

use std::ops::Range;

use decompose_formats::{Ints, Level};
use rayon::prelude::*;

use crate::schedule::LevelKind;

/// Bits of a word of a bitmap.
pub(crate) const WORD: u64 = 64;

/// Slots of a table for each node: half of them stay free, so that few coordinates meet others.
pub(crate) const SLOTS: u64 = 2;

/// What a coordinate is multiplied by: 2^32 over the golden ratio, which spreads neighbours evenly.
pub(crate) const MULTIPLIER: u32 = 0x9E37_79B9;

/// Fibres that a thread takes at a time: more work than it is to hand them over.
const LEAST_FIBRES: usize = 64;

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
    /// Hash tables, one a fibre, with two slots a node: the number of a node in its fibre, from 1 on; 0 is free.
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
        match kind {
            LevelKind::Bitmap => Some(bitmaps(&own.coords, &Fibres::of(own, above), extent)),
            LevelKind::Hashed => Some(tables(&own.coords, &Fibres::of(own, above))),
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
                let slots = &table[(fibre.start * SLOTS) as usize..(fibre.end * SLOTS) as usize];
                if slots.is_empty() {
                    return None;
                }
                let mut slot = first_slot(coord, slots.len() as u64);
                while slots[slot] != 0 {
                    let node = fibre.start + u64::from(slots[slot]) - 1;
                    if coords.get(node as usize) == coord {
                        return Some(node);
                    }
                    slot = (slot + 1) % slots.len();
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

/// The fibres of a level.
struct Fibres<'a> {
    above: Option<&'a Ints>,
    nodes: usize,
}

impl Fibres<'_> {
    fn of<'a>(own: &Level, above: Option<&'a Ints>) -> Fibres<'a> {
        Fibres { above, nodes: own.coords.len() }
    }

    fn count(&self) -> usize {
        self.above.map_or(1, |above| above.len().saturating_sub(1))
    }

    /// The nodes of a fibre.
    fn nodes(&self, fibre: usize) -> Range<usize> {
        match self.above {
            Some(above) => above.get(fibre) as usize..above.get(fibre + 1) as usize,
            None => 0..self.nodes,
        }
    }
}

/// Makes the bitmaps of all fibres, on all threads.
fn bitmaps(coords: &Ints, fibres: &Fibres<'_>, extent: u64) -> Locator {
    let each = (extent.div_ceil(WORD) as usize).max(1);
    let mut words = vec![0_u64; fibres.count() * each];
    let mut ranks = vec![0_u32; fibres.count() * each];
    let both = words.par_chunks_mut(each).zip(ranks.par_chunks_mut(each));
    both.enumerate().with_min_len(LEAST_FIBRES).for_each(|(fibre, (words, ranks))| {
        for node in fibres.nodes(fibre) {
            let coord = coords.get(node);
            words[(coord / WORD) as usize] |= 1 << (coord % WORD);
        }
        let mut before = 0;
        for (word, rank) in words.iter().zip(ranks) {
            *rank = before;
            before += word.count_ones();
        }
    });
    Locator::Bitmap { words, ranks }
}

/// Makes the tables of all fibres, on all threads.
fn tables(coords: &Ints, fibres: &Fibres<'_>) -> Locator {
    let mut table = vec![0_u32; fibres.nodes * SLOTS as usize];
    let mut rest = table.as_mut_slice();
    let mut parts: Vec<(Range<usize>, &mut [u32])> = Vec::new();
    for first in (0..fibres.count()).step_by(LEAST_FIBRES) {
        let part = first..fibres.count().min(first + LEAST_FIBRES);
        let nodes = fibres.nodes(part.end - 1).end - fibres.nodes(first).start;
        let (places, others) = rest.split_at_mut(nodes * SLOTS as usize);
        parts.push((part, places));
        rest = others;
    }
    parts.into_par_iter().for_each(|(part, mut places)| {
        for fibre in part {
            let nodes = fibres.nodes(fibre);
            let (own, others) = places.split_at_mut(nodes.len() * SLOTS as usize);
            fill_table(own, coords, nodes);
            places = others;
        }
    });
    Locator::Table(table)
}

/// Enters the nodes of a fibre into its table.
fn fill_table(slots: &mut [u32], coords: &Ints, nodes: Range<usize>) {
    for (number, node) in nodes.enumerate() {
        let mut slot = first_slot(coords.get(node), slots.len() as u64);
        while slots[slot] != 0 {
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = number as u32 + 1;
    }
}

/// The slot, of so many, where the search for `coord` begins.
fn first_slot(coord: u64, slots: u64) -> usize {
    let hash = u64::from((coord as u32).wrapping_mul(MULTIPLIER));
    ((hash * slots) >> 32) as usize
}

/// Returns the bytes of the bitmaps or tables of a level of `kind` with fibres of `extent` below `above` nodes, and `nodes`
/// of its own.
pub(crate) fn locator_bytes(kind: LevelKind, (above, extent): (u64, u64), nodes: u64) -> u64 {
    match kind {
        LevelKind::Bitmap => above.saturating_mul(extent.div_ceil(WORD)).saturating_mul(12),
        LevelKind::Hashed => nodes.saturating_mul(4 * SLOTS),
        LevelKind::Dense | LevelKind::Compressed | LevelKind::Singleton => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what is found with the list of coordinates.
    fn check(coords: &[u32], begins: &[u32], extent: u64) {
        let above = Ints::from(begins.to_vec());
        let pointers = Ints::from(Vec::<u16>::new());
        let own = Level { coords: coords.to_vec().into(), pointers };
        for kind in [LevelKind::Bitmap, LevelKind::Hashed] {
            let locator = Locator::of(kind, &own, Some(&above), extent).expect("a locator");
            assert!(Locator::fits(Some(&locator), kind));
            for (parent, ends) in begins.windows(2).enumerate() {
                let fibre = u64::from(ends[0])..u64::from(ends[1]);
                for coord in 0..extent {
                    let node = fibre.clone().find(|&n| u64::from(coords[n as usize]) == coord);
                    let found = locator.find((&own.coords, extent), (parent, &fibre), coord);
                    assert_eq!(found, node, "{kind}, fibre {parent}, {coord}");
                }
            }
        }
    }

    #[test]
    fn every_coordinate_is_found_and_no_other() {
        // The second fibre is empty; the third has neighbours, far ones, and the first and the last.
        check(&[5, 64, 0, 1, 2, 3, 63, 64, 65, 127, 128, 199], &[0, 2, 2, 12], 200);
        // Fibres of which several threads take some: of 0 to 12 nodes, and one of all coordinates.
        let (mut coords, mut begins) = (Vec::new(), vec![0]);
        for fibre in 0..5 * LEAST_FIBRES as u32 {
            let step = if fibre == 70 { 1 } else { 5 + fibre % 11 };
            let of_fibre = (fibre % 3..65).step_by(step as usize);
            coords.extend(of_fibre.filter(|_| fibre % 7 > 0));
            begins.push(coords.len() as u32);
        }
        check(&coords, &begins, 65);
    }
}
