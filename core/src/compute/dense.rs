//! Products of dense tensors only, as products of matrices.

use decompose_formats::{DenseTensor, Value};
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayD, ArrayView2, ArrayViewMut2, Axis, IxDyn, ShapeError};
use rayon::prelude::*;

use crate::einsum::{Access, Expr, Extents, Index, IndexSet};
use crate::error::CoreError;

/// Rows of a matrix product that a task computes.
const ROWS: usize = 256;

/// Products of two numbers that a task computes at least.
const FEW: usize = 1 << 12;

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
    let mut extents = Extents::default();
    for (access, operand) in expr.inputs.iter().zip(operands) {
        if access.indices.len() != operand.ndim() {
            let why = format!("{access} has not {} modes", operand.ndim());
            return Err(CoreError::Operand { operand: access.tensor.clone(), why });
        }
        for (&index, &extent) in access.indices.iter().zip(operand.shape()) {
            let extent = extent as u64;
            if let Some(before) = extents.set(index, extent).filter(|&before| before != extent) {
                let why = format!("{index} runs to {extent} here, to {before} before");
                return Err(CoreError::Operand { operand: access.tensor.clone(), why });
            }
        }
        let array = operand.mapv(|value| value.to_f64());
        factors.push(Factor { indices: access.indices.clone(), array });
    }
    while factors.len() > 1 {
        let sets: Vec<IndexSet> = factors.iter().map(Factor::set).collect();
        let (a, b) = smallest(&sets, expr.output.set(), &extents);
        let (second, first) = (factors.remove(b), factors.remove(a));
        let keep = factors.iter().fold(expr.output.set(), |set, factor| set | factor.set());
        factors.push(product(first, second, keep)?);
    }
    let last = factors.pop().ok_or_else(|| CoreError::Internal("a product of nothing".into()))?;
    let last = last.summed(expr.output.set()).ordered(&expr.output.indices);
    let rounded = last.array.mapv(V::from_f64);
    drop(last);
    match rounded.is_standard_layout() {
        true => Ok(rounded),
        false => Ok(rounded.as_standard_layout().into_owned()),
    }
}

/// Returns the most bytes that [`contract_dense`] takes beside its operands.
pub fn dense_bytes(expr: &Expr, extents: &Extents) -> u64 {
    let elements = |set: IndexSet| cells(set, extents);
    let mut sets: Vec<IndexSet> = expr.inputs.iter().map(Access::set).collect();
    let mut most = sets.iter().map(|&set| elements(set)).fold(0, u64::saturating_add);
    while sets.len() > 1 {
        let (a, b) = smallest(&sets, expr.output.set(), extents);
        let (second, first) = (sets.remove(b), sets.remove(a));
        let held = sets.iter().map(|&set| elements(set)).fold(0, u64::saturating_add);
        let keep = sets.iter().fold(expr.output.set(), |set, &own| set | own);
        let product = (first | second) & keep;
        // A factor is given up as soon as it stands as matrices, and both when they are multiplied.
        let (first, second) = (elements(first), elements(second));
        let more = first.max(second).max(elements(product));
        let pair = first.saturating_add(second).saturating_add(more);
        most = most.max(held.saturating_add(pair));
        sets.push(product);
    }
    // The result is rounded into another array, and ordered into one.
    most.max(elements(expr.output.set()).saturating_mul(2)).saturating_mul(size_of::<f64>() as u64)
}

/// Returns the number of cells of an array over `indices`; saturates.
fn cells(indices: IndexSet, extents: &Extents) -> u64 {
    indices.iter().map(|index| extents.of(index)).fold(1, u64::saturating_mul)
}

/// Returns the two factors, of which these are the indices, whose product has the fewest elements.
fn smallest(factors: &[IndexSet], output: IndexSet, extents: &Extents) -> (usize, usize) {
    let pairs = (0..factors.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let elements = |&(a, b): &(usize, usize)| {
        let others = (0..factors.len()).filter(|&at| at != a && at != b);
        let keep = others.fold(output, |set, at| set | factors[at]);
        cells((factors[a] | factors[b]) & keep, extents)
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
    fn matrices(self, outer: &[Index], rows: &[Index], cols: &[Index]) -> Matrices {
        let size = |indices: &[Index]| -> usize {
            indices.iter().filter_map(|&index| self.extent(index)).product()
        };
        let (height, width) = (size(rows), size(cols));
        let order: Vec<Index> = [outer, rows, cols].concat();
        let elements = self.ordered(&order).array.iter().copied().collect();
        Matrices { elements, height, width }
    }
}

/// Matrices of one shape, one behind the other.
struct Matrices {
    elements: Vec<f64>,
    height: usize,
    width: usize,
}

impl Matrices {
    /// Returns each matrix.
    fn each(&self) -> impl IndexedParallelIterator<Item = &[f64]> {
        self.elements.par_chunks((self.height * self.width).max(1))
    }

    /// Multiplies each of these matrices with one of `right`.
    fn times(&self, right: &Matrices) -> Result<Vec<f64>, CoreError> {
        let (rows, inner, cols) = (self.height, self.width, right.width);
        let each = (rows * inner).max(1);
        let mut products = vec![0.0; self.elements.len() / each * rows * cols];
        let pairs = self.each().zip(right.each());
        if rows * cols == 1 {
            let few = products.par_iter_mut().with_min_len(FEW);
            few.zip(pairs).for_each(|(product, (left, right))| {
                *product = left.iter().zip(right).map(|(left, right)| left * right).sum();
            });
            return Ok(products);
        }
        let blocks = products.par_chunks_mut((rows * cols).max(1));
        let fits = |error: ShapeError| CoreError::Internal(error.to_string());
        blocks.zip(pairs).try_for_each(|(block, (left, right))| {
            let left = ArrayView2::from_shape((rows, inner), left).map_err(fits)?;
            let right = ArrayView2::from_shape((inner, cols), right).map_err(fits)?;
            let block = ArrayViewMut2::from_shape((rows, cols), block).map_err(fits)?;
            multiply(&left, &right, block);
            Ok::<(), CoreError>(())
        })?;
        Ok(products)
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
    let shape: Vec<usize> = [&outer, &rows, &cols]
        .into_iter()
        .flatten()
        .filter_map(|&index| a.extent(index).or(b.extent(index)))
        .collect();
    let indices = [outer.as_slice(), &rows, &cols].concat();
    let left = a.matrices(&outer, &rows, &inner);
    let elements = left.times(&b.matrices(&outer, &inner, &cols))?;
    let array = ArrayD::from_shape_vec(IxDyn(&shape), elements);
    let array = array.map_err(|error| CoreError::Internal(error.to_string()))?;
    Ok(Factor { indices, array })
}

/// Multiplies two matrices into `product`, some rows a task.
fn multiply(
    left: &ArrayView2<'_, f64>,
    right: &ArrayView2<'_, f64>,
    mut product: ArrayViewMut2<'_, f64>,
) {
    let blocks = product.axis_chunks_iter_mut(Axis(0), ROWS);
    let pairs: Vec<_> = left.axis_chunks_iter(Axis(0), ROWS).zip(blocks).collect();
    pairs.into_par_iter().for_each(|(left, mut block)| {
        general_mat_mul(1.0, &left, right, 0.0, &mut block);
    });
}
