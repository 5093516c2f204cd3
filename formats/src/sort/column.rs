//! Borrowed columns of coordinates of any width.

use std::ops::Range;

use crate::narrow_ints::{Int, Ints, each_width};
use crate::simd;

/// The coordinates of a run of entries in one mode.
#[derive(Clone, Copy)]
pub(crate) enum Column<'a> {
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

/// The coordinates of a run of entries in one mode, to be rewritten.
pub(crate) enum ColumnMut<'a> {
    U16(&'a mut [u16]),
    U32(&'a mut [u32]),
    U64(&'a mut [u64]),
}

impl<'a> Column<'a> {
    /// Borrows all of `ints`.
    pub(crate) fn of(ints: &'a Ints) -> Column<'a> {
        match ints {
            Ints::U16(array) => Column::U16(array),
            Ints::U32(array) => Column::U32(array),
            Ints::U64(array) => Column::U64(array),
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        each_width!(Column, self, coords => coords.len())
    }

    /// Returns the coordinate at `position`.
    pub(crate) fn get(&self, position: usize) -> u64 {
        each_width!(Column, self, coords => coords[position].wide())
    }

    /// Returns the coordinates of the entries in `range`.
    pub(crate) fn part(&self, range: Range<usize>) -> Column<'a> {
        match self {
            Column::U16(coords) => Column::U16(&coords[range]),
            Column::U32(coords) => Column::U32(&coords[range]),
            Column::U64(coords) => Column::U64(&coords[range]),
        }
    }

    /// Adds to each word of `bits` those of the entries that differ from the entry before them; the
    /// first entry of all always does.  Word `w` is of the 64 entries from `start + 64 w` on.
    pub(crate) fn add_heads(&self, start: usize, bits: &mut [u64]) {
        each_width!(Column, self, coords => simd::run(|| add_heads(coords, start, bits)));
    }
}

#[inline(always)]
fn add_heads<T: Copy + PartialEq>(coords: &[T], start: usize, bits: &mut [u64]) {
    for (word, bits) in bits.iter_mut().enumerate() {
        let from = start + 64 * word;
        let until = coords.len().min(from + 64);
        *bits |= match from {
            0 => 1 | differences(&coords[..until]) << 1,
            _ => differences(&coords[from - 1..until]),
        };
    }
}

/// Returns which of up to 65 coordinates, after the first, differ from the one before them.
#[inline(always)]
fn differences<T: Copy + PartialEq>(coords: &[T]) -> u64 {
    match coords.first_chunk::<65>() {
        // Of known length, this becomes straight vector code.
        Some(coords) => packed(&coords[..64], &coords[1..]),
        None => packed(&coords[..coords.len() - 1], &coords[1..]),
    }
}

#[inline(always)]
fn packed<T: Copy + PartialEq>(before: &[T], here: &[T]) -> u64 {
    let mut marks = [0u8; 64];
    for ((mark, before), here) in marks.iter_mut().zip(before).zip(here) {
        *mark = u8::from(before != here);
    }
    // The product moves the lowest bit of byte `i` to bit `56 + i`, and no two to the same bit.
    let byte =
        |marks: &[u8; 8]| u64::from_le_bytes(*marks).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let bytes = marks.as_chunks::<8>().0.iter().enumerate();
    bytes.fold(0, |bits, (at, marks)| bits | byte(marks) << (8 * at))
}

impl<'a> ColumnMut<'a> {
    /// Borrows all of `ints`, which are copied first if they are mapped.
    pub(crate) fn of(ints: &'a mut Ints) -> ColumnMut<'a> {
        match ints {
            Ints::U16(array) => ColumnMut::U16(array.make_mut()),
            Ints::U32(array) => ColumnMut::U32(array.make_mut()),
            Ints::U64(array) => ColumnMut::U64(array.make_mut()),
        }
    }

    /// Borrows for reading.
    pub(crate) fn read(&self) -> Column<'_> {
        match self {
            ColumnMut::U16(coords) => Column::U16(coords),
            ColumnMut::U32(coords) => Column::U32(coords),
            ColumnMut::U64(coords) => Column::U64(coords),
        }
    }

    /// Splits off the first `at` entries.
    pub(crate) fn split_at(self, at: usize) -> (ColumnMut<'a>, ColumnMut<'a>) {
        match self {
            ColumnMut::U16(coords) => {
                let (head, tail) = coords.split_at_mut(at);
                (ColumnMut::U16(head), ColumnMut::U16(tail))
            }
            ColumnMut::U32(coords) => {
                let (head, tail) = coords.split_at_mut(at);
                (ColumnMut::U32(head), ColumnMut::U32(tail))
            }
            ColumnMut::U64(coords) => {
                let (head, tail) = coords.split_at_mut(at);
                (ColumnMut::U64(head), ColumnMut::U64(tail))
            }
        }
    }

    /// Replaces all coordinates by those of `source`, which are as many.
    pub(crate) fn fill(&mut self, source: impl Iterator<Item = u64>) {
        // The source comes from a column of the same width: nothing is cut off.
        each_width!(ColumnMut, self, coords => fill(coords, source));
    }
}

fn fill<T: Int>(slots: &mut [T], source: impl Iterator<Item = u64>) {
    simd::run(|| slots.iter_mut().zip(source).for_each(|(slot, coord)| *slot = T::cut(coord)));
}
