//! Alternating least squares by conjugate gradients, for any network.
//!
//! The model is linear in each block: with the others fixed, block `b` solves
//!
//! ```text
//! (J^T J + reg) theta = J^T (x - offset),     J theta = the model's values at the entries
//! ```
//!
//! `J` is the expression of the values with a direction in the place of the block, `J^T` that of
//! the gradient: no matrix is formed.  A block that belongs to a mode falls apart into its slices,
//! which share no parameters, so every slice has step lengths of its own, and as many iterations as
//! a slice has parameters would be exact.  The residual is kept, so each iteration costs one
//! contraction of either kind.  Sources: Hestenes, Stiefel, 1952; for CP completion Singh, Zhang,
//! Ma, Solomonik, "Distributed-memory tensor completion for generalized loss functions in Python
//! using new sparse tensor kernels", JPDC 169, 2022.

use decompose_common::SolverError;
use decompose_formats::Matrix;

use crate::biases::Fixed;
use crate::method::{Method, Progress};
use crate::objective::Objective;

/// The most iterations for a block.
const MOST_ITERATIONS: usize = 50;
/// A slice is solved when its residual has shrunk by this, squared.
const SOLVED: f64 = 1e-20;

/// The state of the method.
pub(crate) struct AlsCg {
    /// The slopes of the objective at the entries, halved: `m + offset - x`.
    residual: Vec<f64>,
    /// By block: the right-hand side's residual, the direction, and the matrix times it.
    work: Vec<[Matrix<f64>; 3]>,
}

impl AlsCg {
    /// Makes room.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub(crate) fn new(objective: &Objective) -> Result<AlsCg, SolverError> {
        let room = |(rows, cols)| -> Result<[Matrix<f64>; 3], SolverError> {
            let make = || Matrix::zeros(rows, cols);
            Ok([make()?, make()?, make()?])
        };
        let blocks = objective.network().blocks().iter();
        let work = blocks.map(|block| room(block.matrix())).collect::<Result<_, _>>()?;
        Ok(AlsCg { residual: Vec::new(), work })
    }

    /// Solves for one block.
    fn update(
        &mut self,
        at: usize,
        objective: &mut Objective,
        blocks: &mut [Matrix<f64>],
    ) -> Result<(), SolverError> {
        let shape = &objective.network().blocks()[at];
        let (slices, len) = (shape.slices(), shape.slice_len());
        let slice = Slices { slices, rows: shape.matrix().0 / slices };
        let reg = objective.reg()[at];
        let fixed = objective.fixed().clone();
        let [r, p, ap] = &mut self.work[at];
        // r = J^T (x - offset - m) - reg theta
        self.residual.iter_mut().for_each(|residual| *residual = -*residual);
        objective.contract(at, &self.residual, blocks, r)?;
        self.residual.iter_mut().for_each(|residual| *residual = -*residual);
        for row in 0..r.rows() {
            let pairs = r.row_mut(row).iter_mut().zip(blocks[at].row(row));
            pairs.for_each(|(r, theta)| *r -= reg * theta);
        }
        mask(r, at, &fixed);
        p.as_mut_slice().copy_from_slice(r.as_slice());
        let start = slice.dots(r, r);
        let mut rr = start.clone();
        for _ in 0..len.min(MOST_ITERATIONS) {
            let open = |(rr, start): (&f64, &f64)| *rr > SOLVED * start && *rr > 0.0;
            if !rr.iter().zip(&start).any(open) {
                break;
            }
            // The direction takes the place of the block.
            std::mem::swap(&mut blocks[at], p);
            let squared = objective.square(at, blocks, ap);
            std::mem::swap(&mut blocks[at], p);
            squared?;
            for row in 0..ap.rows() {
                let pairs = ap.row_mut(row).iter_mut().zip(p.row(row));
                pairs.for_each(|(ap, p)| *ap += reg * p);
            }
            mask(ap, at, &fixed);
            let pap = slice.dots(p, ap);
            let alpha: Vec<f64> =
                (0..slices)
                    .map(|s| {
                        if open((&rr[s], &start[s])) && pap[s] > 0.0 { rr[s] / pap[s] } else { 0.0 }
                    })
                    .collect();
            slice.add(&mut blocks[at], &alpha, 1.0, p);
            slice.add(r, &alpha, -1.0, ap);
            let next = slice.dots(r, r);
            let beta: Vec<f64> =
                (0..slices).map(|s| if rr[s] > 0.0 { next[s] / rr[s] } else { 0.0 }).collect();
            slice.scale_and_add(p, &beta, r);
            rr = next;
        }
        self.refresh(objective, blocks)
    }

    /// Computes the residual at `blocks`.
    fn refresh(
        &mut self,
        objective: &mut Objective,
        blocks: &[Matrix<f64>],
    ) -> Result<(), SolverError> {
        let offset = objective.offset();
        let entries = objective.entries();
        entries.evaluate(&blocks.iter().collect::<Vec<_>>())?;
        self.residual.clear();
        let pairs = entries.model().iter().zip(entries.observed());
        self.residual.extend(pairs.map(|(m, x)| m + offset - x));
        Ok(())
    }
}

impl Method for AlsCg {
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        _: f64,
    ) -> Result<Progress, SolverError> {
        self.refresh(objective, blocks)?;
        for at in 0..blocks.len() {
            self.update(at, objective, blocks)?;
        }
        Ok(Progress::Moved)
    }
}

/// Sets the fixed columns of a direction to zero.
fn mask(matrix: &mut Matrix<f64>, mode: usize, fixed: &Fixed) {
    if fixed.any() {
        for row in 0..matrix.rows() {
            let row = matrix.row_mut(row).iter_mut().enumerate();
            row.filter(|(column, _)| fixed.has(mode, *column)).for_each(|(_, value)| *value = 0.0);
        }
    }
}

/// The slices of a block: runs of rows of its matrix.
struct Slices {
    slices: usize,
    /// Rows of the matrix in each.
    rows: usize,
}

impl Slices {
    fn of<'a>(&self, matrix: &'a Matrix<f64>) -> impl Iterator<Item = &'a [f64]> {
        matrix.as_slice().chunks_exact((self.rows * matrix.stride()).max(1)).take(self.slices)
    }

    fn of_mut<'a>(&self, matrix: &'a mut Matrix<f64>) -> impl Iterator<Item = &'a mut [f64]> {
        let len = (self.rows * matrix.stride()).max(1);
        matrix.as_mut_slice().chunks_exact_mut(len).take(self.slices)
    }

    /// The inner product of each slice.
    fn dots(&self, a: &Matrix<f64>, b: &Matrix<f64>) -> Vec<f64> {
        let dot = |(a, b): (&[f64], &[f64])| a.iter().zip(b).map(|(a, b)| a * b).sum();
        self.of(a).zip(self.of(b)).map(dot).collect()
    }

    /// Adds `sign * factors[s]` times each slice `s` of `from` to that of `to`.
    fn add(&self, to: &mut Matrix<f64>, factors: &[f64], sign: f64, from: &Matrix<f64>) {
        for ((to, from), factor) in self.of_mut(to).zip(self.of(from)).zip(factors) {
            let factor = sign * factor;
            to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
        }
    }

    /// Multiplies each slice `s` of `to` by `factors[s]` and adds that of `from`.
    fn scale_and_add(&self, to: &mut Matrix<f64>, factors: &[f64], from: &Matrix<f64>) {
        for ((to, from), factor) in self.of_mut(to).zip(self.of(from)).zip(factors) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *to * factor + from);
        }
    }
}
