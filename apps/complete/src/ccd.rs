//! Cyclic coordinate descent, a block of components at a time (CCD++ for blocks of one).
//!
//! With `e` the residual without the components of a block, whose columns are `a, b, c`:
//!
//! ```text
//! w = b_j * c_k (a number a component),   a_i <- (sum over slice i of w w^T + reg I)^-1 sum e w
//! ```
//!
//! mode by mode ([`rows`](crate::rows)).  Exchanging blocks in the residual is a TTTP of two blocks:
//! minus the one that is done, plus the next.  A block of one component is the coordinate descent of
//! the source; larger ones fall faster and need fewer passes, and at the rank the method is
//! alternating least squares.  Blocks are the default since a single component does two operations
//! for each number that it loads: an epoch then reads coordinates and residual `R (2 N + 1)` times, and
//! brings the residual into the order of every mode `R N` times, a gather from an array that may not
//! fit a cache.  A block of eight does each an eighth as often, with vectors for its arithmetic.  The residual is kept in the order of one tree and gathered for the
//! slices of each mode.  Time an epoch for blocks of `G`: `O(R/G N nnz G^2)` in `R/G (2 N + 1)`
//! passes.  Source: Yu, Hsieh, Si, Dhillon, "Scalable coordinate descent approaches to parallel
//! matrix factorization for recommender systems", ICDM 2012.

use std::ops::Range;

use decompose_common::SolverError;
use decompose_core::contract::{Roots, best_tree};
use decompose_core::cost::Machine;
use decompose_core::runtime::{Slices, Toolchain};
use decompose_formats::{Coo, Matrix, PatternCounts};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelRefIterator, IntoParallelRefMutIterator, ParallelIterator,
    ParallelSlice, ParallelSliceMut,
};

use crate::config::{CompleteConfig, ModelKind};
use crate::entries::tree;
use crate::kernel::{BlockKernel, request};
use crate::loss::Range as Sign;
use crate::method::{Method, Progress};
use crate::network::Network;
use crate::objective::{Objective, others};
use crate::rows::{RowRule, SliceRows};

/// Entries that one task updates.
const BLOCK: usize = 1 << 14;

/// The state of the method.
pub(crate) struct Ccd {
    /// The values of the whole model.
    values: BlockKernel,
    /// The values of two blocks of components.
    pair: BlockKernel,
    systems: Slices,
    modes: Vec<SliceRows>,
    /// The residual, in tree order; while a block is updated, without it.
    residual: Vec<f64>,
    /// The residual in the order of a mode's slices.
    sorted: Vec<f64>,
    change: Vec<f64>,
    ones: Vec<f64>,
    sign: Sign,
    inner: usize,
    /// Components of a block.
    block: usize,
}

impl Ccd {
    /// Schedules the kernels, builds the tree and lists the entries by the slices of each mode.
    ///
    /// # Errors
    ///
    /// If a kernel has no schedule, or there is no memory.
    pub(crate) fn new(
        tensor: &Coo<f64>,
        objective: &Objective,
        config: &CompleteConfig,
        toolchain: &Toolchain,
    ) -> Result<Ccd, SolverError> {
        let counts = PatternCounts::of(tensor);
        let all = objective.network();
        let block = config.block.min(all.blocks()[0].matrix().1);
        let two = Network::new(&ModelKind::Cp { rank: 2 * block }, tensor.extents());
        let asked = [
            request(two.values(), &counts, &two.shapes())?,
            request(all.values(), &counts, &all.shapes())?,
        ];
        let (layout, _) = best_tree(&asked, Roots::Any, Machine::here())?;
        let tree = tree(tensor, &layout)?;
        let listed = tree.to_coo();
        let modes = (0..tensor.order()).map(|mode| SliceRows::new(&listed, mode));
        let nnz = tensor.nnz();
        Ok(Ccd {
            pair: BlockKernel::new(&asked[0], &tree, toolchain)?,
            values: BlockKernel::new(&asked[1], &tree, toolchain)?,
            systems: Slices::new(block, tensor.extents(), toolchain),
            modes: modes.collect::<Result<_, _>>()?,
            residual: vec![0.0; nnz],
            sorted: vec![0.0; nnz],
            change: vec![0.0; nnz],
            ones: vec![1.0; nnz],
            sign: config.range(),
            inner: config.inner,
            block,
        })
    }

