//! Borrowed columns of coordinates in either width.

use crate::ints::Ints;

/// The coordinates of a run of entries in one mode.
#[derive(Clone, Copy)]
pub(crate) enum Column<'a> {
    U32(&'a [u32]),
    U64(&'a [u64]),
}

/// The coordinates of a run of entries in one mode, to be rewritten.
pub(crate) enum ColumnMut<'a> {
    U32(&'a mut [u32]),
    U64(&'a mut [u64]),
}

impl<'a> Column<'a> {
    /// Borrows all of `ints`.
    pub(crate) fn of(ints: &'a Ints) -> Column<'a> {
        match ints {
            Ints::U32(array) => Column::U32(array),
            Ints::U64(array) => Column::U64(array),
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        match self {
            Column::U32(coords) => coords.len(),
            Column::U64(coords) => coords.len(),
        }
    }

    /// Returns the coordinate at `position`.
    pub(crate) fn get(&self, position: usize) -> u64 {
        match self {
            Column::U32(coords) => u64::from(coords[position]),
            Column::U64(coords) => coords[position],
        }
    }
}

impl<'a> ColumnMut<'a> {
    /// Borrows all of `ints`, which are copied first if they are mapped.
    pub(crate) fn of(ints: &'a mut Ints) -> ColumnMut<'a> {
        match ints {
            Ints::U32(array) => ColumnMut::U32(array.make_mut()),
            Ints::U64(array) => ColumnMut::U64(array.make_mut()),
        }
    }

    /// Borrows for reading.
    pub(crate) fn read(&self) -> Column<'_> {
        match self {
            ColumnMut::U32(coords) => Column::U32(coords),
            ColumnMut::U64(coords) => Column::U64(coords),
        }
    }

    /// Splits off the first `at` entries.
    pub(crate) fn split_at(self, at: usize) -> (ColumnMut<'a>, ColumnMut<'a>) {
        match self {
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
        match self {
            // The source comes from a column of the same width: nothing is cut off.
            ColumnMut::U32(coords) => {
                coords.iter_mut().zip(source).for_each(|(slot, coord)| *slot = coord as u32);
            }
            ColumnMut::U64(coords) => {
                coords.iter_mut().zip(source).for_each(|(slot, coord)| *slot = coord);
            }
        }
    }
}
