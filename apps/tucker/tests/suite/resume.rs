//! A run that was cut short and resumed ends with the bytes of one that was not.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use decompose_formats::{Coo, Value};
use decompose_tucker::{
    CheckpointRule, Method, Start, TuckerConfig, TuckerOutcome, saved_history, saved_ranks, solve,
};

use crate::common;

fn config(folder: &Path, method: Method) -> TuckerConfig {
    let mut config = TuckerConfig { method, ..TuckerConfig::new(vec![3, 2, 2]) };
    config.stop.max_iters = 7;
    config.stop.tol = 0.0;
    config.restarts = 3;
    config.checkpoint = Some(CheckpointRule::new(folder, 2));
    config
}

/// Runs, cut short after `most` iterations in all.
fn run<V: Value>(
    coo: &Coo<V>,
    start: Start<V>,
    config: &TuckerConfig,
    most: usize,
) -> TuckerOutcome<V> {
    let mut seen = 0;
    let mut engine = common::engine(common::clone(coo), config, None);
    solve(&mut engine, start, config, &mut |_| {
        seen += 1;
        if seen == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap()
}

fn bytes<V: Value>(outcome: &TuckerOutcome<V>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    fs::read(outcome.model.write(folder.path()).unwrap()).unwrap()
}

fn check<V: Value>(method: Method) {
    let coo = common::sparse::<V>(&[9, 8, 7], 0.6, 4);
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), method);
    let whole = run(&coo, Start::Random, &config, usize::MAX);
    for most in [1, 5, 10, 16] {
        let cut = run(&coo, Start::Random, &config, most);
        let saved = saved_history(folder.path()).unwrap();
        assert_eq!((saved.len(), cut.history.len()), (most, most));
        assert_eq!(saved_ranks(folder.path()).unwrap(), config.ranks);
        let resumed = run(&coo, Start::Checkpoint(folder.path().into()), &config, usize::MAX);
        assert!(bytes(&resumed) == bytes(&whole), "{method:?} cut after {most}");
        assert_eq!(resumed.best, whole.best);
    }
}

#[test]
fn resumed_runs_are_bit_identical() {
    check::<f64>(Method::Hooi);
    check::<f32>(Method::Hooi);
    check::<f64>(Method::Nonnegative);
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let coo = common::sparse::<f64>(&[9, 8, 7], 0.6, 4);
    let folder = tempfile::tempdir().unwrap();
    let good = config(folder.path(), Method::Hooi);
    run(&coo, Start::Random, &good, 3);
    let refuse = |coo: &Coo<f64>, config: &TuckerConfig, message: &str| {
        let mut engine = common::engine(common::clone(coo), config, None);
        let start = Start::Checkpoint(folder.path().into());
        let refused = solve(&mut engine, start, config, &mut |_| ControlFlow::Continue(()));
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
    };
    refuse(&coo, &TuckerConfig { seed: 9, ..good.clone() }, "seed: saved [0], now [9]");
    refuse(&coo, &TuckerConfig { ranks: vec![2, 2, 2], ..good.clone() }, "ranks: saved [3, 2, 2]");
    let other = common::sparse::<f64>(&[9, 8, 7], 0.6, 5);
    refuse(&other, &good, "norm of the tensor");
    fs::write(folder.path().join("checkpoint.npz"), "PK").unwrap();
    refuse(&coo, &good, "not an npz file");
}
