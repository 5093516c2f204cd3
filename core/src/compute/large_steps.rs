//! Large steps that are no kernels: each tells its memory before it runs.
//!
//! ```text
//! bytes of the step -> Evaluator::large_step -> refused, or run
//! ```
//!
//! Where the bytes depend on coordinates, these are counted first, in a step of its own.

use std::fmt;

use decompose_formats::Value;

use crate::compute::Evaluator;
use crate::compute::tensor::{Elements, Tensor, dense_diagonal};
use crate::einsum::{Access, Function};
use crate::error::CoreError;

/// A step of an assignment that takes memory and is no kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargeStep {
    /// Operands and their joins are counted, and the steps of a product are chosen.
    Count,
    /// The diagonal of an operand is taken.
    Diagonal,
    /// Modes change places.
    Permutation,
    /// A product is multiplied by the number before it.
    Scaling,
    /// Products are added.
    Sum,
    /// The function of the result is taken.
    Function,
}

impl LargeStep {
    /// Returns a word for what is done.
    pub fn verb(self) -> &'static str {
        match self {
            LargeStep::Count => "count",
            LargeStep::Diagonal => "diagonal",
            LargeStep::Permutation => "permute",
            LargeStep::Scaling => "scale",
            LargeStep::Sum => "add",
            LargeStep::Function => "map",
        }
    }
}

impl fmt::Display for LargeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LargeStep::Count => "the counting of joins",
            LargeStep::Diagonal => "the diagonal of an operand",
            LargeStep::Permutation => "the permutation of modes",
            LargeStep::Scaling => "the product with a number",
            LargeStep::Sum => "the sum of products",
            LargeStep::Function => "the function of all elements",
        })
    }
}

/// Takes the diagonal of `tensor` that `access` reads.
pub(super) fn diagonal<V: Value, E: Evaluator<V>>(
    access: &Access,
    tensor: Tensor<V>,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    let (places, step) = (access.diagonal(), LargeStep::Diagonal);
    match tensor {
        Tensor::Sparse(list) => {
            let bits = list.nnz() as u64 / 8;
            let counted = evaluator.large_step(step, bits, || list.diagonal(&places))?;
            let counted = counted.map_err(CoreError::from)?;
            let taken = evaluator.large_step(step, counted.bytes(), || counted.list())?;
            Ok(Tensor::Sparse(taken))
        }
        Tensor::Dense(array) => {
            let bytes = (array.len() * V::BYTES) as u64;
            // A cell of the result for each of the first modes, those whose number is new.
            let repeated = (0..places.len()).filter(|&mode| places[..mode].contains(&places[mode]));
            let cells = repeated.fold(bytes, |n, mode| n / (array.shape()[mode] as u64).max(1));
            let taken = evaluator.large_step(step, cells, || dense_diagonal(&array, &places))?;
            Ok(Tensor::Dense(taken?))
        }
    }
}

/// Brings the modes of `tensor` into another order: see [`Tensor::permuted`].
pub(super) fn permuted<V: Value, E: Evaluator<V>>(
    tensor: Tensor<V>,
    modes: &[usize],
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    let tensor = tensor.with_modes(modes)?;
    let bytes = tensor.bytes_to_order();
    Ok(evaluator.large_step(LargeStep::Permutation, bytes, || tensor.ordered())??)
}

/// Multiplies `tensor` by `factor`.
pub(super) fn scaled<V: Value, E: Evaluator<V>>(
    tensor: Tensor<V>,
    factor: f64,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    if factor == 1.0 {
        return Ok(tensor);
    }
    let bytes = match &tensor {
        Tensor::Dense(_) => 0,
        Tensor::Sparse(list) => list.bytes_to_map(),
    };
    evaluator.large_step(LargeStep::Scaling, bytes, || tensor.scaled(factor))
}

/// Adds two tensors: the sum is a list if both are.
pub(super) fn sum<V: Value, E: Evaluator<V>>(
    sum: Tensor<V>,
    term: Tensor<V>,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    let step = LargeStep::Sum;
    match (sum, term) {
        (Tensor::Sparse(a), Tensor::Sparse(b)) => {
            let bytes = a.union_bytes(&b);
            let union = evaluator.large_step(step, bytes, || a.union(b))?;
            let union = union.map_err(CoreError::from)?;
            let sum = evaluator.large_step(step, union.sum_bytes(), || union.sum())?;
            Ok(Tensor::Sparse(sum.map_err(CoreError::from)?))
        }
        (Tensor::Dense(array), other) | (other, Tensor::Dense(array)) => {
            Ok(evaluator.large_step(step, 0, || other.added_to(array))??)
        }
    }
}

/// Applies `function` to some elements of `tensor`.
pub(super) fn mapped<V: Value, E: Evaluator<V>>(
    tensor: Tensor<V>,
    function: Function,
    elements: Elements,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    let bytes = tensor.bytes_to_map(function, elements);
    let map = || match elements {
        Elements::All => tensor.map(function),
        Elements::NonZeros => tensor.map_non_zeros(function),
    };
    Ok(evaluator.large_step(LargeStep::Function, bytes, map)??)
}
