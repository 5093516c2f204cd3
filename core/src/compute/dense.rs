//! Products of dense tensors only, as products of matrices.

use decompose_formats::{DenseTensor, Value};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayD, Axis, IxDyn};
use rayon::prelude::*;

use crate::einsum::{Expr, Index, IndexSet};
use crate::error::CoreError;

/// Rows of a matrix product that a task computes.
const ROWS: usize = 256;

/// An array with the index of each axis.
struct Factor {
    indices: Vec<Index>,
    array: ArrayD<f64>,
}

/// Computes a product of dense operands, one an input of `expr`, in double precision, rounded at the end.
///
/// Two operands are contracted at a time, first those whose product is smallest, each time as matrix products over the
/// indices that nothing else has.  Parallel; the same bits whatever the number of threads.
///
/// # Errors
///
/// [`CoreError::Operand`] if an operand's shape is not that of the expression.
pub fn contract_dense<V: Value>(
    expr: &Expr,
    operands: &[&DenseTensor<V>],
) -> Result<DenseTensor<V>, CoreError> {
    let mut factors = Vec::with_capacity(operands.len());
    for (access, operand) in expr.inputs.iter().zip(operands) {
        if access.indices.len() != operand.ndim() {
            let why = format!("{access} has not {} modes", operand.ndim());
            return Err(CoreError::Operand { operand: access.tensor.clone(), why });
        }
        let array = operand.mapv(|value| value.to_f64());
        factors.push(Factor { indices: access.indices.clone(), array });
    }
    while factors.len() > 1 {
        let (a, b) = smallest(&factors, expr);
        let (second, first) = (factors.remove(b), factors.remove(a));
        let keep = factors.iter().fold(expr.output.set(), |set, factor| set | factor.set());
        factors.push(product(first, second, keep)?);
    }
    let last = factors.pop().ok_or_else(|| CoreError::Internal("a product of nothing".into()))?;
    let last = last.summed(expr.output.set()).ordered(&expr.output.indices);
    Ok(last.array.mapv(V::from_f64).as_standard_layout().into_owned())
}

/// Returns the two factors whose product has the fewest elements.
fn smallest(factors: &[Factor], expr: &Expr) -> (usize, usize) {
    let pairs = (0..factors.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let elements = |&(a, b): &(usize, usize)| {
        let others = (0..factors.len()).filter(|&at| at != a && at != b);
        let keep = others.fold(expr.output.set(), |set, at| set | factors[at].set());
        let product = (factors[a].set() | factors[b].set()) & keep;
        let extent = |index| factors[a].extent(index).or(factors[b].extent(index)).unwrap_or(1);
        product.iter().map(extent).fold(1_usize, usize::saturating_mul)
    };
    pairs.min_by_key(elements).unwrap_or((0, 1))
}

impl Factor {
    fn set(&self) -> IndexSet {
        self.indices.iter().copied().collect()
    }

    fn extent(&self, index: Index) -> Option<usize> {
        let at = self.indices.iter().position(|&own| own == index)?;
        Some(self.array.shape()[at])
    }

    /// Sums over the indices that are not in `keep`.
    fn summed(mut self, keep: IndexSet) -> Factor {
        for at in (0..self.indices.len()).rev() {
            if !keep.contains(self.indices[at]) {
                self.array = self.array.sum_axis(Axis(at));
                self.indices.remove(at);
            }
        }
        self
    }

    /// Brings the axes into the order `indices`, which are all of them.
    fn ordered(self, indices: &[Index]) -> Factor {
        let place = |index: &Index| self.indices.iter().position(|own| own == index);
        let axes: Vec<usize> = indices.iter().filter_map(place).collect();
        Factor { indices: indices.to_vec(), array: self.array.permuted_axes(IxDyn(&axes)) }
    }

    /// Returns the matrices for each value of the `outer` indices, with the `rows` and the `cols` flattened.
    fn matrices(self, outer: &[Index], rows: &[Index], cols: &[Index]) -> Vec<Array2<f64>> {
        let size = |indices: &[Index]| -> usize {
            indices.iter().filter_map(|&index| self.extent(index)).product()
        };
        let (count, height, width) = (size(outer), size(rows), size(cols));
        let order: Vec<Index> = [outer, rows, cols].concat();
        let ordered = self.ordered(&order).array;
        let elements: Vec<f64> = ordered.iter().copied().collect();
        let cut = |at: usize| {
            let own = elements[at * height * width..(at + 1) * height * width].to_vec();
            Array2::from_shape_vec((height, width), own)
        };
        (0..count).filter_map(|at| cut(at).ok()).collect()
    }
}

/// Multiplies two factors and sums over what is not in `keep`.
fn product(a: Factor, b: Factor, keep: IndexSet) -> Result<Factor, CoreError> {
    let (own, other) = (a.set(), b.set());
    let (a, b) = (a.summed(keep | other), b.summed(keep | own));
    let list = |set: IndexSet| set.iter().collect::<Vec<Index>>();
    let shared = a.set() & b.set();
    let (outer, inner) = (list(shared & keep), list(shared - keep));
    let (rows, cols) = (list(a.set() - shared), list(b.set() - shared));
    for &index in outer.iter().chain(&inner) {
        if a.extent(index) != b.extent(index) {
            let why = format!("index {index} has two extents");
            return Err(CoreError::Operand { operand: "of a dense product".into(), why });
        }
    }
    let shape: Vec<usize> = [&outer, &rows, &cols]
        .into_iter()
        .flatten()
        .filter_map(|&index| a.extent(index).or(b.extent(index)))
        .collect();
    let indices = [outer.as_slice(), &rows, &cols].concat();
    let left = a.matrices(&outer, &rows, &inner);
    let right = b.matrices(&outer, &inner, &cols);
    let elements: Vec<f64> =
        left.iter().zip(&right).flat_map(|(left, right)| multiply(left, right)).collect();
    let array = ArrayD::from_shape_vec(IxDyn(&shape), elements);
    let array = array.map_err(|error| CoreError::Internal(error.to_string()))?;
    Ok(Factor { indices, array })
}

/// Multiplies two matrices, some rows a task.
fn multiply(left: &Array2<f64>, right: &Array2<f64>) -> Vec<f64> {
    let (rows, cols) = (left.nrows(), right.ncols());
    let mut product = Array2::zeros((rows, cols));
    let blocks = product.axis_chunks_iter_mut(Axis(0), ROWS);
    let pairs: Vec<_> = left.axis_chunks_iter(Axis(0), ROWS).zip(blocks).collect();
    pairs.into_par_iter().for_each(|(left, mut block)| {
        general_mat_mul(1.0, &left, right, 0.0, &mut block);
    });
    product.into_raw_vec_and_offset().0
}
