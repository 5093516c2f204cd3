//! The named kernels of tensor decomposition, for any order, as expressions.
//!
//! ```text
//! mttkrp  A1(i,r)   = X(i,j,k) * A2(j,r) * A3(k,r)             CP; all modes but one
//! ttmc    Y(i,s,t)  = X(i,j,k) * U2(j,s) * U3(k,t)             Tucker; all modes but one, or all
//! tttp    S(i,j,k)  = X(i,j,k) * A1(i,r) * A2(j,r) * A3(k,r)   completion; order 2 is SDDMM
//! tttc    Z(a,j,b)  = X(i,j,k) * G1(i,a) * G3(b,k)             tensor train; but one core, or all
//! normal  N(i,r,R)  = X(i,j,k) * A2(j,r) * A3(k,r) * A2(j,R) * A3(k,R)   row-wise least squares
//! ttv     Y(i,k)    = X(i,j,k) * v(j)                          one mode with a vector
//! ttm     Y(i,r,k)  = X(i,j,k) * U(j,r)                        one mode with a matrix
//! spmv    y(i)      = X(i,j) * v(j)
//! spmm    Y(i,r)    = X(i,j) * B(j,r)
//! ```
//!
//! Input 0 is the sparse tensor everywhere; the dense inputs follow by mode.  [`parse`] finds a
//! kernel by its name, as `mttkrp:3:1`.
//! Source of the first four: Kanakagiri, Solomonik, SPAA 2024, section 2.3.

mod named;

use std::ops::Range;

use crate::einsum::{Access, Expr, Index};

pub use named::{KERNELS, ModeUse, NamedKernel, parse};

/// The letters of the modes of a sparse tensor, in order; `r` is kept for the rank.
const MODE_LETTERS: &str = "ijklmnopqstuvwxyzabcdefgh";

/// The highest order of a named kernel.
pub const MAX_ORDER: usize = MODE_LETTERS.len();

/// Up to this order modes are called `i` to `q`, which leaves `a` to `h` and `r` to `z` to ranks;
/// above it, ranks are capitals.
const SMALL_ORDER: usize = 9;

/// Returns the index of `mode` in the named kernels: `i`, `j`, `k`, ...
///
/// # Panics
///
/// If `mode` is not below [`MAX_ORDER`].
pub fn mode_index(mode: usize) -> Index {
    let letter = MODE_LETTERS.chars().nth(mode);
    letter.and_then(Index::new).expect("a mode below MAX_ORDER")
}

/// Returns the index of the rank in the named kernels with one rank: `r`.
///
/// # Panics
///
/// Never.
pub fn rank_index() -> Index {
    Index::new('r').expect("a letter")
}

/// Returns the index of the rank of `mode` in [`ttmc`]: `r`, `s`, `t`, ... up to order 9, above it
/// the capital of the mode's letter.
///
/// # Panics
///
/// If `mode < order <= MAX_ORDER` does not hold.
pub fn mode_rank_index(order: usize, mode: usize) -> Index {
    check(order, Some(mode));
    if order <= SMALL_ORDER {
        numbered('r', mode)
    } else {
        Index::new(mode_index(mode).letter().to_ascii_uppercase()).expect("a letter")
    }
}

/// Returns the index of the `bond`-th rank of [`tttc`], which joins the cores of the modes `bond`
/// and `bond + 1`: `a`, `b`, `c`, ... up to order 9, above it capitals.
///
/// # Panics
///
/// If `bond + 1 < order <= MAX_ORDER` does not hold.
pub fn bond_index(order: usize, bond: usize) -> Index {
    check(order, Some(bond + 1));
    numbered(if order <= SMALL_ORDER { 'a' } else { 'A' }, bond)
}

/// Returns MTTKRP: `A1(i,r) = X(i,j,k) * A2(j,r) * A3(k,r)` for mode 0 of order 3.
///
/// A vector has no other modes: its one row of factors is `One(r)`, to be given as ones.
///
/// # Panics
///
/// If `mode < order` does not hold, or `order` exceeds [`MAX_ORDER`].
pub fn mttkrp(order: usize, mode: usize) -> Expr {
    check(order, Some(mode));
    let mut inputs = vec![tensor(order)];
    inputs.extend((0..order).filter(|&m| m != mode).map(factor));
    if order == 1 {
        inputs.push(access("One", [rank_index()]));
    }
    Expr { output: factor(mode), inputs }
}

