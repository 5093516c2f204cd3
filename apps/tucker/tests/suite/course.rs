//! HOOI: planted models, monotony, normal form, precision, windows, threads.

use std::fs;
use std::ops::ControlFlow;

use decompose_core::sweep::Merging;
use decompose_formats::{Coo, Matrix};
use decompose_tucker::{
    Method, Start, Target, Truncation, TuckerConfig, TuckerOutcome, hosvd, slice_norms, solve_above,
};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::common::{self, departure, true_error};

fn config(ranks: &[usize], iterations: usize) -> TuckerConfig {
    let mut config = TuckerConfig::new(ranks.to_vec());
    config.stop.tol = 0.0;
    config.stop.max_iters = iterations;
    config
}

#[test]
fn planted_models_are_recovered() {
    let cases: [(&[u64], &[usize]); 4] = [
        (&[30, 25, 20], &[3, 4, 2]),
        (&[12, 9, 8, 7], &[2, 3, 2, 3]),
        (&[40, 30], &[5, 5]),
        // One long mode: its subspace comes from the Gram matrix of columns.
        (&[700, 9, 8], &[4, 3, 3]),
    ];
    for (extents, ranks) in cases {
        let coo = common::planted(extents, ranks, 0.4, 3);
        let outcome = common::run(&coo, Start::Random, &TuckerConfig::new(ranks.to_vec()));
        // Sixteen digits, less those that the condition of the planted core takes.
        let error = true_error(&coo, &outcome.model);
        assert!(error < 1e-10, "{extents:?}: {error:e}");
        for factor in outcome.model.factors() {
            assert!(departure(factor) < 1e-12, "{extents:?}: {:e}", departure(factor));
        }
    }
}

#[test]
fn the_fit_is_that_of_the_model() {
    for (extents, ranks) in [
        (&[15, 12, 10][..], &[3, 3, 3][..]),
        (&[8, 7, 6, 5], &[2, 3, 2, 2]),
        (&[300, 4, 5], &[6, 2, 3]),
    ] {
        let coo = common::sparse::<f64>(extents, 0.3, 5);
        let outcome = common::run(&coo, Start::Random, &config(ranks, 6));
        let error = true_error(&coo, &outcome.model);
        let reported = outcome.best().relative_error;
        assert!((error - reported).abs() < 1e-12, "{extents:?}: {error} {reported}");
    }
}

#[test]
fn the_model_is_in_normal_form() {
    let coo = common::sparse::<f64>(&[20, 15, 10], 0.3, 1);
    let model = common::run(&coo, Start::Random, &config(&[4, 3, 5], 5)).model;
    for (mode, norms) in slice_norms(model.core()).iter().enumerate() {
        assert!(norms.windows(2).all(|pair| pair[0] >= pair[1] - 1e-12), "mode {mode}: {norms:?}");
        let slices: Vec<Vec<f64>> = model
            .core()
            .axis_iter(ndarray::Axis(mode))
            .map(|slice| slice.iter().copied().collect())
            .collect();
        let product: f64 = slices[0].iter().zip(&slices[1]).map(|(a, b)| a * b).sum();
        assert!(product.abs() < 1e-12, "the slices are orthogonal: {product:e}");
        for column in model.factors()[mode].view().columns() {
            let extreme = column.fold(0.0_f64, |a, &x| if x.abs() > a.abs() { x } else { a });
            assert!(extreme > 0.0);
        }
    }
}

#[test]
fn single_precision_gives_nearly_the_same_fits() {
    let double = common::sparse::<f64>(&[30, 20, 10], 0.2, 9);
    let single = common::sparse::<f32>(&[30, 20, 10], 0.2, 9);
    let wide = common::run(&double, Start::Random, &config(&[5, 4, 3], 8));
    let narrow = common::run(&single, Start::Random, &config(&[5, 4, 3], 8));
    // The rounding of single precision, times the terms of a sum.
    assert!((wide.best().fit - narrow.best().fit).abs() < 1e-5);
    assert!(narrow.model.factors().iter().all(|factor| departure(factor) < 1e-5));
}

