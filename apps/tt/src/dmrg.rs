//! Two neighbouring cores at a time, which lets the rank between them change.
//!
//! With the centre at the bond `k` the best pair of cores is the tensor times all others, `W(a, i,
//! j, b)`; its truncated singular value decomposition makes two cores of it, with as many values
//! as the bound on the error asks for:
//!
//! ```text
//! W (r_(k-1) I_k x I_(k+1) r_(k+1)) ~ U diag(s) V^T,      dropped norm <= eps / sqrt(N - 1) ||X||
//! ```
//!
//! A sweep goes from the first bond to the last and back.  Source: White, Phys. Rev. B 48, 1993;
//! Holtz, Rohwedder, Schneider 2012, section 4 (modified alternating linear scheme).
//!
//! The train is a projection of the tensor, so that `||X||^2 - ||W||^2` is what the other bonds miss.
//! If that alone breaks the bound, no truncation here could mend it: the rank then may double, so
//! that the next bonds see more of the tensor, and otherwise no more is dropped than what the bound
//! leaves.  Without that the truncations of neighbours hold each other in place.
//!
//! `W` is formed whole: `r I_k I_(k+1) r` numbers, checked against the memory limit at each bond.

use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::machine::size;
use decompose_common::memory;
use decompose_core::error::CoreError;
use decompose_formats::Value;
use ndarray::ArrayView2;

use crate::kernels::{Kernels, LeftOut};
use crate::spectrum::{Accuracy, Split, split, split_bytes};
use crate::state::{Run, Seconds};
use crate::train::{Cut, core_of};
use crate::verify::relative_error;

/// What to do about a pair that does not fit.
const REMEDY: &str = "use the method als, another order of the modes, or lower ranks";

/// What a sweep is to reach.
pub(crate) struct Goal<'a> {
    /// The bound on the relative error.
    pub(crate) bound: Option<f64>,
    /// The cut of each bond.
    pub(crate) cuts: &'a [Cut],
    /// The most bytes of a pair of cores.
    pub(crate) memory: Option<u64>,
    /// Relative squares below this are rounding.
    pub(crate) rounding: f64,
}

impl Goal<'_> {
    /// Returns the cut of bond `k` of rank `rank` where a part `missed` of the square of the
    /// tensor's norm `norm` lies outside of the other cores.
    fn cut(&self, k: usize, rank: usize, missed: f64, norm: f64) -> Cut {
        let Some(bound) = self.bound else { return self.cuts[k] };
        let missed = if missed <= self.rounding { 0.0 } else { missed };
        let left = bound * bound - missed;
        if left <= 0.0 {
            return Cut { least: 2 * rank, ..self.cuts[k] };
        }
        Cut { tail: self.cuts[k].tail.min(left.sqrt() * norm), ..self.cuts[k] }
    }
}

/// Runs one sweep; the centre is at the first core before and behind.
pub(crate) fn sweep<V: Value>(
    kernels: &mut Kernels<V>,
    run: &mut Run,
    goal: &Goal<'_>,
) -> Result<(), SolverError> {
    let start = Instant::now();
    let mut seconds = Seconds { contract: vec![0.0; goal.cuts.len()], dense: 0.0 };
    let (last, ranks) = (goal.cuts.len() - 1, run.state.train.ranks());
    for k in 0..last {
        let split = decompose(kernels, run, k, goal, &mut seconds)?;
        let weighted = split.weighted_right();
        put(run, k, split.left, weighted);
    }
    let mut energy = 0.0;
    for k in (0..=last).rev() {
        let split = decompose(kernels, run, k, goal, &mut seconds)?;
        energy = split.energy();
        put(run, k, split.weighted_left(), split.right);
    }
    let error = relative_error(kernels, &run.state.train, energy)?;
    seconds.dense = start.elapsed().as_secs_f64() - seconds.contract.iter().sum::<f64>();
    run.state.ranks_changed = run.state.train.ranks() != ranks;
    run.end_sweep(error, seconds, start);
    Ok(())
}

/// Decomposes the tensor times all cores but `k` and the next.
fn decompose<V: Value>(
    kernels: &mut Kernels<V>,
    run: &Run,
    k: usize,
    goal: &Goal<'_>,
    seconds: &mut Seconds,
) -> Result<Split, SolverError> {
    let cores = run.state.train.cores();
    let (left, first, rank) = cores[k].dim();
    let (_, second, right) = cores[k + 1].dim();
    let (rows, cols) = (left * first, second * right);
    let what = || format!("the pair of cores {} and {}, {rows} x {cols},", k + 1, k + 2);
    let formed = kernels.environment_bytes(LeftOut::pair(k), &run.state.train)?;
    let accuracy = Accuracy::choose(rows, cols, &goal.cuts[k], run.norm_squared.sqrt());
    let bytes = formed.max(pair_bytes(rows as u64, cols as u64, goal.cuts[k].max_rank, accuracy));
    if let Some(limit) = goal.memory.filter(|&limit| bytes > limit) {
        let (need, limit) = (size(bytes), format!("{} may be used", size(limit)));
        return Err(SolverError::Memory { what: what(), need, limit, remedy: REMEDY });
    }
    memory::foresee(bytes, what, REMEDY)?;
    let (pair, kernel) = kernels.environment(LeftOut::pair(k), &run.state.train)?;
    seconds.contract[k] += kernel;
    if pair.iter().any(|x| !x.is_finite()) {
        return Err(SolverError::overflow(format!("core {}", k + 1)));
    }
    let numbers = pair.as_slice().unwrap_or(&[]);
    let matrix = ArrayView2::from_shape((rows, cols), numbers)
        .map_err(|error| CoreError::Internal(error.to_string()))?;
    let energy: f64 = numbers.iter().map(|x| x * x).sum();
    let missed = 1.0 - energy / run.norm_squared;
    Ok(split(matrix, &goal.cut(k, rank, missed, run.norm_squared.sqrt()))?)
}

/// Returns the bytes in which a pair of cores of `rows x cols` numbers is decomposed to `rank` vectors; saturates.
pub(crate) fn bytes_of_pair(rows: u64, cols: u64, rank: u64) -> u64 {
    let fits = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let cut = Cut::at(fits(rank));
    pair_bytes(rows, cols, cut.max_rank, Accuracy::choose(fits(rows), fits(cols), &cut, 1.0))
}

/// Returns the bytes in which a pair of `rows x cols` numbers is decomposed: itself, and what the split of it
/// takes.
fn pair_bytes(rows: u64, cols: u64, rank: usize, accuracy: Accuracy) -> u64 {
    let own = rows.saturating_mul(cols).saturating_mul(8);
    own.saturating_add(split_bytes(rows, cols, rank as u64, accuracy))
}

/// Puts the two halves of a pair in the place of cores `k` and `k + 1`.
fn put(run: &mut Run, k: usize, left: ndarray::Array2<f64>, right: ndarray::Array2<f64>) {
    let train = &mut run.state.train;
    let (before, first, _) = train.cores()[k].dim();
    let (_, second, behind) = train.cores()[k + 1].dim();
    let rank = left.ncols();
    train.set_core(k, core_of(left, (before, first, rank)));
    train.set_core(k + 1, core_of(right, (rank, second, behind)));
}
