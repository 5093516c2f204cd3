//! Nonnegative Tucker: block coordinate descent on factors and core, all nonnegative.
//!
//! ```text
//! A_n:  rows  min_{a >= 0} a^T Q a - 2 c^T a      C = Y_(n) G_(n)^T,  Q = G_(n) (x A_m^T A_m) G_(n)^T
//! G:    G <- G * N / D                            N = X x_1 A_1^T ... x_N A_N^T,  D = G x_n A_n^T A_n
//! ||X - M||^2 = ||X||^2 - 2 <G, N> + <G, D>
//! ```
//!
//! The rows are solved by hierarchical alternating least squares (Cichocki, Phan, IEICE Trans.
//! E92-A, 2009), the core by multiplicative updates (Lee, Seung, 2001; Kim, Choi, "Nonnegative
//! Tucker Decomposition", CVPR 2007): neither raises the error.  `C` (`I_n x R_n`) comes from one
//! scheduled kernel, so that `Y_(n)` is never formed.

use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::history::Detail;
use decompose_common::linalg::{self, NonNegative, RowRule, matmul};
use decompose_common::rng::MatrixRng;
use decompose_formats::{Matrix, Value};
use ndarray::{Array1, Array2, ArrayD, IxDyn};

use crate::dense::{mode_product, unfold};
use crate::engine::Engine;
use crate::fit::{Difference, relative_error};
use crate::state::State;

/// Multiplicative updates of the core an iteration: they cost nothing beside the kernels.
const CORE_UPDATES: usize = 10;

/// Seconds of the steps of one iteration.
pub(crate) fn details(order: usize) -> Vec<Detail> {
    record(vec![0.0; order], vec![0.0; order], 0.0, 0.0)
}

fn record(ttmc: Vec<f64>, rows: Vec<f64>, core: f64, other: f64) -> Vec<Detail> {
    vec![
        Detail::seconds_by_mode("ttmc", ttmc),
        Detail::seconds_by_mode("rows", rows),
        Detail::seconds("core", core),
        Detail::seconds("other", other),
    ]
}

/// Makes a start from factors: their absolute values, with columns of 2-norm 1, and a core uniform
/// in `[0, 1)` from the seed, or the absolute values of a given one.
pub(crate) fn begin<V: Value>(
    mut factors: Vec<Matrix<V>>,
    core: Option<ArrayD<f64>>,
    seed: u64,
) -> State<V> {
    let ranks: Vec<usize> = factors.iter().map(Matrix::cols).collect();
    let rng = MatrixRng::new(seed, factors.len() as u64);
    let mut at = 0;
    let mut core = core.map(|core| core.mapv(f64::abs)).unwrap_or_else(|| {
        ArrayD::from_shape_simple_fn(IxDyn(&ranks), || {
            at += 1;
            rng.uniform(0, at)
        })
    });
    for (mode, factor) in factors.iter_mut().enumerate() {
        for value in factor.as_mut_slice() {
            *value = V::from_f64(value.to_f64().abs());
        }
        let gram = linalg::gram(factor);
        normalise(factor, gram, &mut core, mode);
    }
    State::new(factors, core)
}

/// Runs one iteration: an update of each factor, of the core, the fit.
pub(crate) fn sweep<V: Value>(
    engine: &mut Engine<V>,
    state: &mut State<V>,
) -> Result<Vec<Detail>, SolverError> {
    let begun = Instant::now();
    let order = state.factors.len();
    let (mut ttmc, mut rows) = (vec![0.0; order], vec![0.0; order]);
    let mut grams: Vec<Array2<f64>> = state.factors.iter().map(linalg::gram).collect();
    for mode in 0..order {
        let start = Instant::now();
        let core = state.core.mapv(V::from_f64);
        let mut factor = std::mem::replace(&mut state.factors[mode], Matrix::zeros(0, 0)?);
        let previous = factor.as_slice().to_vec();
        let ready = Instant::now();
        let computed = engine.with_core(mode, &state.factors, &core, &mut factor);
        ttmc[mode] = ready.elapsed().as_secs_f64();
        computed?;
        let normal = normal_matrix(&state.core, &grams, mode);
        let ones = vec![1.0; factor.cols()];
        let rule = NonNegative {
            gram: normal.view(),
            rhs_scale: &ones,
            start: vec![&previous],
            start_scale: &ones,
        };
        let gram = linalg::update_rows(&mut factor, &RowRule::NonNegative(rule)).gram;
        if gram.iter().any(|g| !g.is_finite()) {
            return Err(SolverError::factor_overflow(state.standing.iteration + 1, mode + 1));
        }
        grams[mode] = normalise(&mut factor, gram, &mut state.core, mode);
        state.factors[mode] = factor;
        rows[mode] = start.elapsed().as_secs_f64() - ttmc[mode];
    }
    let start = Instant::now();
    let projected = engine.all_modes(&state.factors)?.mapv(V::to_f64);
    let (square, cross) = update_core(&mut state.core, &projected, &grams);
    let norm_squared = engine.norm_squared();
    let difference = Difference {
        value: norm_squared + square - 2.0 * cross,
        terms: norm_squared + square + 2.0 * cross,
    };
    let error = relative_error(engine, state, &difference)?;
    state.standing.advance(error);
    let core = start.elapsed().as_secs_f64();
    let inside: f64 = ttmc.iter().chain(&rows).sum::<f64>() + core;
    Ok(record(ttmc, rows, core, (begun.elapsed().as_secs_f64() - inside).max(0.0)))
}

/// Returns `Q`, `R_n x R_n`.
fn normal_matrix(core: &ArrayD<f64>, grams: &[Array2<f64>], mode: usize) -> Array2<f64> {
    let others = (0..core.ndim()).filter(|&m| m != mode);
    let weighted = others.fold(core.clone(), |c, m| mode_product(&c, m, grams[m].view()));
    matmul(unfold(&weighted, mode).view(), unfold(core, mode).t())
}

/// Scales the columns of a factor to 2-norm 1 and the core with their norms; returns the new Gram
/// matrix.  A zero column stays.
fn normalise<V: Value>(
    factor: &mut Matrix<V>,
    gram: Array2<f64>,
    core: &mut ArrayD<f64>,
    mode: usize,
) -> Array2<f64> {
    let norms = gram.diag().mapv(|g| if g > 0.0 { g.sqrt() } else { 1.0 });
    *core = mode_product(core, mode, Array2::from_diag(&norms).view());
    let inverse: Array1<f64> = norms.mapv(f64::recip);
    linalg::update_rows(factor, &RowRule::Multiply(Array2::from_diag(&inverse).view())).gram
}

/// Improves the core; returns `<G, D>` and `<G, N>`, which are not negative.
fn update_core(
    core: &mut ArrayD<f64>,
    projected: &ArrayD<f64>,
    grams: &[Array2<f64>],
) -> (f64, f64) {
    let image = |core: &ArrayD<f64>| {
        let modes = grams.iter().enumerate();
        modes.fold(core.clone(), |c, (mode, gram)| mode_product(&c, mode, gram.view()))
    };
    for _ in 0..CORE_UPDATES {
        let below = image(core);
        ndarray::Zip::from(&mut *core).and(projected).and(&below).for_each(|g, &n, &d| {
            *g = if d > 0.0 { *g * (n.max(0.0) / d) } else { 0.0 };
        });
    }
    let below = image(core);
    let product = |other: &ArrayD<f64>| core.iter().zip(other).map(|(g, x)| g * x).sum();
    (product(&below), product(projected))
}
