//! Higher-order orthogonal iteration, and the core of given factors.
//!
//! ```text
//! U_n <- R_n leading left singular vectors of Y_(n) = X_(n) (U_N x ... x U_1, without n)
//! G   <- U_N^T Y_(N)            after the last mode, folded
//! ||X - M||^2 = ||X||^2 - ||G||^2
//! ```
//!
//! Every update can only raise `||G||`.  Source: De Lathauwer, De Moor, Vandewalle, "On the Best
//! Rank-1 and Rank-(R1, ..., RN) Approximation of Higher-Order Tensors", SIAM J. Matrix Anal. Appl.
//! 21, 2000.

use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::history::Detail;
use decompose_formats::Value;

use crate::config::Method;
use crate::dense::{fold, square};
use crate::engine::Engine;
use crate::fit::{Difference, relative_error};
use crate::rows::WithCore;
use crate::state::State;
use crate::subspace::{self, Update};

/// Seconds of the steps of one iteration.
pub(crate) struct SweepSeconds {
    pub(crate) ttmc: Vec<f64>,
    pub(crate) subspace: Vec<f64>,
    pub(crate) other: f64,
}

impl SweepSeconds {
    pub(crate) fn zeros(order: usize) -> SweepSeconds {
        SweepSeconds { ttmc: vec![0.0; order], subspace: vec![0.0; order], other: 0.0 }
    }

    pub(crate) fn details(self) -> Vec<Detail> {
        vec![
            Detail::seconds_by_mode("ttmc", self.ttmc),
            Detail::seconds_by_mode("subspace", self.subspace),
            Detail::seconds("other", self.other),
        ]
    }
}

/// Runs one iteration: an update of each mode - of none for [`Method::Core`] - the core, the fit.
pub(crate) fn sweep<V: Value>(
    engine: &mut Engine<V>,
    state: &mut State<V>,
    method: Method,
    seed: u64,
) -> Result<Vec<Detail>, SolverError> {
    let begun = Instant::now();
    let order = state.factors.len();
    let last = order - 1;
    let mut steps = SweepSeconds::zeros(order);
    let modes = if method == Method::Core { last..order } else { 0..order };
    for mode in modes {
        let update = match method {
            Method::Core => subspace::core(engine, &mut state.factors, mode)?,
            _ => {
                let with_core = if mode == last { WithCore::Yes } else { WithCore::No };
                subspace::update(engine, &mut state.factors, mode, with_core, seed)?
            }
        };
        let Update { core, ttmc_seconds, subspace_seconds } = update;
        steps.ttmc[mode] = ttmc_seconds;
        steps.subspace[mode] = subspace_seconds;
        if let Some(core) = core {
            state.core = fold(core, mode, &engine.columns(mode), state.core.shape());
        }
    }
    let captured = square(&state.core);
    if !captured.is_finite() {
        return Err(SolverError::factor_overflow(state.standing.iteration + 1, order));
    }
    let norm_squared = engine.norm_squared();
    let difference = Difference { value: norm_squared - captured, terms: norm_squared + captured };
    let error = relative_error(engine, state, &difference)?;
    state.standing.advance(error);
    let inside: f64 = steps.ttmc.iter().chain(&steps.subspace).sum();
    steps.other = (begun.elapsed().as_secs_f64() - inside).max(0.0);
    Ok(steps.details())
}
