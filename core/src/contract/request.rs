//! What is asked, before a tree is chosen.

use decompose_formats::stats::PatternCounts;

use crate::einsum::{Expr, Extents, Index};
use crate::error::CoreError;
use crate::schedule::{Pattern, Problem, SparseOperand};
use crate::sweep::TreeLayout;

/// An expression with its extents, its sparse operand and the counts of its pattern.
#[derive(Clone, Debug)]
pub struct Request {
    /// The expression.
    pub expr: Expr,
    /// The extent of every index.
    pub extents: Extents,
    /// Which input is sparse.
    pub sparse: usize,
    /// The pattern of the sparse operand.
    pub pattern: Pattern,
    /// Size of a value in bytes: 8 or 4.
    pub value_bytes: usize,
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
        let mut extents = Extents::default();
        for (input, access) in expr.inputs.iter().enumerate() {
            let shape = if input == sparse { counts.extents() } else { &shapes[input] };
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
        let pattern = Pattern::of(counts, &expr.inputs[sparse].indices);
        Ok(Request { expr, extents, sparse, pattern, value_bytes: 8 })
    }

    /// Poses the problem for the sparse operand stored as `tree`.
    pub fn problem(&self, tree: &TreeLayout) -> Problem {
        let modes = &self.expr.inputs[self.sparse].indices;
        let levels: Vec<Index> = tree.order.modes().iter().map(|&mode| modes[mode]).collect();
        let pattern = self.pattern.clone();
        let sparse = SparseOperand { input: self.sparse, levels, fused: tree.fused, pattern };
        let mut problem = Problem::new(self.expr.clone(), self.extents.clone(), sparse);
        problem.value_bytes = self.value_bytes;
        problem
    }
}
