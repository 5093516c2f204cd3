//! The objective and its gradient.
//!
//! ```text
//! f      = sum over entries loss(x, m + offset) + sum over blocks reg_b * |free part of theta_b|^2
//! df/dm  = slope(x, m + offset)                          at the entries, one value each
//! df/db  = gradient expression of block b on df/dm + 2 reg_b theta_b,   0 where b is fixed
//! ```
//!
//! One tree serves the model's values and all gradients.  Time of an evaluation: one TTTP and one
//! contraction a block.

use decompose_common::SolverError;
use decompose_core::contract::{Request, Roots, best_tree};
use decompose_core::cost::Machine;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Matrix, PatternCounts};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator, ParallelSlice,
    ParallelSliceMut,
};

use crate::biases::Fixed;
use crate::entries::{Entries, tree};
use crate::kernel::{BlockKernel, request};
use crate::loss::Loss;
use crate::network::Network;

/// Entries whose losses are added by one task: sums do not depend on the number of threads.
const BLOCK: usize = 1 << 13;

/// Which kernels an objective has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// That of the model's values.
    Values,
    /// Also those of the gradient.
    Gradients,
}

/// What is minimised, with the kernels to do so.
pub struct Objective {
    network: Network,
    entries: Entries,
    gradients: Vec<BlockKernel>,
    loss: Loss,
    /// Added to the model's values.
    offset: f64,
    /// By block.
    reg: Vec<f64>,
    fixed: Fixed,
    slopes: Vec<f64>,
}

impl Objective {
    /// Schedules the kernels of `network` on the entries of `tensor`.
    ///
    /// `reg` holds the ridge of each block; [`Objective::gradient`] needs [`Needs::Gradients`].
    ///
    /// # Errors
    ///
    /// If a kernel has no schedule, or there is no memory.
    pub fn new(
        tensor: &Coo<f64>,
        network: Network,
        loss: Loss,
        reg: Vec<f64>,
        needs: Needs,
        toolchain: &Toolchain,
    ) -> Result<Objective, SolverError> {
        let counts = PatternCounts::of(tensor);
        let shapes = network.shapes();
        let mut asked: Vec<Request> = vec![request(network.values(), &counts, &shapes)?];
        let gradients = if needs == Needs::Gradients { network.blocks().len() } else { 0 };
        for block in 0..gradients {
            let mut shapes = shapes.clone();
            shapes.remove(block + 1);
            asked.push(request(network.gradient(block), &counts, &shapes)?);
        }
        let (layout, _) = best_tree(&asked, Roots::Any, Machine::here())?;
        let tree = tree(tensor, &layout)?;
        let kernels: Result<Vec<BlockKernel>, SolverError> =
            asked.par_iter().map(|asked| BlockKernel::new(asked, &tree, toolchain)).collect();
        let mut kernels = kernels?;
        let values = kernels.remove(0);
        let slopes = if gradients > 0 { vec![0.0; tree.nnz()] } else { Vec::new() };
        let fixed = Fixed::none();
        let entries = Entries::of(values);
        Ok(Objective {
            network,
            entries,
            gradients: kernels,
            loss,
            offset: 0.0,
            reg,
            fixed,
            slopes,
        })
    }

    /// Adds `offset` to the model's values, and leaves the `fixed` columns as they are.
    #[must_use]
    pub(crate) fn with_biases(mut self, offset: f64, fixed: Fixed) -> Objective {
        self.offset = offset;
        self.fixed = fixed;
        self
    }

    /// Returns the network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the loss.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Returns what is added to the model's values.
    pub(crate) fn offset(&self) -> f64 {
        self.offset
    }

    /// Changes the ridge of each block.
    pub(crate) fn set_reg(&mut self, reg: &[f64]) {
        self.reg.copy_from_slice(reg);
    }

    /// Returns the ridge of each block.
    pub(crate) fn reg(&self) -> &[f64] {
        &self.reg
    }

    /// Returns the columns that stay.
    pub(crate) fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// Returns the entries and their values by the model, as last computed.
    pub(crate) fn entries(&mut self) -> &mut Entries {
        &mut self.entries
    }

    /// Returns the objective at `blocks`.
    ///
    /// # Errors
    ///
    /// If the blocks do not fit.
    pub fn value(&mut self, blocks: &[Matrix<f64>]) -> Result<f64, SolverError> {
        self.entries.evaluate(&blocks.iter().collect::<Vec<_>>())?;
        let (loss, offset) = (self.loss, self.offset);
        let pairs = self.entries.observed().par_chunks(BLOCK);
        let sums: Vec<f64> = pairs
            .zip(self.entries.model().par_chunks(BLOCK))
            .map(|(x, m)| x.iter().zip(m).map(|(&x, &m)| loss.value(x, m + offset)).sum())
            .collect();
        Ok(sums.iter().sum::<f64>() + self.penalty(blocks))
    }

