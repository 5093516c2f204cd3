//! The course of the iteration: recovery, monotone fits, repeatability, limits.

use std::ops::ControlFlow;
use std::time::Duration;

use decompose_common::factor_match::factor_match_score;
use decompose_cp::{CpConfig, CpModel, CpOutcome, NonNegModes, Start, StopReason, solve};
use decompose_formats::Matrix;
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::common::{self, NaiveSweep};

fn config(rank: usize, max_iters: usize) -> CpConfig {
    let mut config = CpConfig::new(rank);
    config.stop.max_iters = max_iters;
    config
}

/// Returns `||X - M|| / ||X||` summed cell by cell.
fn dense_error(tensor: &NaiveSweep, model: &CpModel<f64>) -> f64 {
    let modelled = common::dense(&tensor.extents, |at| {
        let term = |r: usize| -> f64 {
            let factors = at.iter().zip(model.factors());
            model.weights()[r] * factors.map(|(&i, factor)| factor.row(i)[r]).product::<f64>()
        };
        (0..model.rank()).map(term).sum::<f64>() + 1e-300
    });
    let true_cells = common::dense(&tensor.extents, |at| {
        let found = tensor.entries.iter().find(|(have, _)| have == at);
        found.map_or(0.0, |(_, value)| *value) + 1e-300
    });
    let pairs = modelled.entries.iter().zip(&true_cells.entries);
    let residual: f64 = pairs.map(|((_, m), (_, x))| (m - x).powi(2)).sum();
    (residual / true_cells.entries.iter().map(|(_, x)| x * x).sum::<f64>()).sqrt()
}

fn same(a: &CpOutcome<f64>, b: &CpOutcome<f64>) -> bool {
    let factors = a.model.factors().iter().zip(b.model.factors());
    a.model.weights() == b.model.weights()
        && factors.into_iter().all(|(a, b)| a.as_slice() == b.as_slice())
}

#[test]
fn planted_components_are_recovered() {
    for (extents, rank) in [(vec![7, 6, 5], 2), (vec![5, 4, 3, 6], 3), (vec![3, 4, 3, 2, 4], 2)] {
        let tensor = common::planted(&extents, rank, 11);
        let mut config = config(rank, 3000);
        config.stop.tol = 0.0;
        config.restarts = 3;
        let outcome = common::run::<f64>(&tensor, Start::Random, &config);
        assert!(outcome.best().relative_error < 1e-6, "{extents:?}: {:?}", outcome.best());
        let truth = decompose_common::init::random::<f64>(&extents, rank, 11).unwrap();
        let truth = CpModel::new(vec![1.0; rank], truth).unwrap();
        let score = factor_match_score(&outcome.model, &truth).unwrap();
        assert!(score > 0.999, "{extents:?}: {score}");
    }
}

#[test]
fn the_reported_error_is_that_of_the_model_for_any_order() {
    for extents in
        [vec![6], vec![5, 7], vec![4, 1, 5], vec![3, 4, 2, 3], vec![2, 3, 2, 2, 3], vec![2; 6]]
    {
        let tensor = common::planted(&extents, 3, 5);
        for rank in [1, 2] {
            let outcome = common::run::<f64>(&tensor, Start::Random, &config(rank, 15));
            let (have, want) =
                (outcome.best().relative_error, dense_error(&tensor, &outcome.model));
            assert!((have - want).abs() < 1e-7, "{extents:?} {rank}: {have} {want}");
        }
    }
}

#[test]
fn the_model_is_in_normal_form() {
    let tensor = common::planted(&[6, 5, 4], 4, 3);
    let outcome = common::run::<f64>(&tensor, Start::Random, &config(3, 10));
    assert!(outcome.model.weights().is_sorted_by(|a, b| a >= b));
    for factor in outcome.model.factors() {
        for column in factor.view().columns() {
            assert!((column.dot(&column) - 1.0).abs() < 1e-12);
            let extreme =
                column.iter().fold(0.0_f64, |a, &x| if x.abs() > a.abs() { x } else { a });
            assert!(extreme > 0.0);
        }
    }
}