    /// Sets the residual to the entries less the model.
    fn restart(&mut self, blocks: &[Matrix<f64>], offset: f64) -> Result<(), SolverError> {
        let operands: Vec<&Matrix<f64>> = blocks.iter().collect();
        self.values.at_entries(&self.ones, &operands, &mut self.change)?;
        let observed = self.values.tree().values();
        let model = self.change.par_chunks(BLOCK).zip(observed.par_chunks(BLOCK));
        self.residual.par_chunks_mut(BLOCK).zip(model).for_each(|(residual, (model, observed))| {
            for (residual, (m, x)) in residual.iter_mut().zip(model.iter().zip(observed)) {
                *residual = x - m - offset;
            }
        });
        Ok(())
    }

    /// Takes the columns `done` out of the residual and puts `next` in.
    fn exchange(
        &mut self,
        done: Option<&[Matrix<f64>]>,
        next: &[Matrix<f64>],
    ) -> Result<(), SolverError> {
        let mut pairs = Vec::with_capacity(next.len());
        for (mode, next) in next.iter().enumerate() {
            let mut pair = Matrix::zeros(next.rows(), 2 * self.block)?;
            let sign = if mode == 0 { -1.0 } else { 1.0 };
            for row in 0..next.rows() {
                let (before, after) = pair.row_mut(row).split_at_mut(self.block);
                if let Some(done) = done {
                    let columns = before.iter_mut().zip(done[mode].row(row));
                    columns.for_each(|(to, from)| *to = sign * from);
                }
                after.copy_from_slice(next.row(row));
            }
            pairs.push(pair);
        }
        let operands: Vec<&Matrix<f64>> = pairs.iter().collect();
        self.pair.at_entries(&self.ones, &operands, &mut self.change)?;
        let change = self.change.par_chunks(BLOCK);
        self.residual.par_chunks_mut(BLOCK).zip(change).for_each(|(residual, change)| {
            residual.iter_mut().zip(change).for_each(|(residual, change)| *residual += change);
        });
        Ok(())
    }

    /// Updates the columns of one mode.
    fn update(
        &mut self,
        mode: usize,
        columns: &mut [Matrix<f64>],
        rule: &RowRule,
    ) -> Result<(), SolverError> {
        let rows = &self.modes[mode];
        let residual = &self.residual;
        let places = rows.list().places().par_iter();
        self.sorted.par_iter_mut().zip(places).for_each(|(to, &place)| {
            *to = residual[place as usize];
        });
        // The columns that are solved for stand aside.
        let aside = Matrix::zeros(0, self.block)?;
        let mut target = std::mem::replace(&mut columns[mode], aside);
        let others = others(columns, mode);
        rows.solve(&self.systems, &self.sorted, &others, rule, &mut target)?;
        columns[mode] = target;
        Ok(())
    }
}

impl Method for Ccd {
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        _: f64,
    ) -> Result<Progress, SolverError> {
        self.restart(blocks, objective.offset())?;
        let rank = blocks.first().map_or(0, Matrix::cols);
        let fixed = objective.fixed().clone();
        let mut done: Option<Vec<Matrix<f64>>> = None;
        for first in (0..rank).step_by(self.block) {
            let range = first..rank.min(first + self.block);
            let mut columns = columns_of(blocks, &range, self.block)?;
            self.exchange(done.as_deref(), &columns)?;
            for _ in 0..self.inner {
                for mode in 0..blocks.len() {
                    // Columns beyond the rank are zero and stay so.
                    let stays = |at: &usize| first + at >= rank || fixed.has(mode, first + at);
                    let rule = RowRule::new(self.block, stays, objective.reg()[mode], self.sign);
                    self.update(mode, &mut columns, &rule)?;
                }
            }
            for (block, columns) in blocks.iter_mut().zip(&columns) {
                for row in 0..block.rows() {
                    let (to, from) = (&mut block.row_mut(row)[range.clone()], columns.row(row));
                    to.copy_from_slice(&from[..range.len()]);
                }
            }
            done = Some(columns);
        }
        Ok(Progress::Moved)
    }
}

/// Copies the columns in `range`, followed by zeros up to `width`.
fn columns_of(
    blocks: &[Matrix<f64>],
    range: &Range<usize>,
    width: usize,
) -> Result<Vec<Matrix<f64>>, SolverError> {
    let of_block = |block: &Matrix<f64>| {
        let mut columns = Matrix::zeros(block.rows(), width)?;
        for row in 0..block.rows() {
            let to = &mut columns.row_mut(row)[..range.len()];
            to.copy_from_slice(&block.row(row)[range.clone()]);
        }
        Ok(columns)
    };
    blocks.iter().map(of_block).collect()
}
