//! The error of a train, measured on the tensor and not taken from the solver.
//!
//! ```text
//! ||X - T||^2 = ||X||^2 + ||T||^2 - 2 <X, T>,      <X, T> = <environment of the last core, core>
//! ```
//!
//! The environment is one TTTc over the non-zeros; `||T||` comes from the cores alone.  Near a
//! perfect fit the digits of the sum cancel: the error is known to 3e-8 in double precision, to
//! 7e-4 in single.  Below ten times that the difference is summed cell by cell, in double precision
//! and without cancellation, if the tensor has no more than [`CELLS`] cells.

use std::ops::Range;

use decompose_common::SolverError;
use decompose_common::stopping::error_floor;
use decompose_formats::{Coo, ModeOrder, Value};
use ndarray::{Array2, s};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::kernels::{Kernels, LeftOut};
use crate::train::Train;

/// The most cells that are visited one by one: half a second's work.
pub const CELLS: u64 = 1 << 26;

/// Cells of a block.
const BLOCK: usize = 1 << 18;

/// How an error was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// From norms and the inner product with the tensor.
    InnerProduct,
    /// Cell by cell.
    Cells,
}

/// A measured error.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Verified {
    /// `||X - T|| / ||X||`.
    pub relative_error: f64,
    /// Errors below this cannot be told from it: rounding of the measurement.
    pub floor: f64,
    /// How it was measured.
    pub measured: Measured,
    /// `||X||`.
    pub norm: f64,
    /// `||T||`.
    pub train_norm: f64,
    /// `<X, T>`.
    pub inner: f64,
}

impl Verified {
    /// Tells whether the error keeps `bound`, as far as it can be told.
    pub fn keeps(&self, bound: f64) -> bool {
        self.relative_error <= bound * (1.0 + 1e-12) || self.relative_error <= self.floor
    }
}

/// Measures the error of `train`.
///
/// Time: one TTTc, `O(sum I_k r^3)`, and near a perfect fit `O(cells r)`.
///
/// # Errors
///
/// [`SolverError::Core`] if the train does not fit the tensor.
pub fn verify<V: Value>(kernels: &mut Kernels<V>, train: &Train) -> Result<Verified, SolverError> {
    let last = train.order() - 1;
    let (environment, _) = kernels.environment(LeftOut::core(last), train)?;
    let inner: f64 = environment.iter().zip(&train.cores()[last]).map(|(z, g)| z * g).sum();
    let (square, train_square) = (kernels.norm_squared(), train.norm_squared());
    let residual = (square + train_square - 2.0 * inner).max(0.0);
    let epsilon = if V::BYTES == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let floor = error_floor(epsilon);
    let mut verified = Verified {
        relative_error: (residual / square).sqrt(),
        floor,
        measured: Measured::InnerProduct,
        norm: square.sqrt(),
        train_norm: train_square.sqrt(),
        inner,
    };
    let cells = train.extents().iter().fold(1_u64, |n, &extent| n.saturating_mul(extent));
    if verified.relative_error < 10.0 * floor && cells <= CELLS {
        let mut list = kernels.trees()[0].1.to_coo();
        list.sort(&ModeOrder::natural(train.order()))?;
        verified.relative_error = (by_cells(&list, train) / square).sqrt();
        verified.measured = Measured::Cells;
        // Each cell is a sum of a few products near it in size.
        verified.floor = 16.0 * f64::EPSILON;
    }
    Ok(verified)
}

/// Returns `||X - T||^2` for a list in natural order, summed over all cells.
fn by_cells<V: Value>(list: &Coo<V>, train: &Train) -> f64 {
    let extents = list.extents();
    let product = |modes: Range<usize>| extents[modes].iter().product::<u64>() as usize;
    let order = extents.len();
    let sides = |k: &usize| product(0..*k) + product(*k..order);
    let cut = (1..order).min_by_key(sides).unwrap_or(1);
    let (head, tail) = (train.head(cut), train.tail(cut));
    let rows = (BLOCK / tail.ncols().max(1)).max(1);
    let place = |modes: Range<usize>, entry: usize| {
        modes.fold(0, |at, m| at * extents[m] as usize + list.coords(m).get(entry) as usize)
    };
    let first_of = |row: usize| first(list.nnz(), |entry| place(0..cut, entry) >= row);
    let block = |number: usize| {
        let (from, to) = (number * rows, head.nrows().min((number + 1) * rows));
        let mut cells: Array2<f64> = head.slice(s![from..to, ..]).dot(&tail);
        for entry in first_of(from)..first_of(to) {
            let at = (place(0..cut, entry) - from, place(cut..order, entry));
            cells[at] -= list.values()[entry].to_f64();
        }
        cells.iter().map(|x| x * x).sum::<f64>()
    };
    let blocks: Vec<f64> = (0..head.nrows().div_ceil(rows)).into_par_iter().map(block).collect();
    blocks.iter().sum()
}

/// Returns the first of `0..count` for which `test` holds, given that it holds for all later ones.
fn first(count: usize, test: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if test(middle) { high = middle } else { low = middle + 1 }
    }
    low
}
