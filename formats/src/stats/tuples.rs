//! How many tuples of coordinates occur in sets of modes, estimated in one pass over the list.
//!
//! A [`Sketch`] of their hashes counts the tuples of each set.  Where a set has few cells, which tuples occur is
//! marked in bits instead, each of which is hashed once at the end: the same sketch in less time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::blocking::Numbering;
use crate::dims::ModeSet;
use crate::ints::{Int, each_width};
use crate::mix::mix;
use crate::sort::Column;
use crate::stats::sketch::Sketch;
use crate::wide;

/// Entries hashed at a time.
const BATCH: usize = 512;
/// Entries that a worker takes at a time.
const CHUNK: usize = 1 << 15;
/// Least entries of a worker: enough to pay for its sketches.
const SHARE: usize = 1 << 18;
/// The most cells that are marked: their bits take as much of the caches as two sketches.
const MOST_CELLS: u64 = 1 << 17;
/// The least entries for each cell that is marked: to hash it at the end must be little.
const LEAST_ENTRIES: u64 = 32;

/// The tuples of a list; numbers of blocks count as more modes, behind the others.
pub(super) struct Tuples<'a> {
    columns: Vec<Column<'a>>,
    numberings: Vec<Numbering<'a>>,
    /// Of all modes, those of numbers included.
    extents: Vec<u64>,
}

