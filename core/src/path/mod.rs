//! Contraction paths: in which order the operands of an expression are contracted.
//!
//! A path is a list of *terms* in an order in which they can run.  A term multiplies its inputs
//! (operands of the expression or results of earlier terms) and sums away every index that
//! neither a later term nor the output needs.  SpTTN and CoNST contract two inputs a term, TACO's
//! unfactorised kernels all inputs in one; a [`Term`] allows any number.
//!
//! `T` operands have `T! (T-1)! / 2^(T-1)` binary paths if order counts; as trees, `(2T-3)!!`.  A
//! [`PathSpace`] counts and bounds them without writing them down, and lists those that are worth a
//! search.
//! Source: Kanakagiri, Solomonik, "Minimum Cost Loop Nests for Contraction of a Sparse Tensor with
//! a Tensor Network", SPAA 2024, section 4.1.1 and definition 4.1.

mod chain;
mod enumerate;
mod listing;
mod space;

use std::fmt;

use crate::einsum::{Expr, Index, IndexSet};

pub(crate) use chain::chains;
pub use enumerate::{enumerate, greedy, unfactorised};
pub use listing::{Link, Listing, Wanted};
pub use space::{Arity, PathSpace};

/// Returns what a term over the indices `own`, not the last one, hands on to those that need `needed`.
/// Blocks of a tensor are summed by the last term: inside a block nothing outlives it.
pub(crate) fn live_indices(own: IndexSet, needed: IndexSet) -> IndexSet {
    own & needed.with(Index::BLOCK)
}

/// What a term reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// An input of the expression, by position.
    Input(usize),
    /// The result of an earlier term, by position in the path.
    Term(usize),
}

/// One product of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// What is multiplied: one source or more.
    pub inputs: Vec<Source>,
    /// The indices of the result.
    pub output: IndexSet,
    /// The indices of the loops around the product: those of the inputs.
    pub indices: IndexSet,
}

/// A contraction path: the last term produces the output of the expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The terms, each after those whose results it reads.
    pub terms: Vec<Term>,
}

impl Path {
    /// Completes products, each of which reads what those before it made, to terms: what each needs, and what it keeps
    /// for the rest.
    pub(crate) fn of_products(products: &[Vec<Source>], expr: &Expr) -> Path {
        let mut terms: Vec<Term> = Vec::new();
        for (position, inputs) in products.iter().enumerate() {
            let set = |source: &Source| match *source {
                Source::Input(input) => expr.looped(input),
                Source::Term(t) => terms.get(t).map_or(IndexSet::EMPTY, |term| term.output),
            };
            let indices = inputs.iter().fold(IndexSet::EMPTY, |all, source| all | set(source));
            let rest = products[position + 1..].iter().flatten();
            let later = rest.fold(expr.output.set(), |all, source| match *source {
                Source::Input(input) => all | expr.looped(input),
                Source::Term(t) if t < position => all | set(source),
                Source::Term(_) => all,
            });
            let last = position + 1 == products.len();
            let output = if last { indices & later } else { live_indices(indices, later) };
            terms.push(Term { inputs: inputs.clone(), output, indices });
        }
        Path { terms }
    }

    /// Returns the largest number of loops around a term: the path's asymptotic *depth*.
    pub fn depth(&self) -> usize {
        self.terms.iter().map(|term| term.indices.len()).max().unwrap_or(0)
    }

    /// Returns the term that reads the result of `term`; `None` for the last.
    pub fn consumer(&self, term: usize) -> Option<usize> {
        self.terms.iter().position(|t| t.inputs.contains(&Source::Term(term)))
    }

    /// Returns, for each term, the term that reads its result; `None` for the last.
    pub fn consumers(&self) -> Vec<Option<usize>> {
        (0..self.terms.len()).map(|term| self.consumer(term)).collect()
    }

    /// Tells for each term whether input `operand` reaches it, directly or through earlier terms.
    pub fn reached_by(&self, operand: usize) -> Vec<bool> {
        let mut reached: Vec<bool> = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let one = |source: &Source| match *source {
                Source::Input(input) => input == operand,
                Source::Term(earlier) => reached[earlier],
            };
            let now = term.inputs.iter().any(one);
            reached.push(now);
        }
        reached
    }

    /// Writes the path with the names of `expr`, one term a line: `T1(i,j,r) = X(i,j,k) * C(k,r)`.
    pub fn display<'a>(&'a self, expr: &'a Expr) -> impl fmt::Display + 'a {
        PathText { path: self, expr }
    }

    /// Returns the name of the result of `term`: the output's for the last one, `T1`, ... else.
    pub fn name(&self, expr: &Expr, term: usize) -> String {
        if term + 1 == self.terms.len() {
            expr.output.tensor.clone()
        } else {
            format!("T{}", term + 1)
        }
    }
}

struct PathText<'a> {
    path: &'a Path,
    expr: &'a Expr,
}

impl fmt::Display for PathText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for term in 0..self.path.terms.len() {
            if term > 0 {
                writeln!(f)?;
            }
            f.write_str(&term_text(self.path, self.expr, term))?;
        }
        Ok(())
    }
}

/// Writes one term with the names of `expr`.
pub fn term_text(path: &Path, expr: &Expr, term: usize) -> String {
    let list = |set: IndexSet| {
        let letters: Vec<String> = set.iter().map(|index| index.to_string()).collect();
        letters.join(",")
    };
    let this = &path.terms[term];
    let inputs: Vec<String> = this
        .inputs
        .iter()
        .map(|source| match *source {
            Source::Input(input) => expr.inputs[input].to_string(),
            Source::Term(t) => format!("{}({})", path.name(expr, t), list(path.terms[t].output)),
        })
        .collect();
    let left = if term + 1 == path.terms.len() {
        expr.output.to_string()
    } else {
        format!("{}({})", path.name(expr, term), list(this.output))
    };
    format!("{left} = {}", inputs.join(" * "))
}
