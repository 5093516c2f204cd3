//! Entries in blocks that can be visited at the same time.

use decompose_core::error::CoreError;
use decompose_core::runtime::StepList;
use decompose_formats::mix::mix;
use decompose_formats::{Coo, Matrix};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::stochastic::step::{LANES, PassRule, Slope, Task, visit};

/// The most strata: with more of them, threads would wait for each other more than they work.
const MOST_STRATA: usize = 4096;

/// A tensor's entries, shuffled, in blocks without common rows.
///
/// Memory: `4 * order + 8` bytes an entry and a copy of the factors.
pub(crate) struct Strata {
    extents: Vec<u64>,
    /// Parts of every mode: so many blocks run at the same time.
    pub(super) parts: usize,
    modes: Vec<Mode>,
    /// By part in the first mode, then in the second, ...: the last mode's part runs fastest.
    ///
    /// In each, rows are places counted from the part's first, and entries in random order.
    blocks: Vec<StepList>,
    seed: u64,
    /// Elements of a row of the copies.
    stride: usize,
    /// The factors with their rows in the order of their parts.
    copies: Vec<Matrix<f64>>,
}

/// How the rows of a mode are cut into parts.
struct Mode {
    /// The place of each row in the order of the parts.
    place: Vec<u32>,
    /// The first place of each part, and one past the last place.
    starts: Vec<usize>,
    /// One over the entries of the row at each place; 0 for none.
    share: Vec<f64>,
}

impl Strata {
    /// Shuffles the entries of `tensor` by `seed` into blocks for `threads` threads and a CP model
    /// of `rank` components.
    ///
    /// A mode with fewer rows than threads, or a high order, leaves fewer blocks to run at once.
    /// Time `O(nnz * order)`.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if a mode has 2^32 rows or more.
    pub(crate) fn new(
        tensor: &Coo<f64>,
        rank: usize,
        threads: usize,
        seed: u64,
    ) -> Result<Strata, CoreError> {
        let extents = tensor.extents().to_vec();
        if let Some(&extent) = extents.iter().find(|&&extent| u32::try_from(extent).is_err()) {
            let why = format!("a mode of {extent} rows is too long for stochastic steps");
            return Err(CoreError::Operand { operand: "tensor".into(), why });
        }
        let others = extents.len() as u32 - 1;
        let mut parts = extents.iter().fold(threads.max(1), |n, &e| n.min(e.max(1) as usize));
        while parts > 1 && parts.checked_pow(others).is_none_or(|strata| strata > MOST_STRATA) {
            parts -= 1;
        }
        let modes: Vec<Mode> = (0..extents.len()).map(|m| Mode::of(tensor, m, parts)).collect();
        let stride = Strata::row_len(rank);
        let copies = extents.iter().map(|&extent| Matrix::zeros(extent as usize, stride));
        let copies = copies.collect::<Result<_, _>>()?;
        let blocks = blocks(tensor, &modes, parts, seed);
        Ok(Strata { extents, parts, modes, blocks, seed, stride, copies })
    }

    /// Returns the elements of a row as steps see it, for a model of `rank` components.
    pub(crate) fn row_len(rank: usize) -> usize {
        rank.next_multiple_of(LANES)
    }

    /// Visits every entry once, in an order that `epoch` decides, and updates `factors`.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if a factor has another shape than the tensor and the rank, or the
    /// compiled loop was made for another.
    pub(crate) fn pass(
        &mut self,
        factors: &mut [Matrix<f64>],
        rule: &PassRule<'_>,
        epoch: u64,
        slope: Slope<'_>,
    ) -> Result<(), CoreError> {
        self.check(factors)?;
        let free = rule.free.iter().map(|free| self.padded(free)).collect::<Result<Vec<_>, _>>()?;
        self.load(factors);
        let order = self.extents.len() as u32;
        let mut strata: Vec<usize> = (0..self.parts.pow(order - 1)).collect();
        let key = mix(self.seed ^ mix(epoch));
        shuffle(&mut strata, key);
        let mut copies = std::mem::take(&mut self.copies);
        for stratum in strata {
            let tasks = self.tasks(stratum, &mut copies, key);
            tasks.into_par_iter().try_for_each(|task| visit(task, rule, &free, slope))?;
        }
        self.copies = copies;
        self.store(factors);
        Ok(())
    }

    fn check(&self, factors: &[Matrix<f64>]) -> Result<(), CoreError> {
        let fits = factors.len() == self.extents.len()
            && factors.iter().zip(&self.extents).all(|(factor, &extent)| {
                factor.rows() as u64 == extent
                    && factor.cols().next_multiple_of(LANES) == self.stride
            });
        if fits {
            return Ok(());
        }
        let why = "the factors have other shapes than the tensor and the rank".to_owned();
        Err(CoreError::Operand { operand: "factors".into(), why })
    }

    /// Returns the marks of columns as a row of the copies.
    fn padded(&self, free: &[f64]) -> Result<Matrix<f64>, CoreError> {
        let mut row = Matrix::zeros(1, self.stride)?;
        row.row_mut(0).iter_mut().zip(free).for_each(|(to, from)| *to = *from);
        Ok(row)
    }

