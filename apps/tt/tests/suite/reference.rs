//! TT-SVD finds the ranks and errors of an independent implementation; the other methods come near.

use std::path::Path;

use decompose_tt::{Method, Ranks, Start, TtConfig};
use serde_json::Value as Json;

use crate::common;

/// The cases `tt|NAME|epsE` of the reference, without a tensor of five million cells if `small`.
fn cases() -> Vec<(String, Json)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/reference");
    let path = root.join("tucker_tt.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no {}", path.display());
        return Vec::new();
    };
    let all: serde_json::Map<String, Json> = serde_json::from_str(&text).unwrap();
    let trains = all.into_iter().filter(|(key, _)| key.starts_with("tt|"));
    trains.map(|(key, case)| (key.split('|').nth(1).unwrap().to_owned(), case)).collect()
}

/// Ranks are equal where no singular value lies at the cut; errors agree to 1e-8 of their size, as
/// both are computed in double precision from values of moderate condition.
#[test]
fn svd_has_the_ranks_and_errors_of_the_reference() {
    for (name, case) in cases() {
        let Some(coo) = common::shared("real", &name) else { continue };
        let eps = case["eps"].as_f64().unwrap();
        let config = TtConfig::new(Method::Svd, Ranks::Error { eps, max_rank: None });
        let outcome = common::run(&coo, Start::Random, &config).unwrap();
        let ranks: Vec<usize> = case["ranks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r.as_u64().unwrap() as usize)
            .collect();
        assert_eq!(outcome.train.ranks(), ranks, "{name} {eps}");
        let (have, want) = (outcome.verified.relative_error, case["rel_err"].as_f64().unwrap());
        assert!((have / want - 1.0).abs() < 1e-8, "{name} {eps}: {have} {want}");
        assert_eq!(outcome.train.parameters() as u64, case["params"].as_u64().unwrap());
        assert_eq!(outcome.keeps_bound(), Some(true), "{name} {eps}");
        eprintln!("{name} eps {eps}: ranks {ranks:?}, error {have:.9}");
    }
}

/// At the ranks of TT-SVD, whose error is within sqrt(N - 1) of the best, ALS does no worse; and
/// `dmrg` keeps the bound with ranks that are not larger than twice those of TT-SVD.
#[test]
fn the_iterations_are_as_good_as_the_reference() {
    for (name, case) in cases() {
        let eps = case["eps"].as_f64().unwrap();
        let ranks: Vec<usize> = case["ranks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r.as_u64().unwrap() as usize)
            .collect();
        // Each rank compiles kernels: the small trains are enough.
        if ranks.iter().any(|&rank| rank > 20) {
            continue;
        }
        let Some(coo) = common::shared("real", &name) else { continue };
        let want = case["rel_err"].as_f64().unwrap();
        let als = TtConfig::new(Method::Als, Ranks::Each(ranks.clone()));
        let error = common::run(&coo, Start::Random, &als).unwrap().verified.relative_error;
        assert!(error < want * (1.0 + 1e-3), "{name} {eps}: als {error}, svd {want}");
        let dmrg = TtConfig::new(Method::Dmrg, Ranks::Error { eps, max_rank: None });
        let outcome = common::run(&coo, Start::Random, &dmrg).unwrap();
        assert_eq!(outcome.keeps_bound(), Some(true), "{name} {eps}: {:?}", outcome.verified);
        let sizes = outcome.train.ranks();
        let small = sizes.iter().zip(&ranks).all(|(have, want)| *have <= 2 * want);
        assert!(small, "{name} {eps}: {sizes:?} {ranks:?}");
        eprintln!("{name} eps {eps}: als {error:.6}, dmrg {sizes:?}, svd {ranks:?} {want:.6}");
    }
}
