//! Alternating least squares, exact: the rows of a CP factor one by one.
//!
//! ```text
//! N(i) = sum over entries of slice i of w w^T,   h(i) = sum of (x - offset) w,
//! w = the other modes' rows multiplied,          A(i,:) = (N(i) + reg I)^-1 h(i)
//! ```
//!
//! `N` (`I x R x R`) is a contraction with the factors twice, scheduled as one kernel, and `h` the
//! MTTKRP.  Long modes are worked on in blocks of rows, each with a tree of its own, so that `N`
//! stays in cache whatever the extent.  Columns that are fixed go to the right-hand side.  Time an
//! epoch: `O(N nnz R^2 + sum I_n R^3)`.  Source: Zhou, Wilkinson, Schreiber, Pan, "Large-scale
//! parallel collaborative filtering for the Netflix prize", AAIM 2008, for matrices.

use std::sync::Arc;

use decompose_common::linalg::{descend_nonneg, solve_spd};
use decompose_core::contract::{Question, Roots, best_tree};
use decompose_core::cost::Machine;
use decompose_core::kernels;
use decompose_core::runtime::Toolchain;
use decompose_formats::dense::padded;
use decompose_formats::{Coo, Csf, Matrix, PatternCounts};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};

use crate::entries::tree;
use crate::error::CompleteError;
use crate::kernel::{BlockKernel, question};
use crate::loss::Range;
use crate::method::{Method, Progress};
use crate::objective::{Objective, others};

/// The most bytes of normal matrices at a time: about a last-level cache.
const NORMAL_BYTES: usize = 32 << 20;
/// Rows that one task solves.
const ROWS: usize = 64;

/// The state of the method.
pub(crate) struct Als {
    modes: Vec<ModeSystem>,
    /// As many ones as there are entries: the weights.
    ones: Vec<f64>,
    range: Range,
}

/// The normal equations of a mode.
struct ModeSystem {
    blocks: Vec<RowBlock>,
    /// Memory for blocks of each length that occurs: matrices and right-hand sides.
    memory: Vec<(Matrix<f64>, Matrix<f64>)>,
}

/// Some rows of a mode, with the entries of their slices.
struct RowBlock {
    first: usize,
    rows: usize,
    normal: BlockKernel,
    mttkrp: BlockKernel,
    /// The entries less the offset, where there is one.
    centred: Option<Vec<f64>>,
    /// Which memory it works in.
    memory: usize,
}

impl Als {
    /// Schedules the kernels and builds the trees.
    ///
    /// # Errors
    ///
    /// If a kernel has no schedule, or there is no memory.
    pub(crate) fn new(
        tensor: &Coo<f64>,
        objective: &Objective,
        range: Range,
        toolchain: &Toolchain,
    ) -> Result<Als, CompleteError> {
        let modes = (0..tensor.order())
            .map(|mode| ModeSystem::new(tensor, mode, objective, toolchain))
            .collect::<Result<_, _>>()?;
        Ok(Als { modes, ones: vec![1.0; tensor.nnz()], range })
    }
}

impl Method for Als {
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        _: f64,
    ) -> Result<Progress, CompleteError> {
        for (mode, system) in self.modes.iter_mut().enumerate() {
            system.update(mode, objective, blocks, (&self.ones, self.range))?;
        }
        Ok(Progress::Moved)
    }
}

impl ModeSystem {
    fn new(
        tensor: &Coo<f64>,
        mode: usize,
        objective: &Objective,
        toolchain: &Toolchain,
    ) -> Result<ModeSystem, CompleteError> {
        let extent = tensor.extents()[mode];
        let rank = objective.network().blocks()[mode].matrix().1;
        let most = (NORMAL_BYTES / (rank * padded(rank, 8) * 8)).max(1) as u64;
        let rows = extent.div_ceil(extent.div_ceil(most).max(1)).max(1);
        let mut system = ModeSystem { blocks: Vec::new(), memory: Vec::new() };
        let mut layout = None;
        for first in (0..extent).step_by(rows as usize) {
            let range = first..extent.min(first + rows);
            let part = match range.end - range.start {
                all if all == extent => tensor.clone(),
                _ => tensor.rows(mode, range),
            };
            if part.nnz() > 0 {
                let asked = questions(&part, mode, rank)?;
                let layout = match &layout {
                    Some(layout) => layout,
                    None => layout.insert(best_tree(&asked, Roots::Any, Machine::here())?.0),
                };
                let tree = tree(&part, layout)?;
                system.add(&asked, &tree, (first as usize, objective.offset()), toolchain)?;
            }
        }
        Ok(system)
    }

    /// Adds the rows from `place.0` on, the entries of whose slices are `tree`; `place.1` is the
    /// offset.
    fn add(
        &mut self,
        asked: &[Question; 2],
        tree: &Arc<Csf<f64>>,
        place: (usize, f64),
        toolchain: &Toolchain,
    ) -> Result<(), CompleteError> {
        let (first, offset) = place;
        let normal = BlockKernel::new(&asked[0], tree, toolchain)?;
        let mttkrp = BlockKernel::new(&asked[1], tree, toolchain)?;
        let memory = (normal.memory()?, mttkrp.block()?);
        let rows = memory.1.rows();
        let found = self.memory.iter().position(|memory| memory.1.rows() == rows);
        let at = found.unwrap_or(self.memory.len());
        if found.is_none() {
            self.memory.push(memory);
        }
        let centred = tree.values().iter().map(|x| x - offset);
        let centred = (offset != 0.0).then(|| centred.collect());
        self.blocks.push(RowBlock { first, rows, normal, mttkrp, centred, memory: at });
        Ok(())
    }

