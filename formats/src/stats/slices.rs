//! How the non-zeros spread over the slices of a mode.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use crate::coo::Coo;
use crate::narrow_ints::{Int, Ints, each_width};
use crate::stats::coverage::Coverage;
use crate::value::Value;

/// Modes up to this extent are counted by each thread on its own: 4 MiB of counters.
const PRIVATE: u64 = 1 << 20;
/// Entries counted at a time.
const CHUNK: usize = 1 << 16;

/// The slices of one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SliceStats {
    /// How many slices the mode has.
    pub extent: u64,
    /// How many of them hold an entry.
    pub used: u64,
    /// The entries in the fullest slice.
    pub largest: u64,
}

impl SliceStats {
    /// Returns how many slices hold no entry.
    pub fn empty(&self) -> u64 {
        self.extent - self.used
    }
}

/// Counts the entries of the slices of `mode`, and how often the rows of the slices are found near.
///
/// Exact and parallel.  Time `O(nnz + extent)`, memory 4 bytes a slice; where the extent is far
/// above nnz, a copy of the column is sorted instead.
pub(super) fn slices<V: Value>(coo: &Coo<V>, mode: usize) -> (SliceStats, Coverage) {
    let extent = coo.extents()[mode];
    let Summary { used, largest, coverage } =
        each_width!(Ints, coo.coords(mode), coords => count(coords, extent));
    (SliceStats { extent, used, largest }, coverage)
}

/// Returns the entries of each slice of `mode`, modulo 2^32.
///
/// Parallel, time `O(nnz + extent)`, memory 4 bytes a slice, and a thread where slices are few.
pub(crate) fn slice_counts<V: Value>(coo: &Coo<V>, mode: usize) -> Vec<u32> {
    let extent = coo.extents()[mode];
    let few = extent <= PRIVATE && u32::try_from(coo.nnz()).is_ok();
    each_width!(Ints, coo.coords(mode), coords => match few {
        true => private(coords, extent as usize),
        false => shared(coords, extent as usize),
    })
}

/// What the entries of each slice tell.
struct Summary {
    used: u64,
    largest: u64,
    coverage: Coverage,
}

fn count<T: Int>(coords: &[T], extent: u64) -> Summary {
    let narrow = u32::try_from(coords.len()).is_ok();
    if narrow && extent <= PRIVATE {
        summary(&private(coords, extent as usize))
    } else if narrow && extent / 8 <= coords.len() as u64 {
        summary(&shared(coords, extent as usize))
    } else {
        runs(coords)
    }
}

/// Each task counts on its own; then the counts are added.
fn private<T: Int>(coords: &[T], extent: usize) -> Vec<u32> {
    let tasks = coords.len().div_ceil(CHUNK.max(extent)).clamp(1, rayon::current_num_threads());
    let parts = coords.par_chunks(coords.len().div_ceil(tasks).max(1));
    let counts = parts.map(|part| {
        let mut counts = vec![0u32; extent];
        part.iter().for_each(|coord| counts[coord.wide() as usize] += 1);
        counts
    });
    let add = |mut sum: Vec<u32>, counts: Vec<u32>| {
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        sum
    };
    counts.reduce_with(add).unwrap_or_default()
}

/// All tasks count in one place: slices are so many that they rarely meet.
fn shared<T: Int>(coords: &[T], extent: usize) -> Vec<u32> {
    let counts: Vec<AtomicU32> = (0..extent).into_par_iter().map(|_| AtomicU32::new(0)).collect();
    coords.par_chunks(CHUNK).for_each(|part| {
        for coord in part {
            counts[coord.wide() as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
    counts.into_par_iter().map(AtomicU32::into_inner).collect()
}

fn summary(counts: &[u32]) -> Summary {
    let each = counts.par_iter().map(|&count| (u64::from(count > 0), u64::from(count)));
    let (used, largest) =
        each.reduce(|| (0, 0), |(used, largest), (u, l)| (used + u, largest.max(l)));
    let coverage = Coverage::of(counts.iter().map(|&count| count.into()));
    Summary { used, largest, coverage }
}

fn runs<T: Int>(coords: &[T]) -> Summary {
    let mut sorted = coords.to_vec();
    sorted.par_sort_unstable();
    let runs = || sorted.chunk_by(|a, b| a == b).map(|run| run.len() as u64);
    let (used, largest) = runs().fold((0, 0), |(used, largest), run| (used + 1, largest.max(run)));
    Summary { used, largest, coverage: Coverage::of(runs()) }
}
