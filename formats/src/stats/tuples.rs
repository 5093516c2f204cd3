//! How many tuples of coordinates occur in sets of modes, in one pass over the list.
//!
//! A [`Sketch`] of their hashes estimates how many tuples of a set there are.  Where a set has few cells, which of
//! them have entries is marked in bits instead, for as many sets at once as a grid of few cells tells apart
//! ([`Marks`]); their tuples are counted.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::blocking::{Blocking, Numbering};
use crate::coo::Coo;
use crate::error::FormatError;
use crate::mix::mix;
use crate::modes::ModeSet;
use crate::narrow_ints::{Int, each_width};
use crate::simd;
use crate::sort::Column;
use crate::stats::bitmap::{Axis, BATCH, Grid, Marks};
use crate::stats::sketch::Sketch;
use crate::value::Value;

/// Entries that a worker takes at a time.
const CHUNK: usize = 1 << 15;
/// Least entries of a worker: enough to pay for its sketches.
const SHARE: usize = 1 << 18;
/// The most cells that are marked: their bits take as much of the caches as two sketches.
const MOST_CELLS: u64 = 1 << 17;
/// The least entries for each cell that is marked: to count these at the end must be little.
const LEAST_ENTRIES: u64 = 32;

/// The tuples of a list; numbers of blocks count as more modes, behind the others.
pub(super) struct Tuples<'a> {
    columns: Vec<Column<'a>>,
    blocks: Vec<(&'a Blocking, Numbering<'a>)>,
    /// Of all modes, those of numbers included.
    extents: Vec<u64>,
}

impl<'a> Tuples<'a> {
    /// Takes the tuples of the entries of `coo`, with a mode more for each of `blockings`.
    ///
    /// # Errors
    ///
    /// As [`Blocking::numbers`].
    pub(super) fn of<V: Value>(
        coo: &'a Coo<V>,
        blockings: &'a [Blocking],
    ) -> Result<Tuples<'a>, FormatError> {
        let blocks = blockings.iter().map(|blocking| Ok((blocking, blocking.numbering(coo)?)));
        let blocks: Vec<_> = blocks.collect::<Result<_, FormatError>>()?;
        let extents = coo.extents().iter().copied();
        let extents = extents.chain(blockings.iter().map(Blocking::extent)).collect();
        Ok(Tuples { columns: coo.columns(), blocks, extents })
    }

    /// Counts the tuples that occur in each of `sets`, which have at most one number of a block, or estimates how many
    /// do; parallel and deterministic, whatever else is counted.
    pub(super) fn counts(&self, sets: &[ModeSet]) -> Vec<u64> {
        let most = (self.len() as u64 / LEAST_ENTRIES).min(MOST_CELLS);
        let grids: Vec<Option<Grid>> = sets.iter().map(|&set| self.grid(set, most)).collect();
        let common = common(grids.iter().flatten(), most);
        let hashed = sets.iter().zip(&grids).filter(|(_, grid)| grid.is_none());
        let hashed: Vec<ModeSet> = hashed.map(|(&set, _)| set).collect();
        let Seen { marks, sketches } = self.see(&common, &hashed);
        let mut sketches = sketches.iter();
        let counted = |grid: &Grid| {
            let at = common.iter().position(|common| common.with(grid) == *common);
            at.map_or(0, |at| marks[at].count(grid))
        };
        let count = |grid: &Option<Grid>| match grid {
            Some(grid) => counted(grid),
            None => sketches.next().map_or(0, |(_, sketch)| sketch.count().round() as u64),
        };
        grids.iter().map(count).collect()
    }

    fn len(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Looks at all entries: marks the cells of `grids` and sketches the tuples in `sets`.
    fn see(&self, grids: &[Grid], sets: &[ModeSet]) -> Seen {
        let nothing = || Seen {
            marks: grids.iter().cloned().map(Marks::none).collect(),
            sketches: sets.iter().map(|set| (set.modes().collect(), Sketch::new())).collect(),
        };
        if grids.is_empty() && sets.is_empty() {
            return nothing();
        }
        let needed = Needed {
            coords: unique(grids.iter().flat_map(Grid::columns)),
            hashes: unique(sets.iter().flat_map(|set| set.modes())),
        };
        let next = AtomicUsize::new(0);
        let work = |_| {
            let mut seen = nothing();
            let mut batch = Batch::new(self.extents.len());
            while let Some(range) = self.taken(&next) {
                for start in range.clone().step_by(BATCH) {
                    batch.take(self, start..range.end.min(start + BATCH), &needed);
                    seen.add(&mut batch);
                }
            }
            seen
        };
        let workers = self.len().div_ceil(SHARE).clamp(1, rayon::current_num_threads());
        let seen = (0..workers).into_par_iter().with_max_len(1).map(work);
        seen.reduce_with(Seen::merged).unwrap_or_else(nothing)
    }

    /// Takes the next entries.
    fn taken(&self, next: &AtomicUsize) -> Option<Range<usize>> {
        let start = next.fetch_add(CHUNK, Ordering::Relaxed);
        (start < self.len()).then(|| start..self.len().min(start + CHUNK))
    }

    /// Returns the grid whose cells are the tuples that may occur in `set`, if it has at most `most` cells.
    ///
    /// Of a number of blocks only the bits that the other modes of the set do not tell are an axis, one for each mode
    /// that gives them: so blockings share grids.
    fn grid(&self, set: ModeSet, most: u64) -> Option<Grid> {
        let order = self.columns.len();
        let whole = |column: usize| (column, 0_u8, self.extents[column]);
        let mut axes = Vec::new();
        for mode in set.modes() {
            let Some((blocking, _)) = mode.checked_sub(order).map(|at| &self.blocks[at]) else {
                axes.push(whole(mode));
                continue;
            };
            if blocking.ranges().is_some() {
                axes.push(whole(mode));
                continue;
            }
            let outside = (0..order).filter(|&o| blocking.splits(o) && !set.contains(o));
            axes.extend(outside.map(|other| {
                let (extent, span) =
                    (self.extents[other], blocking.span(other, self.extents[other]));
                (other, span.ilog2() as u8, extent.div_ceil(span))
            }));
        }
        let axis = |(column, shift, parts): (usize, u8, u64)| {
            // Batches have coordinates of 32 bits.
            let fits = self.extents[column] <= 1 << 32;
            Some(Axis { column, shift, parts: u32::try_from(parts).ok().filter(|_| fits)? })
        };
        let grid = Grid::new(axes.into_iter().map(axis).collect::<Option<_>>()?);
        (grid.cells() <= most).then_some(grid)
    }

    /// Modes are salted, so that equal coordinates in two modes do not look alike; all numbers of blocks with
    /// the same salt, so that a count does not depend on what else is counted.
    fn salt(&self, mode: usize) -> u64 {
        mix(mode.min(self.columns.len()) as u64 + 1)
    }
}

