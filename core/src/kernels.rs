//! The named kernels of tensor decomposition, for any order, as expressions.
//!
//! ```text
//! mttkrp  A1(i,r)   = X(i,j,k) * A2(j,r) * A3(k,r)             CP; all modes but one
//! ttmc    Y(i,s,t)  = X(i,j,k) * U2(j,s) * U3(k,t)             Tucker; all modes but one, or all
//! tttp    S(i,j,k)  = X(i,j,k) * A1(i,r) * A2(j,r) * A3(k,r)   completion; order 2 is SDDMM
//! tttc    Z(a,j,b)  = X(i,j,k) * G1(i,a) * G3(b,k)             tensor train; but one core, or all
//! ttv     Y(i,k)    = X(i,j,k) * v(j)                          one mode with a vector
//! ttm     Y(i,r,k)  = X(i,j,k) * U(j,r)                        one mode with a matrix
//! spmv    y(i)      = X(i,j) * v(j)
//! spmm    Y(i,r)    = X(i,j) * B(j,r)
//! ```
//!
//! Input 0 is the sparse tensor everywhere; the dense inputs follow by mode.  A kernel is found by
//! its name with [`named`], and [`parse`] reads `mttkrp:3:1`, as the command line takes it.
//! Source of the first four: Kanakagiri, Solomonik, SPAA 2024, section 2.3.

use crate::einsum::{Access, Expr, Index};
use crate::error::CoreError;

/// The letters of the modes of a sparse tensor, in order; `r` is kept for the rank.
const MODE_LETTERS: &str = "ijklmnopqstuvwxyzabcdefgh";

/// The highest order of a named kernel.
pub const MAX_ORDER: usize = MODE_LETTERS.len();

/// Up to this order modes are called `i` to `q`, which leaves `a` to `h` and `r` to `z` to ranks;
/// above it, ranks are capitals.
const SMALL_ORDER: usize = 9;

/// A kernel with a name.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name on the command line.
    pub name: &'static str,
    /// One sentence about what it computes.
    pub about: &'static str,
    /// The only order it has; `None`: any.
    pub order: Option<usize>,
    /// What it does with a mode.
    pub mode: ModeUse,
    /// Makes it for an order and a mode that suit.
    make: Make,
}

/// Whether a kernel is about one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeUse {
    /// It needs one.
    Needed,
    /// Without one it takes all modes.
    Optional,
    /// It has none.
    None,
}

/// All named kernels.
pub const KERNELS: &[Kernel] = &[
    of_mode("mttkrp", "tensor times the Khatri-Rao product of all factors but one (CP)", |n, m| {
        mttkrp(n, m.unwrap_or(0))
    }),
    of_all("ttmc", "tensor times a chain of matrices: all modes but one, or all (Tucker)", ttmc),
    Kernel {
        name: "tttp",
        about: "tensor times the tensor product of vectors, on the tensor's pattern (completion)",
        order: None,
        mode: ModeUse::None,
        make: |order, _| tttp(order),
    },
    of_all("tttc", "tensor times a chain of tensors: all cores but one, or all (train)", tttc),
    of_mode("ttv", "tensor times a vector in one mode", |n, m| ttv(n, m.unwrap_or(0))),
    of_mode("ttm", "tensor times a matrix in one mode", |n, m| ttm(n, m.unwrap_or(0))),
    of_matrix("sddmm", "product of two dense matrices where a sparse one has entries", |_, _| {
        tttp(2)
    }),
    of_matrix("spmv", "sparse matrix times a vector", |_, _| spmv()),
    of_matrix("spmm", "sparse matrix times a dense matrix", |_, _| spmm()),
];

/// Makes the expression of an order and a mode.
type Make = fn(usize, Option<usize>) -> Expr;

const fn of_mode(name: &'static str, about: &'static str, make: Make) -> Kernel {
    Kernel { name, about, order: None, mode: ModeUse::Needed, make }
}

const fn of_all(name: &'static str, about: &'static str, make: Make) -> Kernel {
    Kernel { name, about, order: None, mode: ModeUse::Optional, make }
}

