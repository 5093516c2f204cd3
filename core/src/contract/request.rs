//! What is asked, before a tree is chosen.

use decompose_formats::stats::PatternCounts;

use crate::contract::no_sparse;
use crate::einsum::{Expr, Extents, Index};
use crate::error::CoreError;
use crate::schedule::{Format, JoinCounts, OutputForm, Pattern, Problem, SparseOperand, Storing};
use crate::sweep::TreeLayout;

/// A sparse operand of a request.
#[derive(Clone, Debug)]
pub struct SparseInput {
    /// Which input of the expression it is.
    pub input: usize,
    /// What is known of its pattern.
    pub pattern: Pattern,
}

/// An expression with its extents, its sparse operands and the counts of their patterns.
#[derive(Clone, Debug)]
pub struct Request {
    /// The expression.
    pub expr: Expr,
    /// The extent of every index.
    pub extents: Extents,
    /// The sparse inputs; there is one at least.
    pub sparse: Vec<SparseInput>,
    /// Size of a value in bytes: 8 or 4.
    pub value_bytes: usize,
    /// How a result is wanted that has the pattern of no operand.
    pub result: ResultForm,
    /// What the join of the sparse operands has, if it was counted.
    pub join: Option<JoinCounts>,
    /// Which trees there are, where the time to build the others counts, as for a kernel that runs once.
    pub storing: Option<Storing>,
}

/// How a result is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultForm {
    /// As an array of all elements.
    #[default]
    Dense,
    /// As a list of the elements that are met; a single number never is.
    Sparse,
}

impl Request {
    /// Asks for `expr` with its input `sparse` as `counts` describe it and the dense inputs of the
    /// given `shapes`, one an input (the sparse one's is not looked at).
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if an operand has another order than in the expression, or another
    /// extent than an operand before it.
    pub fn new(
        expr: Expr,
        sparse: usize,
        counts: &PatternCounts,
        shapes: &[Vec<u64>],
    ) -> Result<Request, CoreError> {
        Request::joining(expr, &[(sparse, counts)], shapes)
    }

    /// Asks for `expr` with several sparse inputs, each with its counts, as [`Request::new`] does.
    ///
    /// # Errors
    ///
    /// As [`Request::new`], and [`CoreError::NoSchedule`] if no input is sparse.
    pub fn joining(
        expr: Expr,
        sparse: &[(usize, &PatternCounts)],
        shapes: &[Vec<u64>],
    ) -> Result<Request, CoreError> {
        if sparse.is_empty() {
            return Err(no_sparse(&expr));
        }
        let mut extents = Extents::default();
        for (input, access) in expr.inputs.iter().enumerate() {
            let counted = sparse.iter().find(|(sparse, _)| *sparse == input);
            let shape = counted.map_or(&shapes[input][..], |(_, counts)| counts.extents());
            let bad = |why| CoreError::Operand { operand: access.tensor.clone(), why };
            if shape.len() != access.indices.len() {
                let (order, have) = (access.indices.len(), shape.len());
                return Err(bad(format!("{access} has {order} indices, the tensor has {have}")));
            }
            for (&index, &extent) in access.indices.iter().zip(shape) {
                let before = extents.set(index, extent).filter(|&before| before != extent);
                if let Some(before) = before {
                    return Err(bad(format!("{index} runs to {extent} here, to {before} before")));
                }
            }
        }
        let pattern = |&(input, counts): &(usize, &PatternCounts)| SparseInput {
            input,
            pattern: Pattern::of(counts, &expr.inputs[input].indices),
        };
        let sparse = sparse.iter().map(pattern).collect();
        let (value_bytes, result) = (8, ResultForm::Dense);
        Ok(Request { expr, extents, sparse, value_bytes, result, join: None, storing: None })
    }

    /// Returns the modes of a sparse input, named by their indices.
    pub fn modes(&self, sparse: &SparseInput) -> &[Index] {
        &self.expr.inputs[sparse.input].indices
    }

    /// Poses the problem for the only sparse operand stored as `tree`.
    pub fn problem(&self, tree: &TreeLayout) -> Problem {
        self.problem_on(std::slice::from_ref(tree))
    }

    /// Poses the problem for sparse operands stored as `trees`, one each in their order; without one an operand is
    /// stored by its modes.
    pub fn problem_on(&self, trees: &[TreeLayout]) -> Problem {
        let operands = self.sparse.iter().enumerate().map(|(at, sparse)| {
            let modes = self.modes(sparse);
            let format = match trees.get(at) {
                Some(tree) => tree.format(modes),
                None => Format::csf(modes.to_vec()),
            };
            SparseOperand { input: sparse.input, format, pattern: sparse.pattern.clone() }
        });
        let (expr, extents) = (self.expr.clone(), self.extents.clone());
        let mut problem = Problem::joining(expr, extents, operands.collect());
        problem.value_bytes = self.value_bytes;
        problem.join = self.join;
        problem.storing.clone_from(&self.storing);
        let number = self.expr.output.indices.is_empty();
        if self.result == ResultForm::Sparse && !problem.has_pattern_output() && !number {
            problem.output = OutputForm::Assembled;
        }
        problem
    }
}
