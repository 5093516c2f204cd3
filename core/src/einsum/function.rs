//! Functions of the elements of a result.

use std::fmt;

/// A function that is applied to a result once it is summed up.
///
/// Where all indices of a result are those of lists, it is applied to the elements that are not zero, and all others stay
/// zero; else to all elements ([`Assignment::is_list`](crate::einsum::Assignment::is_list)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `max(x, 0)`.
    Relu,
    /// The absolute value.
    Abs,
    /// `e^x`.
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `e^x` divided by the sum of these over the last index of the result.
    Softmax,
}

impl Function {
    /// All functions.
    pub const ALL: [Function; 8] = [
        Function::Relu,
        Function::Abs,
        Function::Exp,
        Function::Log,
        Function::Sqrt,
        Function::Tanh,
        Function::Sigmoid,
        Function::Softmax,
    ];

    /// Returns its name in an assignment.
    pub fn name(self) -> &'static str {
        match self {
            Function::Relu => "relu",
            Function::Abs => "abs",
            Function::Exp => "exp",
            Function::Log => "log",
            Function::Sqrt => "sqrt",
            Function::Tanh => "tanh",
            Function::Sigmoid => "sigmoid",
            Function::Softmax => "softmax",
        }
    }

    /// Returns the function called `name`.
    pub fn named(name: &str) -> Option<Function> {
        Function::ALL.into_iter().find(|function| function.name() == name)
    }

    /// Applies it to `row`, elements that differ in the last index only, in double precision.
    pub fn apply(self, row: &mut [f64]) {
        let of: fn(f64) -> f64 = match self {
            // What is no number stays so.
            Function::Relu => |x| if x < 0.0 { 0.0 } else { x },
            Function::Abs => f64::abs,
            Function::Exp => f64::exp,
            Function::Log => f64::ln,
            Function::Sqrt => f64::sqrt,
            Function::Tanh => f64::tanh,
            Function::Sigmoid => |x| 1.0 / (1.0 + (-x).exp()),
            Function::Softmax => return softmax(row),
        };
        row.iter_mut().for_each(|x| *x = of(*x));
    }

    /// Tells whether it is zero at zero.
    pub fn keeps_zero(self) -> bool {
        matches!(self, Function::Relu | Function::Abs | Function::Sqrt | Function::Tanh)
    }

    /// Tells whether elements of a row depend on each other.
    pub fn is_of_rows(self) -> bool {
        self == Function::Softmax
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The largest element is taken away from all before, so that no power overflows.
fn softmax(row: &mut [f64]) {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter_mut().for_each(|x| *x = (*x - most).exp());
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}

#[cfg(test)]
mod tests {
    use super::Function;

    #[test]
    fn names_are_found_again() {
        for function in Function::ALL {
            assert_eq!(Function::named(function.name()), Some(function));
        }
        assert_eq!(Function::named("sum"), None);
    }

    #[test]
    fn values_are_those_of_the_definitions() {
        let value = |function: Function, x: f64| {
            let mut row = [x];
            function.apply(&mut row);
            row[0]
        };
        assert_eq!(value(Function::Relu, -2.0), 0.0);
        assert!(value(Function::Relu, f64::NAN).is_nan());
        for function in Function::ALL {
            assert_eq!(function.keeps_zero(), value(function, 0.0) == 0.0, "{function}");
        }
        assert_eq!(value(Function::Abs, -2.0), 2.0);
        assert_eq!(value(Function::Sigmoid, 0.0), 0.5);
        assert!((value(Function::Log, std::f64::consts::E) - 1.0).abs() < 1e-15);
        let mut row = [1000.0, 1000.0 + 3f64.ln()];
        Function::Softmax.apply(&mut row);
        assert!((row[0] - 0.25).abs() < 1e-12 && (row[1] - 0.75).abs() < 1e-12);
    }
}
