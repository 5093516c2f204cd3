//! Held-out errors of an independent implementation on real tensors.
//!
//! The data are not part of the project; the test says so where they are absent.  A tenth of the
//! entries is held out by a hash of the linear index, as the reference did.

use std::path::{Path, PathBuf};

use decompose_complete::{Algorithm, Biases, CompleteConfig, ModelKind, Reg};
use decompose_formats::io::{Progress, ReadOptions, Source, read};
use decompose_formats::{Coo, ModeOrder};
use serde_json::Value as Json;

use crate::common::fit;

/// Where the real tensors lie, if they do.
fn data() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    folder.join("reference/completion.json").is_file().then_some(folder)
}

fn tensor(path: &Path) -> Coo<f64> {
    let source = Source::new(path);
    let (mut tensor, _) =
        read::<f64>(&source, &ReadOptions::default(), &Progress::new()).expect("a tensor");
    tensor.sort(&ModeOrder::natural(tensor.order())).expect("sorted");
    tensor
}

/// The rule of the reference's split.
fn is_test(tensor: &Coo<f64>, extents: &[u64], entry: usize) -> bool {
    let linear = (0..tensor.order()).fold(0_u64, |linear, mode| {
        linear.wrapping_mul(extents[mode]).wrapping_add(tensor.coords(mode).get(entry))
    });
    let key = linear.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let hash = decompose_formats::mix::mix(key);
    ((hash >> 32) as f64) < 429_496_729.6
}

/// Returns the errors of all peers on training and test entries, at these settings.
fn peers(of: &Json) -> Vec<(f64, f64)> {
    let pair = |pair: &Json| Some((pair[0].as_f64()?, pair[1].as_f64()?));
    let starts = of["all"].as_array().into_iter().flatten();
    let others = ["tensorly_polish", "pyttb_gcp_lbfgsb"].into_iter().map(|peer| &of[peer]);
    starts.chain(others).filter_map(pair).collect()
}

/// Returns the training and the test entries of a row of the reference, and its rank.
fn entries(folder: &Path, key: &str, want: &Json) -> (Coo<f64>, Coo<f64>, usize) {
    let (name, _) = key.split_once('|').expect("NAME|RANK");
    let number = |field: &str| want[field].as_f64().expect("a number");
    let tensor = tensor(&folder.join(format!("real/{name}/{name}.tns.gz")));
    let extents = tensor.extents().to_vec();
    let train = tensor.filtered(|entry| !is_test(&tensor, &extents, entry));
    let test = tensor.filtered(|entry| is_test(&tensor, &extents, entry));
    assert_eq!(train.nnz() as f64, number("train"), "{key}");
    (train, test, number("R") as usize)
}

/// Fits CP models of one rank to nine tenths of a tensor and compares the errors with those of an
/// independent implementation, as the line of `acceptance.csv` asks, and of the peers.
fn check(folder: &Path, acceptance: &str, key: &str, want: &Json) {
    let (name, _) = key.split_once('|').expect("NAME|RANK");
    let number = |field: &str| want[field].as_f64().expect("a number");
    let (train, test, rank) = entries(folder, key, want);
    let row = format!("real,{name},CP completion,\"R={rank};");
    let line = acceptance.lines().find(|line| line.starts_with(&row)).expect("a line");
    // Local minima: the reference is the best of two to five starts, and so is this.
    let (restarts, epochs) = if train.nnz() < 100_000 { (5, 1500) } else { (3, 500) };
    let mut config = CompleteConfig::new(ModelKind::Cp { rank });
    (config.algorithm, config.restarts) = (Algorithm::Als, restarts);
    (config.reg, config.max_epochs) = (Reg::Given(vec![0.0]), epochs);
    config.patience.tol = 1e-5;
    let best = fit(&train, Some(&test), &config).expect("a fit").best;
    let (on_train, on_test) = (best.train.rmse, best.test.expect("test entries").rmse);
    let peers = peers(want);
    let least = |of: fn(&(f64, f64)) -> f64| peers.iter().map(of).fold(f64::INFINITY, f64::min);
    let (peer_train, peer_test) = (least(|pair| pair.0), least(|pair| pair.1));
    eprintln!("{key}: train {on_train:.6} test {on_test:.6}, peers {peer_train:.6} {peer_test:.6}");
    if line.contains("test RMSE within 0.1 %") {
        let off = on_test / number("test_rmse") - 1.0;
        assert!(off.abs() < 1e-3, "{key}: test {on_test}");
    } else {
        assert!(on_train <= 1.02 * number("train_rmse"), "{key}: train {on_train}");
        assert!(on_test <= 1.03 * number("test_rmse"), "{key}: test {on_test}");
    }
    // What is minimised is as small as any peer found it; starts end apart by up to a percent.
    assert!(on_train <= 1.01 * peer_train, "{key}: train {on_train}, peers {peer_train}");
    // Peers that stop early on the way to the minimum may predict a little better than it does.
    assert!(on_test <= 1.02 * peer_test, "{key}: test {on_test}, peers {peer_test}");
}

/// Fits a CP model with offsets and a chosen ridge, the same options for all tensors, and asserts that
/// it predicts the test entries no worse than the best peer, whose models have the same rank and no
/// offsets.  The test entries choose nothing.
fn beats_the_peers(folder: &Path, key: &str, want: &Json) {
    let (train, test, rank) = entries(folder, key, want);
    let mut config = CompleteConfig::new(ModelKind::Cp { rank });
    (config.reg, config.biases, config.restarts) = (Reg::Chosen, Biases::Modes, 2);
    let outcome = fit(&train, Some(&test), &config).expect("a fit");
    let on_test = outcome.best.test.expect("test entries").rmse;
    let peer = peers(want).iter().map(|pair| pair.1).fold(f64::INFINITY, f64::min);
    let reg = outcome.starts[outcome.best_start].reg[0];
    eprintln!("{key}: test {on_test:.6}, the best peer {peer:.6}, ridge {reg:.3e}");
    assert!(on_test <= peer, "{key}: test {on_test}, peers {peer}");
}

/// Calls `check` for every row of the reference with the text of `acceptance.csv`.
fn for_each_row(check: impl Fn(&Path, &str, &str, &Json)) {
    let Some(folder) = data() else {
        eprintln!("skipped: no ../shared/data/reference/completion.json");
        return;
    };
    let read = |name: &str| std::fs::read_to_string(folder.join("reference").join(name));
    let (text, acceptance) = (read("completion.json"), read("acceptance.csv"));
    let reference: Json = serde_json::from_str(&text.expect("text")).expect("JSON");
    let reference = reference.as_object().expect("an object");
    let acceptance = acceptance.expect("text");
    let asked = acceptance.lines().filter(|line| line.contains(",CP completion,")).count();
    assert_eq!(reference.len(), asked, "every line is checked");
    reference.iter().for_each(|(key, want)| check(&folder, &acceptance, key, want));
}

#[test]
fn held_out_errors_are_those_of_the_reference() {
    for_each_row(check);
}

#[test]
fn offsets_and_a_chosen_ridge_are_never_worse_than_the_best_peer() {
    for_each_row(|folder, _, key, want| beats_the_peers(folder, key, want));
}
