//! The named kernels of tensor decomposition, for any order, as expressions.

use crate::einsum::{Access, Expr, Index};

/// The letters of the modes of a sparse tensor, in order; `r` is kept for the rank.
const MODE_LETTERS: &str = "ijklmnopqstuvwxyzabcdefgh";

/// The highest order of a named kernel.
pub const MAX_ORDER: usize = MODE_LETTERS.len();

/// Returns the index of `mode` in the named kernels: `i`, `j`, `k`, ...
///
/// # Panics
///
/// If `mode` is not below [`MAX_ORDER`].
pub fn mode_index(mode: usize) -> Index {
    let letter = MODE_LETTERS.chars().nth(mode);
    letter.and_then(Index::new).expect("a mode below MAX_ORDER")
}

/// Returns the index of the rank in the named kernels: `r`.
///
/// # Panics
///
/// Never.
pub fn rank_index() -> Index {
    Index::new('r').expect("a letter")
}

/// Returns MTTKRP: `A1(i,r) = X(i,j,k) * A2(j,r) * A3(k,r)` for mode 0 of order 3.
///
/// Input 0 is the sparse tensor; input `p > 0` is the factor of the `p`-th mode other than `mode`.
/// A vector has no other modes: its one row of factors is `One(r)`, to be given as ones.
///
/// # Panics
///
/// If `mode < order` does not hold, or `order` exceeds [`MAX_ORDER`].
pub fn mttkrp(order: usize, mode: usize) -> Expr {
    assert!(mode < order && order <= MAX_ORDER, "mode {mode} of order {order}");
    let factor = |m: usize| Access {
        tensor: format!("A{}", m + 1),
        indices: vec![mode_index(m), rank_index()],
    };
    let tensor = Access { tensor: "X".to_owned(), indices: (0..order).map(mode_index).collect() };
    let mut inputs = vec![tensor];
    inputs.extend((0..order).filter(|&m| m != mode).map(factor));
    if order == 1 {
        inputs.push(Access { tensor: "One".to_owned(), indices: vec![rank_index()] });
    }
    Expr { output: factor(mode), inputs }
}