/// Returns TTMc: `Y(i,s,t) = X(i,j,k) * U2(j,s) * U3(k,t)` for mode 0 of order 3; without a mode
/// the Tucker core `Y(r,s,t)`.
///
/// # Panics
///
/// If `mode < order` does not hold, or `order` exceeds [`MAX_ORDER`].
pub fn ttmc(order: usize, mode: Option<usize>) -> Expr {
    check(order, mode);
    let others = || (0..order).filter(|&m| Some(m) != mode);
    let matrix =
        |m: usize| access(&format!("U{}", m + 1), [mode_index(m), mode_rank_index(order, m)]);
    let kept = |m| if Some(m) == mode { mode_index(m) } else { mode_rank_index(order, m) };
    let inputs = [tensor(order)].into_iter().chain(others().map(matrix)).collect();
    Expr { output: access("Y", (0..order).map(kept)), inputs }
}

/// Returns TTTP: `S(i,j,k) = X(i,j,k) * A1(i,r) * A2(j,r) * A3(k,r)` for order 3; order 2 is SDDMM.
///
/// The output has the pattern of the tensor, since it has all its indices.
///
/// # Panics
///
/// If `order` is 0 or exceeds [`MAX_ORDER`].
pub fn tttp(order: usize) -> Expr {
    check(order, None);
    let inputs = [tensor(order)].into_iter().chain((0..order).map(factor)).collect();
    Expr { output: access("S", (0..order).map(mode_index)), inputs }
}

/// Returns TTTc, the environment of a tensor train `G1(i,a) G2(a,j,b) ... Gn(c,n)`: with a mode
/// all its cores but that of the mode, `Z(a,j,b) = X(i,j,k) * G1(i,a) * G3(b,k)` for mode 1 of
/// order 3; without one all, the scalar `Z()`.
///
/// # Panics
///
/// If `mode < order` does not hold, or `order` exceeds [`MAX_ORDER`].
pub fn tttc(order: usize, mode: Option<usize>) -> Expr {
    check(order, mode);
    tttc_without(order, mode.map_or(0..0, |mode| mode..mode + 1))
}

/// Returns the environment of several neighbouring cores of a tensor train: all cores but those of
/// the modes `left_out`, `Z(a,j,k,c) = X(i,j,k,l) * G1(i,a) * G4(c,l)` for the modes 1 and 2 of
/// order 4; of none, the scalar `Z()`.
///
/// # Panics
///
/// If the modes exceed `order`, or `order` exceeds [`MAX_ORDER`].
pub fn tttc_without(order: usize, left_out: Range<usize>) -> Expr {
    check(order, left_out.clone().last());
    let others = (0..order).filter(|mode| !left_out.contains(mode));
    let inputs = [tensor(order)].into_iter().chain(others.map(|m| core(order, m))).collect();
    let modes = left_out.clone().map(mode_index);
    let shape = match left_out.is_empty() {
        true => Vec::new(),
        false => {
            let (left, right) = (left_bond(order, left_out.start), right_bond(order, left_out.end));
            left.into_iter().chain(modes).chain(right).collect()
        }
    };
    Expr { output: access("Z", shape), inputs }
}

/// Returns the values of a tensor train at the positions of the tensor, times its values:
/// `S(i,j,k) = X(i,j,k) * G1(i,a) * G2(a,j,b) * G3(b,k)` for order 3.
///
/// # Panics
///
/// If `order` is 0 or exceeds [`MAX_ORDER`].
pub fn train_values(order: usize) -> Expr {
    check(order, None);
    let inputs = [tensor(order)].into_iter().chain((0..order).map(|m| core(order, m))).collect();
    Expr { output: access("S", (0..order).map(mode_index)), inputs }
}

/// Returns the values of a Tucker model at the positions of the tensor, times its values:
/// `S(i,j,k) = X(i,j,k) * G(r,s,t) * U1(i,r) * U2(j,s) * U3(k,t)` for order 3.
///
/// # Panics
///
/// If `order` is 0 or exceeds [`MAX_ORDER`].
pub fn tucker_values(order: usize) -> Expr {
    check(order, None);
    let ranks = (0..order).map(|m| mode_rank_index(order, m));
    let matrix =
        |m: usize| access(&format!("U{}", m + 1), [mode_index(m), mode_rank_index(order, m)]);
    let inputs = [tensor(order), access("G", ranks)].into_iter().chain((0..order).map(matrix));
    Expr { output: access("S", (0..order).map(mode_index)), inputs: inputs.collect() }
}

