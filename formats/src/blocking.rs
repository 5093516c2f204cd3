//! Blocks of a tensor: entries whose coordinates agree in their high bits, or lie in the same range of one mode.
//!
//! The number of a block interleaves the high bits of its coordinates, so that blocks with near
//! numbers are near in every mode: G. M. Morton, "A computer oriented geodetic data base and a new
//! technique in file sequencing", IBM, 1966.  Few high bits make large blocks, as HiCOO has them (Li,
//! Sun, Vuduc, SC 2018); all bits make every cell a block, which is the linear order of ALTO
//! (Helal et al., ICS 2021).  The number stands as one more mode, the last: a tree rooted there keeps
//! the rows that a kernel gathers near while it is in a block, and serves every mode alike.
//!
//! Ranges of one mode that have equal numbers of non-zeros are blocks too: one for each thread, so that
//! threads that add into the rows of this mode, in whatever order, have rows of their own.

use std::fmt;
use std::str::FromStr;

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::coo::Coo;
use crate::error::FormatError;
use crate::narrow_ints::{Int, Ints, Width, each_width};
use crate::simd;
use crate::sort::{Column, ColumnMut};
use crate::stats::slice_counts;
use crate::value::Value;

/// Which entries are a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocking(Cells);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Cells {
    /// Those that agree in as many high bits of each mode.
    Bits(Vec<u8>),
    /// Those in the same of `count` ranges of `mode`.
    Ranges { mode: usize, count: u32 },
}

/// The most bits of a number.
const MOST_BITS: u32 = 28;
/// The most ranges.
const MOST_RANGES: u32 = 1 << 12;
/// Entries numbered at a time.
const CHUNK: usize = 1 << 12;

/// Returns the bits of a coordinate below `extent`.
fn width(extent: u64) -> u8 {
    (64 - extent.saturating_sub(1).leading_zeros()) as u8
}

impl Blocking {
    /// Numbers blocks by as many high bits of each mode as `bits` says; `None` unless they are
    /// between 1 and 28 together.
    pub fn new(bits: Vec<u8>) -> Option<Blocking> {
        let all: u32 = bits.iter().map(|&bits| u32::from(bits)).sum();
        (1..=MOST_BITS).contains(&all).then_some(Blocking(Cells::Bits(bits)))
    }

    /// Cuts `mode` into `count` ranges of slices with nearly equal numbers of non-zeros, which are the
    /// blocks; `None` unless they are between 2 and 4096.
    pub fn of_ranges(mode: usize, count: u32) -> Option<Blocking> {
        (2..=MOST_RANGES).contains(&count).then_some(Blocking(Cells::Ranges { mode, count }))
    }

    /// Returns the high bits of each mode that number the blocks; none of ranges.
    pub fn bits(&self) -> &[u8] {
        match &self.0 {
            Cells::Bits(bits) => bits,
            Cells::Ranges { .. } => &[],
        }
    }

    /// Returns the mode whose ranges are the blocks, if they are ranges, and how many there are.
    pub fn ranges(&self) -> Option<(usize, u32)> {
        match self.0 {
            Cells::Bits(_) => None,
            Cells::Ranges { mode, count } => Some((mode, count)),
        }
    }

    /// Tells whether blocks differ in the coordinates of `mode`.
    pub fn splits(&self, mode: usize) -> bool {
        match &self.0 {
            Cells::Bits(bits) => bits.get(mode).is_some_and(|&bits| bits > 0),
            Cells::Ranges { mode: split, .. } => *split == mode,
        }
    }

    /// Tells whether a tensor of `order` modes has those that it names.
    pub fn fits_order(&self, order: usize) -> bool {
        match &self.0 {
            Cells::Bits(bits) => bits.len() == order,
            Cells::Ranges { mode, .. } => *mode < order,
        }
    }

    /// Tells whether a tensor of `extents` has the modes and the bits.
    pub fn fits(&self, extents: &[u64]) -> bool {
        let has = |(&bits, &extent): (&u8, &u64)| bits <= width(extent);
        self.fits_order(extents.len()) && self.bits().iter().zip(extents).all(has)
    }

    /// Returns one more than the largest number: numbers are below a power of two, or the ranges.
    pub fn extent(&self) -> u64 {
        match &self.0 {
            Cells::Bits(bits) => 1 << bits.iter().map(|&bits| u32::from(bits)).sum::<u32>(),
            Cells::Ranges { count, .. } => u64::from(*count),
        }
    }

    /// Returns the slices of a mode of `extent` that a block spans at most.
    pub fn span(&self, mode: usize, extent: u64) -> u64 {
        let bits = self.bits().get(mode).copied().unwrap_or(0);
        (1_u64 << width(extent).saturating_sub(bits)).min(extent)
    }

