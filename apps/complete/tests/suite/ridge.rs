//! Ridges that the validation error chooses.

use std::ops::ControlFlow;

use decompose_common::rng::MatrixRng;
use decompose_complete::{
    Algorithm, Biases, CompleteConfig, CompleteOutcome, Data, Loss, ModelKind, Reg, Start,
    StopReason, solve,
};
use decompose_core::runtime::Toolchain;
use decompose_formats::Coo;

use crate::common::{fit, fit_seen, planted, sample, with_values};

/// Entries of a planted model of rank 2 in noise, two thirds for training; the others as they are
/// seen, and as they are without noise.
fn noisy() -> (Coo<f64>, Coo<f64>, Coo<f64>) {
    let model = planted(&sample(&[20, 18, 15], 0.3, 2), &ModelKind::Cp { rank: 2 }, 2, (-1.0, 1.0));
    let noise = MatrixRng::new(9, 9);
    let size = (model.norm_squared() / model.nnz() as f64).sqrt();
    let value = |(entry, x): (usize, &f64)| x + size * (2.0 * noise.uniform(entry as u64, 0) - 1.0);
    let all = with_values(&model, model.values().iter().enumerate().map(value).collect());
    let other = |entry: usize| entry.is_multiple_of(3);
    (all.filtered(|entry| !other(entry)), all.filtered(other), model.filtered(other))
}

fn config(reg: Reg) -> CompleteConfig {
    let mut config = CompleteConfig::new(ModelKind::Cp { rank: 4 });
    (config.reg, config.restarts) = (reg, 2);
    config
}

fn fit_val(train: &Coo<f64>, val: &Coo<f64>, config: &CompleteConfig) -> CompleteOutcome {
    let data = Data { train, val: Some(val), test: None };
    let mut quiet = |_: &_| ControlFlow::Continue(());
    solve(data, Start::Random, config, &Toolchain::detect(), &mut quiet).expect("a fit")
}

#[test]
fn noise_asks_for_a_ridge_and_exact_entries_for_none() {
    let (train, _, truth) = noisy();
    let none = fit(&train, Some(&truth), &config(Reg::Given(vec![1e-9]))).unwrap();
    let chosen = fit(&train, Some(&truth), &config(Reg::Chosen)).unwrap();
    let error = |outcome: &CompleteOutcome| outcome.best.test.unwrap().rmse;
    // Two of the four components fit noise; the ridge must take a good part of that back.
    assert!(error(&chosen) < 0.8 * error(&none), "{} {}", error(&chosen), error(&none));
    let kind = ModelKind::Cp { rank: 2 };
    let exact = planted(&sample(&[20, 18, 15], 0.3, 2), &kind, 2, (-1.0, 1.0));
    let (train, val) = (exact.filtered(|e| e % 5 != 0), exact.filtered(|e| e % 5 == 0));
    let outcome = fit_val(&train, &val, &CompleteConfig { model: kind, ..config(Reg::Chosen) });
    let ridges: Vec<f64> = outcome.starts.iter().map(|start| start.reg[0]).collect();
    let least = ridges.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(ridges[outcome.best_start], least, "the weakest of {ridges:?}");
    let size = (exact.norm_squared() / exact.nnz() as f64).sqrt();
    // The weakest ridge weighs as much as 1e-4 entries of some two hundred a row.
    assert!(outcome.best.val.unwrap().rmse < 1e-4 * size, "{:?}", outcome.best);
}

