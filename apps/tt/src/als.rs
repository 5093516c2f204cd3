//! One core at a time, the ranks as they are.
//!
//! With the centre at core `k` all other cores are orthonormal, and the core for which
//! `||X - T||` is least is the environment itself: the tensor times all other cores.  So an update
//! is one TTTc and one QR that moves the centre, nothing is solved, and the error never grows:
//!
//! ```text
//! G_k <- Z_k,     ||X - T||^2 = ||X||^2 - ||Z_k||^2
//! ```
//!
//! Near a perfect fit, where the difference cancels, the error is measured at the cells ([`crate::verify`]).
//!
//! A sweep goes from the first core to the last and back, `2 N - 2` updates.  Source: Holtz,
//! Rohwedder, Schneider, "The Alternating Linear Scheme for Tensor Optimization in the Tensor Train
//! Format", SIAM J. Sci. Comput. 34, 2012, section 3, for the identity as operator.

use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::memory;
use decompose_core::error::CoreError;
use decompose_formats::Value;
use ndarray::{Array3, Ix3};

use crate::kernels::{Kernels, LeftOut};
use crate::state::{Run, Seconds};
use crate::verify::relative_error;

/// Runs one sweep; the centre is at the first core before and behind.
pub(crate) fn sweep<V: Value>(kernels: &mut Kernels<V>, run: &mut Run) -> Result<(), SolverError> {
    let start = Instant::now();
    let order = kernels.extents().len();
    let mut seconds = Seconds { contract: vec![0.0; order], dense: 0.0 };
    // A start is no environment yet; the end of a sweep is.
    let from = usize::from(run.state.standing.iteration > 0);
    if from == 1 {
        run.state.train.make_left_orthogonal(0);
    }
    for k in from..order - 1 {
        update(kernels, run, k, &mut seconds)?;
        run.state.train.make_left_orthogonal(k);
    }
    for k in (1..order).rev() {
        update(kernels, run, k, &mut seconds)?;
        run.state.train.make_right_orthogonal(k);
    }
    update(kernels, run, 0, &mut seconds)?;
    let energy = run.state.train.cores()[0].iter().map(|x| x * x).sum();
    let error = relative_error(kernels, &run.state.train, energy)?;
    seconds.dense = start.elapsed().as_secs_f64() - seconds.contract.iter().sum::<f64>();
    run.end_sweep(error, seconds, start);
    Ok(())
}

/// Makes the centre core the environment.
fn update<V: Value>(
    kernels: &mut Kernels<V>,
    run: &mut Run,
    k: usize,
    seconds: &mut Seconds,
) -> Result<(), SolverError> {
    let core = run.state.train.cores()[k].len() as u64 * 8;
    // The environment, and the core made orthogonal: itself, its copy, factors and vectors.
    let bytes = kernels.environment_bytes(LeftOut::core(k), &run.state.train)?.max(4 * core);
    memory::foresee(bytes, || format!("the environment of core {}", k + 1), "lower the ranks")?;
    let (environment, kernel) = kernels.environment(LeftOut::core(k), &run.state.train)?;
    seconds.contract[k] += kernel;
    if environment.iter().any(|x| !x.is_finite()) {
        return Err(SolverError::overflow(format!("core {}", k + 1)));
    }
    let core: Array3<f64> = environment
        .into_dimensionality::<Ix3>()
        .map_err(|error| CoreError::Internal(error.to_string()))?;
    run.state.train.set_core(k, core);
    Ok(())
}
