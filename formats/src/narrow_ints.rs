//! Arrays of coordinates or positions, as narrow as the numbers allow.

use std::ops::Range;

use bytemuck::Pod;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use crate::array::Array;
use crate::simd;

/// Numbers that one task copies.
const PART: usize = 1 << 16;

/// Unsigned integers of one of three widths.
#[derive(Clone, Debug)]
pub enum Ints {
    /// Every number is below 2^16.
    U16(Array<u16>),
    /// Every number is below 2^32.
    U32(Array<u32>),
    /// Some number may need 64 bits.
    U64(Array<u64>),
}

/// The width of an [`Ints`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub enum Width {
    /// Two bytes a number.
    W16,
    /// Four bytes a number.
    W32,
    /// Eight bytes a number.
    W64,
}

/// Evaluates an expression for the numbers in a value of an enum with a variant a width.
macro_rules! each_width {
    ($type:ident, $value:expr, $numbers:ident => $result:expr) => {
        match $value {
            $type::U16($numbers) => $result,
            $type::U32($numbers) => $result,
            $type::U64($numbers) => $result,
        }
    };
}
pub(crate) use each_width;

impl Width {
    /// Returns the narrowest width that holds every number below `bound`: that of the levels of
    /// trees.
    pub fn below(bound: u64) -> Width {
        if bound <= 1 << 16 { Width::W16 } else { Width::listed(bound) }
    }

    /// Returns the narrowest width, but at least four bytes, that holds every number below `bound`:
    /// that of files, and of lists unless all modes are short.
    pub fn listed(bound: u64) -> Width {
        if bound <= 1 << 32 { Width::W32 } else { Width::W64 }
    }

    /// Returns the size of one number in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Width::W16 => 2,
            Width::W32 => 4,
            Width::W64 => 8,
        }
    }
}

impl Ints {
    /// Collects `numbers`, which `width` must hold: higher bits are cut off.
    pub fn collect(numbers: impl IntoIterator<Item = u64>, width: Width) -> Ints {
        let numbers = numbers.into_iter();
        match width {
            Width::W16 => numbers.map(u16::cut).collect::<Vec<_>>().into(),
            Width::W32 => numbers.map(u32::cut).collect::<Vec<_>>().into(),
            Width::W64 => numbers.collect::<Vec<_>>().into(),
        }
    }

    /// Returns the number at `position`.
    ///
    /// # Panics
    ///
    /// If `position` is not below [`Ints::len`].
    pub fn get(&self, position: usize) -> u64 {
        each_width!(Ints, self, array => array[position].wide())
    }

    /// Returns the first position whose number is not below `number`; the numbers ascend.
    pub fn first_from(&self, number: u64) -> usize {
        each_width!(Ints, self, array => array.partition_point(|own| own.wide() < number))
    }

