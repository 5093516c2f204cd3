//! Models that are there to be found.

use decompose_common::model::Model;
use decompose_complete::{
    Algorithm, Biases, CompleteConfig, Data, Loss, ModelKind, Range, Reg, Start, StopReason, solve,
};
use decompose_core::runtime::Toolchain;
use decompose_formats::Coo;

use crate::common::{fit, planted, sample, with_values};

/// Returns training and test error of the start with the least training error, of up to `starts`;
/// one that fits to rounding ends the search.
fn best_of(train: &Coo<f64>, test: &Coo<f64>, config: &CompleteConfig, starts: u64) -> (f64, f64) {
    let mut best = (f64::INFINITY, f64::INFINITY);
    for seed in 0..starts {
        let config = CompleteConfig { seed, ..config.clone() };
        let outcome = fit(train, Some(test), &config).expect("a fit");
        let found = (outcome.best.train.rmse, outcome.best.test.expect("test entries").rmse);
        if found.0 < best.0 {
            best = found;
        }
        if best.0 < 1e-7 {
            break;
        }
    }
    best
}

#[test]
fn als_completes_planted_tensors_from_five_percent() {
    let cases: [(&[u64], usize); 3] =
        [(&[60, 50, 40], 3), (&[30, 20, 24, 16], 4), (&[40, 40, 40], 2)];
    for (seed, (extents, rank)) in (1..).zip(cases) {
        let kind = ModelKind::Cp { rank };
        let all = planted(&sample(extents, 0.10, seed), &kind, seed, (-1.0, 1.0));
        let (train, test) =
            (all.filtered(|entry| entry % 2 == 0), all.filtered(|entry| entry % 2 == 1));
        let mut config = CompleteConfig::new(kind);
        config.reg = Reg::Given(vec![0.0]);
        config.max_epochs = 3000;
        config.patience.epochs = 100;
        // Starts may end in local minima, which the training error tells.
        let (best, rmse) = best_of(&train, &test, &config, 6);
        assert!(rmse < 1e-6, "{extents:?} rank {rank}: {rmse}, training {best}");
    }
}

#[test]
fn every_algorithm_finds_a_planted_model() {
    let kind = ModelKind::Cp { rank: 2 };
    let all = planted(&sample(&[25, 20, 15], 0.4, 3), &kind, 3, (0.2, 1.2));
    let train = all.filtered(|entry| entry % 5 != 0);
    let test = all.filtered(|entry| entry % 5 == 0);
    // Shares of the spread of the entries that held-out errors must fall below.
    let bars = [
        (Algorithm::Als, 1e-6),
        (Algorithm::AlsCg, 1e-6),
        (Algorithm::Ccd, 1e-2),
        (Algorithm::Sgd, 3e-2),
        (Algorithm::Adam, 3e-2),
        (Algorithm::Lbfgs, 1e-3),
    ];
    for (algorithm, bar) in bars {
        for sign in [Range::All, Range::NonNegative] {
            if sign == Range::NonNegative && algorithm == Algorithm::AlsCg {
                continue;
            }
            let mut config = CompleteConfig::new(kind.clone());
            (config.algorithm, config.sign, config.max_epochs) = (algorithm, sign, 2000);
            config.reg = Reg::Given(vec![0.0]);
            config.patience.epochs = 50;
            let outcome = fit(&train, Some(&test), &config).unwrap();
            let spread = outcome.baselines[0].test.unwrap().rmse;
            let rmse = outcome.best.test.unwrap().rmse;
            // Active bounds slow alternation down to a linear rate.
            let bar = if sign == Range::NonNegative { f64::max(bar, 1e-2) } else { bar };
            assert!(rmse < bar * spread, "{algorithm} {sign:?}: {rmse} of {spread}");
            if sign == Range::NonNegative {
                let least = outcome.blocks.iter().flat_map(|block| block.as_slice());
                assert!(least.fold(0.0, |a: f64, b| a.min(*b)) >= 0.0, "{algorithm}");
            }
        }
    }
}

#[test]
fn tucker_and_trains_are_found() {
    let cases = [
        (ModelKind::Tucker { ranks: vec![2, 2, 2] }, 1),
        (ModelKind::Train { ranks: vec![2, 2] }, 2),
    ];
    for (kind, seed) in cases {
        let all = planted(&sample(&[20, 18, 16], 0.5, seed), &kind, seed, (-1.0, 1.0));
        let train = all.filtered(|entry| entry % 5 != 0);
        let test = all.filtered(|entry| entry % 5 == 0);
        for algorithm in [Algorithm::Als, Algorithm::Lbfgs] {
            let mut config = CompleteConfig::new(kind.clone());
            (config.algorithm, config.max_epochs) = (algorithm, 1000);
            config.reg = Reg::Given(vec![0.0]);
            let (best, rmse) = best_of(&train, &test, &config, 6);
            let spread = (test.norm_squared() / test.nnz() as f64).sqrt();
            assert!(rmse < 1e-3 * spread, "{kind:?} {algorithm}: {rmse} of {spread}, {best}");
        }
    }
}

