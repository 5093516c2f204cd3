//! Results do not depend on the unit of the entries.

use decompose_common::rng::MatrixRng;
use decompose_complete::{
    Algorithm, Biases, CompleteConfig, CompleteOutcome, Loss, ModelKind, Reg, values_at,
};
use decompose_core::runtime::Toolchain;
use decompose_formats::Coo;

use crate::common::{fit, planted, sample, with_values};

fn scaled(tensor: &Coo<f64>, unit: f64) -> Coo<f64> {
    with_values(tensor, tensor.values().iter().map(|x| unit * x).collect())
}

/// Test errors and predictions of a fit of entries in a unit, measured in it.
fn measured(
    (train, test): (&Coo<f64>, &Coo<f64>),
    config: &CompleteConfig,
    unit: f64,
) -> (CompleteOutcome, f64, Vec<f64>) {
    let loss = match config.loss {
        Loss::Huber(bend) => Loss::Huber(unit * bend),
        other => other,
    };
    let config = CompleteConfig { loss, ..config.clone() };
    let outcome = fit(&scaled(train, unit), Some(&scaled(test, unit)), &config).expect("a fit");
    let toolchain = Toolchain::detect();
    let (_, values) =
        values_at(test, &outcome.network, &outcome.blocks, &toolchain).expect("values");
    let values = values.iter().map(|m| (m + outcome.offset) / unit).collect();
    let rmse = outcome.best.test.expect("test entries").rmse / unit;
    (outcome, rmse, values)
}

#[test]
fn entries_in_any_unit_give_the_same_model() {
    let kind = ModelKind::Cp { rank: 2 };
    let all = planted(&sample(&[14, 12, 10], 0.5, 2), &kind, 2, (0.3, 1.3));
    let parts = (&all.filtered(|e| e % 4 != 0), &all.filtered(|e| e % 4 == 0));
    let cases = [
        (Algorithm::Als, Loss::Gaussian, Biases::None, Reg::Given(vec![0.01])),
        (Algorithm::Als, Loss::Gaussian, Biases::None, Reg::Chosen),
        (Algorithm::Ccd, Loss::Gaussian, Biases::Modes, Reg::Given(vec![0.01])),
        (Algorithm::AlsCg, Loss::Gaussian, Biases::None, Reg::Given(vec![0.01])),
        (Algorithm::Sgd, Loss::Gaussian, Biases::None, Reg::Given(vec![0.01])),
        (Algorithm::Adam, Loss::Gaussian, Biases::Modes, Reg::Given(vec![0.01])),
        (Algorithm::Lbfgs, Loss::Huber(0.3), Biases::None, Reg::Given(vec![0.01])),
        (Algorithm::Lbfgs, Loss::Gamma, Biases::None, Reg::Given(vec![0.01])),
    ];
    for (algorithm, loss, biases, reg) in cases {
        let mut config = CompleteConfig::new(kind.clone());
        (config.algorithm, config.loss, config.biases, config.reg) = (algorithm, loss, biases, reg);
        config.max_epochs = 20;
        let name = format!("{algorithm} {loss} {:?}", config.reg);
        let (one, rmse, values) = measured(parts, &config, 1.0);
        for unit in [1e-200, 1e-12, 1e-6, 1e-3, 10.0, 1e3, 1e12, 1e200] {
            let (other, other_rmse, others) = measured(parts, &config, unit);
            // Rounding, some twenty epochs of contractions and divisions long.
            assert!(
                (other_rmse / rmse - 1.0).abs() < 1e-5,
                "{name} {unit}: {other_rmse} for {rmse}"
            );
            let near =
                values.iter().zip(&others).all(|(a, b)| (a - b).abs() < 1e-7 * (1.0 + a.abs()));
            assert!(near, "{name} {unit}");
            assert_eq!(one.history.len(), other.history.len(), "{name} {unit}");
            let scores = other.best.test.unwrap();
            assert!(
                scores.error().is_finite() && scores.error() > 0.0,
                "{name} {unit}: {scores:?}"
            );
            let none = other.baselines[0].test.unwrap();
            let mean_of_all = one.baselines[0].test.unwrap().rmse;
            assert!((none.rmse / unit / mean_of_all - 1.0).abs() < 1e-12, "{name} {unit}");
        }
    }
}

#[test]
fn half_of_an_exact_model_is_completed_in_any_unit() {
    let kind = ModelKind::Cp { rank: 2 };
    let all = planted(&sample(&[20, 18, 15], 1.0, 5), &kind, 5, (-1.0, 1.0));
    // At random: a chequered half would leave signs open.
    let rng = MatrixRng::new(3, 3);
    let known = |entry: usize| rng.uniform(entry as u64, 0) < 0.5;
    let (train, test) = (all.filtered(known), all.filtered(|entry| !known(entry)));
    for unit in [1e-3, 1e-2, 1.0, 1e3] {
        let mut config = CompleteConfig::new(kind.clone());
        config.restarts = 3;
        let (outcome, rmse, _) = measured((&train, &test), &config, unit);
        let none = outcome.baselines[0].test.unwrap().rmse / unit;
        // What the default ridge takes of an exact model.
        assert!(rmse < 1e-2 * none, "{unit}: {rmse} of {none}");
    }
}

#[test]
fn models_are_written_in_the_unit_of_the_entries() {
    let kind = ModelKind::Cp { rank: 2 };
    let all = planted(&sample(&[12, 10, 8], 0.6, 5), &kind, 5, (0.5, 1.5));
    for (unit, biases) in [(1e-3, Biases::None), (1e3, Biases::Modes)] {
        let tensor = scaled(&all, unit);
        let mut config = CompleteConfig::new(kind.clone());
        (config.reg, config.biases) = (Reg::Given(vec![1e-6]), biases);
        let outcome = fit(&tensor, None, &config).expect("a fit");
        let model = outcome.model(&config.model).expect("a model");
        let coords = (0..3).map(|mode| tensor.coords(mode).clone()).collect();
        let toolchain = Toolchain::detect();
        let values = decompose_common::evaluate::values_at(&model, coords, &toolchain).unwrap();
        let errors = values.iter().zip(tensor.values()).map(|(m, x)| ((m - x) / unit).powi(2));
        let rmse = (errors.sum::<f64>() / tensor.nnz() as f64).sqrt();
        let told = outcome.best.train.rmse / unit;
        assert!((rmse / told - 1.0).abs() < 1e-6 && told < 0.05, "{unit}: {rmse} {told}");
    }
}