/// Returns grids of at most `most` cells that tell the cells of all of `grids`, few of them.
fn common<'g>(grids: impl Iterator<Item = &'g Grid>, most: u64) -> Vec<Grid> {
    let mut common: Vec<Grid> = Vec::new();
    let mut grids: Vec<&Grid> = grids.collect();
    grids.sort_by_key(|grid| std::cmp::Reverse(grid.cells()));
    for grid in grids {
        let both = common.iter_mut().find(|mine| mine.with(grid).cells() <= most);
        match both {
            Some(mine) => *mine = mine.with(grid),
            None => common.push(grid.clone()),
        }
    }
    common
}

/// The modes of which a batch needs something.
struct Needed {
    coords: Vec<usize>,
    hashes: Vec<usize>,
}

fn unique(modes: impl Iterator<Item = usize>) -> Vec<usize> {
    modes.collect::<BTreeSet<usize>>().into_iter().collect()
}

/// What was seen of some entries.
struct Seen {
    marks: Vec<Marks>,
    /// Each with its modes.
    sketches: Vec<(Vec<usize>, Sketch)>,
}

impl Seen {
    fn add(&mut self, batch: &mut Batch) {
        self.marks.iter_mut().for_each(|marks| marks.add(&batch.coords, batch.len));
        self.sketches.iter_mut().for_each(|(modes, sketch)| batch.sketch(modes, sketch));
    }

    fn merged(mut self, other: Seen) -> Seen {
        self.marks.iter_mut().zip(&other.marks).for_each(|(mine, theirs)| mine.merge(theirs));
        let sketches = self.sketches.iter_mut().zip(&other.sketches);
        sketches.for_each(|((_, mine), (_, theirs))| mine.merge(theirs));
        self
    }
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
    sums: [u64; BATCH],
}

