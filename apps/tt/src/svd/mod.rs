//! TT-SVD of a sparse tensor, without making it dense.
//!
//! The classical algorithm splits the unfolding `X_(1)` (`I_1 x I_2 .. I_N`) at its leading singular
//! vectors, `X_(1) ~ G_1 Y`, folds `Y` to `r_1 I_2 x I_3 .. I_N` and goes on (Oseledets 2011,
//! algorithm 1).  Here the tensor is a tree rooted at the *last* mode: the nodes of a level are the
//! columns of an unfolding that are not empty, and the children of a node are the non-empty rows
//! of that column.  `Y` is kept as a *payload*, `r_k` numbers a node:
//!
//! ```text
//! payload(node) = sum over its children  G_k[:, i_k(child), :]^T payload(child)
//! ```
//!
//! so a step costs `O(nodes r_(k-1) r_k)` and the memory of the payloads, whatever the extents; only
//! the singular vectors of the compressed unfolding, of `m = r_(k-1) * (used coordinates)` rows and
//! one column a node, need dense matrices: of `m x m` if it has more columns than rows (built
//! column block by column block), whole otherwise.  Exact up to rounding, or with singular values
//! below 3e-8 of the largest unresolved where the matrix is so large that its Gram matrix is taken.
//!
//! That the columns, not the cells, of the unfoldings matter for sparse data is from Li, Yu,
//! Batselier, "Faster Tensor Train Decomposition for Sparse Data", J. Comput. Appl. Math. 405, 2022;
//! they begin with an exact train of as many bonds as fibres and round it, which this spares.

mod unfolding;

use std::cmp::Reverse;
use std::ops::ControlFlow;

use decompose_common::SolverError;
use decompose_common::machine::size;
use decompose_common::memory;
use decompose_formats::{Csf, ModeOrder, Value};
use ndarray::{Array2, Array3, s};

use crate::spectrum::Accuracy;
use crate::svd::unfolding::{Unfolding, matrix_bytes as matrix_bytes_of};
use crate::train::{Bond, Cut, Train};

/// Returns the most bytes of dense matrices that a step of [`tt_svd`] works in, for an unfolding of
/// `rows x columns` that are not empty.
pub fn matrix_bytes(rows: u64, columns: u64) -> u64 {
    let of = |accuracy| matrix_bytes_of(rows, columns, accuracy);
    let fits = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    // A coarse bound allows either way for large matrices, a fine one needs the exact way.
    let coarse = Accuracy::choose(fits(rows), fits(columns), &Cut::at(1), 1.0);
    of(Accuracy::Exact).max(of(coarse))
}

/// Called after each bond with its number, from 0; `Break` cuts all further bonds to rank 1.
pub type BondObserver<'a> = dyn FnMut(usize, &Bond) -> ControlFlow<()> + 'a;

/// What a decomposition found.
pub struct TtSvd {
    /// The train; all cores but the last are left-orthogonal.
    pub train: Train,
    /// What was found at each bond.
    pub bonds: Vec<Bond>,
    /// Whether the observer broke off.
    pub interrupted: bool,
}

/// Returns the order of the levels that the tree of [`tt_svd`] must have: the last mode first.
pub fn tree_order(order: usize) -> ModeOrder {
    ModeOrder::by_key(order, |&mode| Reverse(mode))
}

/// Decomposes the tensor stored as `tree`, its modes in train order, by one cut a bond.
///
/// `||X - T||^2` is at most the sum of the squares of [`Bond::dropped`].  `limit` bounds the bytes
/// of the dense matrices of a step.
///
/// # Errors
///
/// [`SolverError::Memory`] if a step does not keep the bound; [`SolverError::Common`] if a number is not
/// finite; [`SolverError::Config`] if the tree has other or fused levels.
///
/// # Panics
///
/// If there is not one cut a bond.
pub fn tt_svd<V: Value>(
    tree: &Csf<V>,
    cuts: &[Cut],
    limit: Option<u64>,
    observer: &mut BondObserver<'_>,
) -> Result<TtSvd, SolverError> {
    let order = tree.levels().len();
    assert_eq!(cuts.len() + 1, order, "one cut a bond");
    if *tree.mode_order() != tree_order(order) || tree.fused() != 1 {
        let why = format!("TT-SVD walks plain trees of the order {}", tree_order(order));
        return Err(SolverError::Config(why));
    }
    let norm = tree.values().iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>().sqrt();
    let mut payload: Vec<f64> = tree.values().iter().map(|x| x.to_f64()).collect();
    let mut width = 1;
    let (mut cores, mut bonds, mut interrupted) = (Vec::with_capacity(order), Vec::new(), false);
    for (k, cut) in cuts.iter().enumerate() {
        let cut = Cut { max_rank: if interrupted { 1 } else { cut.max_rank }, ..*cut };
        let unfolding = Unfolding::new(tree, k, &payload, width);
        let accuracy = check(&unfolding, &cut, norm, limit, k)?;
        let (spectrum, vectors) = unfolding.left_vectors(accuracy)?;
        let rank = cut.rank(&spectrum, accuracy.noise());
        let projected = unfolding.projected_bytes(rank);
        memory::foresee(projected, || format!("rank {rank} at bond {}", k + 1), REMEDY)?;
        let kept = vectors.slice(s![.., ..rank]).as_standard_layout().into_owned();
        let next = unfolding.project(&kept);
        cores.push(unfolding.core(&kept));
        (payload, width) = (next, rank);
        bonds.push(Bond { spectrum, rank });
        interrupted |= observer(k, &bonds[k]) == ControlFlow::Break(());
    }
    cores.push(last_core(tree, &payload, width));
    Ok(TtSvd { train: Train::new(cores)?, bonds, interrupted })
}

/// The payloads of the roots, as the last core.
fn last_core<V: Value>(tree: &Csf<V>, payload: &[f64], width: usize) -> Array3<f64> {
    let extent = tree.extents()[tree.extents().len() - 1] as usize;
    let mut core = Array3::zeros((width, extent, 1));
    for (i, numbers) in tree.levels()[0].coords.iter().zip(payload.chunks_exact(width)) {
        numbers.iter().enumerate().for_each(|(a, &x)| core[(a, i as usize, 0)] = x);
    }
    core
}

/// Chooses how the singular vectors of a step are computed, and refuses one that does not fit.
fn check<V: Value>(
    unfolding: &Unfolding<'_, V>,
    cut: &Cut,
    norm: f64,
    limit: Option<u64>,
    k: usize,
) -> Result<Accuracy, SolverError> {
    let (m, n) = (unfolding.rows(), unfolding.columns());
    let accuracy = Accuracy::choose(m, n, cut, norm);
    let bytes = matrix_bytes_of(m as u64, n as u64, accuracy);
    let what = || format!("the unfolding at bond {}, {m} x {n} without empty rows,", k + 1);
    if let Some(limit) = limit.filter(|&limit| bytes > limit) {
        let (need, limit) = (size(bytes), format!("{} may be used", size(limit)));
        return Err(SolverError::Memory { what: what(), need, limit, remedy: REMEDY });
    }
    memory::foresee(bytes, what, REMEDY)?;
    Ok(accuracy)
}

/// What to do about a step that does not fit.
const REMEDY: &str = "use the method als or dmrg, another order of the modes, or lower ranks";

/// A matrix of singular vectors and the singular values, falling.
type Vectors = (Vec<f64>, Array2<f64>);
