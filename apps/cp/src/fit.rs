//! How far the model is from the tensor at the end of an iteration.
//!
//! ```text
//! ||X - M||^2 = ||X||^2 + ||M||^2 - 2 <X, M>
//! ```
//!
//! costs nothing, as the last update knows the inner product, but is a difference: rounding leaves
//!
//! ```text
//! eps (||X|| sum_r ||m_r|| + eps_double sum_rs |<m_r, m_s>|),      m_r the components of M
//! ```
//!
//! of it, with `eps` that of the kernels.  Near a perfect fit, and where components cancel each other, that is more
//! than the residual.  There the residual is measured at the cells, in double precision: see
//! [`decompose_common::residual`].

use decompose_common::SolverError;
use decompose_common::residual::{CELLS, CpChain, ModelSquare, residual};
use decompose_core::sweep::MttkrpSweep;
use decompose_formats::{Panels, Value};
use ndarray::Zip;

use crate::solve::Run;
use crate::state::State;

/// Roundings of the largest term that a sum over non-zeros may be off by.
const ROUNDINGS: f64 = 32.0;
/// A residual is measured where it is below so many times what rounding leaves of the difference: above, the
/// relative error is known to 3 %.
const DOUBTFUL: f64 = 16.0;

/// Returns `||X - M|| / ||X||` after an iteration that ended with `<X, M>`.
pub(crate) fn relative_error<V: Value>(
    sweep: &dyn MttkrpSweep<V>,
    run: &mut Run<V>,
    inner: f64,
) -> Result<f64, SolverError> {
    let (norm_squared, known) = (run.norm_squared, squares(&run.state));
    let difference = norm_squared + known.square.norm - 2.0 * inner;
    let cross = norm_squared.sqrt() * known.components;
    let rounding = V::EPSILON * cross + f64::EPSILON * (norm_squared + known.square.terms);
    if difference > DOUBTFUL * ROUNDINGS * rounding {
        return Ok((difference / norm_squared).sqrt());
    }
    let list = match run.entries.take() {
        Some(list) => list,
        None => sweep.entries()?,
    };
    let measured = residual(&list, &chain(&run.state), known.square, CELLS);
    run.entries = Some(list);
    Ok(measured.relative_error(norm_squared))
}

/// What the Gram matrices tell of the model.
struct Known {
    square: ModelSquare,
    /// The sum of the norms of the components.
    components: f64,
}

fn squares<V: Value>(state: &State<V>) -> Known {
    let products = state.hadamard(|_| true);
    let weights = &state.weights;
    let (mut norm, mut terms) = (0.0, 0.0);
    for (row, weight) in products.rows().into_iter().zip(weights) {
        norm += weight * row.dot(weights);
        terms += weight.abs() * Zip::from(row).and(weights).fold(0.0, |s, p, w| s + (p * w).abs());
    }
    let lengths = products.diag().mapv(f64::sqrt);
    let components = weights.iter().zip(&lengths).map(|(weight, length)| weight.abs() * length);
    Known { square: ModelSquare { norm, terms }, components: components.sum() }
}

fn chain<V: Value>(state: &State<V>) -> CpChain<'_, V> {
    CpChain {
        weights: state.stored_weights().to_vec(),
        factors: state.factors.iter().map(Panels::parts).collect(),
    }
}
