//! Which cells of a grid have entries, marked in bits.
//!
//! The cells of a grid are those of a coarser one, or of one with fewer axes, taken apart: what is marked in the
//! finer grid counts the cells of both.

use crate::simd;

/// Entries looked at a time.
pub(super) const BATCH: usize = 512;

/// An axis of a grid: the high bits of the coordinates of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Axis {
    /// The column of a batch.
    pub(super) column: usize,
    /// The low bits that do not matter.
    pub(super) shift: u8,
    /// One more than the largest number that the others make.
    pub(super) parts: u32,
}

/// The axes of a grid, by column; the last runs fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid(Vec<Axis>);

impl Grid {
    /// Makes a grid of `axes`, each of another column.
    pub(super) fn new(mut axes: Vec<Axis>) -> Grid {
        axes.sort_unstable();
        Grid(axes)
    }

    /// Returns the number of cells.
    pub(super) fn cells(&self) -> u64 {
        self.0.iter().map(|axis| u64::from(axis.parts)).fold(1, u64::saturating_mul)
    }

    /// Returns the columns of the axes.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|axis| axis.column)
    }

    /// Returns the coarsest grid whose cells tell those of both.
    pub(super) fn with(&self, other: &Grid) -> Grid {
        let mut axes = self.0.clone();
        for &axis in &other.0 {
            match axes.iter_mut().find(|mine| mine.column == axis.column) {
                Some(mine) if mine.shift > axis.shift => *mine = axis,
                Some(_) => {}
                None => axes.push(axis),
            }
        }
        Grid::new(axes)
    }
}

/// The marked cells of a grid.
pub(super) struct Marks {
    grid: Grid,
    bits: Vec<u64>,
    /// The cells of a batch.
    cells: [u32; BATCH],
}

impl Marks {
    /// Marks none; the cells, a bit each, must be fewer than 2^32.
    pub(super) fn none(grid: Grid) -> Marks {
        let bits = vec![0; grid.cells().div_ceil(64) as usize];
        Marks { grid, bits, cells: [0; BATCH] }
    }

    /// Marks the cells of the first `len` entries of a batch with these coordinates, by column.
    pub(super) fn add(&mut self, coords: &[[u32; BATCH]], len: usize) {
        let cells = &mut self.cells[..len];
        cells.fill(0);
        for &Axis { column, shift, parts } in &self.grid.0 {
            let cells = cells.iter_mut().zip(&coords[column]);
            let next = |cell: u32, c: u32| cell.wrapping_mul(parts).wrapping_add(c >> shift);
            simd::run(|| cells.for_each(|(cell, &coord)| *cell = next(*cell, coord)));
        }
        for &cell in &*cells {
            set(&mut self.bits, cell);
        }
    }

    /// Adds what is marked in `other`, of the same grid.
    pub(super) fn merge(&mut self, other: &Marks) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// Counts the cells of `coarse`, whose cells this grid tells, in which a cell is marked.
    pub(super) fn count(&self, coarse: &Grid) -> u64 {
        if *coarse == self.grid {
            return ones(&self.bits);
        }
        let mut found = vec![0; coarse.cells().div_ceil(64) as usize];
        let steps = self.steps(coarse);
        for (first, &word) in (0..).step_by(64).zip(&self.bits) {
            let mut word = word;
            while word != 0 {
                let mut cell: u32 = first + word.trailing_zeros();
                word &= word - 1;
                let mut to = 0;
                for &(parts, shift, stride) in &steps {
                    to += ((cell % parts) >> shift) * stride;
                    cell /= parts;
                }
                set(&mut found, to);
            }
        }
        ones(&found)
    }

    /// Returns for each axis, the last first, its parts, how many low bits of its number `coarse` leaves out, and how
    /// far apart cells of `coarse` are that differ by one in the others.
    fn steps(&self, coarse: &Grid) -> Vec<(u32, u32, u32)> {
        let mut stride = 1;
        let step = |axis: &Axis| {
            let kept = coarse.0.iter().find(|kept| kept.column == axis.column);
            // Without its bits, an axis that is left out stays at zero.
            let (shift, parts) = kept.map_or((u32::BITS - 1, 1), |kept| {
                (u32::from(kept.shift - axis.shift), kept.parts)
            });
            let step = (axis.parts, shift, stride);
            stride *= parts;
            step
        };
        self.grid.0.iter().rev().map(step).collect()
    }
}

fn ones(bits: &[u64]) -> u64 {
    bits.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Sets the bit of `cell`.
fn set(bits: &mut [u64], cell: u32) {
    let (word, bit) = (&mut bits[cell as usize / 64], 1 << (cell % 64));
    // Mostly it is set; to store it all the same would delay the next.
    if *word & bit == 0 {
        *word |= bit;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Axis, BATCH, Grid, Marks};
    use crate::mix::mix;

    #[test]
    fn marks_of_a_common_grid_count_the_cells_of_each() {
        let extents = [300_u32, 40, 1000];
        let coord = |entry: u64, mode: usize| {
            (mix(3 * entry + mode as u64) % u64::from(extents[mode])) as u32
        };
        let axis = |column: usize, shift: u8| Axis {
            column,
            shift,
            parts: ((extents[column] - 1) >> shift) + 1,
        };
        let grids = [
            vec![axis(0, 0), axis(2, 8)],
            vec![axis(2, 7), axis(1, 3)],
            vec![axis(1, 4)],
            vec![],
            vec![axis(0, 0), axis(1, 3), axis(2, 7)],
        ];
        let grids = grids.map(Grid::new);
        let common = grids.iter().fold(Grid::new(Vec::new()), |all, grid| all.with(grid));
        assert_eq!(common, grids[4]);
        let (mut marks, mut more) = (Marks::none(common.clone()), Marks::none(common));
        for batch in 0..3_u64 {
            let coords = [0, 1, 2].map(|mode| {
                std::array::from_fn::<u32, BATCH, _>(|at| {
                    coord(BATCH as u64 * batch + at as u64, mode)
                })
            });
            let marks = if batch == 2 { &mut more } else { &mut marks };
            marks.add(&coords, if batch == 2 { 100 } else { BATCH });
        }
        marks.merge(&more);
        let entries = || 0..2 * BATCH as u64 + 100;
        for grid in &grids {
            let cell = |entry: u64| {
                grid.0
                    .iter()
                    .map(|axis| coord(entry, axis.column) >> axis.shift)
                    .collect::<Vec<_>>()
            };
            let truth = entries().map(cell).collect::<HashSet<_>>().len() as u64;
            assert_eq!(marks.count(grid), truth, "{grid:?}");
        }
    }
}
