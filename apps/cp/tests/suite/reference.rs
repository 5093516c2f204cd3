//! With the planned and compiled kernels the first ten fits are those of pyttb's `cp_als` from the
//! same start, to 1e-9; see
//! `../reference/README.md`.

use std::fs;
use std::path::Path;

use decompose_cp::{CpConfig, CpModel, IterationRecord, Start, StopReason, StopRule};
use decompose_formats::Matrix;
use serde_json::Value as Json;

use crate::common;

/// The entry of a starting factor, as the README defines it.
fn start_entry(seed: u64, mode: u64, row: u64, column: u64) -> f64 {
    let key = seed + mode * 1_000_003 + row * 1009 + column;
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

fn start(extents: &[u64], rank: usize, seed: u64) -> CpModel<f64> {
    let factor = |(mode, &extent): (usize, &u64)| {
        let mut factor = Matrix::zeros(extent as usize, rank).unwrap();
        for i in 0..extent {
            for (r, x) in factor.row_mut(i as usize).iter_mut().enumerate() {
                *x = start_entry(seed, mode as u64, i, r as u64);
            }
        }
        factor
    };
    let factors = extents.iter().enumerate().map(factor).collect();
    CpModel::new(vec![1.0; rank], factors).unwrap()
}

fn numbers(case: &Json, field: &str) -> Vec<f64> {
    case[field].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn check(path: &Path) {
    let case: Json = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let name = case["tensor"].as_str().unwrap();
    let rank = case["rank"].as_u64().unwrap() as usize;
    let Some(tensor) = common::shared(case["set"].as_str().unwrap(), name) else { return };
    let mut config = CpConfig::new(rank);
    config.stop = StopRule { tol: 0.0, max_iters: 10, max_time: None };
    let model = start(&tensor.extents, rank, case["seed"].as_u64().unwrap());
    let outcome = common::run_compiled(&tensor, Start::Given(model), &config);
    let comparable = case["comparable_iterations"].as_u64().unwrap() as usize;
    let pyttb = numbers(&case, "fits");
    let extended = numbers(&case, "extended_fits");
    for (k, IterationRecord { fit, .. }) in outcome.history.iter().enumerate() {
        if k < comparable {
            assert!((fit - pyttb[k]).abs() < 1e-9, "{name} {rank}: {k}: {fit} {}", pyttb[k]);
        } else {
            let squares = (1.0 - fit).powi(2) - (1.0 - extended[k]).powi(2);
            assert!(squares.abs() < 1e-13, "{name} {rank}: {k}: {fit} {}", extended[k]);
        }
    }
    let perfect = outcome.best().stop == StopReason::PerfectFit;
    assert!(outcome.history.len() == 10 || perfect, "{name} {rank}: {:?}", outcome.best());
    eprintln!("{name} at rank {rank}: {} fits agree", outcome.history.len());
}

#[test]
fn fits_follow_pyttb() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"));
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            check(&path);
        }
    }
}