    /// Returns how many numbers there are.
    pub fn len(&self) -> usize {
        each_width!(Ints, self, array => array.len())
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the width of each number.
    pub fn width(&self) -> Width {
        match self {
            Ints::U16(_) => Width::W16,
            Ints::U32(_) => Width::W32,
            Ints::U64(_) => Width::W64,
        }
    }

    /// Returns the size of the array in bytes.
    pub fn bytes(&self) -> u64 {
        (self.len() * self.width().bytes()) as u64
    }

    /// Returns the largest number; `None` if there are none.  Parallel.
    pub fn max(&self) -> Option<u64> {
        each_width!(Ints, self, array => array.par_iter().max().map(|max| max.wide()))
    }

    /// Returns the least and the greatest number at `positions`; `None` if there are none.  Parallel.
    ///
    /// # Panics
    ///
    /// If a position is not below [`Ints::len`].
    pub fn bounds(&self, positions: Range<usize>) -> Option<(u64, u64)> {
        each_width!(Ints, self, array => {
            let each = array[positions].par_iter().map(|&number| (number, number));
            let both = each.reduce_with(|(a, b), (c, d)| (a.min(c), b.max(d)));
            both.map(|(least, most)| (least.wide(), most.wide()))
        })
    }

    /// Returns an owned copy, made by all threads.
    pub(crate) fn copy(&self) -> Ints {
        each_width!(Ints, self, array => array.copy().into())
    }

    /// Returns the same numbers in the same memory, as [`Array::share`] does.
    pub(crate) fn share(&mut self) -> Ints {
        each_width!(Ints, self, array => array.share().into())
    }

    /// Tells whether nothing else has the same memory, as [`Array::is_own`] does.
    pub(crate) fn is_own(&self) -> bool {
        each_width!(Ints, self, array => array.is_own())
    }

    /// Tells whether the numbers are a piece of a mapped file, as [`Array::is_mapped`] does.
    pub(crate) fn is_mapped(&self) -> bool {
        each_width!(Ints, self, array => array.is_mapped())
    }

    /// Returns an owned copy of a width that holds the numbers, made by all threads.
    pub(crate) fn copy_as(&self, width: Width) -> Ints {
        if width == self.width() {
            return self.copy();
        }
        match width {
            Width::W16 => each_width!(Ints, self, array => recut::<_, u16>(array).into()),
            Width::W32 => each_width!(Ints, self, array => recut::<_, u32>(array).into()),
            Width::W64 => each_width!(Ints, self, array => recut::<_, u64>(array).into()),
        }
    }

    /// Returns the numbers in memory of their own and in a width that holds them; they are moved only
    /// if one of both asks for it.
    pub(crate) fn into_width(self, width: Width) -> Ints {
        if width == self.width() {
            each_width!(Ints, self, array => array.into_owned().into())
        } else {
            self.copy_as(width)
        }
    }

    /// Returns `len` zeros of a width, all of which will be written.
    pub(crate) fn to_fill(len: usize, width: Width) -> Ints {
        match width {
            Width::W16 => Ints::U16(Array::to_fill(len)),
            Width::W32 => Ints::U32(Array::to_fill(len)),
            Width::W64 => Ints::U64(Array::to_fill(len)),
        }
    }

    /// Iterates over the numbers.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|position| self.get(position))
    }
}

impl PartialEq for Ints {
    /// Compares the numbers, whatever their widths.
    fn eq(&self, other: &Ints) -> bool {
        match (self, other) {
            (Ints::U16(a), Ints::U16(b)) => a == b,
            (Ints::U32(a), Ints::U32(b)) => a == b,
            (Ints::U64(a), Ints::U64(b)) => a == b,
            _ => self.len() == other.len() && self.iter().eq(other.iter()),
        }
    }
}

/// Copies numbers to another width, with all threads.
fn recut<T: Int, U: Int>(from: &[T]) -> Array<U> {
    let mut copy = Array::to_fill(from.len());
    let parts = copy.make_mut().par_chunks_mut(PART).zip(from.par_chunks(PART));
    parts.for_each(|(to, from)| {
        let numbers = to.iter_mut().zip(from);
        simd::run(|| numbers.for_each(|(to, from)| *to = U::cut(from.wide())));
    });
    copy
}

/// `u16`, `u32` or `u64`, for code written once for all widths.
pub(crate) trait Int: Pod + Send + Sync + Ord {
    /// Cuts `number` to this width; callers know that it fits.
    fn cut(number: u64) -> Self;

    /// Returns the number.
    fn wide(self) -> u64;
}

impl Int for u16 {
    fn cut(number: u64) -> u16 {
        number as u16
    }

    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Int for u32 {
    fn cut(number: u64) -> u32 {
        number as u32
    }

    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Int for u64 {
    fn cut(number: u64) -> u64 {
        number
    }

    fn wide(self) -> u64 {
        self
    }
}

impl From<Array<u16>> for Ints {
    fn from(array: Array<u16>) -> Ints {
        Ints::U16(array)
    }
}

impl From<Array<u32>> for Ints {
    fn from(array: Array<u32>) -> Ints {
        Ints::U32(array)
    }
}

impl From<Array<u64>> for Ints {
    fn from(array: Array<u64>) -> Ints {
        Ints::U64(array)
    }
}

impl From<Vec<u16>> for Ints {
    fn from(vec: Vec<u16>) -> Ints {
        Ints::U16(vec.into())
    }
}

impl From<Vec<u32>> for Ints {
    fn from(vec: Vec<u32>) -> Ints {
        Ints::U32(vec.into())
    }
}

impl From<Vec<u64>> for Ints {
    fn from(vec: Vec<u64>) -> Ints {
        Ints::U64(vec.into())
    }
}
