//! Checkpoints: a fit cut short and resumed ends with the same bits.

use std::ops::ControlFlow;
use std::path::Path;

use decompose_common::checkpoint::CheckpointRule;
use decompose_complete::{
    Algorithm, Biases, CompleteConfig, CompleteOutcome, Data, EpochRecord, Loss, ModelKind,
    Observer, Reg, SolverError, Start, StopReason, saved_history, solve,
};
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Matrix};

use crate::common::{planted, sample};

fn tensor() -> Coo<f64> {
    planted(&sample(&[14, 12, 10], 0.3, 5), &ModelKind::Cp { rank: 3 }, 5, (0.1, 1.3))
}

fn run(
    all: &Coo<f64>,
    start: Start,
    config: &CompleteConfig,
) -> Result<CompleteOutcome, SolverError> {
    let train = all.filtered(|entry| entry % 4 != 0);
    let val = all.filtered(|entry| entry % 4 == 0);
    let data = Data { train: &train, val: Some(&val), test: None };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    let toolchain = Toolchain::detect();
    let mut quiet = |_: &EpochRecord| ControlFlow::Continue(());
    pool.install(|| solve(data, start, config, &toolchain, &mut quiet))
}

/// What must not depend on where a run was cut: everything but seconds.
fn essence(outcome: &CompleteOutcome) -> (Vec<Vec<u64>>, Vec<EpochRecord>, usize, StopReason) {
    let bits = |block: &Matrix<f64>| block.as_slice().iter().map(|x| x.to_bits()).collect();
    let timeless = |record: &EpochRecord| EpochRecord {
        seconds: 0.0,
        judge_seconds: 0.0,
        total_seconds: 0.0,
        ..record.clone()
    };
    let history = outcome.history.iter().map(timeless).collect();
    let blocks = outcome.blocks.iter().map(bits).collect();
    (blocks, history, outcome.best_start, outcome.stop)
}

fn saved(config: &CompleteConfig, folder: &Path, every: usize) -> CompleteConfig {
    let rule = CheckpointRule::new(folder, every);
    CompleteConfig { checkpoint: Some(rule), ..config.clone() }
}

#[test]
fn every_algorithm_resumes_bit_by_bit() {
    let all = tensor();
    let cases = [
        (Algorithm::Als, Loss::Gaussian, ModelKind::Cp { rank: 2 }),
        (Algorithm::AlsCg, Loss::Gaussian, ModelKind::Cp { rank: 2 }),
        (Algorithm::Ccd, Loss::Gaussian, ModelKind::Cp { rank: 2 }),
        (Algorithm::Sgd, Loss::Gaussian, ModelKind::Cp { rank: 2 }),
        (Algorithm::Sgd, Loss::Huber(0.3), ModelKind::Cp { rank: 2 }),
        (Algorithm::Adam, Loss::Poisson, ModelKind::Cp { rank: 2 }),
        (Algorithm::Lbfgs, Loss::Gamma, ModelKind::Cp { rank: 2 }),
        (Algorithm::Lbfgs, Loss::Gaussian, ModelKind::Train { ranks: vec![2, 2] }),
        (Algorithm::Als, Loss::Gaussian, ModelKind::Tucker { ranks: vec![2, 2, 2] }),
        (Algorithm::Adam, Loss::Gaussian, ModelKind::Tucker { ranks: vec![2, 2, 2] }),
    ];
    for (algorithm, loss, model) in cases {
        let mut config = CompleteConfig::new(model);
        (config.algorithm, config.loss, config.seed) = (algorithm, loss, 3);
        (config.max_epochs, config.restarts) = (9, 2);
        if algorithm == Algorithm::Ccd {
            config.biases = Biases::Modes;
        }
        let whole = run(&all, Start::Random, &config).expect("a fit");
        let dir = tempfile::tempdir().expect("a folder");
        // Cut in the first start, then in the second, then at its end.
        let part = CompleteConfig { max_epochs: 4, restarts: 1, ..saved(&config, dir.path(), 3) };
        run(&all, Start::Random, &part).expect("a fit");
        let resume = || Start::Checkpoint(dir.path().to_owned());
        assert_eq!(saved_history(dir.path()).expect("a history").len(), 5, "{algorithm}");
        let part = CompleteConfig { restarts: 1, ..saved(&config, dir.path(), 2) };
        run(&all, resume(), &part).expect("a fit");
        let rest = run(&all, resume(), &saved(&config, dir.path(), 5)).expect("a fit");
        assert!(essence(&whole) == essence(&rest), "{algorithm} {loss}");
        assert_eq!(rest.starts.len(), 2);
        assert_eq!(rest.course().count(), rest.starts[rest.best_start].epochs + 1);
    }
}

#[test]
fn a_path_of_ridges_resumes_bit_by_bit() {
    let all = tensor();
    let mut config = CompleteConfig::new(ModelKind::Cp { rank: 2 });
    (config.reg, config.biases) = (Reg::Chosen, Biases::Modes);
    (config.max_epochs, config.restarts) = (30, 2);
    for val in [true, false] {
        let fit = |start, config: &CompleteConfig, observer: &mut Observer<'_>| {
            let train = all.filtered(|entry| entry % 4 != 0);
            let held_out = all.filtered(|entry| entry % 4 == 0);
            let data = Data { train: &train, val: val.then_some(&held_out), test: None };
            solve(data, start, config, &Toolchain::detect(), observer).expect("a fit")
        };
        let mut quiet = |_: &EpochRecord| ControlFlow::Continue(());
        let whole = fit(Start::Random, &config, &mut quiet);
        let dir = tempfile::tempdir().expect("a folder");
        // Cut in the third round, and in the tenth.
        for (round, start) in [(3, Start::Random), (10, Start::Checkpoint(dir.path().into()))] {
            let mut cut = |record: &EpochRecord| match (record.restart, record.epoch) {
                at if at == (round, 4) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            let part = fit(start, &saved(&config, dir.path(), 2), &mut cut);
            assert_eq!(part.starts.len(), round);
        }
        let resume = Start::Checkpoint(dir.path().to_owned());
        let rest = fit(resume, &saved(&config, dir.path(), 50), &mut quiet);
        assert!(essence(&whole) == essence(&rest), "validation {val}");
        assert_eq!(rest.held_out.is_some(), !val);
    }
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let all = tensor();
    let dir = tempfile::tempdir().expect("a folder");
    let mut config = CompleteConfig::new(ModelKind::Cp { rank: 2 });
    config.max_epochs = 2;
    let config = saved(&config, dir.path(), 1);
    run(&all, Start::Random, &config).expect("a fit");
    let refused = |all: &Coo<f64>, config: CompleteConfig, message: &str| {
        let start = Start::Checkpoint(dir.path().to_owned());
        let error = run(all, start, &config).err().expect("refused").to_string();
        assert!(error.contains(message) && error.contains("checkpoint.npz"), "{error}");
    };
    refused(&all, CompleteConfig { seed: 1, ..config.clone() }, "seed: saved [0], now [1]");
    let other = CompleteConfig { algorithm: Algorithm::Ccd, ..config.clone() };
    refused(&all, other, "algorithm: saved [0], now [2]");
    let other = CompleteConfig { reg: Reg::Given(vec![0.5]), ..config.clone() };
    refused(&all, other, "reg, step, huber-delta: saved [0.01");
    let other = CompleteConfig { model: ModelKind::Cp { rank: 3 }, ..config.clone() };
    refused(&all, other, "ranks: saved [2], now [3]");
    let louder = all.values().iter().map(|x| 2.0 * x).collect();
    refused(&crate::common::with_values(&all, louder), config, "root mean square of the entries");
}
