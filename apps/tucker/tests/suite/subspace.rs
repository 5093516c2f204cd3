//! The subspace of an update against a dense singular value decomposition.

use decompose_tucker::{Start, TuckerConfig};
use faer::Mat;
use ndarray::{Array2, ArrayD, Dimension, IxDyn};

use crate::common::{self, densify};

/// Multiplies the dense tensor in `mode` by the transposed factor, naively.
fn shrink(cells: &ArrayD<f64>, mode: usize, factor: &Array2<f64>) -> ArrayD<f64> {
    let mut shape = cells.shape().to_vec();
    shape[mode] = factor.ncols();
    let mut out = ArrayD::zeros(IxDyn(&shape));
    for (at, value) in cells.indexed_iter().filter(|(_, value)| **value != 0.0) {
        let mut to = at.as_array_view().to_vec();
        for r in 0..factor.ncols() {
            let i = at[mode];
            to[mode] = r;
            out[IxDyn(&to)] += value * factor[(i, r)];
        }
    }
    out
}

/// Returns the leading left singular vectors of the unfolding in `mode`, by a dense SVD.
fn leading(cells: &ArrayD<f64>, mode: usize, count: usize) -> Array2<f64> {
    let rows = cells.shape()[mode];
    let width = cells.len() / rows;
    let mut axes = vec![mode];
    axes.extend((0..cells.ndim()).filter(|&m| m != mode));
    let moved = cells.view().permuted_axes(IxDyn(&axes));
    let elements: Vec<f64> = moved.iter().copied().collect();
    let matrix = Mat::from_fn(rows, width, |i, j| elements[i * width + j]);
    let svd = matrix.thin_svd().unwrap();
    Array2::from_shape_fn((rows, count), |(i, k)| svd.U()[(i, k)])
}

fn widened(factor: &decompose_formats::Matrix<f64>) -> Array2<f64> {
    factor.view().to_owned()
}

#[test]
fn one_iteration_is_that_of_dense_decompositions() {
    // The long mode, the short ones, one whose TTMc is wide; Gram matrices large enough to iterate
    // on, of columns and of rows; and sizes that are left to products.
    for (extents, ranks, density) in [
        (&[400_u64, 12, 10][..], &[5, 4, 4][..], 0.3),
        (&[30, 30, 30], &[6, 6, 6], 0.3),
        (&[10, 9, 8, 7], &[3, 3, 2, 3], 0.3),
        (&[420, 24, 20], &[4, 20, 18], 0.1),
        (&[300, 24, 20], &[4, 20, 18], 0.1),
        (&[1000, 33, 33], &[1, 32, 32], 0.01),
    ] {
        let coo = common::sparse::<f64>(extents, density, 11);
        let start = common::run(&coo, Start::Random, &TuckerConfig::new(ranks.to_vec())).model;
        let mut config = TuckerConfig::new(ranks.to_vec());
        config.stop.max_iters = 1;
        let mut dense: Vec<Array2<f64>> = start.factors().iter().map(widened).collect();
        for whole in [None, Some(0)] {
            let factors = start.factors().iter().map(|f| f.try_clone().unwrap()).collect();
            let mut engine = common::engine(common::clone(&coo), &config, whole);
            let outcome =
                decompose_tucker::solve(&mut engine, Start::Factors(factors), &config, &mut |_| {
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap();
            dense = start.factors().iter().map(widened).collect();
            let cells = densify(&coo);
            for mode in 0..extents.len() {
                let others = (0..extents.len()).filter(|&m| m != mode);
                let shrunk = others.fold(cells.clone(), |c, m| shrink(&c, m, &dense[m]));
                dense[mode] = leading(&shrunk, mode, ranks[mode]);
            }
            for (mode, want) in dense.iter().enumerate() {
                let have = widened(&outcome.model.factors()[mode]);
                // Both are orthonormal: the distance of the spans is that of the projectors.  Gaps
                // between the singular values of these tensors are a few percent, so the vectors
                // hold all but three digits.
                let apart = have.dot(&have.t()) - want.dot(&want.t());
                let apart = apart.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
                assert!(apart < 1e-11, "{extents:?} mode {mode} {whole:?}: {apart:e}");
            }
        }
        assert_eq!(dense.len(), extents.len());
    }
}
