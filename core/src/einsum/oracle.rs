//! The naive evaluation that defines what an expression means.

use decompose_formats::DenseTensor;
use ndarray::IxDyn;

use crate::einsum::{Assignment, Expr, Extents, Index};

/// Evaluates `expr` on dense operands, one loop an index around one product.
///
/// Time `O(product of all extents)`; for tests only.
///
/// # Panics
///
/// If the operands' shapes do not fit the expression.
pub fn evaluate(expr: &Expr, operands: &[DenseTensor<f64>]) -> DenseTensor<f64> {
    let extents = extents(expr, operands);
    let loops: Vec<Index> = expr.all().iter().collect();
    let shape: Vec<usize> = expr.output.indices.iter().map(|&i| extents.of(i) as usize).collect();
    let mut output = DenseTensor::zeros(IxDyn(&shape));
    let total: u64 = loops.iter().map(|&index| extents.of(index)).product();
    let mut at = [0usize; Index::COUNT];
    for mut flat in 0..total {
        for &index in loops.iter().rev() {
            at[index.number()] = (flat % extents.of(index)) as usize;
            flat /= extents.of(index);
        }
        let place = |indices: &[Index]| -> Vec<usize> {
            indices.iter().map(|index| at[index.number()]).collect()
        };
        let factors = expr.inputs.iter().zip(operands);
        let product: f64 = factors.map(|(access, x)| x[IxDyn(&place(&access.indices))]).product();
        output[IxDyn(&place(&expr.output.indices))] += product;
    }
    output
}

/// Evaluates `assignment` on dense operands, one for each of its [`Assignment::inputs`].
///
/// Time as [`evaluate`], for each summand; for tests only.
///
/// # Panics
///
/// As [`evaluate`].
pub fn assign(assignment: &Assignment, operands: &[DenseTensor<f64>]) -> DenseTensor<f64> {
    let mut rest = operands;
    let mut sum: Option<DenseTensor<f64>> = None;
    for summand in &assignment.summands {
        let (own, after) = rest.split_at(summand.inputs.len());
        rest = after;
        let (output, inputs) = (assignment.output.clone(), summand.inputs.clone());
        let term = evaluate(&Expr { output, inputs }, own) * summand.factor;
        sum = Some(sum.map_or(term.clone(), |sum| sum + term));
    }
    let mut sum = sum.expect("a summand").as_standard_layout().into_owned();
    if let Some(function) = assignment.function {
        let row = sum.shape().last().copied().unwrap_or(1).max(1);
        let elements = sum.as_slice_mut().expect("standard layout");
        elements.chunks_mut(row).for_each(|row| function.apply(row));
    }
    sum
}

fn extents(expr: &Expr, operands: &[DenseTensor<f64>]) -> Extents {
    assert_eq!(expr.inputs.len(), operands.len(), "one operand an input");
    let mut extents = Extents::default();
    for (access, operand) in expr.inputs.iter().zip(operands) {
        assert_eq!(access.indices.len(), operand.ndim(), "order of {access}");
        for (&index, &extent) in access.indices.iter().zip(operand.shape()) {
            let before = extents.set(index, extent as u64);
            assert!(before.is_none_or(|before| before == extent as u64), "extent of {index}");
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, arr1, arr2};

    use super::evaluate;

    #[test]
    fn a_matrix_product() {
        let a = arr2(&[[1.0, 2.0], [3.0, 4.0]]).into_dyn();
        let b = arr2(&[[5.0, 6.0], [7.0, 8.0]]).into_dyn();
        let product = evaluate(&"ij,jk->ik".parse().unwrap(), &[a, b]);
        assert_eq!(product, arr2(&[[19.0, 22.0], [43.0, 50.0]]).into_dyn());
    }

    #[test]
    fn a_sum_to_a_scalar() {
        let x = arr1(&[1.0, 2.0, 3.0]).into_dyn();
        let sum = evaluate(&"i->".parse().unwrap(), &[x]);
        assert_eq!(sum, ArrayD::from_elem(IxDyn(&[]), 6.0));
    }
}