/// Returns the normal equations of row-wise least squares over the entries of a tensor of weights:
/// `N(i,r,R) = X(i,j,k) * A2(j,r) * A3(k,r) * A2(j,R) * A3(k,R)` for mode 0 of order 3.
///
/// Row `i` of a factor that fits the entries of slice `i`, `X` their weights, solves the equations
/// with the `R x R` matrix `N(i)` and the row of the MTTKRP of the weighted values.  The factors
/// are operands twice, first all with `r`, then all with `R`.  A vector has `One(r) * One(R)`.
///
/// # Panics
///
/// If `mode < order` does not hold, or `order` exceeds [`MAX_ORDER`].
pub fn normal(order: usize, mode: usize) -> Expr {
    check(order, Some(mode));
    let (row, column) = (rank_index(), second_rank_index());
    let of = |index| {
        let name = |m: usize| if order == 1 { "One".into() } else { format!("A{}", m + 1) };
        let others = (0..order).filter(move |&m| m != mode || order == 1);
        others.map(move |m| match order {
            1 => access(&name(m), [index]),
            _ => access(&name(m), [mode_index(m), index]),
        })
    };
    let inputs = [tensor(order)].into_iter().chain(of(row)).chain(of(column)).collect();
    Expr { output: access("N", [mode_index(mode), row, column]), inputs }
}

/// Returns the second index of the rank in [`normal`]: `R`.
///
/// # Panics
///
/// Never.
pub fn second_rank_index() -> Index {
    Index::new('R').expect("a letter")
}

/// Returns the tensor times a vector in one mode: `Y(i,k) = X(i,j,k) * v(j)` for mode 1 of order 3.
///
/// # Panics
///
/// If `mode < order` does not hold, or `order` exceeds [`MAX_ORDER`].
pub fn ttv(order: usize, mode: usize) -> Expr {
    check(order, Some(mode));
    let kept = (0..order).filter(|&m| m != mode).map(mode_index);
    let inputs = vec![tensor(order), access("v", [mode_index(mode)])];
    Expr { output: access("Y", kept), inputs }
}

/// Returns the tensor times a matrix in one mode: `Y(i,r,k) = X(i,j,k) * U(j,r)` for mode 1 of
/// order 3.
///
/// # Panics
///
/// If `mode < order` does not hold, or `order` exceeds [`MAX_ORDER`].
pub fn ttm(order: usize, mode: usize) -> Expr {
    check(order, Some(mode));
    let kept = (0..order).map(|m| if m == mode { rank_index() } else { mode_index(m) });
    let inputs = vec![tensor(order), access("U", [mode_index(mode), rank_index()])];
    Expr { output: access("Y", kept), inputs }
}

/// Returns sparse matrix times vector: `y(i) = X(i,j) * v(j)`.
pub fn spmv() -> Expr {
    let inputs = vec![tensor(2), access("v", [mode_index(1)])];
    Expr { output: access("y", [mode_index(0)]), inputs }
}

/// Returns sparse matrix times dense matrix: `Y(i,r) = X(i,j) * B(j,r)`.
pub fn spmm() -> Expr {
    let inputs = vec![tensor(2), access("B", [mode_index(1), rank_index()])];
    Expr { output: access("Y", [mode_index(0), rank_index()]), inputs }
}

fn check(order: usize, mode: Option<usize>) {
    assert!((1..=MAX_ORDER).contains(&order), "order {order}");
    assert!(mode.is_none_or(|mode| mode < order), "mode {mode:?} of order {order}");
}

/// The letter `steps` after `first`.
fn numbered(first: char, steps: usize) -> Index {
    let letter = char::from(first as u8 + steps as u8);
    Index::new(letter).expect("a letter")
}

/// The bond before the core of `mode`; the first core has none.
fn left_bond(order: usize, mode: usize) -> Option<Index> {
    mode.checked_sub(1).map(|bond| bond_index(order, bond))
}

/// The bond before the core `next`; behind the last core there is none.
fn right_bond(order: usize, next: usize) -> Option<Index> {
    (next < order).then(|| bond_index(order, next - 1))
}

/// The core of `mode` in a train.
fn core(order: usize, mode: usize) -> Access {
    let (left, right) = (left_bond(order, mode), right_bond(order, mode + 1));
    access(&format!("G{}", mode + 1), left.into_iter().chain([mode_index(mode)]).chain(right))
}

fn access(name: &str, indices: impl IntoIterator<Item = Index>) -> Access {
    Access { tensor: name.to_owned(), indices: indices.into_iter().collect() }
}

fn tensor(order: usize) -> Access {
    access("X", (0..order).map(mode_index))
}

fn factor(mode: usize) -> Access {
    access(&format!("A{}", mode + 1), [mode_index(mode), rank_index()])
}
