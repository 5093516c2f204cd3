//! Dense tensors as kernels read them.

use decompose_formats::{DenseTensor, Matrix, Value};
use ndarray::{ArrayViewD, IxDyn};

use crate::error::CoreError;

/// Copies `tensor` to a matrix of its rows: the last index along a row, padded, all others
/// flattened.
///
/// # Errors
///
/// If there is no memory.
pub(super) fn pack<V: Value>(tensor: &ArrayViewD<V>) -> Result<Matrix<V>, CoreError> {
    let cols = tensor.shape().last().copied().unwrap_or(1);
    let rows = tensor.len() / cols.max(1);
    let mut matrix = Matrix::zeros(rows, cols)?;
    let mut elements = tensor.iter().copied();
    for row in 0..rows {
        let target = matrix.row_mut(row).iter_mut();
        target.zip(elements.by_ref()).for_each(|(target, element)| *target = element);
    }
    Ok(matrix)
}

/// Copies a packed tensor of `shape` back.
///
/// # Panics
///
/// If the matrix has not the rows and columns of the shape.
pub(super) fn unpack<V: Value>(matrix: &Matrix<V>, shape: &[usize]) -> DenseTensor<V> {
    let mut elements = Vec::with_capacity(matrix.rows() * matrix.cols());
    (0..matrix.rows()).for_each(|row| elements.extend_from_slice(matrix.row(row)));
    let tensor = DenseTensor::from_shape_vec(IxDyn(shape), elements);
    tensor.expect("the rows and columns of the shape")
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn};

    use super::{pack, unpack};

    #[test]
    fn packing_keeps_every_element() {
        for shape in [vec![], vec![5], vec![3, 9], vec![2, 3, 4]] {
            let len: usize = shape.iter().product();
            let elements = (0..len).map(|n| n as f64).collect();
            let tensor = ArrayD::from_shape_vec(IxDyn(&shape), elements).unwrap();
            assert_eq!(unpack(&pack(&tensor.view()).unwrap(), &shape), tensor);
        }
    }
}