#[test]
fn limits_end_the_run_with_their_reason() {
    let tensor = common::planted(&[6, 5, 4], 5, 3);
    let stop = |config: &CpConfig| common::run::<f64>(&tensor, Start::Random, config).best().stop;
    assert_eq!(stop(&config(3, 1)), StopReason::IterationLimit);
    assert_eq!(stop(&config(3, 10_000)), StopReason::Converged);
    assert_eq!(stop(&config(1, 10_000)), StopReason::Converged);
    let mut limited = config(3, 10_000);
    limited.stop.max_time = Some(Duration::ZERO);
    assert_eq!(stop(&limited), StopReason::TimeLimit);
    let mut seen = 0;
    let outcome = solve::<f64>(&mut tensor.clone(), Start::Random, &config(3, 90), &mut |record| {
        seen = record.iteration;
        if seen == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let outcome = outcome.unwrap();
    assert_eq!((seen, outcome.best().iterations), (4, 4));
    assert_eq!(outcome.best().stop, StopReason::Interrupted);
}

#[test]
fn a_seed_decides_the_result_whatever_the_threads() {
    let tensor = common::planted(&[40, 30, 5], 6, 3);
    let run = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let config = CpConfig { seed, ..config(4, 6) };
        pool.install(|| common::run::<f64>(&tensor, Start::Random, &config))
    };
    assert!(same(&run(1, 7), &run(3, 7)));
    assert!(!same(&run(1, 7), &run(1, 8)));
}

#[test]
fn single_precision_gives_nearly_the_same_fits() {
    for (rank, nonneg) in [(1, NonNegModes::None), (3, NonNegModes::None), (3, NonNegModes::All)] {
        let tensor = common::planted(&[9, 8, 7], 6, 3);
        let config = CpConfig { nonneg, ..config(rank, 10) };
        let double = common::run::<f64>(&tensor, Start::Random, &config);
        let single = common::run::<f32>(&tensor, Start::Random, &config);
        for (a, b) in double.history.iter().zip(&single.history) {
            assert!((a.fit - b.fit).abs() < 1e-4, "{rank}: {} {}", a.fit, b.fit);
        }
    }
}

#[test]
fn scaling_the_tensor_scales_the_weights_only() {
    let tensor = common::planted(&[6, 5, 4, 3], 4, 3);
    let reference = common::run::<f32>(&tensor, Start::Random, &config(2, 8));
    for scale in [1e-12, 1e12] {
        let scaled = common::dense(&tensor.extents, |at| {
            scale * tensor.entries.iter().find(|(have, _)| have == at).map_or(0.0, |e| e.1)
        });
        let outcome = common::run::<f32>(&scaled, Start::Random, &config(2, 8));
        assert!((outcome.best().fit - reference.best().fit).abs() < 1e-4, "{scale}");
        let ratio = outcome.model.weights()[0] / reference.model.weights()[0] / scale;
        assert!((ratio - 1.0).abs() < 1e-3, "{scale}: {ratio}");
    }
}

#[test]
fn restarts_keep_the_best_and_are_compared() {
    let tensor = common::planted(&[6, 5, 4], 5, 3);
    let mut several = config(3, 40);
    several.restarts = 3;
    let outcome = common::run::<f64>(&tensor, Start::Random, &several);
    assert_eq!(outcome.restarts.len(), 3);
    assert!(outcome.restarts.iter().all(|r| r.fit <= outcome.best().fit));
    assert_eq!(outcome.match_scores.dim(), (3, 3));
    assert!(outcome.match_scores.iter().all(|s| (0.0..=1.0 + 1e-12).contains(s)));
    let second = CpConfig { seed: 1, ..config(3, 40) };
    let alone = common::run::<f64>(&tensor, Start::Random, &second);
    assert_eq!(alone.best().fit, outcome.restarts[1].fit, "restart k has seed + k");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Least squares by turns never lowers the fit, with or without signs, whatever the order.
    #[test]
    fn fits_never_fall(
        extents in proptest::collection::vec(1_u64..6, 2..5), rank in 1_usize..6, seed: u64, nonneg: bool
    ) {
        let noise = decompose_common::rng::MatrixRng::new(seed, 99);
        let tensor = common::dense(&extents, |at| {
            let cell = at.iter().fold(0, |cell, &i| cell * 7 + i as u64);
            noise.uniform(cell, 0) - if nonneg { 0.2 } else { 0.5 }
        });
        let nonneg = if nonneg { NonNegModes::All } else { NonNegModes::None };
        let mut config = CpConfig { nonneg, seed, ..config(rank, 12) };
        config.stop.tol = 0.0;
        let outcome = common::run::<f64>(&tensor, Start::Random, &config);
        for pair in outcome.history.windows(2) {
            prop_assert!(pair[1].fit >= pair[0].fit - 1e-7, "{:?}", outcome.history);
        }
        let finite = |factor: &Matrix<f64>| factor.as_slice().iter().all(|x| x.is_finite());
        prop_assert!(outcome.model.factors().iter().all(finite));
    }
}