#[test]
fn biases_find_offsets() {
    let pattern = sample(&[30, 20, 10], 0.3, 4);
    let bias = |mode: usize, row: u64| ((row + 3 * mode as u64) as f64 * 0.9).sin();
    let value = |entry: usize| {
        let row = |mode: usize| pattern.coords(mode).get(entry);
        10.0 + (0..3).map(|mode| bias(mode, row(mode))).sum::<f64>()
    };
    let all = with_values(&pattern, (0..pattern.nnz()).map(value).collect());
    let train = all.filtered(|entry| entry % 4 != 0);
    let test = all.filtered(|entry| entry % 4 == 0);
    for algorithm in [Algorithm::Als, Algorithm::AlsCg, Algorithm::Ccd, Algorithm::Lbfgs] {
        let mut config = CompleteConfig::new(ModelKind::Cp { rank: 1 });
        (config.algorithm, config.biases) = (algorithm, Biases::Modes);
        config.reg = Reg::Given(vec![1e-6]);
        let outcome = fit(&train, Some(&test), &config).unwrap();
        let rmse = outcome.best.test.unwrap().rmse;
        assert!(rmse < 1e-2, "{algorithm}: {rmse}");
        let Model::Cp(model) = outcome.model(&config.model).unwrap() else { panic!("a CP model") };
        assert_eq!(model.rank(), 1 + 3 + 1);
        // The saved model says the same as the outcome: check one entry by hand.
        let at: Vec<usize> = (0..3).map(|mode| test.coords(mode).get(0) as usize).collect();
        let says: f64 = (0..5)
            .map(|r| {
                let rows = (0..3).map(|mode| model.factors()[mode].row(at[mode])[r]);
                model.weights()[r] * rows.product::<f64>()
            })
            .sum();
        assert!((says - test.values()[0]).abs() < 0.1, "{algorithm}: {says}");
    }
}

#[test]
fn counts_and_bits_are_fitted_by_their_losses() {
    let kind = ModelKind::Cp { rank: 2 };
    let pattern = sample(&[30, 25, 20], 0.5, 6);
    let draws = decompose_common::rng::MatrixRng::new(1, 2);
    let means = planted(&pattern, &kind, 6, (0.3, 1.6));
    let bits = means.values().iter().enumerate().map(|(entry, &mean)| {
        // A logit of 3 (mean - 1).
        let p = 1.0 / (1.0 + (-3.0 * (mean - 1.0)).exp());
        f64::from(u8::from(draws.uniform(entry as u64, 0) < p))
    });
    let counts = means.values().iter().enumerate().map(|(entry, &mean)| {
        // By inversion.
        let (mut draw, mut k, mut p) = (draws.uniform(entry as u64, 1), 0.0, (-mean).exp());
        while draw > p && k < 60.0 {
            draw -= p;
            k += 1.0;
            p *= mean / k;
        }
        k
    });
    let cases = [
        (Loss::Bernoulli, with_values(&means, bits.collect())),
        (Loss::Poisson, with_values(&means, counts.collect())),
    ];
    for (loss, all) in cases {
        let train = all.filtered(|entry| entry % 5 != 0);
        let test = all.filtered(|entry| entry % 5 == 0);
        for algorithm in [Algorithm::Lbfgs, Algorithm::Adam, Algorithm::Sgd] {
            let mut config = CompleteConfig::new(kind.clone());
            (config.loss, config.algorithm, config.max_epochs) = (loss, algorithm, 300);
            let data = Data { train: &train, val: Some(&test), test: Some(&test) };
            let toolchain = Toolchain::detect();
            let outcome = solve(data, Start::Random, &config, &toolchain, &mut |_| {
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
            let best = outcome.best.test.unwrap();
            let none = outcome.baselines[0].test.unwrap();
            assert!(best.error() < 0.95 * none.error(), "{loss} {algorithm}: {best:?} {none:?}");
            if loss == Loss::Bernoulli {
                assert!(best.auc.unwrap() > 0.7, "{algorithm}: {best:?}");
            }
            assert_ne!(outcome.stop, StopReason::TimeLimit);
        }
    }
}