const fn of_matrix(name: &'static str, about: &'static str, make: Make) -> Kernel {
    Kernel { name, about, order: Some(2), mode: ModeUse::None, make }
}

/// Returns the kernel called `name` for a sparse tensor of `order` modes; `mode` counts from 0.
///
/// # Errors
///
/// [`CoreError::Expression`] if there is no such kernel, or it does not have that order or mode.
///
/// # Example
///
/// ```
/// use decompose_core::kernels::named;
///
/// let core = named("ttmc", 3, None)?;
/// assert_eq!(core.to_string(), "Y(r,s,t) = X(i,j,k) * U1(i,r) * U2(j,s) * U3(k,t)");
/// # Ok::<(), decompose_core::error::CoreError>(())
/// ```
pub fn named(name: &str, order: usize, mode: Option<usize>) -> Result<Expr, CoreError> {
    let mode_text = mode.map(|mode| format!(":{}", mode + 1)).unwrap_or_default();
    make(name, order, mode).map_err(|why| refused(&format!("{name}:{order}{mode_text}"), why))
}

/// Reads a named kernel: its name, its order and a mode counted from 1, as `mttkrp:3:1`, `ttmc:4`
/// (all modes), `spmv`.
///
/// # Errors
///
/// [`CoreError::Expression`] as [`named`], or if a number is none.
pub fn parse(text: &str) -> Result<Expr, CoreError> {
    let read = || {
        let mut words = text.trim().split(':');
        let name = words.next().unwrap_or_default();
        let mut number = |what: &str| -> Result<Option<usize>, String> {
            let Some(word) = words.next() else { return Ok(None) };
            let number = word.trim().parse::<usize>().ok().filter(|&n| n > 0);
            number.map(Some).ok_or_else(|| format!("`{word}` is no {what}; it counts from 1"))
        };
        let (order, mode) = (number("order")?, number("mode")?);
        if words.next().is_some() {
            return Err("a kernel is NAME, NAME:ORDER or NAME:ORDER:MODE".to_owned());
        }
        let fixed = find(name)?.order;
        let order = order.or(fixed).ok_or_else(|| format!("say the order, as `{name}:3:1`"))?;
        make(name, order, mode.map(|mode| mode - 1))
    };
    read().map_err(|why| refused(text, why))
}

fn refused(text: &str, why: String) -> CoreError {
    CoreError::Expression { text: text.to_owned(), why }
}

fn find(name: &str) -> Result<&'static Kernel, String> {
    KERNELS.iter().find(|kernel| kernel.name == name).ok_or_else(|| {
        let names: Vec<&str> = KERNELS.iter().map(|kernel| kernel.name).collect();
        format!("`{name}` is no kernel; there are {}", names.join(", "))
    })
}

fn make(name: &str, order: usize, mode: Option<usize>) -> Result<Expr, String> {
    let kernel = find(name)?;
    if !(1..=MAX_ORDER).contains(&order) {
        return Err(format!("an order is between 1 and {MAX_ORDER}"));
    }
    if let Some(only) = kernel.order.filter(|&only| only != order) {
        return Err(format!("{name} has order {only}"));
    }
    match (kernel.mode, mode) {
        (ModeUse::Needed, None) => Err(format!("say the mode, as `{name}:{order}:1`")),
        (ModeUse::None, Some(_)) => Err(format!("{name} has no mode to choose")),
        (_, Some(mode)) if mode >= order => {
            Err(format!("a tensor of order {order} has no mode {}", mode + 1))
        }
        _ => Ok((kernel.make)(order, mode)),
    }
}

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
    let shape = |m: usize| {
        let left = m.checked_sub(1).map(|bond| bond_index(order, bond));
        let right = (m + 1 < order).then(|| bond_index(order, m));
        left.into_iter().chain([mode_index(m)]).chain(right)
    };
    let core = |m: usize| access(&format!("G{}", m + 1), shape(m));
    let others = (0..order).filter(|&m| Some(m) != mode).map(core);
    let inputs = [tensor(order)].into_iter().chain(others).collect();
    Expr { output: access("Z", mode.into_iter().flat_map(shape)), inputs }
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