#[test]
fn merged_modes_give_the_fits_of_plain_sweeps() {
    let three: [&[&[usize]]; 3] = [&[&[0, 1]], &[&[0, 2]], &[&[1, 2]]];
    let four: [&[&[usize]]; 5] =
        [&[&[0, 1]], &[&[0, 2]], &[&[0, 3]], &[&[0, 1], &[2, 3]], &[&[0, 1, 3]]];
    for (extents, ranks, plans) in [
        (&[12_u64, 10, 40][..], &[4, 3, 5][..], &three[..]),
        (&[9, 8, 20, 7], &[3, 2, 4, 3], &four),
    ] {
        let coo = common::sparse::<f64>(extents, 0.05, 4);
        let mut config = config(ranks, 6);
        // A second start must not see products of the first.
        config.restarts = 2;
        let fits = |merging: Merging| -> Vec<f64> {
            let mut engine = common::merged_engine(common::clone(&coo), &config, (None, merging));
            let outcome = decompose_tucker::solve(&mut engine, Start::Random, &config, &mut |_| {
                std::ops::ControlFlow::Continue(())
            });
            outcome.unwrap().history.iter().map(|record| record.fit).collect()
        };
        let plain = fits(Merging::Never);
        assert_eq!(plain.len(), 12);
        for plan in plans {
            let sets = plan.iter().map(|set| set.to_vec()).collect();
            for (a, b) in plain.iter().zip(fits(Merging::Given(sets))) {
                // Sums are rounded in another order, and six iterations pass that on.
                assert!((a - b).abs() < 1e-11, "{extents:?} {plan:?}: {a} {b}");
            }
        }
    }
}

#[test]
fn windows_of_rows_give_the_fits_of_whole_results() {
    // The long mode takes three windows a thread, and some of its indices have no non-zeros.
    let coo = common::sparse::<f64>(&[2100, 11, 12], 0.02, 2);
    let config = config(&[6, 4, 3], 7);
    let fits = |outcome: &TuckerOutcome<f64>| -> Vec<f64> {
        outcome.history.iter().map(|record| record.fit).collect()
    };
    let whole = common::run(&coo, Start::Random, &config);
    // Every mode is above the limit.
    let mut engine = common::engine(common::clone(&coo), &config, Some(0));
    let windows = decompose_tucker::solve(&mut engine, Start::Random, &config, &mut |_| {
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    for (a, b) in fits(&whole).iter().zip(fits(&windows)) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
}

#[test]
fn a_seed_decides_every_bit() {
    let coo = common::sparse::<f64>(&[40, 30, 20], 0.1, 4);
    let bytes = |seed: u64| {
        let mut config = config(&[5, 5, 5], 4);
        config.seed = seed;
        let folder = tempfile::tempdir().unwrap();
        fs::read(common::run(&coo, Start::Random, &config).model.write(folder.path()).unwrap())
            .unwrap()
    };
    let first = bytes(7);
    assert!(first == bytes(7), "the models differ");
    assert!(first != bytes(8));
    let in_pool = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| common::run(&coo, Start::Random, &config(&[5, 5, 5], 4)).best().fit)
    };
    assert!((in_pool(1) - in_pool(3)).abs() < 1e-12);
}

#[test]
fn restarts_keep_the_best() {
    let coo = common::sparse::<f64>(&[20, 20, 20], 0.05, 4);
    let mut many = config(&[2, 2, 2], 5);
    many.restarts = 4;
    let outcome = common::run(&coo, Start::Random, &many);
    let fits: Vec<f64> = outcome.restarts.iter().map(|start| start.fit).collect();
    assert_eq!(fits.len(), 4);
    assert!(fits.iter().all(|&fit| fit <= outcome.best().fit), "{fits:?}");
    let error = true_error(&coo, &outcome.model);
    assert!((error - outcome.best().relative_error).abs() < 1e-12);
    let alone = TuckerConfig { seed: many.seed + 2, restarts: 1, ..many };
    assert_eq!(common::run(&coo, Start::Random, &alone).best().fit, fits[2]);
}

fn hosvd_factors(coo: &Coo<f64>, ranks: &[usize]) -> Vec<Matrix<f64>> {
    let target = Target::Ranks(ranks.to_vec());
    hosvd(&mut common::clone(coo), &target, Truncation::AtOnce, 0).unwrap().factors
}