impl<'a> Tuples<'a> {
    /// Takes the tuples of entries with these coordinates, below `extents`.
    pub(super) fn of(columns: Vec<Column<'a>>, extents: &[u64]) -> Tuples<'a> {
        Tuples { columns, numberings: Vec::new(), extents: extents.to_vec() }
    }

    /// Adds numbers of blocks, below `extent`, as one more mode.
    pub(super) fn with_blocks(mut self, numbering: Numbering<'a>, extent: u64) -> Tuples<'a> {
        self.numberings.push(numbering);
        self.extents.push(extent);
        self
    }

    /// Estimates how many tuples occur in each of `sets`; parallel and deterministic.
    pub(super) fn counts(&self, sets: &[ModeSet]) -> Vec<u64> {
        let most = self.len() as u64 / LEAST_ENTRIES;
        self.sketches(sets, most).iter().map(|sketch| sketch.count().round() as u64).collect()
    }

    fn len(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Sketches the tuples of each of `sets`; of a set with at most `most` cells, these are marked first.
    fn sketches(&self, sets: &[ModeSet], most: u64) -> Vec<Sketch> {
        if sets.is_empty() {
            return Vec::new();
        }
        let next = AtomicUsize::new(0);
        let work = |_| {
            let mut seen: Vec<Seen> =
                sets.iter().map(|&set| self.nothing_seen(set, most)).collect();
            let mut batch = Batch::new(self.extents.len());
            while let Some(range) = self.taken(&next) {
                for start in range.clone().step_by(BATCH) {
                    batch.take(self, start..range.end.min(start + BATCH));
                    seen.iter_mut().for_each(|seen| seen.add(&mut batch));
                }
            }
            seen.into_iter().map(Seen::into_sketch).collect()
        };
        let merge = |mut mine: Vec<Sketch>, theirs: Vec<Sketch>| {
            mine.iter_mut().zip(&theirs).for_each(|(mine, theirs)| mine.merge(theirs));
            mine
        };
        let workers = self.len().div_ceil(SHARE).clamp(1, rayon::current_num_threads());
        let sketches = (0..workers).into_par_iter().with_max_len(1).map(work);
        sketches.reduce_with(merge).unwrap_or_default()
    }

    /// Takes the next entries.
    fn taken(&self, next: &AtomicUsize) -> Option<Range<usize>> {
        let start = next.fetch_add(CHUNK, Ordering::Relaxed);
        (start < self.len()).then(|| start..self.len().min(start + CHUNK))
    }

    /// Prepares for the tuples in `set`.
    fn nothing_seen(&self, set: ModeSet, most: u64) -> Seen {
        let cells = set.modes().map(|mode| self.extents[mode]).fold(1, u64::saturating_mul);
        if cells > most.min(MOST_CELLS) {
            return Seen::Hashes { modes: set.modes().collect(), sketch: Sketch::new() };
        }
        let axis =
            |mode: usize| Axis { mode, extent: self.extents[mode] as u32, salt: self.salt(mode) };
        let marks = vec![0; cells.div_ceil(64) as usize];
        Seen::Cells { axes: set.modes().map(axis).collect(), marks }
    }

    /// Modes are salted, so that equal coordinates in two modes do not look alike; all numbers of blocks with
    /// the same salt, so that a count does not depend on what else is counted.
    fn salt(&self, mode: usize) -> u64 {
        mix(mode.min(self.columns.len()) as u64 + 1)
    }
}

/// What was seen of the tuples in a set of modes.
enum Seen {
    /// The cells, a bit each, the last axis running fastest.
    Cells { axes: Vec<Axis>, marks: Vec<u64> },
    /// The hashes.
    Hashes { modes: Vec<usize>, sketch: Sketch },
}

/// A mode of cells.
struct Axis {
    mode: usize,
    extent: u32,
    salt: u64,
}

impl Seen {
    fn add(&mut self, batch: &mut Batch) {
        match self {
            Seen::Cells { axes, marks } => mark(batch.cells(axes), marks),
            Seen::Hashes { modes, sketch } => batch.sketch(modes, sketch),
        }
    }

    /// Returns the sketch of the hashes of all tuples.
    fn into_sketch(self) -> Sketch {
        let (axes, marks) = match self {
            Seen::Hashes { sketch, .. } => return sketch,
            Seen::Cells { axes, marks } => (axes, marks),
        };
        let mut sketch = Sketch::new();
        for (first, mut marks) in (0..).step_by(64).zip(marks) {
            while marks != 0 {
                sketch.add(hash_of(first + marks.trailing_zeros(), &axes));
                marks &= marks - 1;
            }
        }
        sketch
    }
}

/// Returns the hash of the tuple of a cell.
fn hash_of(mut cell: u32, axes: &[Axis]) -> u64 {
    let mut sum = 0_u64;
    for axis in axes.iter().rev() {
        sum = sum.wrapping_add(hash(u64::from(cell % axis.extent), axis.salt));
        cell /= axis.extent;
    }
    sum
}

/// Some entries: every coordinate is hashed once, and the hash of a tuple is the sum of theirs.
///
/// Sums of well mixed hashes are as good as mixed once more: those of two tuples are independent, and what a
/// sketch keeps of many is as little biased (see the tests).
struct Batch {
    len: usize,
    /// By mode; only of use where 32 bits hold them.
    coords: Vec<[u32; BATCH]>,
    /// By mode.
    hashes: Vec<[u64; BATCH]>,
    cells: [u32; BATCH],
    sums: [u64; BATCH],
}

impl Batch {
    fn new(modes: usize) -> Batch {
        let (coords, hashes) = (vec![[0; BATCH]; modes], vec![[0; BATCH]; modes]);
        Batch { len: 0, coords, hashes, cells: [0; BATCH], sums: [0; BATCH] }
    }

    /// Hashes the coordinates of the entries in `range`.
    fn take(&mut self, tuples: &Tuples<'_>, range: Range<usize>) {
        self.len = range.len();
        let places = self.coords.iter_mut().zip(&mut self.hashes);
        for (mode, (column, (coords, hashes))) in tuples.columns.iter().zip(places).enumerate() {
            let salt = tuples.salt(mode);
            each_width!(Column, column, column => {
                let column = column[range.clone()].iter();
                let places = coords.iter_mut().zip(hashes).zip(column);
                wide::run(|| places.for_each(|((c, h), &coord)| {
                    (*c, *h) = (coord.wide() as u32, hash(coord.wide(), salt));
                }));
            });
        }
        let order = tuples.columns.len();
        let places = self.coords[order..].iter_mut().zip(&mut self.hashes[order..]);
        for (numbering, (numbers, hashes)) in tuples.numberings.iter().zip(places) {
            let (numbers, salt) = (&mut numbers[..self.len], tuples.salt(order));
            numbering.fill(range.start, numbers);
            let places = hashes.iter_mut().zip(numbers);
            wide::run(|| places.for_each(|(h, &mut number)| *h = hash(u64::from(number), salt)));
        }
    }

    /// Adds the hashes of the tuples in `modes`.
    fn sketch(&mut self, modes: &[usize], sketch: &mut Sketch) {
        let of = |mode: &usize| &self.hashes[*mode][..self.len];
        match modes {
            [] => sketch.add_sums([&[0; BATCH][..self.len]]),
            [mode] => sketch.add_sums([of(mode)]),
            [one, other] => sketch.add_sums([of(one), of(other)]),
            [one, other, more @ ..] => {
                let sums = &mut self.sums[..self.len];
                sums.copy_from_slice(of(one));
                for mode in more {
                    let terms = sums.iter_mut().zip(of(mode));
                    wide::run(|| terms.for_each(|(sum, &hash)| *sum = sum.wrapping_add(hash)));
                }
                sketch.add_sums([sums, of(other)]);
            }
        }
    }

    /// Returns the numbers of the cells of these axes.
    fn cells(&mut self, axes: &[Axis]) -> &[u32] {
        let cells = &mut self.cells[..self.len];
        let Some((first, others)) = axes.split_first() else { return &[] };
        cells.copy_from_slice(&self.coords[first.mode][..self.len]);
        for axis in others {
            let coords = cells.iter_mut().zip(&self.coords[axis.mode]);
            let next = |cell: u32, c: u32| cell.wrapping_mul(axis.extent).wrapping_add(c);
            wide::run(|| coords.for_each(|(cell, &coord)| *cell = next(*cell, coord)));
        }
        cells
    }
}

#[inline(always)]
fn hash(coord: u64, salt: u64) -> u64 {
    mix(coord.wrapping_add(salt))
}

/// Sets the bits of `cells`.
fn mark(cells: &[u32], marks: &mut [u64]) {
    for &cell in cells {
        let (word, bit) = (&mut marks[cell as usize / 64], 1 << (cell % 64));
        // Mostly it is set; to store it all the same would delay the next.
        if *word & bit == 0 {
            *word |= bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::Blocking;
    use crate::coo::Coo;

    #[test]
    fn sums_of_hashes_count_tuples_of_grids_as_well_as_random_hashes() {
        for extents in [[2, 50_000], [10, 20_000], [30, 9000], [400, 500], [16_384, 8]] {
            let cells = || (0..extents[0]).flat_map(|i| (0..extents[1]).map(move |j| (i, j)));
            let error = |round: u64| {
                let mut sketch = Sketch::new();
                for (i, j) in cells() {
                    let of = |coord: u64, mode| hash(coord + (round << 32), mix(mode));
                    sketch.add(of(i, 1).wrapping_add(of(j, 2)));
                }
                sketch.count() / (extents[0] * extents[1]) as f64 - 1.0
            };
            let squares: f64 = (0..16).map(|round| error(round).powi(2)).sum();
            // The standard error of 16 sketches of random hashes is 1.15 %, and itself uncertain by a fifth.
            let deviation = (squares / 16.0).sqrt();
            assert!((0.006..0.02).contains(&deviation), "{extents:?}: {deviation}");
        }
    }

    #[test]
    fn cells_and_blockings_at_once_count_as_hashes_of_one_do() {
        let extents = vec![300, 500, 70_000];
        let column = |mode: u64| {
            let coord = |entry: u64| mix(3 * (entry / 4) + mode) % extents[mode as usize];
            (0..600_000).map(|entry| coord(entry) as u32).collect::<Vec<u32>>().into()
        };
        let columns = (0..3).map(column).collect();
        let coo = Coo::new(extents.clone(), columns, vec![1.0; 600_000]).unwrap();
        let blockings = ["2.3.0", "2:2"].map(|text| text.parse::<Blocking>().unwrap());
        let tuples = |blockings: &[Blocking]| {
            blockings.iter().fold(Tuples::of(coo.columns(), &extents), |tuples, blocking| {
                tuples.with_blocks(blocking.numbering(&coo).unwrap(), blocking.extent())
            })
        };
        let sets = |block: u64| (1..8).map(move |set| ModeSet::from_bits(set | block));
        let both: Vec<ModeSet> = sets(8).chain(sets(16)).collect();
        let once = tuples(&blockings).sketches(&both, u64::MAX);
        let one = |blocking: &Blocking| {
            let sets: Vec<ModeSet> = sets(8).collect();
            tuples(std::slice::from_ref(blocking)).sketches(&sets, 0)
        };
        let apart: Vec<Sketch> = blockings.iter().flat_map(one).collect();
        let counts = |sketches: &[Sketch]| sketches.iter().map(Sketch::count).collect::<Vec<_>>();
        assert_eq!(counts(&once), counts(&apart));
    }
}
