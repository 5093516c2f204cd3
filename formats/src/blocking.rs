//! Blocks of a tensor: entries whose coordinates agree in their high bits.
//!
//! The number of a block interleaves the high bits of its coordinates, so that blocks with near
//! numbers are near in every mode: G. M. Morton, "A computer oriented geodetic data base and a new
//! technique in file sequencing", IBM, 1966.  Few high bits make large blocks, as HiCOO has them (Li,
//! Sun, Vuduc, SC 2018); all bits make every cell a block, which is the linear order of ALTO
//! (Helal et al., ICS 2021).  The number stands as one more mode, the last: a tree rooted there keeps
//! the rows that a kernel gathers near while it is in a block, and serves every mode alike.

use std::fmt;
use std::str::FromStr;

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::coo::Coo;
use crate::error::FormatError;
use crate::ints::{Int, Ints, Width, each_width};
use crate::sort::{Column, ColumnMut};
use crate::value::Value;
use crate::wide;

/// How many of the high bits of each mode's coordinates number the blocks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocking {
    bits: Vec<u8>,
}

/// The most bits of a number.
const MOST_BITS: u32 = 28;
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
        (1..=MOST_BITS).contains(&all).then_some(Blocking { bits })
    }

    /// Returns the bits of each mode.
    pub fn bits(&self) -> &[u8] {
        &self.bits
    }

    /// Tells whether a tensor of `extents` has the modes and the bits.
    pub fn fits(&self, extents: &[u64]) -> bool {
        self.bits.len() == extents.len()
            && self.bits.iter().zip(extents).all(|(&bits, &extent)| bits <= width(extent))
    }

    /// Returns one more than the largest number: numbers are below a power of two.
    pub fn extent(&self) -> u64 {
        1 << self.bits.iter().map(|&bits| u32::from(bits)).sum::<u32>()
    }

    /// Returns the slices of a mode of `extent` that a block spans at most.
    pub fn span(&self, mode: usize, extent: u64) -> u64 {
        let bits = self.bits.get(mode).copied().unwrap_or(0);
        (1_u64 << width(extent).saturating_sub(bits)).min(extent)
    }

    /// Returns by mode the share of the steps from one number to the next that change one of its bits:
    /// all of them if it gives the lowest bit, half of them if the next one, and so on.
    pub fn changes(&self) -> Vec<f64> {
        let lowest = |table: &Vec<u32>| table.get(1).map_or(0.0, |&bit| 1.0 / f64::from(bit));
        self.tables().iter().map(lowest).collect()
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
        if !self.fits(coo.extents()) {
            let why = format!("blocks by {self} high bits of extents {:?}", coo.extents());
            return Err(FormatError::NotATensor(why));
        }
        let tables = self.tables();
        let shifts = self.bits.iter().zip(coo.extents()).map(|(&bits, &e)| width(e) - bits);
        let modes = coo.columns().into_iter().zip(shifts).zip(tables);
        let modes = modes.filter(|(_, table)| table.len() > 1);
        Ok(Numbering(modes.map(|((column, shift), table)| (column, shift, table)).collect()))
    }

    /// Returns for each mode what its high bits add to a number.
    ///
    /// From the highest bit of the number down, the mode with the most bits left gives its next one.
    fn tables(&self) -> Vec<Vec<u32>> {
        let mut tables: Vec<Vec<u32>> = self.bits.iter().map(|&bits| vec![0; 1 << bits]).collect();
        let mut left = self.bits.clone();
        for place in (0..self.extent().trailing_zeros()).rev() {
            let most = left.iter().max().copied().unwrap_or(0);
            let Some(mode) = left.iter().position(|&bits| bits == most) else { continue };
            left[mode] -= 1;
            let bit = left[mode];
            for (high, number) in tables[mode].iter_mut().enumerate() {
                *number |= ((high as u32 >> bit) & 1) << place;
            }
        }
        tables
    }
}

/// The columns whose high bits number blocks, each with the bits below these and what they add to a number.
pub(crate) struct Numbering<'a>(Vec<(Column<'a>, u8, Vec<u32>)>);

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
        for (column, shift, table) in &self.0 {
            add(column, (first, *shift), table, numbers);
        }
    }
}

/// Adds what one mode gives to the numbers of the entries from `first` on.
fn add(column: &Column<'_>, (first, shift): (usize, u8), table: &[u32], numbers: &mut [u32]) {
    let range = first..first + numbers.len();
    each_width!(Column, column, coords => {
        let coords = &coords[range];
        wide::run(|| {
            for (number, c) in numbers.iter_mut().zip(coords) {
                *number |= table[(c.wide() >> shift) as usize];
            }
        });
    });
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
    /// Writes the bits of each mode, as `4.3.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.bits.iter().map(u8::to_string).collect();
        f.write_str(&words.join("."))
    }
}

impl FromStr for Blocking {
    type Err = String;

    fn from_str(text: &str) -> Result<Blocking, String> {
        let bits: Option<Vec<u8>> = text.split('.').map(|word| word.parse().ok()).collect();
        bits.and_then(Blocking::new).ok_or_else(|| {
            format!(
                "`{text}` is no blocking: give the high bits of each mode, as 4.3.5, 1 to 28 in all"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
