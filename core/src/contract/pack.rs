//! Dense tensors as kernels read them.

use decompose_formats::{DenseTensor, Matrix, Value};
use ndarray::{ArrayViewD, IxDyn};

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
    let cols = axes.last().map_or(1, |last| last.extent);
    let mut rows = Rows::new(tensor.shape(), axes);
    let mut matrix = Matrix::zeros(rows.count(), cols)?;
    let tensor = tensor.as_standard_layout();
    let Some(elements) = tensor.as_slice() else {
        return Err(CoreError::Internal("an array whose elements are not in order".into()));
    };
    for row in 0..matrix.rows() {
        if let Some(place) = rows.next() {
            let own = elements[place.first..].iter().step_by(place.step);
            let target = matrix.row_mut(row)[..place.count].iter_mut();
            target.zip(own).for_each(|(target, &element)| *target = element);
        }
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
    let mut rows = Rows::new(shape, axes);
    let elements = tensor.as_slice_mut().expect("a new array has its elements in order");
    for row in 0..matrix.rows() {
        if let Some(place) = rows.next() {
            let own = elements[place.first..].iter_mut().step_by(place.step);
            let packed = &matrix.row(row)[..place.count];
            own.zip(packed).for_each(|(element, &packed)| *element = packed);
        }
    }
    tensor
}

/// The rows of a tensor over axes, one after the other.
struct Rows<'a> {
    axes: &'a [Axis],
    shape: &'a [usize],
    /// Elements from one to the next along each axis of the tensor.
    strides: Vec<usize>,
    /// The place of the next row along each axis; the last one is that of rows.
    place: Vec<usize>,
    /// Where that row begins along each axis of the tensor.
    begins: Vec<usize>,
}

/// Where the elements of a row stand in a tensor.
struct Place {
    first: usize,
    /// From one to the next.
    step: usize,
    /// How many the tensor has of them.
    count: usize,
}

impl<'a> Rows<'a> {
    fn new(shape: &'a [usize], axes: &'a [Axis]) -> Rows<'a> {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Rows { axes, shape, strides, place: vec![0; axes.len()], begins: vec![0; shape.len()] }
    }

    /// Returns how many rows there are.
    fn count(&self) -> usize {
        let outer = &self.axes[..self.axes.len().saturating_sub(1)];
        outer.iter().map(|axis| axis.extent).product()
    }

    /// Returns where the next row stands; `None` for one beyond the tensor.
    fn next(&mut self) -> Option<Place> {
        self.begins.fill(0);
        for (axis, at) in self.axes.iter().zip(&self.place) {
            self.begins[axis.of] += at * axis.step;
        }
        self.advance();
        let mut first = 0;
        for ((&begin, &extent), stride) in self.begins.iter().zip(self.shape).zip(&self.strides) {
            if begin >= extent {
                return None;
            }
            first += begin * stride;
        }
        Some(match self.axes.last() {
            None => Place { first, step: 1, count: 1 },
            Some(last) => {
                let left = (self.shape[last.of] - self.begins[last.of]).div_ceil(last.step);
                let step = last.step * self.strides[last.of];
                Place { first, step, count: last.extent.min(left) }
            }
        })
    }

    /// Moves on to the row behind the next one.
    fn advance(&mut self) {
        for at in (0..self.axes.len().saturating_sub(1)).rev() {
            self.place[at] += 1;
            if self.place[at] < self.axes[at].extent {
                return;
            }
            self.place[at] = 0;
        }
    }
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