fn hosvd_fit(coo: &Coo<f64>, ranks: &[usize]) -> (f64, f64) {
    let factors = hosvd_factors(coo, ranks);
    let copies = || factors.iter().map(|f| f.try_clone().unwrap()).collect();
    let core = TuckerConfig { method: Method::Core, ..TuckerConfig::new(ranks.to_vec()) };
    let start = common::run(coo, Start::Factors(copies()), &core).best().fit;
    let hooi = common::run(coo, Start::Factors(copies()), &config(ranks, 10));
    (start, hooi.best().fit)
}

/// A tensor and a start for which one iteration from random factors ends below the HOSVD, so that the
/// HOSVD is seen to be continued from.
#[test]
fn a_start_that_ends_below_hosvd_is_followed_by_one_from_it() {
    let ranks = [3, 2, 3];
    let followed = (0..60).filter(|&seed| {
        let coo = common::sparse::<f64>(&[9, 8, 7], 0.1, seed);
        let config = TuckerConfig { seed, ..config(&ranks, 1) };
        let random = common::run(&coo, Start::Random, &config).best().fit;
        let mut engine = common::engine(common::clone(&coo), &config, None);
        let factors = hosvd_factors(&coo, &ranks);
        let mut go_on = |_: &_| ControlFlow::Continue(());
        let outcome =
            solve_above(&mut engine, Start::Random, factors, &config, &mut go_on).unwrap();
        let hosvd = outcome.hosvd_fit.unwrap();
        assert_eq!(outcome.restarts[0].fit, random);
        assert_eq!(outcome.restarts.len(), if random < hosvd { 2 } else { 1 });
        assert_eq!(outcome.best, outcome.restarts.len() - 1);
        assert!(outcome.best().fit >= hosvd, "{} {hosvd}", outcome.best().fit);
        random < hosvd
    });
    let followed = followed.count();
    assert!(followed > 0 && followed < 60, "{followed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Every update of HOOI can only raise the norm of the core.
    #[test]
    fn fits_never_fall_and_never_below_hosvd(seed in 0_u64..1000, share in 0.05_f64..0.9) {
        let coo = common::sparse::<f64>(&[9, 8, 7], share, seed);
        let outcome = common::run(&coo, Start::Random, &config(&[3, 2, 3], 12));
        for pair in outcome.history.windows(2) {
            prop_assert!(pair[1].fit >= pair[0].fit - 1e-12, "{:?}", outcome.history);
        }
        let (hosvd, hooi) = hosvd_fit(&coo, &[3, 2, 3]);
        prop_assert!(hooi >= hosvd - 1e-12, "{hooi} {hosvd}");
    }

    /// No start ends below the HOSVD where that is given beside it: not after one iteration either,
    /// where random starts do, nor where it was interrupted.
    #[test]
    fn no_start_ends_below_hosvd(
        seed in 0_u64..1000, share in 0.02_f64..0.9, iterations in 1_usize..4, cut in 0_usize..3,
    ) {
        let (coo, ranks) = (common::sparse::<f64>(&[9, 8, 7], share, seed), [3, 2, 3]);
        let (hosvd, _) = hosvd_fit(&coo, &ranks);
        let mut config = config(&ranks, iterations);
        (config.seed, config.restarts) = (seed, 1 + cut);
        let random_model = common::random_model(&[9, 8, 7], &ranks, 0.5, seed);
        for start in [Start::Random, Start::Given(random_model)] {
            let mut engine = common::engine(common::clone(&coo), &config, None);
            let mut seen = 0;
            let outcome = solve_above(
                &mut engine, start, hosvd_factors(&coo, &ranks), &config, &mut |_| {
                    seen += 1;
                    if seen == cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
            ).unwrap();
            // The same factors, and kernels that may sum in another order.
            let measured = outcome.hosvd_fit.unwrap();
            prop_assert!((measured - hosvd).abs() < 1e-12, "{} {}", measured, hosvd);
            let best = outcome.best();
            prop_assert!(best.fit >= hosvd - 1e-12, "{} {}", best.fit, hosvd);
            prop_assert!(outcome.restarts.iter().all(|start| start.fit <= best.fit));
            // Orthonormal factors, and a core that is theirs.
            let error = true_error(&coo, &outcome.model);
            prop_assert!((error - best.relative_error).abs() < 1e-7, "{} {:?}", error, best);
        }
    }
}
