//! Dense tensors as kernels read them.

use decompose_formats::{DenseTensor, Matrix, Value};
use ndarray::{ArrayBase, ArrayViewD, Axis as Dimension, Data, Ix1, IxDyn};

use crate::contract::split::Axis;
use crate::error::CoreError;

/// Copies `tensor` to a matrix over `axes`: the last along a row, padded, all others flattened; zero where the axes go
/// beyond the tensor.
///
/// # Errors
///
/// If there is no memory.
pub(super) fn pack<V: Value>(
    tensor: &ArrayViewD<V>,
    axes: &[Axis],
) -> Result<Matrix<V>, CoreError> {
    let (cols, step) = axes.last().map_or((1, 1), |last| (last.extent, last.step));
    let mut matrix = Matrix::zeros(rows(axes), cols)?;
    let mut place = vec![0; axes.len()];
    for row in 0..matrix.rows() {
        if let Some(elements) = lane(tensor.view(), axes, &place) {
            let target = matrix.row_mut(row).iter_mut();
            target
                .zip(elements.iter().step_by(step))
                .for_each(|(target, &element)| *target = element);
        }
        advance(&mut place, axes);
    }
    Ok(matrix)
}

/// Copies a packed tensor over `axes` back to one of `shape`.
///
/// # Panics
///
/// If the matrix has not the rows and columns of the axes.
pub(super) fn unpack<V: Value>(
    matrix: &Matrix<V>,
    axes: &[Axis],
    shape: &[usize],
) -> DenseTensor<V> {
    let mut tensor = DenseTensor::from_elem(IxDyn(shape), V::default());
    let step = axes.last().map_or(1, |last| last.step);
    let mut place = vec![0; axes.len()];
    for row in 0..matrix.rows() {
        if let Some(mut elements) = lane(tensor.view_mut(), axes, &place) {
            let elements = elements.iter_mut().step_by(step);
            elements.zip(matrix.row(row)).for_each(|(element, &packed)| *element = packed);
        }
        advance(&mut place, axes);
    }
    tensor
}

/// The rows of a tensor over `axes`.
fn rows(axes: &[Axis]) -> usize {
    let outer = &axes[..axes.len().saturating_sub(1)];
    outer.iter().map(|axis| axis.extent).product()
}

/// Moves on to the next row.
fn advance(place: &mut [usize], axes: &[Axis]) {
    for at in (0..axes.len().saturating_sub(1)).rev() {
        place[at] += 1;
        if place[at] < axes[at].extent {
            return;
        }
        place[at] = 0;
    }
}

/// Returns for each axis of a tensor of `ndim` axes where the row at `place` begins.
fn begins(ndim: usize, axes: &[Axis], place: &[usize]) -> Vec<usize> {
    let mut begins = vec![0; ndim];
    for (axis, at) in axes.iter().zip(place) {
        begins[axis.of] += at * axis.step;
    }
    begins
}

/// Returns the elements of the whole tensor, or a view of it, from where the row at `place` begins, along the axis of rows;
/// `None` beyond the tensor.
fn lane<S: Data>(
    mut tensor: ArrayBase<S, IxDyn>,
    axes: &[Axis],
    place: &[usize],
) -> Option<ArrayBase<S, Ix1>> {
    let begins = begins(tensor.ndim(), axes, place);
    let Some(last) = axes.last() else {
        return tensor.insert_axis(Dimension(0)).into_dimensionality().ok();
    };
    for (axis, &begin) in begins.iter().enumerate().rev() {
        if begin >= tensor.shape()[axis] {
            return None;
        }
        if axis == last.of {
            tensor.slice_axis_inplace(Dimension(axis), (begin..).into());
        } else {
            tensor = tensor.index_axis_move(Dimension(axis), begin);
        }
    }
    tensor.into_dimensionality().ok()
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn};

    use super::{pack, unpack};
    use crate::contract::split::Axis;

    fn numbered(shape: &[usize]) -> ArrayD<f64> {
        let len: usize = shape.iter().product();
        let elements = (0..len).map(|n| n as f64 + 1.0).collect();
        ArrayD::from_shape_vec(IxDyn(shape), elements).unwrap()
    }

    #[test]
    fn packing_keeps_every_element() {
        for shape in [vec![], vec![5], vec![3, 9], vec![2, 3, 4]] {
            let tensor = numbered(&shape);
            let whole = |(of, &extent): (usize, &usize)| Axis { of, step: 1, extent };
            let mut axes: Vec<Axis> = shape.iter().enumerate().map(whole).collect();
            for _ in 0..shape.len().max(1) {
                let packed = pack(&tensor.view(), &axes).unwrap();
                assert_eq!(unpack(&packed, &axes, &shape), tensor);
                let by = usize::from(!axes.is_empty());
                axes.rotate_left(by);
            }
        }
    }

    #[test]
    fn pieces_are_zero_beyond_the_tensor() {
        let tensor = numbered(&[3, 10]);
        let part = |of, step, extent| Axis { of, step, extent };
        // Pieces of four columns, one after the other.
        let axes = [part(1, 4, 3), part(0, 1, 3), part(1, 1, 4)];
        let packed = pack(&tensor.view(), &axes).unwrap();
        assert_eq!(&packed.row(0)[..4], [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(&packed.row(4)[..4], [15.0, 16.0, 17.0, 18.0]);
        assert_eq!(&packed.row(6)[..4], [9.0, 10.0, 0.0, 0.0]);
        assert_eq!(unpack(&packed, &axes, &[3, 10]), tensor);
        // The pieces along a row.
        let axes = [part(1, 1, 4), part(0, 1, 3), part(1, 4, 3)];
        let packed = pack(&tensor.view(), &axes).unwrap();
        assert_eq!(&packed.row(7)[..3], [13.0, 17.0, 0.0]);
        assert_eq!(unpack(&packed, &axes, &[3, 10]), tensor);
    }
}
