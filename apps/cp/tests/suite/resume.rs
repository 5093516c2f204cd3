//! A run that was cut short and resumed ends with the bytes of one that was not.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use decompose_common::model::{self, ModelFormat};
use decompose_core::sweep::MttkrpSweep;
use decompose_cp::{CheckpointRule, CpConfig, CpOutcome, NonNegModes, Start, saved_history, solve};
use decompose_formats::Value;

use crate::common::{self, InPanels, NaiveSweep};

fn config(folder: &Path, rank: usize, nonneg: NonNegModes) -> CpConfig {
    let mut config = CpConfig::new(rank);
    config.stop.max_iters = 9;
    config.stop.tol = 0.0;
    config.restarts = 2;
    config.nonneg = nonneg;
    config.checkpoint = Some(CheckpointRule::new(folder, 2));
    config
}

/// Runs, cut short after `most` iterations in all.
fn run<V: Value>(
    tensor: &(impl MttkrpSweep<V> + Clone),
    start: Start<V>,
    config: &CpConfig,
    most: usize,
) -> CpOutcome<V> {
    let mut seen = 0;
    solve(&mut tensor.clone(), start, config, &mut |_| {
        seen += 1;
        if seen == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap()
}

fn model_bytes<V: Value>(outcome: &CpOutcome<V>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let files = model::write(&outcome.model, folder.path(), ModelFormat::Npz).unwrap();
    fs::read(&files[0]).unwrap()
}

/// Both runs with factors stored as they are, and in panels where rows are longer than a line.
fn check<V: Value>(rank: usize, nonneg: NonNegModes) {
    let tensor = common::planted(&[7, 6, 5], rank + 2, 4);
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), rank, nonneg);
    let whole = run::<V>(&tensor, Start::Random, &config, usize::MAX);
    let tensor = InPanels(tensor);
    let fits = |outcome: &CpOutcome<V>| -> Vec<f64> {
        outcome.history.iter().map(|record| record.fit).collect()
    };
    for cut in [1, 5, 9, 12, 17] {
        run::<V>(&tensor, Start::Random, &config, cut);
        assert_eq!(saved_history(folder.path()).unwrap().len(), cut);
        let start = Start::Checkpoint(folder.path().to_owned());
        let resumed = run::<V>(&tensor, start, &config, usize::MAX);
        assert_eq!(fits(&resumed), fits(&whole), "cut after {cut}");
        assert_eq!(model_bytes(&resumed), model_bytes(&whole), "cut after {cut}");
        assert_eq!(resumed.restarts, whole.restarts);
        assert_eq!(resumed.match_scores, whole.match_scores);
    }
}

#[test]
fn resumed_runs_are_bit_identical() {
    check::<f64>(3, NonNegModes::None);
    check::<f32>(3, NonNegModes::None);
    check::<f64>(3, NonNegModes::Listed(vec![0, 2]));
}

#[test]
fn panels_change_no_bit() {
    check::<f64>(11, NonNegModes::None);
    check::<f32>(19, NonNegModes::None);
    check::<f64>(18, NonNegModes::Listed(vec![0, 2]));
}

#[test]
fn a_finished_run_can_be_given_more_iterations() {
    let tensor = common::planted(&[7, 6, 5], 5, 4);
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), 3, NonNegModes::None);
    config.restarts = 1;
    run::<f64>(&tensor, Start::Random, &config, usize::MAX);
    config.stop.max_iters = 20;
    let start = Start::Checkpoint(folder.path().to_owned());
    let longer = run::<f64>(&tensor, start, &config, usize::MAX);
    let whole = run::<f64>(&tensor, Start::Random, &config, usize::MAX);
    assert_eq!(longer.history.len(), 20);
    assert_eq!(model_bytes(&longer), model_bytes(&whole));
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let tensor = common::planted(&[7, 6, 5], 5, 4);
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), 3, NonNegModes::None);
    run::<f64>(&tensor, Start::Random, &config, 3);
    let refuse = |tensor: &NaiveSweep, config: &CpConfig, folder: &Path| -> String {
        let start = Start::<f64>::Checkpoint(folder.to_owned());
        let solved = solve(&mut tensor.clone(), start, config, &mut |_| ControlFlow::Continue(()));
        solved.err().unwrap().to_string()
    };
    let other_seed = CpConfig { seed: 5, ..config.clone() };
    assert!(refuse(&tensor, &other_seed, folder.path()).contains("seed: saved [0], now [5]"));
    let other_rank = CpConfig { rank: 4, ..config.clone() };
    assert!(refuse(&tensor, &other_rank, folder.path()).contains("rank"));
    let other = common::planted(&[7, 6, 5], 5, 9);
    assert!(refuse(&other, &config, folder.path()).contains("norm of the tensor"));
    let other = common::planted(&[7, 6, 4], 5, 4);
    assert!(refuse(&other, &config, folder.path()).contains("extents"));
    fs::write(folder.path().join("checkpoint.npz"), "PK").unwrap();
    assert!(refuse(&tensor, &config, folder.path()).contains("not an npz file"));
    let nowhere = tempfile::tempdir().unwrap();
    assert!(refuse(&tensor, &config, nowhere.path()).contains("cannot open"));
}
