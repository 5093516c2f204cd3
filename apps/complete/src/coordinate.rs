//! Cyclic coordinate descent, component by component (CCD++).
//!
//! With `e` the residual without component `r`, whose columns are `a, b, c`:
//!
//! ```text
//! a_i <- (sum over slice i of e b_j c_k) / (reg + sum over slice i of (b_j c_k)^2)
//! ```
//!
//! Numerators are MTTKRPs of one column of the residual, denominators the same kernel on ones and
//! squared columns, and exchanging a component in the residual is a TTTP of two columns: minus the
//! one that is done, plus the next.  All kernels share one tree, since the residual changes all the
//! time.  Time an epoch: `R (2 N + 1)` passes over the entries.  Source: Yu, Hsieh, Si, Dhillon,
//! "Scalable coordinate descent approaches to parallel matrix factorization for recommender
//! systems", ICDM 2012.

use decompose_core::contract::{Roots, best_tree};
use decompose_core::cost::Machine;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Matrix, PatternCounts};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator, ParallelSlice,
    ParallelSliceMut,
};

use crate::config::{CompleteConfig, ModelKind};
use crate::entries::tree;
use crate::error::CompleteError;
use crate::kernel::{BlockKernel, question};
use crate::loss::Range;
use crate::method::{Method, Progress};
use crate::network::Network;
use crate::objective::{Objective, others};

/// Entries that one task updates.
const BLOCK: usize = 1 << 14;

/// The state of the method.
pub(crate) struct Ccd {
    /// The values of the whole model.
    values: BlockKernel,
    /// The values of two components.
    pair: BlockKernel,
    /// One column's MTTKRP, by mode.
    sums: Vec<BlockKernel>,
    /// The residual, in tree order; while a component is updated, without it.
    residual: Vec<f64>,
    change: Vec<f64>,
    ones: Vec<f64>,
    numerator: Vec<Matrix<f64>>,
    denominator: Vec<Matrix<f64>>,
    range: Range,
    inner: usize,
}

impl Ccd {
    /// Schedules the kernels and builds the tree.
    ///
    /// # Errors
    ///
    /// If a kernel has no schedule, or there is no memory.
    pub(crate) fn new(
        tensor: &Coo<f64>,
        objective: &Objective,
        config: &CompleteConfig,
        toolchain: &Toolchain,
    ) -> Result<Ccd, CompleteError> {
        let counts = PatternCounts::of(tensor);
        let of_rank = |rank| Network::new(&ModelKind::Cp { rank }, tensor.extents());
        let (one, two) = (of_rank(1), of_rank(2));
        let all = objective.network();
        let mut asked = vec![question(two.values(), &counts, &two.shapes())?];
        for mode in 0..tensor.order() {
            let mut shapes = one.shapes();
            shapes.remove(mode + 1);
            asked.push(question(one.gradient(mode), &counts, &shapes)?);
        }
        let (layout, _) = best_tree(&asked, Roots::Any, Machine::here())?;
        let tree = tree(tensor, &layout)?;
        let built = asked.iter().map(|asked| BlockKernel::new(asked, &tree, toolchain));
        let mut sums = built.collect::<Result<Vec<_>, _>>()?;
        let pair = sums.remove(0);
        let whole = question(all.values(), &counts, &all.shapes())?;
        let columns = || tensor.extents().iter().map(|&extent| Matrix::zeros(extent as usize, 1));
        let nnz = tensor.nnz();
        Ok(Ccd {
            values: BlockKernel::new(&whole, &tree, toolchain)?,
            pair,
            sums,
            residual: vec![0.0; nnz],
            change: vec![0.0; nnz],
            ones: vec![1.0; nnz],
            numerator: columns().collect::<Result<_, _>>()?,
            denominator: columns().collect::<Result<_, _>>()?,
            range: config.range(),
            inner: config.inner,
        })
    }

    /// Sets the residual to the entries less the model.
    fn restart(&mut self, blocks: &[Matrix<f64>], offset: f64) -> Result<(), CompleteError> {
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

    /// Takes the component `done` out of the residual and puts `next` in.
    fn exchange(
        &mut self,
        done: Option<&[Matrix<f64>]>,
        next: Option<&[Matrix<f64>]>,
    ) -> Result<(), CompleteError> {
        let column = |component: Option<&[Matrix<f64>]>, mode: usize, row: usize| {
            component.map_or(0.0, |columns| columns[mode].row(row)[0])
        };
        let mut pairs = Vec::with_capacity(self.numerator.len());
        for (mode, like) in self.numerator.iter().enumerate() {
            let mut pair = Matrix::zeros(like.rows(), 2)?;
            let sign = if mode == 0 { -1.0 } else { 1.0 };
            for row in 0..like.rows() {
                let values = [sign * column(done, mode, row), column(next, mode, row)];
                pair.row_mut(row).copy_from_slice(&values);
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

    /// Updates the column of one mode.
    fn update(
        &mut self,
        mode: usize,
        columns: &mut [Matrix<f64>],
        reg: f64,
    ) -> Result<(), CompleteError> {
        let square = |column: &Matrix<f64>| -> Result<Matrix<f64>, CompleteError> {
            let mut squares = column.try_clone()?;
            squares.as_mut_slice().iter_mut().for_each(|value| *value *= *value);
            Ok(squares)
        };
        let squares = columns.iter().map(square).collect::<Result<Vec<_>, _>>()?;
        let (numerator, denominator) = (&mut self.numerator[mode], &mut self.denominator[mode]);
        self.sums[mode].write_block(&self.residual, &others(columns, mode), numerator)?;
        self.sums[mode].write_block(&self.ones, &others(&squares, mode), denominator)?;
        let sums = numerator.as_slice().iter().zip(denominator.as_slice());
        for (value, (n, d)) in columns[mode].as_mut_slice().iter_mut().zip(sums) {
            let curvature = d + reg;
            let new = if curvature > 0.0 { n / curvature } else { 0.0 };
            *value = if self.range == Range::NonNegative { new.max(0.0) } else { new };
        }
        Ok(())
    }
}

impl Method for Ccd {
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        _: f64,
    ) -> Result<Progress, CompleteError> {
        self.restart(blocks, objective.offset())?;
        let rank = blocks.first().map_or(0, Matrix::cols);
        let fixed = objective.fixed().clone();
        let mut done: Option<Vec<Matrix<f64>>> = None;
        for r in 0..rank {
            let mut columns = component(blocks, r)?;
            self.exchange(done.as_deref(), Some(&columns))?;
            for _ in 0..self.inner {
                for mode in (0..blocks.len()).filter(|&mode| !fixed.has(mode, r)) {
                    self.update(mode, &mut columns, objective.reg()[mode])?;
                }
            }
            for (block, column) in blocks.iter_mut().zip(&mut columns) {
                let stride = block.stride();
                let rows = block.as_mut_slice().chunks_exact_mut(stride);
                rows.zip(column.as_slice()).for_each(|(row, &value)| row[r] = value);
            }
            done = Some(columns);
        }
        Ok(Progress::Moved)
    }
}

/// Copies the columns of component `r`.
fn component(blocks: &[Matrix<f64>], r: usize) -> Result<Vec<Matrix<f64>>, CompleteError> {
    let column = |block: &Matrix<f64>| {
        let mut column = Matrix::zeros(block.rows(), 1)?;
        let rows = block.as_slice().par_chunks(block.stride());
        column.as_mut_slice().par_iter_mut().zip(rows).for_each(|(value, row)| *value = row[r]);
        Ok(column)
    };
    blocks.iter().map(column).collect()
}