    /// Returns by mode the share of the steps from one number to the next that change one of its bits:
    /// all of them if it gives the lowest bit, half of them if the next one, and so on.
    pub fn changes(&self) -> Vec<f64> {
        match &self.0 {
            Cells::Bits(bits) => {
                let lowest = |places: &Vec<u8>| {
                    places.first().map_or(0.0, |&place| f64::exp2(-f64::from(place)))
                };
                places(bits).iter().map(lowest).collect()
            }
            Cells::Ranges { mode, .. } => {
                (0..=*mode).map(|other| if other == *mode { 1.0 } else { 0.0 }).collect()
            }
        }
    }

    /// Returns the number of the block of every entry, in the least width that holds all.  Parallel, time
    /// `O(nnz * order)`.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if the tensor lacks the modes or the bits.
    pub fn numbers<V: Value>(&self, coo: &Coo<V>) -> Result<Ints, FormatError> {
        let numbering = self.numbering(coo)?;
        let mut numbers = coo.spare_column(Width::below(self.extent()));
        each_width!(ColumnMut, ColumnMut::of(&mut numbers), numbers => numbering.fill_all(numbers));
        Ok(numbers)
    }

    /// Prepares to number the entries of `coo`.
    ///
    /// # Errors
    ///
    /// As [`Blocking::numbers`].
    pub(crate) fn numbering<'a, V: Value>(
        &self,
        coo: &'a Coo<V>,
    ) -> Result<Numbering<'a>, FormatError> {
        self.check(coo)?;
        let mut columns = coo.columns().into_iter();
        Ok(Numbering(match &self.0 {
            Cells::Bits(bits) => {
                let lows = bits.iter().zip(coo.extents()).map(|(&bits, &e)| width(e) - bits);
                let modes = columns.zip(lows).zip(places(bits));
                let modes = modes.filter(|(_, places)| !places.is_empty());
                modes.map(|((column, low), places)| (column, Part::bits(low, &places))).collect()
            }
            Cells::Ranges { mode, count } => {
                let table = range_table(&slice_counts(coo, *mode), *count);
                let column = columns.nth(*mode);
                column.map(|column| (column, Part::Table(table))).into_iter().collect()
            }
        }))
    }

    /// Checks that blocks of `coo` have numbers.
    ///
    /// # Errors
    ///
    /// As [`Blocking::numbers`].
    pub(crate) fn check<V: Value>(&self, coo: &Coo<V>) -> Result<(), FormatError> {
        if self.fits(coo.extents()) {
            return Ok(());
        }
        let why = format!("blocks by {self} of extents {:?}", coo.extents());
        Err(FormatError::NotATensor(why))
    }
}

/// Returns for each mode the places in a number of its high bits, as many as `bits` says, lowest first.
///
/// From the highest bit of the number down, the mode with the most bits left gives its next one.
fn places(bits: &[u8]) -> Vec<Vec<u8>> {
    let mut places: Vec<Vec<u8>> = vec![Vec::new(); bits.len()];
    let left = |mode: usize, places: &[Vec<u8>]| bits[mode] - places[mode].len() as u8;
    for place in (0..bits.iter().sum()).rev() {
        // Of equals the first.
        let next = (0..bits.len()).rev().max_by_key(|&mode| left(mode, &places));
        next.into_iter().for_each(|mode| places[mode].push(place));
    }
    places.iter_mut().for_each(|places| places.reverse());
    places
}

/// Returns the range of each slice, of which slice `i` has `counts[i]` entries: that in which the middle of its
/// entries lies if `count` ranges share all of them equally.
fn range_table(counts: &[u32], count: u32) -> Vec<u32> {
    let all: u64 = counts.iter().map(|&entries| u64::from(entries)).sum();
    let mut before = 0;
    let range = |&entries: &u32| {
        let entries = u64::from(entries);
        let middle = u128::from(2 * before + entries);
        before += entries;
        let range = middle * u128::from(count) / (2 * u128::from(all.max(1)));
        (range as u32).min(count - 1)
    };
    counts.iter().map(range).collect()
}

/// The columns that number blocks, each with what it gives to the numbers.
pub(crate) struct Numbering<'a>(Vec<(Column<'a>, Part)>);

/// What a mode gives to the number of a block.
enum Part {
    /// Bits of the coordinate above the `low` ones.
    Bits { low: u8, moves: Vec<[Move; TOGETHER]> },
    /// What the table has for the coordinate.
    Table(Vec<u32>),
}

/// Moves that one pass over coordinates makes: enough for most blockings, few enough for the registers.
const TOGETHER: usize = 4;

/// Bits that stay together: those of `mask`, after a shift to the right, go to the left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Move {
    right: u8,
    mask: u32,
    left: u8,
}

