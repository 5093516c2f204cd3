//! What the machine can do, measured.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::runtime::{Probe, Probes, RowList, Toolchain};
use decompose_formats::mix::mix;
use decompose_formats::{Matrix, Value};
use rayon::prelude::{ParallelIterator, ParallelSliceMut};

/// The speeds of all threads of a pool together.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Limits {
    /// Threads that were measured.
    pub(crate) threads: usize,
    /// Size of a value in bytes.
    pub(crate) value_bytes: usize,
    /// Bytes of the rows that were gathered, padding included.
    pub(crate) row_bytes: usize,
    /// Multiplications and additions a second, in vector registers.
    pub(crate) flops: f64,
    /// Bytes a second of a sum over an array in memory.
    pub(crate) read: f64,
    /// Bytes a second, three a value size, of `a = b + s c` over arrays in memory.
    pub(crate) triad: f64,
    /// Random gathers, from the nearest table to the farthest.
    pub(crate) gathers: Vec<GatherLimit>,
}

/// Where a table fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TablePlace {
    /// The first-level cache.
    L1,
    /// The second-level cache of a core.
    L2,
    /// The last-level cache, together with the other threads.
    L3,
    /// No cache.
    Memory,
}

/// The speed of random gathers from one table.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(crate) struct GatherLimit {
    /// Where the table fits.
    pub(crate) place: TablePlace,
    /// Bytes of the table; in L1 and L2 each thread has its own.
    pub(crate) table_bytes: u64,
    /// Bytes a second of all threads together.
    pub(crate) bytes_per_second: f64,
}

impl GatherLimit {
    /// Returns the nanoseconds from one 64-byte line to the next, all threads together.
    pub(crate) fn nanoseconds_a_line(&self) -> f64 {
        64.0 / self.bytes_per_second * 1e9
    }
}

/// Wall time of each measurement.
pub(super) const BUDGET: Duration = Duration::from_millis(60);
/// Passes of each measurement at least; the first warms up and does not count.
const LEAST_PASSES: usize = 4;
/// Bytes of a table in the first-level cache, whose other half holds the list of rows.
const L1_TABLE: u64 = 8 << 10;
/// Rows listed at least; short lists would be measured by their ends.
const LEAST_ROWS: usize = 2048;
/// Rows ahead that are tried.
const DISTANCES: [usize; 3] = [0, 8, 24];
/// Arrays in memory are this many times the last-level cache, as STREAM asks for.
const BEYOND_CACHE: u64 = 4;
/// The largest array in memory.
const MOST_BYTES: u64 = 1 << 30;

impl Limits {
    /// Measures the threads of the current pool, with values of type `V` and rows of `cols`.
    ///
    /// Every number is the best of several passes of 60 ms together, after one that warms up.
    /// Memory: three arrays of four times the last-level cache.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if there is no C compiler, or no memory.
    pub(crate) fn measure<V: Value>(
        cols: usize,
        machine: &Machine,
        toolchain: &Toolchain,
    ) -> Result<Limits, CoreError> {
        let probes = Probes::new::<V>(cols, toolchain).map_err(unable)?;
        let threads = rayon::current_num_threads();
        let far = (machine.l3_bytes * BEYOND_CACHE).clamp(1 << 22, MOST_BYTES);
        let row_bytes = decompose_formats::dense::padded(cols, V::BYTES) * V::BYTES;
        let (read, triad) = streams::<V>(&probes, far, threads)?;
        let tables = [
            (TablePlace::L1, L1_TABLE),
            (TablePlace::L2, machine.l2_bytes / 2),
            (TablePlace::L3, machine.l3_bytes / 2),
            (TablePlace::Memory, far * 2),
        ];
        let gathers = tables.into_iter().map(|(place, bytes)| {
            let rows = (bytes / row_bytes as u64).max(2) as usize;
            let bytes_per_second = gathers::<V>(&probes, (rows, cols), place)?;
            let table_bytes = (rows * row_bytes) as u64;
            Ok(GatherLimit { place, table_bytes, bytes_per_second })
        });
        Ok(Limits {
            threads,
            value_bytes: V::BYTES,
            row_bytes,
            flops: multiply_adds::<V>(&probes, threads)?,
            read,
            triad,
            gathers: gathers.collect::<Result<_, CoreError>>()?,
        })
    }

    /// Returns the bytes a second of random gathers from a table in `place`; no limit where none was measured.
    pub(crate) fn gather(&self, place: TablePlace) -> f64 {
        let found = self.gathers.iter().find(|gather| gather.place == place);
        found.map_or(f64::INFINITY, |gather| gather.bytes_per_second)
    }

    /// Returns the bytes a second of the best stream from memory.
    pub(crate) fn stream(&self) -> f64 {
        self.read.max(self.triad)
    }
}

