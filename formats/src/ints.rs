//! Arrays of coordinates or positions, 32 bits wide until a number needs 64.

use bytemuck::Pod;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::array::Array;

/// Unsigned integers in the narrowest of two widths.
#[derive(Clone, Debug, PartialEq)]
pub enum Ints {
    /// Every number is below 2^32.
    U32(Array<u32>),
    /// Some number may need 64 bits.
    U64(Array<u64>),
}

/// The width of an [`Ints`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub enum Width {
    /// Four bytes a number.
    W32,
    /// Eight bytes a number.
    W64,
}

impl Width {
    /// Returns the narrowest width that holds every number below `bound`.
    pub fn below(bound: u64) -> Width {
        if bound <= 1 << 32 { Width::W32 } else { Width::W64 }
    }

    /// Returns the size of one number in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Width::W32 => 4,
            Width::W64 => 8,
        }
    }
}

impl Ints {
    /// Returns the number at `position`.
    ///
    /// # Panics
    ///
    /// If `position` is not below [`Ints::len`].
    pub fn get(&self, position: usize) -> u64 {
        match self {
            Ints::U32(array) => u64::from(array[position]),
            Ints::U64(array) => array[position],
        }
    }

    /// Returns how many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Ints::U32(array) => array.len(),
            Ints::U64(array) => array.len(),
        }
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the width of each number.
    pub fn width(&self) -> Width {
        match self {
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
        match self {
            Ints::U32(array) => array.par_iter().max().map(|&max| u64::from(max)),
            Ints::U64(array) => array.par_iter().max().copied(),
        }
    }

    /// Returns an owned copy, made by all threads.
    pub(crate) fn copy(&self) -> Ints {
        match self {
            Ints::U32(array) => Ints::U32(array.copy()),
            Ints::U64(array) => Ints::U64(array.copy()),
        }
    }

    /// Returns `len` zeros of a width.
    pub(crate) fn zeros(len: usize, width: Width) -> Ints {
        match width {
            Width::W32 => Ints::U32(Array::zeros(len)),
            Width::W64 => Ints::U64(Array::zeros(len)),
        }
    }

    /// Iterates over the numbers.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|position| self.get(position))
    }
}

/// `u32` or `u64`, for code written once for both widths.
pub(crate) trait Int: Pod + Send + Sync + Ord {
    /// Cuts `number` to this width; callers know that it fits.
    fn cut(number: u64) -> Self;

    /// Returns the number.
    fn wide(self) -> u64;
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