#[test]
fn test_entries_choose_nothing_and_all_training_entries_count_at_last() {
    let (train, test, _) = noisy();
    let config = CompleteConfig { biases: Biases::Modes, ..config(Reg::Chosen) };
    let with = fit(&train, Some(&test), &config).unwrap();
    let without = fit(&train, None, &config).unwrap();
    let bits = |outcome: &CompleteOutcome| -> Vec<u64> {
        let elements = outcome.blocks.iter().flat_map(|block| block.as_slice());
        elements.map(|x| x.to_bits()).collect()
    };
    assert_eq!(bits(&with), bits(&without));
    // About a tenth chose; the last round has all.
    let held_out = with.held_out.unwrap() as f64;
    assert!((held_out / train.nnz() as f64 - 0.1).abs() < 0.04, "{held_out}");
    assert_eq!(with.best.train.entries, train.nnz());
    assert_eq!(with.best_start + 1, with.starts.len());
    assert!(with.best.val.is_none() && with.history[0].val.is_some());
    assert_eq!(with.course().count(), with.starts[with.best_start].epochs + 1);
    let chosen = with.starts[..with.best_start].iter().map(|start| start.best.val.unwrap().rmse);
    let least = chosen.clone().fold(f64::INFINITY, f64::min);
    let winner = chosen.clone().position(|rmse| rmse == least).unwrap();
    assert_eq!(with.starts[winner].reg, with.starts[with.best_start].reg);
}

#[test]
fn the_unit_of_the_entries_does_not_matter() {
    let (train, test, _) = noisy();
    let config = CompleteConfig { biases: Biases::Modes, ..config(Reg::Chosen) };
    let rmse = |unit: f64| {
        let scaled =
            |part: &Coo<f64>| with_values(part, part.values().iter().map(|x| unit * x).collect());
        let outcome = fit(&scaled(&train), Some(&scaled(&test)), &config).unwrap();
        outcome.best.test.unwrap().rmse / unit
    };
    // Powers of 2^3 scale the blocks of a model of order 3 exactly, but for the powers that units and
    // levels are: rounding, some hundred epochs of a contraction long.
    let (one, other) = (rmse(1.0), rmse(4096.0));
    assert!((one / other - 1.0).abs() < 1e-6, "{one} {other}");
}

#[test]
fn every_model_and_algorithm_takes_a_path() {
    let (train, val, _) = noisy();
    let cases = [
        (ModelKind::Cp { rank: 2 }, Algorithm::AlsCg),
        (ModelKind::Cp { rank: 2 }, Algorithm::Ccd),
        (ModelKind::Cp { rank: 2 }, Algorithm::Sgd),
        (ModelKind::Cp { rank: 2 }, Algorithm::Adam),
        (ModelKind::Cp { rank: 2 }, Algorithm::Lbfgs),
        (ModelKind::Tucker { ranks: vec![2, 2, 2] }, Algorithm::Lbfgs),
        (ModelKind::Train { ranks: vec![2, 2] }, Algorithm::Als),
    ];
    for (model, algorithm) in cases {
        let config = CompleteConfig { model, algorithm, max_epochs: 60, ..config(Reg::Chosen) };
        let outcome = fit_val(&train, &val, &config);
        let ridges: Vec<f64> = outcome.starts.iter().map(|start| start.reg[0]).collect();
        assert!(ridges.windows(2).any(|pair| pair[1] < pair[0]), "{algorithm}: {ridges:?}");
        let none = outcome.baselines[0].val.unwrap().rmse;
        let rmse = outcome.best.val.unwrap().rmse;
        assert!(rmse < none, "{:?} {algorithm}: {rmse} of {none}", config.model);
    }
    let counts = with_values(&train, train.values().iter().map(|x| x.abs().round()).collect());
    let config = CompleteConfig {
        loss: Loss::Poisson,
        algorithm: Algorithm::Lbfgs,
        max_epochs: 60,
        ..config(Reg::Chosen)
    };
    assert!(fit(&counts, None, &config).unwrap().held_out.is_some());
}

#[test]
fn a_run_cut_short_keeps_the_best_so_far() {
    let (train, ..) = noisy();
    let outcome = fit_seen(&train, None, &config(Reg::Chosen), &mut |record| match (
        record.restart, record.epoch,
    ) {
        (2, 3) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.starts.last().unwrap().stop, StopReason::Interrupted);
    assert_eq!(outcome.starts.len(), 2);
    assert!(outcome.best.val.is_some() && outcome.best.train.entries < train.nnz());
}