    /// Makes the tasks of a stratum: in task `t`, mode 0 has part `t` and each other mode the part
    /// `t` plus its shift.
    fn tasks<'a>(
        &'a self,
        stratum: usize,
        copies: &'a mut [Matrix<f64>],
        key: u64,
    ) -> Vec<Task<'a>> {
        let order = self.extents.len();
        let parts = self.parts;
        let shift = |mode: usize| match mode {
            0 => 0,
            _ => stratum / parts.pow((order - 1 - mode) as u32) % parts,
        };
        let mut tasks: Vec<Task<'a>> = (0..parts)
            .map(|t| {
                let block = (0..order).fold(0, |at, mode| at * parts + (t + shift(mode)) % parts);
                let list = &self.blocks[block];
                let start = (mix(key ^ block as u64) % list.len().max(1) as u64) as usize;
                Task { list, start, factors: Vec::new(), shares: Vec::new() }
            })
            .collect();
        for (mode, copy) in copies.iter_mut().enumerate() {
            let Mode { starts, share, .. } = &self.modes[mode];
            let mut rest = copy.as_mut_slice();
            let mut pieces = Vec::with_capacity(parts);
            for range in starts.windows(2) {
                let (piece, after) = rest.split_at_mut((range[1] - range[0]) * self.stride);
                rest = after;
                pieces.push((piece, &share[range[0]..range[1]]));
            }
            // Task t takes part t + shift: rotate the parts so that they stand in task order.
            pieces.rotate_left(shift(mode));
            for (task, (piece, share)) in tasks.iter_mut().zip(pieces) {
                task.factors.push(piece);
                task.shares.push(share);
            }
        }
        tasks
    }

    fn load(&mut self, factors: &[Matrix<f64>]) {
        for ((copy, mode), factor) in self.copies.iter_mut().zip(&self.modes).zip(factors) {
            for (row, &place) in mode.place.iter().enumerate() {
                let to = copy.row_mut(place as usize);
                to[..factor.cols()].copy_from_slice(factor.row(row));
            }
        }
    }

    fn store(&self, factors: &mut [Matrix<f64>]) {
        for ((copy, mode), factor) in self.copies.iter().zip(&self.modes).zip(factors) {
            let cols = factor.cols();
            for (row, &place) in mode.place.iter().enumerate() {
                factor.row_mut(row).copy_from_slice(&copy.row(place as usize)[..cols]);
            }
        }
    }
}

impl Mode {
    /// Gives each row to the part that has the fewest entries yet, the longest rows first.
    fn of(tensor: &Coo<f64>, mode: usize, parts: usize) -> Mode {
        let extent = tensor.extents()[mode] as usize;
        let mut counts = vec![0_u64; extent];
        tensor.coords(mode).iter().for_each(|row| counts[row as usize] += 1);
        let mut rows: Vec<usize> = (0..extent).collect();
        rows.sort_by_key(|&row| (std::cmp::Reverse(counts[row]), row));
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); parts];
        let mut loads = vec![(0_u64, 0_usize); parts];
        for row in rows {
            let least = (0..parts).min_by_key(|&part| loads[part]).unwrap_or(0);
            loads[least].0 += counts[row];
            loads[least].1 += 1;
            members[least].push(row);
        }
        let (mut place, mut starts) = (vec![0; extent], vec![0]);
        let mut share = Vec::with_capacity(extent);
        for mut part in members {
            part.sort_unstable();
            for row in part {
                place[row] = share.len() as u32;
                share.push(if counts[row] > 0 { 1.0 / counts[row] as f64 } else { 0.0 });
            }
            starts.push(share.len());
        }
        Mode { place, starts, share }
    }

    /// Returns the part of a place.
    fn part(&self, place: usize) -> usize {
        self.starts.partition_point(|&start| start <= place) - 1
    }
}

/// Sorts the entries, shuffled, into their blocks.
fn blocks(tensor: &Coo<f64>, modes: &[Mode], parts: usize, seed: u64) -> Vec<StepList> {
    let mut entries: Vec<usize> = (0..tensor.nnz()).collect();
    shuffle(&mut entries, mix(seed));
    let count = parts.pow(modes.len() as u32);
    let mut blocks: Vec<StepList> = (0..count).map(|_| StepList::default()).collect();
    let mut rows = vec![0; modes.len()];
    for entry in entries {
        let mut block = 0;
        for (m, mode) in modes.iter().enumerate() {
            let place = mode.place[tensor.coords(m).get(entry) as usize] as usize;
            let part = mode.part(place);
            block = block * parts + part;
            rows[m] = (place - mode.starts[part]) as u32;
        }
        blocks[block].push(&rows, tensor.values()[entry]);
    }
    blocks
}

/// Puts `items` into a random order (Fisher and Yates) that `key` decides.
fn shuffle(items: &mut [usize], key: u64) {
    for last in (1..items.len()).rev() {
        let draw = mix(key.wrapping_add(mix(last as u64)));
        // A product of 64 bits by the range: the bias is below 2^-32 for any list in memory.
        let other = (u128::from(draw) * (last as u128 + 1)) >> 64;
        items.swap(last, other as usize);
    }
}
