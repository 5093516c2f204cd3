//! Systems as text: for people, and as SMT-LIB.

use std::fmt;

use crate::autoschedule::constraints::constraint::{Constraint, Part, Variable};
use crate::autoschedule::constraints::system::System;

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (variables, constraints) = (self.variables(), self.constraints());
        let bound = self.bound;
        for (at, one) in self.contractions.iter().enumerate() {
            writeln!(f, "C{at}: {}", one.text)?;
        }
        writeln!(
            f,
            "{} variables, {} constraints, l = {bound}",
            variables.len(),
            constraints.len()
        )?;
        let mut before: Option<Part> = None;
        for (part, one) in &constraints {
            if before != Some(*part) {
                let count = constraints.iter().filter(|(own, _)| own == part).count();
                writeln!(f, "{part}: {count}")?;
                before = Some(*part);
            }
            writeln!(f, "  {}", self.line(one))?;
        }
        Ok(())
    }
}

impl System {
    /// Returns the name of a variable: `ap0`, `dp_A_2` or `lp0_i`.
    pub fn name(&self, variable: Variable) -> String {
        match variable {
            Variable::Assignment(contraction) => format!("ap{contraction}"),
            Variable::Mode(tensor, mode) => format!("dp_{}_{mode}", self.tensors[tensor].name),
            Variable::Loop(contraction, index) => format!("lp{contraction}_{index}"),
        }
    }

    /// Returns a constraint as a line of text.
    pub fn line(&self, constraint: &Constraint) -> String {
        let name = |variable: &Variable| self.name(*variable);
        let list = |variables: &[Variable], between: &str, after: &str| {
            let names: Vec<String> =
                variables.iter().map(|one| format!("{}{after}", name(one))).collect();
            names.join(between)
        };
        match constraint {
            Constraint::Range(variable, below) => format!("0 <= {} < {below}", name(variable)),
            Constraint::Distinct(variables) => format!("distinct {}", list(variables, " ", "")),
            Constraint::Before(a, b) => format!("{} < {}", name(a), name(b)),
            Constraint::Given(variable, place) => format!("{} = {place}", name(variable)),
            Constraint::Consistent { modes: (a, b), loops: (c, d) } => {
                format!("{} < {} => {} < {}", name(a), name(b), name(c), name(d))
            }
            Constraint::Producer(loops, place) => list(loops, " or ", &format!(" = {place}")),
            Constraint::Consumer(producer, consumer, place) => {
                format!("{} = {place} => {} = {place}", name(producer), name(consumer))
            }
            Constraint::Between { contractions: [producer, between, consumer], index, place } => {
                let own = name(&Variable::Loop(*producer, *index));
                let stands = format!("ap{producer} < ap{between} < ap{consumer}");
                match self.contractions[*between].indices.contains(*index) {
                    true => {
                        format!("{stands} and {own} = {place} => lp{between}_{index} = {place}")
                    }
                    false => format!("{stands} => {own} != {place}"),
                }
            }
        }
    }

    /// Returns the system as SMT-LIB: declarations and assertions, without a command to check them.
    pub fn smt(&self) -> String {
        let mut text = String::new();
        for variable in self.variables() {
            text += &format!("(declare-const |{}| Int)\n", self.name(variable));
        }
        for (_, one) in self.constraints() {
            text += &format!("(assert {})\n", self.assertion(&one));
        }
        text
    }

    fn assertion(&self, constraint: &Constraint) -> String {
        let name = |variable: &Variable| format!("|{}|", self.name(*variable));
        let is = |variable: &Variable, place: usize| format!("(= {} {place})", name(variable));
        match constraint {
            Constraint::Range(one, below) => format!("(and (<= 0 {0}) (< {0} {below}))", name(one)),
            Constraint::Distinct(variables) => {
                let names: Vec<String> = variables.iter().map(name).collect();
                format!("(distinct {})", names.join(" "))
            }
            Constraint::Before(a, b) => format!("(< {} {})", name(a), name(b)),
            Constraint::Given(variable, place) => is(variable, *place),
            Constraint::Consistent { modes: (a, b), loops: (c, d) } => {
                format!("(=> (< {} {}) (< {} {}))", name(a), name(b), name(c), name(d))
            }
            Constraint::Producer(loops, place) => {
                let each: Vec<String> = loops.iter().map(|one| is(one, *place)).collect();
                format!("(or {})", each.join(" "))
            }
            Constraint::Consumer(producer, consumer, place) => {
                format!("(=> {} {})", is(producer, *place), is(consumer, *place))
            }
            Constraint::Between { contractions: [producer, between, consumer], index, place } => {
                let (own, other) =
                    (Variable::Loop(*producer, *index), Variable::Loop(*between, *index));
                let looped = self.contractions[*between].indices.contains(*index);
                let then = if looped { is(&other, *place) } else { "false".to_owned() };
                let stands = format!("(< |ap{producer}| |ap{between}| |ap{consumer}|)");
                format!("(=> (and {stands} {}) {then})", is(&own, *place))
            }
        }
    }
}
