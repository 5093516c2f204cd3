//! Algebra on the core: a small dense tensor, `R_1 x ... x R_N`.

use decompose_common::linalg::matmul;
use decompose_formats::Unit;
use ndarray::{Array2, ArrayD, ArrayView2, ArrayViewD, Axis, IxDyn};

/// Returns the unfolding in `mode`: `R_n x prod_{m != n} R_m`, the other modes in their order.
pub(crate) fn unfold(core: &ArrayD<f64>, mode: usize) -> Array2<f64> {
    let mut axes: Vec<usize> = vec![mode];
    axes.extend((0..core.ndim()).filter(|&m| m != mode));
    let moved = core.view().permuted_axes(IxDyn(&axes));
    let rows = core.shape()[mode];
    let width = core.len() / rows.max(1);
    let elements = moved.iter().copied().collect();
    Array2::from_shape_vec((rows, width), elements).expect("as many elements")
}

/// Returns the bytes of the copies of a core of `ranks` that it is arranged in, beside the first; saturates.
pub fn core_bytes(ranks: &[usize]) -> u64 {
    let cells = ranks.iter().fold(1_u64, |cells, &rank| cells.saturating_mul(rank as u64));
    cells.saturating_mul(8 * 3)
}

/// Returns the tensor whose unfolding is `unfolded`: its rows are `mode`, its columns the other
/// modes in the order of `columns`, with the extents `shape` (by mode).
pub(crate) fn fold(
    unfolded: Array2<f64>,
    mode: usize,
    columns: &[usize],
    shape: &[usize],
) -> ArrayD<f64> {
    let stored: Vec<usize> = [mode].into_iter().chain(columns.iter().copied()).collect();
    let extents: Vec<usize> = stored.iter().map(|&m| shape[m]).collect();
    let unfolded = unfolded.as_standard_layout().into_owned().into_dyn();
    let tensor = unfolded.into_shape_with_order(IxDyn(&extents)).expect("as many elements");
    let place = |m: usize| stored.iter().position(|&s| s == m).unwrap_or(0);
    let axes: Vec<usize> = (0..shape.len()).map(place).collect();
    tensor.permuted_axes(IxDyn(&axes)).as_standard_layout().into_owned()
}

/// Returns the core multiplied in `mode` by `matrix` (`S x R_n`).
pub(crate) fn mode_product(
    core: &ArrayD<f64>,
    mode: usize,
    matrix: ArrayView2<'_, f64>,
) -> ArrayD<f64> {
    let product = matmul(matrix, unfold(core, mode).view());
    let mut shape = core.shape().to_vec();
    shape[mode] = matrix.nrows();
    let columns: Vec<usize> = (0..core.ndim()).filter(|&m| m != mode).collect();
    fold(product, mode, &columns, &shape)
}

/// Returns the sum of squares.
pub(crate) fn square(core: &ArrayD<f64>) -> f64 {
    core.iter().map(|x| x * x).sum()
}

/// Returns the norms of the slices of every mode: the singular values of the unfoldings, if the
/// slices are orthogonal.
pub fn slice_norms(core: &ArrayD<f64>) -> Vec<Vec<f64>> {
    let unit = Unit::of::<f64>(core.iter().fold(0.0, |most, x| most.max(x.abs())));
    let square = |x: &f64| unit.divide(*x).powi(2);
    let norm =
        |slice: ArrayViewD<'_, f64>| unit.multiply(slice.iter().map(square).sum::<f64>().sqrt());
    let norms = |mode: usize| core.axis_iter(Axis(mode)).map(norm).collect();
    (0..core.ndim()).map(norms).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfolding_and_folding_are_inverse() {
        let core = ArrayD::from_shape_fn(IxDyn(&[2, 3, 4]), |at| {
            (100 * at[0] + 10 * at[1] + at[2]) as f64
        });
        for mode in 0..3 {
            let columns: Vec<usize> = (0..3).filter(|&m| m != mode).collect();
            assert_eq!(fold(unfold(&core, mode), mode, &columns, core.shape()), core);
        }
        let swapped = Array2::from_shape_fn((2, 12), |(r, at)| core[[r, at % 3, at / 3]]);
        assert_eq!(fold(swapped, 0, &[2, 1], core.shape()), core);
        let twice = Array2::from_diag_elem(3, 2.0);
        assert_eq!(mode_product(&core, 1, twice.view()), &core * 2.0);
        let sum = Array2::ones((1, 4));
        let summed = mode_product(&core, 2, sum.view());
        assert_eq!((summed.shape(), summed[[1, 2, 0]]), (&[2, 3, 1][..], 486.0));
    }
}
