//! Held-out errors of an independent implementation on real tensors.
//!
//! The data are not part of the project; the test says so where they are absent.  A tenth of the
//! entries is held out by a hash of the linear index, as the reference did.

use std::path::PathBuf;

use decompose_complete::{Algorithm, CompleteConfig, ModelKind};
use decompose_formats::io::{Progress, ReadOptions, Source, read};
use decompose_formats::{Coo, ModeOrder};
use serde_json::Value as Json;

use crate::common::fit;

/// Where the real tensors lie, if they do.
fn data() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    folder.join("reference/completion.json").is_file().then_some(folder)
}

fn tensor(path: &std::path::Path) -> Coo<f64> {
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

#[test]
fn held_out_errors_are_those_of_the_reference() {
    let Some(folder) = data() else {
        eprintln!("skipped: no ../shared/data/reference/completion.json");
        return;
    };
    let text = std::fs::read_to_string(folder.join("reference/completion.json")).expect("text");
    let reference: Json = serde_json::from_str(&text).expect("JSON");
    let small = ["birmingham-parking", "il2", "us-births", "amino-acids", "covid19-serology"];
    for (key, want) in reference.as_object().expect("an object") {
        let (name, _) = key.split_once('|').expect("NAME|RANK");
        if !small.contains(&name) {
            continue;
        }
        let file = folder.join(format!("real/{name}/{name}.tns.gz"));
        let tensor = tensor(&file);
        let extents = tensor.extents().to_vec();
        let train = tensor.filtered(|entry| !is_test(&tensor, &extents, entry));
        let test = tensor.filtered(|entry| is_test(&tensor, &extents, entry));
        let number = |field: &str| want[field].as_f64().expect("a number");
        assert_eq!(train.nnz() as f64, number("train"), "{key}");
        let rank = number("R") as usize;
        // Local minima: the reference is the best of five starts, and so is this.
        let run = |seed| {
            let mut config = CompleteConfig::new(ModelKind::Cp { rank });
            (config.algorithm, config.seed) = (Algorithm::Als, seed);
            (config.reg, config.max_epochs) = (vec![0.0], 1500);
            config.patience.tol = 1e-5;
            let outcome = fit(&train, Some(&test), &config).expect("a fit");
            let best = outcome.best;
            (best.train.rmse, best.test.expect("test entries").rmse)
        };
        let best = (0..5).map(run).min_by(|a, b| a.0.total_cmp(&b.0)).expect("five runs");
        eprintln!(
            "{key}: train {:.6} test {:.6}, reference {:.6}",
            best.0,
            best.1,
            number("test_rmse")
        );
        assert!(best.0 <= 1.02 * number("train_rmse"), "{key}: train {}", best.0);
        assert!(best.1 <= 1.02 * number("test_rmse"), "{key}: test {}", best.1);
    }
}
