//! Finding a kernel by its name.

use crate::einsum::Expr;
use crate::error::CoreError;
use crate::kernels::{MAX_ORDER, mttkrp, normal, spmm, spmv, ttm, ttmc, tttc, tttp, ttv};

/// A kernel with a name.
#[derive(Clone, Copy, Debug)]
pub struct NamedKernel {
    /// Its name on the command line.
    pub name: &'static str,
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
pub const KERNELS: &[NamedKernel] = &[
    // Tensor times the Khatri-Rao product of all factors but one (CP).
    of_mode("mttkrp", |n, m| mttkrp(n, m.unwrap_or(0))),
    // Tensor times a chain of matrices: all modes but one, or all (Tucker).
    of_all("ttmc", ttmc),
    // Tensor times the tensor product of vectors, on the tensor's pattern (completion).
    NamedKernel { name: "tttp", order: None, mode: ModeUse::None, make: |order, _| tttp(order) },
    // Tensor times a chain of tensors: all cores but one, or all (train).
    of_all("tttc", tttc),
    // The matrices of row-wise least squares over entries (completion).
    of_mode("normal", |n, m| normal(n, m.unwrap_or(0))),
    // Tensor times a vector in one mode.
    of_mode("ttv", |n, m| ttv(n, m.unwrap_or(0))),
    // Tensor times a matrix in one mode.
    of_mode("ttm", |n, m| ttm(n, m.unwrap_or(0))),
    // Product of two dense matrices where a sparse one has entries.
    of_matrix("sddmm", |_, _| tttp(2)),
    of_matrix("spmv", |_, _| spmv()),
    of_matrix("spmm", |_, _| spmm()),
];

/// Makes the expression of an order and a mode.
type Make = fn(usize, Option<usize>) -> Expr;

const fn of_mode(name: &'static str, make: Make) -> NamedKernel {
    NamedKernel { name, order: None, mode: ModeUse::Needed, make }
}

const fn of_all(name: &'static str, make: Make) -> NamedKernel {
    NamedKernel { name, order: None, mode: ModeUse::Optional, make }
}

const fn of_matrix(name: &'static str, make: Make) -> NamedKernel {
    NamedKernel { name, order: Some(2), mode: ModeUse::None, make }
}

/// Reads a named kernel: its name, its order and a mode counted from 1, as `mttkrp:3:1`, `ttmc:4`
/// (all modes), `spmv`.
///
/// # Errors
///
/// [`CoreError::Expression`] if there is no such kernel, it does not have that order or mode, or a number
/// is none.
///
/// # Example
///
/// ```
/// use decompose_core::kernels::parse;
///
/// let core = parse("ttmc:3")?;
/// assert_eq!(core.to_string(), "Y(r,s,t) = X(i,j,k) * U1(i,r) * U2(j,s) * U3(k,t)");
/// # Ok::<(), decompose_core::error::CoreError>(())
/// ```
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

fn find(name: &str) -> Result<&'static NamedKernel, String> {
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

#[cfg(test)]
mod tests {
    use super::{KERNELS, ModeUse, make, parse};
    use crate::einsum::Expr;
    use crate::kernels::MAX_ORDER;

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
            ("normal:2:1", "N(i,r,R) = X(i,j) * A2(j,r) * A2(j,R)"),
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
    fn trains_leave_out_neighbours_and_models_have_values() {
        use crate::kernels::{train_values, tttc_without, tucker_values};
        let cases = [
            (tttc_without(4, 1..3), "Z(a,j,k,c) = X(i,j,k,l) * G1(i,a) * G4(c,l)"),
            (tttc_without(3, 0..2), "Z(i,j,b) = X(i,j,k) * G3(b,k)"),
            (tttc_without(3, 1..3), "Z(a,j,k) = X(i,j,k) * G1(i,a)"),
            (train_values(2), "S(i,j) = X(i,j) * G1(i,a) * G2(a,j)"),
            (train_values(3), "S(i,j,k) = X(i,j,k) * G1(i,a) * G2(a,j,b) * G3(b,k)"),
            (tucker_values(2), "S(i,j) = X(i,j) * G(r,s) * U1(i,r) * U2(j,s)"),
        ];
        for (expr, text) in cases {
            assert_eq!(expr.to_string(), text);
        }
    }

    #[test]
    fn every_kernel_of_every_order_comes_back_from_its_text() {
        for kernel in KERNELS {
            for order in 1..=MAX_ORDER {
                let all = (kernel.mode != ModeUse::Needed).then_some(None);
                let each = (0..order).filter(|_| kernel.mode != ModeUse::None).map(Some);
                for mode in all.into_iter().chain(each) {
                    let made = make(kernel.name, order, mode);
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