impl Batch {
    fn new(modes: usize) -> Batch {
        let (coords, hashes) = (vec![[0; BATCH]; modes], vec![[0; BATCH]; modes]);
        Batch { len: 0, coords, hashes, sums: [0; BATCH] }
    }

    /// Takes what is needed of the entries in `range`.
    fn take(&mut self, tuples: &Tuples<'_>, range: Range<usize>, needed: &Needed) {
        self.len = range.len();
        for &mode in &needed.coords {
            self.take_coords(tuples, mode, &range);
        }
        for &mode in &needed.hashes {
            let salt = tuples.salt(mode);
            if let Some(column) = tuples.columns.get(mode) {
                let column = column.part(range.clone());
                each_width!(Column, column, column => hash_all(column, salt, &mut self.hashes[mode]));
            } else {
                self.take_coords(tuples, mode, &range);
                hash_all(&self.coords[mode][..self.len], salt, &mut self.hashes[mode]);
            }
        }
    }

    fn take_coords(&mut self, tuples: &Tuples<'_>, mode: usize, range: &Range<usize>) {
        let coords = &mut self.coords[mode][..range.len()];
        match mode.checked_sub(tuples.columns.len()) {
            Some(at) => tuples.blocks[at].1.fill(range.start, coords),
            None => {
                let column = tuples.columns[mode].part(range.clone());
                each_width!(Column, column, column => narrow(column, coords));
            }
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
                    simd::run(|| terms.for_each(|(sum, &hash)| *sum = sum.wrapping_add(hash)));
                }
                sketch.add_sums([sums, of(other)]);
            }
        }
    }
}

/// Copies coordinates, cut to 32 bits.
fn narrow<T: Int>(from: &[T], to: &mut [u32]) {
    let to = to.iter_mut().zip(from);
    simd::run(|| to.for_each(|(to, from)| *to = from.wide() as u32));
}

/// Hashes coordinates.
fn hash_all<T: Int>(coords: &[T], salt: u64, hashes: &mut [u64]) {
    let hashes = hashes.iter_mut().zip(coords);
    simd::run(|| hashes.for_each(|(to, coord)| *to = hash(coord.wide(), salt)));
}

#[inline(always)]
fn hash(coord: u64, salt: u64) -> u64 {
    mix(coord.wrapping_add(salt))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

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
    fn blockings_at_once_are_counted_as_one_is_and_few_cells_exactly() {
        let extents = vec![300, 500, 70_000];
        let column = |mode: u64| {
            let coord = |entry: u64| mix(3 * (entry / 4) + mode) % extents[mode as usize];
            (0..600_000).map(|entry| coord(entry) as u32).collect::<Vec<u32>>().into()
        };
        let columns = (0..3).map(column).collect();
        let coo = Coo::new(extents.clone(), columns, vec![1.0; 600_000]).unwrap();
        let blockings = ["2.3.0", "3.1.1", "2:2"].map(|text| text.parse::<Blocking>().unwrap());
        let sets = |at: usize| (0..8).map(move |set| ModeSet::from_bits(set | 8 << at));
        let all: Vec<ModeSet> = (0..3).flat_map(sets).collect();
        let once = Tuples::of(&coo, &blockings).unwrap().counts(&all);
        let one = |blocking| {
            let sets: Vec<ModeSet> = sets(0).collect();
            Tuples::of(&coo, std::slice::from_ref(blocking)).unwrap().counts(&sets)
        };
        assert_eq!(once, blockings.iter().flat_map(one).collect::<Vec<_>>());
        // 600 000 entries allow 18 750 cells.
        for (at, blocking) in blockings.iter().enumerate() {
            let numbers = blocking.numbers(&coo).unwrap();
            for set in [0, 1, 2] {
                let coord = |entry: usize| {
                    let set = ModeSet::from_bits(set);
                    let coords = set.modes().map(|mode| coo.coords(mode).get(entry));
                    coords.chain([numbers.get(entry)]).collect::<Vec<u64>>()
                };
                let truth = (0..coo.nnz()).map(coord).collect::<HashSet<_>>().len() as u64;
                assert_eq!(once[8 * at + set as usize], truth, "{set} in blocks by {blocking}");
            }
        }
    }
}
