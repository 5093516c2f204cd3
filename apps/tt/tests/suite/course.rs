//! The course of the iterations: recovery, errors that never grow, repeatability, limits.

use std::ops::ControlFlow;
use std::time::Duration;

use decompose_common::stopping::StopReason;
use decompose_formats::Coo;
use decompose_tt::{Measured, Method, Ranks, Start, Train, TtConfig, bonds, solve};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::common;

fn als(ranks: &[usize]) -> TtConfig {
    TtConfig::new(Method::Als, Ranks::Each(ranks.to_vec()))
}

fn within(method: Method, eps: f64) -> TtConfig {
    TtConfig::new(method, Ranks::Error { eps, max_rank: None })
}

/// Noise-free trains come back with an error under 1e-10, whatever the method; the error is
/// measured cell by cell, where it is not lost in cancellation.
#[test]
fn planted_trains_are_recovered() {
    let shapes: [(&[u64], &[usize]); 4] = [
        (&[9, 8, 7], &[3, 4]),
        (&[6, 5, 7, 4], &[2, 5, 3]),
        (&[4, 3, 5, 3, 4], &[3, 4, 2, 3]),
        (&[12, 10], &[4]),
    ];
    for (extents, ranks) in shapes {
        let coo = common::of_train(&Train::random(extents, ranks, 5));
        let mut configs = vec![als(ranks), within(Method::Svd, 1e-11)];
        configs.push(TtConfig::new(Method::Svd, Ranks::Each(ranks.to_vec())));
        if extents.len() > 2 {
            configs.push(within(Method::Dmrg, 1e-11));
        }
        for config in configs {
            let outcome = common::run(&coo, Start::Random, &config).unwrap();
            let error = outcome.verified.relative_error;
            assert!(error < 1e-10, "{extents:?} {:?}: {error}", config.method);
            assert_eq!(outcome.verified.measured, Measured::Cells);
            assert!(common::dense_error(&coo, &outcome.train) < 1e-10);
            assert_eq!(outcome.train.ranks(), ranks, "{extents:?} {:?}", config.method);
            assert!(outcome.keeps_bound() != Some(false));
        }
    }
}

#[test]
fn a_tensor_that_ships_here_has_the_ranks_of_its_rule() {
    // The sine of the Sun's elevation is a sum of two products of functions of one mode.
    let Some(coo) = common::shared("data", "sun-elevation") else { return };
    for method in [Method::Svd, Method::Dmrg] {
        let outcome = common::run(&coo, Start::Random, &within(method, 1e-6)).unwrap();
        assert_eq!(outcome.train.ranks(), [2, 2], "{method}");
        assert!(outcome.verified.relative_error < 1e-6, "{method}: {:?}", outcome.verified);
    }
}

#[test]
fn the_reported_error_is_that_of_the_train() {
    for (extents, ranks) in
        [(vec![7, 6], vec![2]), (vec![6, 5, 7], vec![3, 2]), (vec![3, 4, 2, 3, 2], vec![2; 4])]
    {
        let coo = common::sparse(&extents, 0.4, 3);
        for config in [als(&ranks), TtConfig::new(Method::Svd, Ranks::Each(ranks.clone()))] {
            let outcome = common::run(&coo, Start::Random, &config).unwrap();
            let (have, want) =
                (outcome.verified.relative_error, common::dense_error(&coo, &outcome.train));
            assert!((have - want).abs() < 1e-12, "{extents:?}: {have} {want}");
            assert_eq!(outcome.verified.measured, Measured::InnerProduct);
            let last = outcome.history.last().unwrap().relative_error;
            assert!((last - want).abs() < 1e-10, "{extents:?}: {last} {want}");
        }
    }
}

#[test]
fn limits_end_the_run_with_their_reason() {
    let coo = common::sparse(&[8, 9, 7], 0.5, 1);
    let stop = |change: &dyn Fn(&mut TtConfig)| {
        let mut config = als(&[3, 3]);
        change(&mut config);
        common::run(&coo, Start::Random, &config).unwrap().best().stop
    };
    assert_eq!(stop(&|c| c.stop.max_iters = 1), StopReason::IterationLimit);
    assert_eq!(stop(&|c| c.stop.max_iters = 10_000), StopReason::Converged);
    assert_eq!(stop(&|c| c.stop.max_time = Some(Duration::ZERO)), StopReason::TimeLimit);
    let mut kernels = common::compiled(&coo, &als(&[3, 3])).unwrap();
    let mut config = als(&[3, 3]);
    config.stop.tol = 0.0;
    let mut seen = 0;
    let outcome = solve(&mut kernels, Start::Random, &config, &mut |record| {
        seen = record.iteration;
        if seen == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.best().stop, outcome.best().iterations), (StopReason::Interrupted, 4));
    let error = common::dense_error(&coo, &outcome.train);
    assert!((outcome.verified.relative_error - error).abs() < 1e-12, "a usable train");
}

