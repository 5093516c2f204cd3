//! The error of a train, measured on the tensor and not taken from the solver.
//!
//! ```text
//! ||X - T||^2 = ||X||^2 + ||T||^2 - 2 <X, T>,      <X, T> = <environment of the last core, core>
//! ```
//!
//! The environment is one TTTc over the non-zeros; `||T||` comes from the cores alone.  Near a
//! perfect fit the digits of the sum cancel: the error is known to 3e-8 in double precision, to
//! 7e-4 in single.  Where rounding may have made it up it is measured at the cells, in double precision and
//! without that difference: see [`decompose_common::residual`].

use decompose_common::SolverError;
use decompose_common::residual::{CELLS, ModelSquare, Residual, TrainChain, residual};
use decompose_formats::Value;

use crate::kernels::{Kernels, LeftOut};
use crate::train::Train;

pub use decompose_common::residual::Measured;

/// The most cells that are visited one by one at the end: half a second's work.
const MOST_CELLS: u64 = 1 << 26;
/// Roundings of the terms that a difference may be off by: those of sums over non-zeros.
const ROUNDINGS: f64 = 32.0;
/// An error is measured where its square is below so many times what rounding leaves of the difference.
const DOUBTFUL: f64 = 16.0;

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
    /// Tells whether the error keeps `bound`; `None` if both are below what can be measured.
    pub fn keeps(&self, bound: f64) -> Option<bool> {
        match self.relative_error <= self.floor && bound < self.floor {
            true => None,
            false => Some(self.relative_error <= bound * (1.0 + 1e-12)),
        }
    }
}

/// Measures the error of `train`.
///
/// Time: one TTTc, `O(sum I_k r^3)`, and near a perfect fit `O(cells r)`, of all cells or of those listed.
///
/// # Errors
///
/// [`SolverError::Core`] if the train does not fit the tensor.
pub fn verify<V: Value>(kernels: &mut Kernels<V>, train: &Train) -> Result<Verified, SolverError> {
    let last = train.order() - 1;
    let (environment, _) = kernels.environment(LeftOut::core(last), train)?;
    let inner: f64 = environment.iter().zip(&train.cores()[last]).map(|(z, g)| z * g).sum();
    let (square, train_square) = (kernels.norm_squared(), train.norm_squared());
    let difference = square + train_square - 2.0 * inner;
    let terms =
        V::EPSILON * 2.0 * (square * train_square).sqrt() + f64::EPSILON * (square + train_square);
    let floor = (ROUNDINGS * terms / square).sqrt();
    let (norm, train_norm) = (square.sqrt(), train_square.sqrt());
    if difference > DOUBTFUL * ROUNDINGS * terms {
        let (relative_error, measured) = ((difference / square).sqrt(), Measured::InnerProduct);
        return Ok(Verified { relative_error, floor, measured, norm, train_norm, inner });
    }
    let found = at_cells(kernels, train, MOST_CELLS)?;
    let floor = match found.measured {
        Measured::Entries => (found.rounding / square).sqrt(),
        // Each cell is a sum of a few products near it in size.
        Measured::Cells | Measured::InnerProduct => 16.0 * f64::EPSILON,
    };
    let (relative_error, measured) = (found.relative_error(square), found.measured);
    Ok(Verified { relative_error, floor, measured, norm, train_norm, inner })
}

/// Returns `||X - T|| / ||X||` of a train that projects the tensor, `||X||^2 - energy` its squared error, after a
/// sweep.
///
/// # Errors
///
/// If there is no memory.
pub(crate) fn relative_error<V: Value>(
    kernels: &mut Kernels<V>,
    train: &Train,
    energy: f64,
) -> Result<f64, SolverError> {
    let square = kernels.norm_squared();
    let difference = square - energy;
    if difference > DOUBTFUL * ROUNDINGS * V::EPSILON * (square + energy) {
        return Ok((difference / square).sqrt());
    }
    Ok(at_cells(kernels, train, CELLS)?.relative_error(square))
}

fn at_cells<V: Value>(
    kernels: &mut Kernels<V>,
    train: &Train,
    most_cells: u64,
) -> Result<Residual, SolverError> {
    let norm = train.norm_squared();
    // All cores but one are orthonormal: nothing cancels in the norm.
    let square = ModelSquare { norm, terms: norm };
    Ok(residual(kernels.entries()?, &TrainChain::new(train.cores()), square, most_cells))
}
