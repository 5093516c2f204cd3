//! The comparison of two costs as a question in SMT-LIB.
//!
//! ```text
//! (declare-const x0 Real) ...  (assert (<= low x0 high)) ...  (assert (>= more less)) ...  (assert (< a b))
//! ```
//!
//! The assertions hold together for some sizes if `a` is not at least `b` for all of them.

use std::fmt::Write;

use crate::cost::symbolic::constraint::Product;
use crate::cost::symbolic::domain::Domain;
use crate::cost::symbolic::polynomial::Polynomial;

impl Domain {
    /// Returns declarations and assertions that hold for some sizes unless `a` is at least `b` for all sizes of the domain.
    ///
    /// Numbers are written without rounding.
    pub fn question(&self, a: &Polynomial, b: &Polynomial) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        for (v, &(low, high)) in self.bounds.iter().enumerate() {
            let (low, high) = (number(low), number(high));
            let _ = writeln!(text, "(declare-const x{v} Real)");
            let _ = writeln!(text, "(assert (and (<= {low} x{v}) (<= x{v} {high})))");
        }
        for constraint in &self.constraints {
            let (more, less) = (sum(&constraint.more), sum(&constraint.less));
            let _ = writeln!(text, "(assert (>= {more} {less}))");
        }
        let (a, b) = (sum(&self.products(a)), sum(&self.products(b)));
        let _ = writeln!(text, "(assert (< {a} {b}))");
        text
    }

    /// Returns the products of variables that a polynomial sums up.
    fn products(&self, polynomial: &Polynomial) -> Vec<Product> {
        let product = |(monomial, count): &(_, u64)| {
            let set = self.variables(monomial);
            let variables = (0..self.bounds.len()).filter(|v| set >> v & 1 == 1);
            (*count as f64, variables.collect())
        };
        polynomial.terms().iter().map(product).collect()
    }
}

fn sum(products: &[Product]) -> String {
    let product = |(count, variables): &Product| {
        let factors = variables.iter().map(|v| format!(" x{v}")).collect::<String>();
        if factors.is_empty() { number(*count) } else { format!("(* {}{factors})", number(*count)) }
    };
    let products: Vec<String> = products.iter().map(product).collect();
    match products.as_slice() {
        [] => "0.0".to_owned(),
        [one] => one.clone(),
        several => format!("(+ {})", several.join(" ")),
    }
}

/// Bits of the fraction of a number.
const FRACTION_BITS: i32 = 52;

/// Writes a positive number as a decimal, or as a fraction over a power of two.
fn number(x: f64) -> String {
    let mut power = 0;
    let mut whole = x;
    while whole.fract() != 0.0 && power < 2 * FRACTION_BITS {
        whole *= 2.0;
        power += 1;
    }
    match power {
        0 => format!("{whole:.1}"),
        _ => format!("(/ {whole:.1} {:.1})", 2f64.powi(power)),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_written_without_rounding() {
        assert_eq!(number(3.0), "3.0");
        assert_eq!(number(0.75), "(/ 3.0 4.0)");
        assert_eq!(number(4_294_967_296.0), "4294967296.0");
        assert_eq!(number(1.0 / 4_294_967_296.0), "(/ 1.0 4294967296.0)");
    }
}