#[test]
fn a_seed_decides_the_result_and_threads_do_not() {
    let coo = common::sparse(&[30, 20, 9], 0.1, 2);
    let run = |threads: usize, seed: u64, method: Method| {
        let ranks = Ranks::Each(vec![4, 3]);
        let mut config = TtConfig { seed, ..TtConfig::new(method, ranks) };
        config.stop.max_iters = 4;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| common::run(&coo, Start::Random, &config).unwrap())
    };
    for method in [Method::Als, Method::Dmrg, Method::Svd] {
        let (a, b) = (run(2, 7, method), run(2, 7, method));
        assert_eq!(a.train, b.train, "{method}: the same threads give the same bits");
        // Other threads add in another order.
        let c = run(1, 7, method);
        assert!((a.verified.relative_error - c.verified.relative_error).abs() < 1e-12);
    }
    assert_ne!(run(2, 7, Method::Als).train, run(2, 8, Method::Als).train);
}

#[test]
fn restarts_keep_the_best() {
    let coo = common::sparse(&[8, 9, 7, 5], 0.3, 1);
    let mut several = als(&[3, 3, 3]);
    several.restarts = 4;
    let outcome = common::run(&coo, Start::Random, &several).unwrap();
    assert_eq!(outcome.restarts.len(), 4);
    assert!(outcome.restarts.iter().all(|report| report.fit <= outcome.best().fit));
    let error = outcome.verified.relative_error;
    assert!((error - outcome.best().relative_error).abs() < 1e-10, "{error}");
    let alone = TtConfig { seed: outcome.best as u64, ..als(&[3, 3, 3]) };
    let alone = common::run(&coo, Start::Random, &alone).unwrap();
    assert_eq!(alone.train, outcome.train, "restart k has seed + k");
    let numbers: Vec<usize> = outcome.history.iter().map(|record| record.restart).collect();
    assert_eq!((numbers[0], numbers[numbers.len() - 1]), (1, 4));
}

#[test]
fn single_precision_gives_nearly_the_same_errors() {
    let coo = common::sparse(&[12, 9, 10], 0.4, 4);
    let (extents, coords, values) = coo.clone().into_parts();
    let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    let single = Coo::new(extents, coords, values).unwrap();
    for method in [Method::Als, Method::Dmrg, Method::Svd] {
        let config = TtConfig::new(method, Ranks::Each(vec![3, 4]));
        let a = common::run(&coo, Start::Random, &config).unwrap();
        let b = common::run(&single, Start::Random, &config).unwrap();
        let (a, b) = (a.verified.relative_error, b.verified.relative_error);
        assert!((a - b).abs() < 1e-5, "{method}: {a} {b}");
    }
}

#[test]
fn scaling_the_tensor_scales_the_train_only() {
    let coo = common::sparse(&[6, 5, 7], 0.5, 4);
    let run = |scale: f64| {
        let (extents, coords, values) = coo.clone().into_parts();
        let values: Vec<f64> = values.iter().map(|x| x * scale).collect();
        let scaled = decompose_formats::Coo::new(extents, coords, values).unwrap();
        common::run(&scaled, Start::Random, &als(&[3, 2])).unwrap()
    };
    let (one, many) = (run(1.0), run(1e100));
    let ratio = many.verified.train_norm / one.verified.train_norm / 1e100;
    assert!((ratio - 1.0).abs() < 1e-12, "{ratio}");
    assert!((many.verified.relative_error - one.verified.relative_error).abs() < 1e-12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// A sweep of ALS never raises the error, and the cores stay orthonormal to 1e-12.
    #[test]
    fn errors_never_grow(
        extents in proptest::collection::vec(1_u64..7, 2..5), rank in 1_usize..4, seed: u64
    ) {
        let coo = common::sparse(&extents, 0.6, seed);
        if coo.nnz() == 0 {
            return Ok(());
        }
        let ranks = bonds::possible(&vec![rank; extents.len() - 1], &extents);
        let mut config = TtConfig { seed, ..als(&ranks) };
        config.stop.tol = 0.0;
        config.stop.max_iters = 8;
        let outcome = common::run(&coo, Start::Random, &config).unwrap();
        let mut before = 1.0;
        for record in &outcome.history {
            // Squares of errors are known to rounding of the norm.
            let (now, rounding) = (record.relative_error.powi(2), 1e-14);
            prop_assert!(now <= before + rounding, "{:?}", outcome.history);
            before = now;
        }
        prop_assert!(outcome.train.orthogonality_defect(0) < 1e-12);
    }

    /// TT-SVD keeps the bound that it is given, on dense and on sparse tensors.
    #[test]
    fn svd_keeps_its_bound(
        extents in proptest::collection::vec(1_u64..7, 2..6), seed: u64, eps in 0.01_f64..0.9,
        part in 0.1_f64..1.0
    ) {
        let coo = common::sparse(&extents, part, seed);
        if coo.nnz() == 0 {
            return Ok(());
        }
        let outcome = common::run(&coo, Start::Random, &within(Method::Svd, eps)).unwrap();
        let error = common::dense_error(&coo, &outcome.train);
        prop_assert!(error <= eps * (1.0 + 1e-12), "{} {}", error, eps);
        prop_assert!(outcome.keeps_bound() == Some(true));
        prop_assert!(outcome.train.orthogonality_defect(extents.len() - 1) < 1e-12);
    }
}