impl Part {
    /// Puts the bits of a coordinate above the `low` ones into these places.
    fn bits(low: u8, places: &[u8]) -> Part {
        let mut moves: Vec<Move> = Vec::new();
        for (bit, &place) in (0..).zip(places) {
            match moves.last_mut() {
                Some(Move { right, mask, left }) if place - *left == bit - *right => {
                    *mask |= 1 << (bit - *right);
                }
                _ => moves.push(Move { right: bit, mask: 1, left: place }),
            }
        }
        let together = |moves: &[Move]| {
            // Where there are fewer, the others move nothing.
            std::array::from_fn(|at| moves.get(at).copied().unwrap_or_default())
        };
        Part::Bits { low, moves: moves.chunks(TOGETHER).map(together).collect() }
    }
}

impl Numbering<'_> {
    /// Writes the numbers of all entries.
    fn fill_all<T: Int>(&self, numbers: &mut [T]) {
        numbers.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, numbers)| {
            let mut wide = [0; CHUNK];
            let wide = &mut wide[..numbers.len()];
            self.fill(chunk * CHUNK, wide);
            numbers.iter_mut().zip(wide).for_each(|(to, from)| *to = T::cut(u64::from(*from)));
        });
    }

    /// Writes the numbers of the entries from `first` on.
    pub(crate) fn fill(&self, first: usize, numbers: &mut [u32]) {
        numbers.fill(0);
        for (column, part) in &self.0 {
            let column = column.part(first..first + numbers.len());
            each_width!(Column, column, coords => add(coords, part, numbers));
        }
    }
}

/// Adds what one mode with these coordinates gives to `numbers`.
fn add<T: Int>(coords: &[T], part: &Part, numbers: &mut [u32]) {
    match part {
        Part::Bits { low, moves } => {
            for &moves in moves {
                let numbers = numbers.iter_mut().zip(coords);
                simd::run(|| {
                    numbers.for_each(|(number, &c)| *number |= moved(high(c, *low), moves));
                });
            }
        }
        Part::Table(table) => {
            let numbers = numbers.iter_mut().zip(coords);
            numbers.for_each(|(number, c)| *number |= table[c.wide() as usize]);
        }
    }
}

/// Returns a coordinate without its `low` bits.
#[inline(always)]
fn high<T: Int>(coord: T, low: u8) -> u32 {
    // Known from the type: vectors stay as wide as numbers need them.
    match const { size_of::<T>() > size_of::<u32>() } {
        true => (coord.wide() >> low) as u32,
        false => coord.wide() as u32 >> low,
    }
}

#[inline(always)]
fn moved(coord: u32, moves: [Move; TOGETHER]) -> u32 {
    moves.iter().fold(0, |number, step| number | (coord >> step.right & step.mask) << step.left)
}

impl<V: Value> Coo<V> {
    /// Adds the number of the block as the last mode.
    ///
    /// # Errors
    ///
    /// As [`Blocking::numbers`].
    pub fn with_blocks(self, blocking: &Blocking) -> Result<Coo<V>, FormatError> {
        let numbers = blocking.numbers(&self)?;
        Ok(self.with_mode(blocking.extent(), numbers))
    }
}

impl fmt::Display for Blocking {
    /// Writes the bits of each mode, as `4.3.5`, or the mode, counted from 1, and its ranges, as `2:8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cells::Bits(bits) => {
                let words: Vec<String> = bits.iter().map(u8::to_string).collect();
                f.write_str(&words.join("."))
            }
            Cells::Ranges { mode, count } => write!(f, "{}:{count}", mode + 1),
        }
    }
}

impl FromStr for Blocking {
    type Err = String;