    /// Solves for all rows of `mode`; `rest` holds as many ones as there are entries, and whether
    /// rows may be negative.
    fn update(
        &mut self,
        mode: usize,
        objective: &Objective,
        blocks: &mut [Matrix<f64>],
        rest: (&[f64], Range),
    ) -> Result<(), CompleteError> {
        let (ones, range) = rest;
        let cols = blocks[mode].cols();
        let fixed = objective.fixed();
        let rule = RowRule {
            free: fixed.free(mode, cols),
            fixed: (0..cols).filter(|&column| fixed.has(mode, column)).collect(),
            reg: objective.reg()[mode],
            range,
            cols,
        };
        let mut solved = 0;
        for block in &mut self.blocks {
            let (normal, rhs) = &mut self.memory[block.memory];
            let once = others(blocks, mode);
            let twice: Vec<&Matrix<f64>> = once.iter().chain(&once).copied().collect();
            let nnz = block.mttkrp.tree().nnz();
            block.normal.write_memory(&ones[..nnz], &twice, normal)?;
            block.mttkrp.contract(block.centred.as_deref(), &once, rhs)?;
            let target = &mut blocks[mode];
            rule.clear(target, solved..block.first);
            solved = block.first + block.rows;
            rule.solve(target, block.first, normal, rhs)?;
        }
        let rows = blocks[mode].rows();
        rule.clear(&mut blocks[mode], solved..rows);
        Ok(())
    }
}

/// Asks the normal equations of `mode` and their right-hand side on `part`.
fn questions(part: &Coo<f64>, mode: usize, rank: usize) -> Result<[Question; 2], CompleteError> {
    let counts = PatternCounts::of(part);
    let order = part.order();
    let others = (0..order).filter(|&m| m != mode).map(|m| vec![part.extents()[m], rank as u64]);
    let once: Vec<Vec<u64>> = std::iter::once(part.extents().to_vec()).chain(others).collect();
    let twice = [&once[..], &once[1..]].concat();
    let normal = question(kernels::normal(order, mode), &counts, &twice)?;
    Ok([normal, question(kernels::mttkrp(order, mode), &counts, &once)?])
}

/// How a row is solved.
struct RowRule {
    /// The columns to solve for.
    free: Vec<usize>,
    /// The columns that stay.
    fixed: Vec<usize>,
    reg: f64,
    range: Range,
    cols: usize,
}

impl RowRule {
    /// Sets the free columns of rows without entries to zero, which the ridge wants them to be.
    fn clear(&self, target: &mut Matrix<f64>, rows: std::ops::Range<usize>) {
        for row in rows {
            let row = target.row_mut(row);
            self.free.iter().for_each(|&column| row[column] = 0.0);
        }
    }

    /// Solves the rows from `first` on that `normal` and `rhs` are about, in parallel.
    fn solve(
        &self,
        target: &mut Matrix<f64>,
        first: usize,
        normal: &Matrix<f64>,
        rhs: &Matrix<f64>,
    ) -> Result<(), CompleteError> {
        let (stride, square) = (target.stride(), normal.stride() * self.cols);
        let rows = &mut target.as_mut_slice()[first * stride..][..rhs.rows() * stride];
        let work = rows.par_chunks_mut(ROWS * stride);
        let given = normal.as_slice().par_chunks(ROWS * square);
        let wanted = rhs.as_slice().par_chunks(ROWS * rhs.stride());
        work.zip(given.zip(wanted)).try_for_each(|(rows, (normal, h))| {
            let mut scratch = Scratch::default();
            let each = normal.chunks_exact(square).zip(h.chunks_exact(rhs.stride()));
            for (row, (normal, h)) in rows.chunks_exact_mut(stride).zip(each) {
                self.solve_row(row, normal, h, &mut scratch)?;
            }
            Ok(())
        })
    }

    fn solve_row(
        &self,
        row: &mut [f64],
        normal: &[f64],
        h: &[f64],
        scratch: &mut Scratch,
    ) -> Result<(), CompleteError> {
        let stride = normal.len() / self.cols;
        let Scratch { a, b, x, work } = scratch;
        a.clear();
        b.clear();
        for (at, &column) in self.free.iter().enumerate() {
            let of = &normal[column * stride..][..self.cols];
            a.extend(self.free.iter().map(|&other| of[other]));
            a[at * self.free.len() + at] += self.reg;
            let known: f64 = self.fixed.iter().map(|&fixed| of[fixed] * row[fixed]).sum();
            b.push(h[column] - known);
        }
        match self.range {
            Range::All => {
                solve_spd(a, b, work)?;
                self.free.iter().zip(&*b).for_each(|(&column, &b)| row[column] = b);
            }
            Range::NonNegative => {
                x.clear();
                x.extend(self.free.iter().map(|&column| row[column].max(0.0)));
                descend_nonneg(a, b, x);
                self.free.iter().zip(&*x).for_each(|(&column, &x)| row[column] = x);
            }
        }
        Ok(())
    }
}

/// Memory of a task.
#[derive(Default)]
struct Scratch {
    a: Vec<f64>,
    b: Vec<f64>,
    x: Vec<f64>,
    work: Vec<f64>,
}
