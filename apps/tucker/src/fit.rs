//! How far the model is from the tensor at the end of an iteration.
//!
//! Methods know `||X - M||^2` as a difference of squares, whose digits cancel near a perfect fit.  Where rounding may
//! have made it up, it is measured at the cells, in double precision: see [`decompose_common::residual`].

use decompose_common::SolverError;
use decompose_common::model::tucker_norm_squared;
use decompose_common::residual::{CELLS, ModelSquare, TuckerChain, residual};
use decompose_formats::Value;

use crate::engine::Engine;
use crate::state::State;

/// Roundings of the terms that the difference may be off by: those of sums over non-zeros, and of columns that are
/// orthonormal to rounding.
const ROUNDINGS: f64 = 32.0;
/// A residual is measured where it is below so many times what rounding leaves of the difference: above, the
/// relative error is known to 3 %.
const DOUBTFUL: f64 = 16.0;

/// `||X - M||^2` as a difference of squares.
pub(crate) struct Difference {
    /// The difference.
    pub(crate) value: f64,
    /// The sum of the magnitudes of its terms.
    pub(crate) terms: f64,
}

/// Returns `||X - M|| / ||X||` of a model with this difference of squares.
pub(crate) fn relative_error<V: Value>(
    engine: &mut Engine<V>,
    state: &State<V>,
    difference: &Difference,
) -> Result<f64, SolverError> {
    let norm_squared = engine.norm_squared();
    if difference.value > DOUBTFUL * ROUNDINGS * V::EPSILON * difference.terms {
        return Ok((difference.value / norm_squared).sqrt());
    }
    let norm = tucker_norm_squared(&state.core, &state.factors);
    // Terms of a contraction with Gram matrices, which are the identity to rounding or not negative.
    let square = ModelSquare { norm, terms: norm };
    let model = TuckerChain { core: &state.core, factors: &state.factors };
    Ok(residual(engine.entries()?, &model, square, CELLS).relative_error(norm_squared))
}
