//! The gradient of every model with every loss.

use decompose_complete::{Loss, ModelKind, Needs, Objective};
use decompose_core::runtime::Toolchain;

use crate::common::{blocks, sample, with_values};

/// The step `h` of central differences of fourth order.
///
/// Their error is `h^4 f^(5) / 30`, below 1e-8 of a component here (the gamma loss at the smallest
/// model value, 0.1, is the worst), and rounding of `f`, which is below 1000, over `h`: [`ROUNDING`].
const STEP: f64 = 1e-4;
/// Of each component by itself.
const TOLERANCE: f64 = 1e-6;
/// `1000 * 2^-53 * 3 / 2 / h` and as much again.
const ROUNDING: f64 = 4e-9;

fn losses() -> [(Loss, Vec<f64>); 5] {
    [
        (Loss::Gaussian, vec![-1.5, 0.0, 2.0, 3.5]),
        (Loss::Poisson, vec![0.0, 1.0, 2.0, 7.0]),
        (Loss::Bernoulli, vec![0.0, 1.0, 1.0]),
        // Far from the bend, where the second derivative jumps: model values are below 9.
        (Loss::Huber(0.7), vec![-1.5, 0.0, 20.0]),
        (Loss::Gamma, vec![0.5, 1.0, 2.0, 7.0]),
    ]
}

fn check(kind: &ModelKind, extents: &[u64], toolchain: &Toolchain) {
    let pattern = sample(extents, 0.3, 5);
    for (loss, entries) in losses() {
        let values = (0..pattern.nnz()).map(|at| entries[at * 7 % entries.len()]).collect();
        let tensor = with_values(&pattern, values);
        let (network, mut at) = blocks(kind, extents, 11, (0.4, 1.2));
        let reg = (0..at.len()).map(|b| 0.05 * b as f64).collect();
        let needs = Needs::Gradients;
        let mut objective =
            Objective::new(&tensor, network, loss, reg, needs, toolchain).expect("evaluated");
        let mut gradient: Vec<_> =
            at.iter().map(|block| block.try_clone().expect("evaluated")).collect();
        let value = objective.gradient(&at, &mut gradient).expect("evaluated");
        assert!(value.abs() < 1000.0, "{kind:?} {loss}: {value}");
        for block in 0..at.len() {
            for row in 0..at[block].rows() {
                for col in 0..at[block].cols() {
                    let here = at[block].row(row)[col];
                    let mut side = |step: f64| {
                        at[block].row_mut(row)[col] = here + step;
                        objective.value(&at).expect("evaluated")
                    };
                    let near = side(STEP) - side(-STEP);
                    let far = side(2.0 * STEP) - side(-2.0 * STEP);
                    at[block].row_mut(row)[col] = here;
                    let numeric = (8.0 * near - far) / (12.0 * STEP);
                    let exact = gradient[block].row(row)[col];
                    assert!(
                        (numeric - exact).abs() <= TOLERANCE * exact.abs() + ROUNDING,
                        "{kind:?} {loss} block {block} ({row}, {col}): {exact} for {numeric}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_gradient_is_a_derivative() {
    let toolchain = Toolchain::detect();
    check(&ModelKind::Cp { rank: 3 }, &[4, 5, 3], &toolchain);
    check(&ModelKind::Cp { rank: 2 }, &[4, 3, 3, 2], &toolchain);
    check(&ModelKind::Cp { rank: 9 }, &[6, 5], &toolchain);
    check(&ModelKind::Tucker { ranks: vec![2, 3, 2] }, &[4, 5, 3], &toolchain);
    check(&ModelKind::Tucker { ranks: vec![2, 1, 2, 2] }, &[4, 3, 3, 2], &toolchain);
    check(&ModelKind::Train { ranks: vec![2, 3] }, &[4, 5, 3], &toolchain);
    check(&ModelKind::Train { ranks: vec![2, 3, 2] }, &[4, 3, 3, 2], &toolchain);
}

#[test]
fn interpreted_kernels_give_the_same_gradient() {
    let toolchain = Toolchain::Interpreter("a test".into());
    check(&ModelKind::Cp { rank: 2 }, &[4, 3, 3], &toolchain);
    check(&ModelKind::Train { ranks: vec![2, 2] }, &[4, 3, 3], &toolchain);
}