fn access(name: &str, indices: impl IntoIterator<Item = Index>) -> Access {
    Access { tensor: name.to_owned(), indices: indices.into_iter().collect() }
}

fn tensor(order: usize) -> Access {
    access("X", (0..order).map(mode_index))
}

fn factor(mode: usize) -> Access {
    access(&format!("A{}", mode + 1), [mode_index(mode), rank_index()])
}

#[cfg(test)]
mod tests {
    use super::{KERNELS, MAX_ORDER, ModeUse, named, parse};
    use crate::einsum::Expr;

    #[test]
    fn kernels_are_what_they_are_called() {
        let cases = [
            ("mttkrp:3:1", "A1(i,r) = X(i,j,k) * A2(j,r) * A3(k,r)"),
            ("mttkrp:1:1", "A1(i,r) = X(i) * One(r)"),
            ("ttmc:3:1", "Y(i,s,t) = X(i,j,k) * U2(j,s) * U3(k,t)"),
            ("ttmc:4:3", "Y(r,s,k,u) = X(i,j,k,l) * U1(i,r) * U2(j,s) * U4(l,u)"),
            ("ttmc:3", "Y(r,s,t) = X(i,j,k) * U1(i,r) * U2(j,s) * U3(k,t)"),
            ("tttp:3", "S(i,j,k) = X(i,j,k) * A1(i,r) * A2(j,r) * A3(k,r)"),
            ("sddmm", "S(i,j) = X(i,j) * A1(i,r) * A2(j,r)"),
            ("tttc:4:4", "Z(c,l) = X(i,j,k,l) * G1(i,a) * G2(a,j,b) * G3(b,k,c)"),
            ("tttc:3:2", "Z(a,j,b) = X(i,j,k) * G1(i,a) * G3(b,k)"),
            ("tttc:3", "Z() = X(i,j,k) * G1(i,a) * G2(a,j,b) * G3(b,k)"),
            ("tttc:1", "Z() = X(i) * G1(i)"),
            ("ttv:3:2", "Y(i,k) = X(i,j,k) * v(j)"),
            ("ttm:3:2", "Y(i,r,k) = X(i,j,k) * U(j,r)"),
            ("spmv", "y(i) = X(i,j) * v(j)"),
            ("spmm:2", "Y(i,r) = X(i,j) * B(j,r)"),
        ];
        for (name, text) in cases {
            assert_eq!(parse(name).unwrap().to_string(), text, "{name}");
        }
    }

    #[test]
    fn every_kernel_of_every_order_comes_back_from_its_text() {
        for kernel in KERNELS {
            for order in 1..=MAX_ORDER {
                let all = (kernel.mode != ModeUse::Needed).then_some(None);
                let each = (0..order).filter(|_| kernel.mode != ModeUse::None).map(Some);
                for mode in all.into_iter().chain(each) {
                    let made = named(kernel.name, order, mode);
                    assert_eq!(made.is_ok(), kernel.order.is_none_or(|only| only == order));
                    let Ok(expr) = made else { continue };
                    assert_eq!(expr.to_string().parse::<Expr>().unwrap(), expr);
                    assert_eq!(expr.inputs[0].indices.len(), order);
                }
            }
        }
    }

    #[test]
    fn mistakes_are_refused() {
        let cases = [
            ("magic:3", "there are mttkrp, ttmc"),
            ("mttkrp", "say the order"),
            ("mttkrp:3", "say the mode"),
            ("mttkrp:3:4", "no mode 4"),
            ("mttkrp:3:0", "`0` is no mode"),
            ("mttkrp:x:1", "`x` is no order"),
            ("mttkrp:26:1", "between 1 and 25"),
            ("tttp:3:1", "no mode to choose"),
            ("spmv:3", "spmv has order 2"),
            ("tttc:3:1:1", "NAME:ORDER:MODE"),
        ];
        for (text, message) in cases {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(message) && error.contains(text), "{text}: {error}");
        }
    }
}