    /// Returns the objective at `blocks` and writes its gradient.
    ///
    /// # Errors
    ///
    /// If the blocks do not fit.
    pub fn gradient(
        &mut self,
        blocks: &[Matrix<f64>],
        gradient: &mut [Matrix<f64>],
    ) -> Result<f64, SolverError> {
        let value = self.value(blocks)?;
        let (loss, offset) = (self.loss, self.offset);
        let slopes = self.slopes.par_chunks_mut(BLOCK);
        let observed = self.entries.observed().par_chunks(BLOCK);
        let model = self.entries.model().par_chunks(BLOCK);
        slopes.zip(observed.zip(model)).for_each(|(slopes, (x, m))| {
            for (slope, (&x, &m)) in slopes.iter_mut().zip(x.iter().zip(m)) {
                *slope = loss.slope(x, m + offset);
            }
        });
        for (block, gradient) in gradient.iter_mut().enumerate() {
            self.gradients[block].write_block(&self.slopes, &others(blocks, block), gradient)?;
            self.add_penalty(block, &blocks[block], gradient);
        }
        Ok(value)
    }

    /// Tells how far `blocks` are from a stationary point; `None` without kernels of gradients.
    ///
    /// ```text
    /// sum |theta df/dtheta| / (B sum |slope m| + 2 sum reg_b |theta_b|^2)
    /// ```
    ///
    /// for `B` blocks: what the entries and the ridge still ask for, over what they would if all of them
    /// pulled in one direction.  It is 0 at a stationary point, bounds included.
    ///
    /// # Errors
    ///
    /// If the blocks do not fit.
    pub(crate) fn imbalance(&mut self, blocks: &[Matrix<f64>]) -> Result<Option<f64>, SolverError> {
        if self.gradients.is_empty() {
            return Ok(None);
        }
        let gradient = blocks.iter().map(|block| Matrix::zeros(block.rows(), block.cols()));
        let mut gradient = gradient.collect::<Result<Vec<_>, _>>()?;
        self.gradient(blocks, &mut gradient)?;
        let pairs = blocks.iter().zip(&gradient);
        let asked =
            pairs.flat_map(|(block, slopes)| block.as_slice().iter().zip(slopes.as_slice()));
        let asked: f64 = asked.map(|(theta, slope)| (theta * slope).abs()).sum();
        let pulls = self.slopes.iter().zip(self.entries.model());
        let pulls: f64 = pulls.map(|(slope, m)| (slope * m).abs()).sum();
        let all = blocks.len() as f64 * pulls + 2.0 * self.penalty(blocks);
        Ok((all > 0.0).then(|| asked / all))
    }

    /// Computes the gradient expression of `block` with `values` at the entries, in tree order.
    ///
    /// # Errors
    ///
    /// If the blocks do not fit.
    pub(crate) fn contract(
        &mut self,
        block: usize,
        values: &[f64],
        blocks: &[Matrix<f64>],
        output: &mut Matrix<f64>,
    ) -> Result<(), SolverError> {
        self.gradients[block].write_block(values, &others(blocks, block), output)
    }

    /// Computes the gradient expression of `block` on the model's values at the entries: `J^T J` times
    /// the direction that stands in the place of `block`.
    ///
    /// # Errors
    ///
    /// If the blocks do not fit.
    pub(crate) fn square(
        &mut self,
        block: usize,
        blocks: &[Matrix<f64>],
        output: &mut Matrix<f64>,
    ) -> Result<(), SolverError> {
        self.entries.evaluate(&blocks.iter().collect::<Vec<_>>())?;
        self.gradients[block].write_block(self.entries.model(), &others(blocks, block), output)
    }

    /// Returns `sum reg_b |free part of theta_b|^2`.
    fn penalty(&self, blocks: &[Matrix<f64>]) -> f64 {
        let of_block = |(at, block): (usize, &Matrix<f64>)| {
            let free = |(column, value): (usize, &f64)| match self.fixed.has(at, column) {
                true => 0.0,
                false => value * value,
            };
            let rows = (0..block.rows()).map(|row| block.row(row).iter().enumerate().map(free));
            self.reg[at] * rows.map(Iterator::sum::<f64>).sum::<f64>()
        };
        blocks.iter().enumerate().filter(|(at, _)| self.reg[*at] > 0.0).map(of_block).sum()
    }

    fn add_penalty(&self, at: usize, block: &Matrix<f64>, gradient: &mut Matrix<f64>) {
        let ridge = 2.0 * self.reg[at];
        for row in 0..block.rows() {
            let pairs = gradient.row_mut(row).iter_mut().zip(block.row(row)).enumerate();
            for (column, (slope, value)) in pairs {
                *slope = if self.fixed.has(at, column) { 0.0 } else { *slope + ridge * value };
            }
        }
    }
}

/// Returns all blocks but one.
pub(crate) fn others(blocks: &[Matrix<f64>], block: usize) -> Vec<&Matrix<f64>> {
    blocks.iter().enumerate().filter(|(at, _)| *at != block).map(|(_, block)| block).collect()
}
