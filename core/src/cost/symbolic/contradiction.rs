//! Whether ranges and assumptions contradict each other.
//!
//! A constraint between two products is linear in the logarithms of the variables.  Variables are eliminated one after the
//! other (Fourier and Motzkin); a line without variables that does not hold is a contradiction.  A sum that is at most a
//! product says so of each of its products; other sums are left out.

use crate::cost::symbolic::constraint::{Constraint, Product};
use crate::cost::symbolic::domain::Domain;

/// The sum of `factors` times logarithms, and `rest`, is at most zero.
#[derive(Clone, Debug)]
struct Line {
    factors: Vec<f64>,
    rest: f64,
    /// It is never zero.
    strict: bool,
}

/// More lines are not looked at.
const MOST_LINES: usize = 4_096;

/// More than sums of a few logarithms are rounded.
const ROUNDED: f64 = 1e-9;

impl Domain {
    /// Tells whether no sizes keep all constraints, as far as products tell.
    pub(super) fn is_contradicted(&self) -> bool {
        let mut lines: Vec<Line> =
            self.constraints.iter().flat_map(|one| self.lines(one)).collect();
        let never_equal = |line| Line { strict: true, ..line };
        lines.extend(self.strict.iter().flat_map(|one| self.lines(one)).map(never_equal));
        for (v, &(low, high)) in self.bounds.iter().enumerate() {
            let factors = |sign: f64| {
                let mut factors = vec![0.0; self.bounds.len()];
                factors[v] = sign;
                factors
            };
            lines.push(Line { factors: factors(1.0), rest: -high.ln(), strict: false });
            lines.push(Line { factors: factors(-1.0), rest: low.ln(), strict: false });
        }
        let mut open: Vec<usize> = (0..self.bounds.len()).collect();
        loop {
            if lines.iter().any(Line::is_broken) {
                return true;
            }
            let pairs = |&v: &usize| {
                let of =
                    |sign: f64| lines.iter().filter(|line| line.factors[v] * sign > 0.0).count();
                of(1.0) * of(-1.0)
            };
            let Some(next) = open.iter().copied().min_by_key(pairs) else { return false };
            if lines.len() + pairs(&next) > MOST_LINES {
                return false;
            }
            open.retain(|v| *v != next);
            lines = without(lines, next);
        }
    }

    /// What a constraint says of logarithms.
    fn lines(&self, constraint: &Constraint) -> Vec<Line> {
        let [more] = constraint.more.as_slice() else { return Vec::new() };
        let products = || constraint.less.iter().filter(|less| less.0 > 0.0);
        let line = |less: &Product| {
            let mut factors = vec![0.0; self.bounds.len()];
            less.1.iter().for_each(|&v| factors[v] += 1.0);
            more.1.iter().for_each(|&v| factors[v] -= 1.0);
            // Each product of a sum of several is below the sum.
            Line { factors, rest: less.0.ln() - more.0.ln(), strict: products().count() > 1 }
        };
        products().map(line).collect()
    }
}

impl Line {
    /// Tells whether it has no variable and does not hold.
    fn is_broken(&self) -> bool {
        let room = if self.strict { -ROUNDED } else { ROUNDED };
        self.factors.iter().all(|factor| *factor == 0.0) && self.rest > room
    }
}

/// Eliminates variable `v`.
fn without(lines: Vec<Line>, v: usize) -> Vec<Line> {
    let (mut kept, with): (Vec<Line>, Vec<Line>) =
        lines.into_iter().partition(|line| line.factors[v] == 0.0);
    let (above, below): (Vec<Line>, Vec<Line>) =
        with.into_iter().partition(|line| line.factors[v] > 0.0);
    for a in &above {
        for b in &below {
            let (by, times) = (-b.factors[v], a.factors[v]);
            let sum = |(x, y): (&f64, &f64)| x * by + y * times;
            let mut factors: Vec<f64> = a.factors.iter().zip(&b.factors).map(sum).collect();
            factors[v] = 0.0;
            let rest = sum((&a.rest, &b.rest));
            kept.push(Line { factors, rest, strict: a.strict || b.strict });
        }
    }
    kept
}
