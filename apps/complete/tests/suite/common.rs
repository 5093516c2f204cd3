//! Tensors for the tests.

use std::ops::ControlFlow;

use decompose_common::rng::MatrixRng;
use decompose_complete::{
    CompleteConfig, CompleteOutcome, Data, EpochRecord, ModelKind, Network, SolverError, Start,
    solve, values_at,
};
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Ints, Matrix};

/// Keeps the cells of a box that `keep` accepts, by coordinates; values are zero.
pub(crate) fn cells(extents: &[u64], keep: impl Fn(&[u64]) -> bool) -> Coo<f64> {
    let mut columns: Vec<Vec<u32>> = vec![Vec::new(); extents.len()];
    let mut at = vec![0; extents.len()];
    for flat in 0..extents.iter().product::<u64>() {
        let mut rest = flat;
        for (coord, extent) in at.iter_mut().zip(extents).rev() {
            *coord = rest % extent;
            rest /= extent;
        }
        if keep(&at) {
            columns.iter_mut().zip(&at).for_each(|(column, &coord)| column.push(coord as u32));
        }
    }
    let values = vec![0.0; columns[0].len()];
    let columns = columns.into_iter().map(Ints::from).collect();
    Coo::new(extents.to_vec(), columns, values).expect("a tensor")
}

/// Keeps a share of the cells of a box, at random.
pub(crate) fn sample(extents: &[u64], share: f64, seed: u64) -> Coo<f64> {
    let rng = MatrixRng::new(seed, 99);
    let draw = |at: &[u64]| {
        let flat = at.iter().zip(extents).fold(0, |flat, (coord, extent)| flat * extent + coord);
        rng.uniform(flat, 0)
    };
    cells(extents, |at| draw(at) < share)
}

/// Gives a list other values.
pub(crate) fn with_values(tensor: &Coo<f64>, values: Vec<f64>) -> Coo<f64> {
    let (extents, coords, _) = tensor.clone().into_parts();
    Coo::new(extents, coords, values).expect("a tensor")
}

/// Makes random blocks for `kind` with elements in `[low, high)`.
pub(crate) fn blocks(
    kind: &ModelKind,
    extents: &[u64],
    seed: u64,
    (low, high): (f64, f64),
) -> (Network, Vec<Matrix<f64>>) {
    let network = Network::new(kind, extents);
    let shapes: Vec<(usize, usize)> = network.blocks().iter().map(|b| b.matrix()).collect();
    let made = shapes.into_iter().enumerate().map(|(at, (rows, cols))| {
        let rng = MatrixRng::new(seed, at as u64);
        let mut matrix = Matrix::zeros(rows, cols).expect("memory");
        for row in 0..rows {
            for (col, value) in matrix.row_mut(row).iter_mut().enumerate() {
                *value = low + (high - low) * rng.uniform(row as u64, col as u64);
            }
        }
        matrix
    });
    let made = made.collect();
    (network, made)
}

/// Plants a model of `kind` in the cells of `pattern`.
pub(crate) fn planted(
    pattern: &Coo<f64>,
    kind: &ModelKind,
    seed: u64,
    range: (f64, f64),
) -> Coo<f64> {
    let (network, blocks) = blocks(kind, pattern.extents(), seed, range);
    let toolchain = Toolchain::detect();
    let (tensor, values) = values_at(pattern, &network, &blocks, &toolchain).expect("values");
    with_values(&tensor, values)
}

/// Fits quietly.
pub(crate) fn fit(
    train: &Coo<f64>,
    test: Option<&Coo<f64>>,
    config: &CompleteConfig,
) -> Result<CompleteOutcome, SolverError> {
    fit_seen(train, test, config, &mut |_| ControlFlow::Continue(()))
}

/// Fits with an observer.
pub(crate) fn fit_seen(
    train: &Coo<f64>,
    test: Option<&Coo<f64>>,
    config: &CompleteConfig,
    observer: &mut dyn FnMut(&EpochRecord) -> ControlFlow<()>,
) -> Result<CompleteOutcome, SolverError> {
    let data = Data { train, val: None, test };
    solve(data, Start::Random, config, &Toolchain::detect(), observer)
}
