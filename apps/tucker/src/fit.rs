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

/// Returns `||X - M|| / ||X||` of a model whose residual `difference` was added up from `terms`, the sum of their
/// magnitudes.
pub(crate) fn relative_error<V: Value>(
    engine: &mut Engine<V>,
    state: &State<V>,
    (difference, terms): (f64, f64),
) -> Result<f64, SolverError> {
    let norm_squared = engine.norm_squared();
    if difference > DOUBTFUL * ROUNDINGS * V::EPSILON * terms {
        return Ok((difference / norm_squared).sqrt());
    }
    let norm = tucker_norm_squared(&state.core, &state.factors);
    // Terms of a contraction with Gram matrices, which are the identity to rounding or not negative.
    let square = ModelSquare { norm, terms: norm };
    let model = TuckerChain { core: &state.core, factors: &state.factors };
    Ok(residual(engine.entries()?, &model, square, CELLS).relative_error(norm_squared))
}
