//! What the kernels of a sweep compute.

use crate::einsum::{Expr, Extents, IndexSet};
use crate::error::CoreError;
use crate::kernels;
use crate::schedule::{Format, OutputForm, Packing, Pattern, Problem, SparseOperand};

/// The kernels of a sweep over one tensor.
pub(super) struct Kernels {
    /// What their steps call them.
    pub(super) numbers: Vec<usize>,
    /// What each computes, the tensor being input 0.
    pub(super) problems: Vec<Problem>,
    /// How often each runs.
    pub(super) runs: Vec<usize>,
}

impl Kernels {
    /// Kernels of any kind, numbered in their order.
    pub(super) fn new(problems: Vec<Problem>, runs: Vec<usize>) -> Kernels {
        let numbers = (0..problems.len()).collect();
        Kernels { numbers, problems, runs }
    }

    /// Kernels that each run once.
    pub(super) fn once(problems: &[Problem]) -> Kernels {
        Kernels::new(problems.to_vec(), vec![1; problems.len()])
    }

    /// Returns the tensor.
    ///
    /// # Errors
    ///
    /// [`CoreError::Internal`] if there is no kernel, or none of a sparse tensor.
    pub(super) fn tensor(&self) -> Result<&SparseOperand, CoreError> {
        let first = self.problems.first().and_then(|problem| problem.leader());
        first.ok_or_else(|| CoreError::Internal("no kernel to plan".into()))
    }
}

/// Poses a kernel of a solver: operand 0 of `expr` is the tensor, with the pattern `pattern` over its
/// indices; the other operands belong to the solver and are stored as the expression names them; the
/// result is dense.  Planning chooses how the tensor is stored.
pub fn posed(expr: Expr, extents: Extents, pattern: Pattern, value_bytes: usize) -> Problem {
    let levels = expr.inputs[0].indices.clone();
    let sparse = SparseOperand { input: 0, format: Format::csf(levels), pattern };
    let mut problem = Problem::new(expr, extents, sparse);
    // Of a vector the result has all indices, and is a matrix all the same.
    problem.output = OutputForm::Dense;
    problem.packing = Packing::Named;
    problem.value_bytes = value_bytes;
    problem
}

/// Returns the indices of `order` modes.
pub(super) fn all_modes(order: usize) -> IndexSet {
    (0..order).map(kernels::mode_index).collect()
}

/// Returns the extents of the modes and of a rank.
pub(super) fn extents_of(extents: &[u64], rank: usize) -> Extents {
    let modes = extents.iter().enumerate().map(|(mode, &e)| (kernels::mode_index(mode), e));
    modes.chain([(kernels::rank_index(), rank as u64)]).collect()
}

/// Returns the problem of an MTTKRP for factors of `rank` columns.
pub(super) fn at_rank(problem: &Problem, rank: usize) -> Problem {
    let mut problem = problem.clone();
    problem.extents.set(kernels::rank_index(), rank as u64);
    problem
}
