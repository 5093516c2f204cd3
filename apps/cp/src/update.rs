//! The update of one factor: normal equations, MTTKRP, one pass over the rows, normalisation.
//!
//! In the notation of [`crate::state`], with `p = prod_{m != n} s_m` and the columns of the new
//! factor prescaled by `1/t`:
//!
//! ```text
//! B_n <- (X_(n) B_{m != n}) W,       W = diag(1/p) Y^-1 diag(1/t)
//! lambda = t * norms of the columns of B_n,       s_n = lambda / t
//! ```
//!
//! `t` is the weight of the latest update, rounded to a power of two: it keeps the numbers in
//! memory of order one, so that single precision does not overflow, at no cost.
//!
//! The norm is the 2-norm in the first iteration and `max(1, largest entry)` in later ones, as in
//! the Tensor Toolbox.  A component that died (a zero column) gets weight 0 and scale 1.

use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::linalg::{self, NonNegative, RowRule, RowSums};
use decompose_core::sweep::MttkrpSweep;
use decompose_formats::Value;
use ndarray::{Array1, Array2, Zip};

use crate::config::CpConfig;
use crate::outcome::{Deficiency, GramReport};
use crate::state::State;

/// Where an update spends its seconds, and `<X, M>` after it.
pub(crate) struct ModeUpdate {
    pub(crate) mttkrp_seconds: f64,
    pub(crate) dense_seconds: f64,
    pub(crate) inner: f64,
}

/// Updates the factor of `mode`; `previous` keeps the old rows where the mode is non-negative.
pub(crate) fn update_mode<V: Value>(
    sweep: &mut dyn MttkrpSweep<V>,
    state: &mut State<V>,
    mode: usize,
    config: &CpConfig,
    previous: &mut Vec<Vec<V>>,
    report: &mut GramReport,
) -> Result<ModeUpdate, SolverError> {
    let start = Instant::now();
    let nonneg = config.nonneg.contains(mode);
    if nonneg {
        let parts = state.factors[mode].parts();
        previous.resize_with(parts.len(), Vec::new);
        for (previous, part) in previous.iter_mut().zip(parts) {
            previous.clear();
            previous.extend_from_slice(part.as_slice());
        }
    }
    let mut normal = state.hadamard(|m| m != mode);
    normal.diag_mut().mapv_inplace(|y| y + config.reg);
    let scaling = Scaling::of(state, mode);
    let prepared = Instant::now();
    // One thread inverts while the others begin with the kernel.
    let invert = || {
        let w = (!nonneg).then(|| multiplier::<V>(&normal, &scaling, report)).transpose();
        (w, prepared.elapsed().as_secs_f64() / rayon::current_num_threads() as f64)
    };
    let ((w, inverting), product) = rayon::join(invert, || sweep.mttkrp(mode, &mut state.factors));
    let w = w?;
    product?;
    let multiplied = Instant::now();
    let sums = match &w {
        Some(w) => {
            linalg::update_panels(state.factors[mode].parts_mut(), &RowRule::Multiply(w.view()))
        }
        None => pass_nonneg(state, mode, normal, &scaling, previous),
    };
    let inner = Zip::from(&sums.inner)
        .and(&scaling.column)
        .and(&scaling.others)
        .fold(0.0, |sum, inner, t, p| sum + inner * t / p);
    normalise(state, mode, &sums, &scaling.column);
    state.grams[mode] = sums.gram;
    if !inner.is_finite() || state.weights.iter().any(|weight| !weight.is_finite()) {
        return Err(SolverError::factor_overflow(state.standing.iteration + 1, mode + 1));
    }
    Ok(ModeUpdate {
        mttkrp_seconds: (multiplied - prepared).as_secs_f64() - inverting,
        dense_seconds: (prepared - start + multiplied.elapsed()).as_secs_f64() + inverting,
        inner,
    })
}

/// The scales that meet in an update.
struct Scaling {
    /// `p`: the product of the other factors' scales.
    others: Array1<f64>,
    /// `t`: the scale taken out of the new factor beforehand.
    column: Array1<f64>,
}

impl Scaling {
    fn of<V: Value>(state: &State<V>, mode: usize) -> Scaling {
        let others = state.scales.iter().enumerate().filter(|(m, _)| *m != mode);
        let ones = Array1::ones(state.weights.len());
        Scaling {
            others: others.fold(ones, |product, (_, scale)| product * scale),
            column: state.weights.mapv(power_of_two),
        }
    }
}

/// Returns the power of two nearest below `x` in magnitude of logarithm; 1 for 0.
fn power_of_two(x: f64) -> f64 {
    if x.is_normal() { x.abs().log2().round().exp2() } else { 1.0 }
}

/// Returns `W`, of the normal equations `Y`, for right-hand sides in the precision `V`.
fn multiplier<V: Value>(
    normal: &Array2<f64>,
    scaling: &Scaling,
    report: &mut GramReport,
) -> Result<Array2<f64>, SolverError> {
    let inverse = linalg::invert_spd(normal.view(), V::EPSILON)?;
    let full = inverse.rank == normal.nrows();
    let deficiency = if full { Deficiency::Regular } else { Deficiency::Singular };
    report.count(deficiency, inverse.condition, V::EPSILON);
    let mut w = inverse.matrix;
    let [others, column] = [&scaling.others, &scaling.column].map(|scale| scale.mapv(f64::recip));
    Zip::from(w.rows_mut()).and(&others).for_each(|row, other| {
        Zip::from(row).and(&column).for_each(|w, column| *w *= other * column);
    });
    Ok(w)
}

/// Runs the non-negative pass, in the unknown `b = a / t`.
fn pass_nonneg<V: Value>(
    state: &mut State<V>,
    mode: usize,
    mut normal: Array2<f64>,
    scaling: &Scaling,
    previous: &[Vec<V>],
) -> RowSums {
    let t = &scaling.column;
    normal.indexed_iter_mut().for_each(|((r, s), y)| *y *= t[r] * t[s]);
    let rhs_scale = t / &scaling.others;
    let start_scale = &state.weights / &(&state.scales[mode] * t);
    let rule = NonNegative {
        gram: normal.view(),
        rhs_scale: rhs_scale.as_slice().unwrap_or_default(),
        start: previous.iter().map(Vec::as_slice).collect(),
        start_scale: start_scale.as_slice().unwrap_or_default(),
    };
    linalg::update_panels(state.factors[mode].parts_mut(), &RowRule::NonNegative(rule))
}

/// Sets the weights and the scale of `mode` by the norms of the new columns.
fn normalise<V>(state: &mut State<V>, mode: usize, sums: &RowSums, t: &Array1<f64>) {
    let first = state.standing.iteration == 0;
    for r in 0..t.len() {
        let weight =
            if first { t[r] * sums.gram[(r, r)].sqrt() } else { (t[r] * sums.max_abs[r]).max(1.0) };
        state.weights[r] = weight;
        state.scales[mode][r] = if weight > 0.0 { weight / t[r] } else { 1.0 };
    }
}
