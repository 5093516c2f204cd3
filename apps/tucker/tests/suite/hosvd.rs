//! HOSVD, ST-HOSVD and ranks for an error.

use decompose_tucker::{Method, Start, Target, Truncation, TuckerConfig, hosvd};

use crate::common::{self, departure, true_error};

fn run(
    coo: &decompose_formats::Coo<f64>,
    target: &Target,
    truncation: Truncation,
) -> (f64, f64, Vec<usize>) {
    let mut copy = common::clone(coo);
    let found = hosvd(&mut copy, target, truncation, 0).unwrap();
    assert!(copy.values() == coo.values(), "the list is as it was");
    for factor in &found.factors {
        assert!(departure(factor) < 1e-12, "{:e}", departure(factor));
    }
    let ranks: Vec<usize> = found.factors.iter().map(|factor| factor.cols()).collect();
    let config = TuckerConfig { method: Method::Core, ..TuckerConfig::new(ranks.clone()) };
    let outcome = common::run(coo, Start::Factors(found.factors), &config);
    assert_eq!(outcome.history.len(), 1);
    (true_error(coo, &outcome.model), found.bound, ranks)
}

#[test]
fn the_error_is_below_the_bound_asked_for() {
    for (extents, seed) in [(&[20_u64, 15, 10][..], 1), (&[9, 8, 7, 6], 2), (&[600, 6, 5], 3)] {
        let coo = common::sparse::<f64>(extents, 0.4, seed);
        for eps in [0.9, 0.5, 0.2, 0.01] {
            for truncation in [Truncation::AtOnce, Truncation::Sequential] {
                let (error, bound, ranks) = run(&coo, &Target::Error(eps), truncation);
                // Rounding of the difference of squares.
                assert!(error <= bound + 1e-7, "{extents:?} {ranks:?}: {error} {bound}");
                assert!(bound <= eps + 1e-7, "{extents:?} {ranks:?}: {bound} {eps}");
            }
        }
    }
}

#[test]
fn exact_ranks_are_found() {
    let coo = common::planted(&[25, 20, 15], &[3, 4, 2], 0.4, 6);
    for truncation in [Truncation::AtOnce, Truncation::Sequential] {
        let (error, _, ranks) = run(&coo, &Target::Error(1e-5), truncation);
        assert_eq!(ranks, [3, 4, 2]);
        assert!(error < 1e-10, "{error:e}");
    }
}

#[test]
fn a_sequence_truncates_as_the_core_says() {
    // The sum of what the steps leave out is the error itself, not only a bound.
    let coo = common::sparse::<f64>(&[14, 13, 12], 0.3, 8);
    let target = Target::Ranks(vec![4, 5, 6]);
    let (error, bound, _) = run(&coo, &target, Truncation::Sequential);
    assert!((error - bound).abs() < 1e-10, "{error} {bound}");
}

#[test]
fn targets_out_of_range_are_refused() {
    let coo = common::sparse::<f64>(&[4, 4, 4], 0.9, 1);
    for eps in [0.0, 1.0, -0.1, f64::NAN, 2.0] {
        let target = Target::Error(eps);
        let refused = hosvd(&mut common::clone(&coo), &target, Truncation::AtOnce, 0);
        assert!(refused.err().unwrap().to_string().contains("eps"), "{eps}");
    }
}
