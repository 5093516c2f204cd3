//! The fits of other programs on real tensors.

use std::fs;

use decompose_tucker::{Method, Start, Target, Truncation, TuckerConfig, hosvd};
use serde_json::Value as Json;

use crate::common;

/// Non-zeros above which a tensor is left to release builds.
const MOST: usize = 500_000;

#[test]
fn reference_fits_are_met() {
    let path = common::root().join("../shared/data/reference/tucker_tt.json");
    let Ok(text) = fs::read(&path) else {
        eprintln!("skipped: no {}", path.display());
        return;
    };
    let table: Json = serde_json::from_slice(&text).unwrap();
    for (key, row) in table.as_object().unwrap() {
        let mut words = key.split('|');
        let (Some("tucker"), Some(name), Some(ranks)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let ranks: Vec<usize> = ranks.split('x').map(|rank| rank.parse().unwrap()).collect();
        let number = |name: &str| row[name].as_f64().unwrap();
        check(name, &ranks, number("hooi_fit"), number("hosvd_fit"));
    }
}

fn check(name: &str, ranks: &[usize], hooi_fit: f64, hosvd_fit: f64) {
    let Some(coo) = common::shared(name).filter(|coo| coo.nnz() < MOST) else { return };
    let target = Target::Ranks(ranks.to_vec());
    let found = hosvd(&mut common::clone(&coo), &target, Truncation::AtOnce, 0).unwrap();
    let mut config = TuckerConfig::new(ranks.to_vec());
    config.stop.tol = 1e-10;
    config.stop.max_iters = 200;
    let core = TuckerConfig { method: Method::Core, ..config.clone() };
    let copies = found.factors.iter().map(|f| f.try_clone().unwrap()).collect();
    let start = common::run(&coo, Start::Factors(copies), &core).best().fit;
    // The subspaces are unique: what is left is rounding in the differences of squares.
    assert!((start - hosvd_fit).abs() < 1e-8, "{name} {ranks:?}: {start} {hosvd_fit}");
    let from_hosvd = common::run(&coo, Start::Factors(found.factors), &config).best().fit;
    // The reference stopped at changes below 1e-8 or so.
    assert!((from_hosvd - hooi_fit).abs() < 1e-6, "{name} {ranks:?}: {from_hosvd} {hooi_fit}");
    let random = common::run(&coo, Start::Random, &config).best().fit;
    eprintln!("{name} {ranks:?}: HOSVD {start:.8}, HOOI {from_hosvd:.8}, from random {random:.8}");
    assert!(random >= hooi_fit * (1.0 - 1e-3), "{name} {ranks:?}: {random} {hooi_fit}");
    assert!(random >= start - 1e-12, "{name} {ranks:?}: {random} below HOSVD's {start}");
}