    fn from_str(text: &str) -> Result<Blocking, String> {
        let ranges = |(mode, count): (&str, &str)| {
            let mode = mode.parse::<usize>().ok()?.checked_sub(1)?;
            Blocking::of_ranges(mode, count.parse().ok()?)
        };
        let bits = || {
            let bits: Option<Vec<u8>> = text.split('.').map(|word| word.parse().ok()).collect();
            Blocking::new(bits?)
        };
        text.split_once(':').map_or_else(bits, ranges).ok_or_else(|| {
            format!(
                "`{text}` is no blocking: give the high bits of each mode, as 4.3.5, 1 to 28 in all, or a \
                 mode and 2 to 4096 ranges of it, as 2:8"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::mix;

    #[test]
    fn numbers_interleave_the_high_bits() {
        // Widths are 3 and 2 bits; the mode with more bits left gives the higher bit.
        let coords = vec![vec![0_u32, 7, 4, 3, 2].into(), vec![3_u32, 0, 2, 1, 2].into()];
        let coo = Coo::new(vec![8, 4], coords, vec![1.0; 5]).unwrap();
        let blocking: Blocking = "2.1".parse().unwrap();
        let numbers = blocking.numbers(&coo).unwrap();
        // (i2 i1 i0, j1 j0) -> i2 i1 j1
        let want = [0b001, 0b110, 0b101, 0b010, 0b011];
        assert_eq!(numbers.iter().collect::<Vec<_>>(), want);
        assert_eq!((blocking.extent(), blocking.span(0, 8), blocking.span(1, 4)), (8, 2, 2));
        assert_eq!(blocking.changes(), [0.5, 1.0]);
        assert_eq!("3.0".parse::<Blocking>().unwrap().changes(), [1.0, 0.0]);
    }

    #[test]
    fn bits_of_any_blocking_and_width_are_interleaved() {
        let extents = vec![1 << 12, 1 << 40, 1 << 20];
        let column = |mode: usize| {
            (0..999).map(move |at| mix(3 * at + mode as u64) % (1 << [12, 40, 20][mode]))
        };
        let narrow = |mode: usize| column(mode).map(|c| c as u32).collect::<Vec<u32>>().into();
        let coords = vec![narrow(0), column(1).collect::<Vec<u64>>().into(), narrow(2)];
        let coo = Coo::new(extents.clone(), coords, vec![1.0; 999]).unwrap();
        for text in ["9.9.9", "12.0.3", "0.7.0", "1.6.2"] {
            let blocking: Blocking = text.parse().unwrap();
            let numbers = blocking.numbers(&coo).unwrap();
            for at in 0..999 {
                // From the highest bit down, the mode with the most bits left gives its next one.
                let (mut left, mut number) = (blocking.bits().to_vec(), 0);
                while let Some(mode) =
                    (0..3).rev().max_by_key(|&mode| left[mode]).filter(|&m| left[m] > 0)
                {
                    let low = width(extents[mode]) - blocking.bits()[mode];
                    left[mode] -= 1;
                    number = number << 1 | coo.coords(mode).get(at) >> (low + left[mode]) & 1;
                }
                assert_eq!(numbers.get(at), number, "{text} of entry {at}");
            }
        }
    }

    #[test]
    fn blocks_are_boxes_that_near_numbers_share() {
        let cells: Vec<(u32, u32)> = (0..10).flat_map(|i| (0..6).map(move |j| (i, j))).collect();
        let column = |of: fn(&(u32, u32)) -> u32| cells.iter().map(of).collect::<Vec<_>>();
        let coords = vec![column(|c| c.0).into(), column(|c| c.1).into()];
        let coo = Coo::new(vec![10, 6], coords, vec![1.0; cells.len()]).unwrap();
        let blocking = Blocking::new(vec![2, 1]).unwrap();
        let numbers = blocking.numbers(&coo).unwrap();
        for (at, &(i, j)) in cells.iter().enumerate() {
            for (other, &(k, l)) in cells.iter().enumerate() {
                let same = i >> 2 == k >> 2 && j >> 2 == l >> 2;
                assert_eq!(numbers.get(at) == numbers.get(other), same, "{i},{j} and {k},{l}");
            }
        }
    }

    #[test]
    fn ranges_have_equal_numbers_of_entries() {
        // Slices of 6, 1, 0, 2 and 3 entries; a slice is in one range, whatever it has.
        let of = |count| range_table(&[6, 1, 0, 2, 3], count);
        assert_eq!(of(2), [0, 1, 1, 1, 1]);
        assert_eq!(of(3), [0, 1, 1, 2, 2]);
        assert_eq!(of(6), [1, 3, 3, 4, 5]);
        assert_eq!(range_table(&[0, 0], 4), [0, 0]);
        let coords = vec![vec![0_u32, 0, 1, 1].into(), vec![3_u32, 0, 1, 0].into()];
        let coo = Coo::new(vec![2, 4], coords, vec![1.0; 4]).unwrap();
        let blocking: Blocking = "2:2".parse().unwrap();
        let numbers = blocking.numbers(&coo).unwrap();
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [1, 0, 1, 0]);
        assert_eq!((blocking.extent(), blocking.changes()), (2, vec![0.0, 1.0]));
        assert!(blocking.splits(1) && !blocking.splits(0));
        assert!("3:2".parse::<Blocking>().unwrap().numbers(&coo).is_err());
        for text in ["2:1", "0:2", "2:", ":2", "2:5000"] {
            assert!(text.parse::<Blocking>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_blocking_needs_its_modes_and_bits() {
        assert!("0.0".parse::<Blocking>().is_err());
        assert!("20.20".parse::<Blocking>().is_err());
        assert!("2.x".parse::<Blocking>().is_err());
        let coo = Coo::new(vec![4], vec![vec![1_u32].into()], vec![1.0]).unwrap();
        assert!(Blocking::new(vec![2]).unwrap().numbers(&coo).is_ok());
        assert!(Blocking::new(vec![3]).unwrap().numbers(&coo).is_err());
        assert!(Blocking::new(vec![1, 1]).unwrap().numbers(&coo).is_err());
    }
}
