//! The naive evaluation that defines what an expression means.

use decompose_formats::DenseTensor;
use ndarray::IxDyn;

use crate::einsum::{Expr, Extents, Index};

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