/// The error of a machine that cannot be measured.
pub(super) fn unable(why: String) -> CoreError {
    CoreError::Operand { operand: "limits of the machine".into(), why }
}

/// Runs `pass` on every thread; returns the seconds until all are done.
pub(super) fn seconds(
    pass: impl Fn(usize) -> Result<f64, CoreError> + Sync,
) -> Result<f64, CoreError> {
    let start = Instant::now();
    let sums = rayon::broadcast(|context| pass(context.index()));
    let seconds = start.elapsed().as_secs_f64();
    for sum in sums {
        std::hint::black_box(sum?);
    }
    Ok(seconds)
}

/// Runs `pass` on every thread, again and again, and returns the least seconds.
fn least_seconds(pass: impl Fn(usize) -> Result<f64, CoreError> + Sync) -> Result<f64, CoreError> {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    for number in 0.. {
        let seconds = seconds(&pass)?;
        if number > 0 {
            best = best.min(seconds);
        }
        if number + 1 >= LEAST_PASSES && begun.elapsed() >= BUDGET {
            break;
        }
    }
    Ok(best)
}

fn multiply_adds<V: Value>(probes: &Probes, threads: usize) -> Result<f64, CoreError> {
    const ROUNDS: u64 = 1 << 20;
    let a_round = probes.run::<V>(Probe::MultiplyAdd(1))?;
    let seconds = least_seconds(|_| probes.run::<V>(Probe::MultiplyAdd(ROUNDS)))?;
    Ok(a_round * ROUNDS as f64 * threads as f64 / seconds)
}

/// Returns the bytes a second of sums over arrays, and of triads.
fn streams<V: Value>(probes: &Probes, bytes: u64, threads: usize) -> Result<(f64, f64), CoreError> {
    const COLS: usize = 512;
    let rows = (bytes as usize / threads / (COLS * V::BYTES)).max(1);
    let arrays = |_| {
        let make = || filled::<V>(rows, COLS);
        Ok(Mutex::new([make()?, make()?, make()?]))
    };
    let arrays = (0..threads).map(arrays).collect::<Result<Vec<_>, CoreError>>()?;
    let own = |thread: usize| arrays[thread].lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = (rows * COLS * V::BYTES * threads) as f64;
    let read = least_seconds(|thread| probes.run(Probe::Read(&own(thread)[0])))?;
    let triad = least_seconds(|thread| {
        let [to, a, b] = &mut *own(thread);
        probes.run(Probe::Triad { to, from: [a, b] })
    })?;
    Ok((bytes / read, 3.0 * bytes / triad))
}

/// Returns the bytes a second of gathers from a table of this shape, each row once a pass.
fn gathers<V: Value>(
    probes: &Probes,
    (rows, cols): (usize, usize),
    place: TablePlace,
) -> Result<f64, CoreError> {
    let threads = rayon::current_num_threads();
    let own = matches!(place, TablePlace::L1 | TablePlace::L2);
    let tables = (0..if own { threads } else { 1 }).map(|_| filled::<V>(rows, cols));
    let tables = tables.collect::<Result<Vec<_>, CoreError>>()?;
    let lists: Vec<RowList> = (0..threads).map(|thread| shuffled(rows, thread as u64)).collect();
    let bytes = lists.iter().map(|list| list.len() * tables[0].stride() * V::BYTES).sum::<usize>();
    let repeats = ((1 << 23) / (bytes / threads).max(1)).max(1);
    let mut best = f64::INFINITY;
    for distance in DISTANCES {
        let seconds = least_seconds(|thread| {
            let (table, rows) = (&tables[thread % tables.len()], &lists[thread]);
            let mut sum = 0.0;
            for _ in 0..repeats {
                sum += probes.run(Probe::Gather { table, rows, distance })?;
            }
            Ok(sum)
        })?;
        best = best.min(seconds);
    }
    Ok((bytes * repeats) as f64 / best)
}

/// Returns a matrix whose pages are all there.
pub(super) fn filled<V: Value>(rows: usize, cols: usize) -> Result<Matrix<V>, CoreError> {
    let mut matrix = Matrix::zeros(rows, cols)?;
    matrix.as_mut_slice().par_chunks_mut(1 << 16).for_each(|part| part.fill(V::from_f64(0.5)));
    Ok(matrix)
}

/// Returns all rows in random order, more than once where they are few.
pub(super) fn shuffled(rows: usize, seed: u64) -> RowList {
    let count = rows.max(LEAST_ROWS / rows * rows);
    let mut list: Vec<u32> = (0..count).map(|at| (at % rows) as u32).collect();
    for at in (1..count).rev() {
        let other = mix(seed.wrapping_mul(0x9e37_79b9).wrapping_add(at as u64)) % (at as u64 + 1);
        list.swap(at, other as usize);
    }
    RowList::new(list)
}
