//! The fit that is reported is that of the model, and factors are orthonormal at ranks beyond the tensor's.

use decompose_formats::{Coo, Value};
use decompose_tucker::{Method, Start, Target, Truncation, TuckerConfig, TuckerOutcome, hosvd};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::common::{self, departure, true_error};

/// What is promised of orthonormal columns and of the error, where that is not measured at the cells.
fn tolerances<V: Value>() -> (f64, f64) {
    if V::BYTES == 4 { (1e-5, 1e-3) } else { (1e-12, 1e-7) }
}

fn check<V: Value>(coo: &Coo<V>, outcome: &TuckerOutcome<V>, method: Method) -> Result<(), String> {
    let (best, want) = (outcome.best(), true_error(coo, &outcome.model));
    let (orthonormal, error) = tolerances::<V>();
    if (best.relative_error - want).abs() > error || best.fit != 1.0 - best.relative_error {
        return Err(format!("{} {method:?}: {best:?}, true error {want}", V::NAME));
    }
    let worst = outcome.model.factors().iter().map(departure).fold(0.0, f64::max);
    if method != Method::Nonnegative && worst > orthonormal {
        return Err(format!("{} {method:?}: factors off by {worst}", V::NAME));
    }
    Ok(())
}

/// Runs every method at `ranks`.
fn all_methods<V: Value>(coo: &Coo<f64>, ranks: &[usize], seed: u64) -> Result<(), String> {
    let coo = common::rounded::<V>(coo);
    let config = |method| {
        let mut config = TuckerConfig { method, seed, ..TuckerConfig::new(ranks.to_vec()) };
        config.stop.max_iters = 15;
        config
    };
    for method in [Method::Hooi, Method::Nonnegative] {
        let outcome = common::interpret(&coo, Start::Random, &config(method));
        check(&coo, &outcome, method)?;
    }
    for truncation in [Truncation::AtOnce, Truncation::Sequential] {
        let target = Target::Ranks(ranks.to_vec());
        let found = hosvd(&mut common::clone(&coo), &target, truncation, seed).unwrap();
        let worst = found.factors.iter().map(departure).fold(0.0, f64::max);
        if worst > tolerances::<V>().0 {
            return Err(format!("{} {truncation:?}: factors off by {worst}", V::NAME));
        }
        let start = Start::Factors(found.factors);
        let outcome = common::interpret(&coo, start, &config(Method::Core));
        check(&coo, &outcome, Method::Core)?;
    }
    Ok(())
}

#[test]
fn ranks_beyond_the_tensor_s_keep_factors_orthonormal() {
    let coo = common::planted(&[6, 5, 4], &[1, 1, 1], 0.0, 3);
    for rank in [1, 2, 4] {
        all_methods::<f64>(&coo, &[rank; 3], 1).unwrap();
        all_methods::<f32>(&coo, &[rank; 3], 1).unwrap();
    }
    // Above the size at which unfoldings are decomposed whole.
    let long = common::planted(&[530, 3, 3], &[2, 2, 2], 0.0, 3);
    for truncation in [Truncation::AtOnce, Truncation::Sequential] {
        let target = Target::Ranks(vec![9, 3, 3]);
        let found = hosvd(&mut common::clone(&long), &target, truncation, 0).unwrap();
        assert!(found.factors.iter().all(|factor| departure(factor) < 1e-12));
        let again = hosvd(&mut common::clone(&long), &target, truncation, 0).unwrap();
        assert_eq!(found.factors[0].as_slice(), again.factors[0].as_slice());
    }
}

#[test]
fn nothing_positive_leaves_a_model_of_zeros() {
    let coo = common::dense::<f64>(&[4, 3, 5], |at| -1.0 - at[0] as f64);
    let mut config = TuckerConfig::new(vec![2, 2, 2]);
    config.method = Method::Nonnegative;
    let outcome = common::interpret(&coo, Start::Random, &config);
    assert!(outcome.model.core().iter().all(|&g| g == 0.0));
    assert_eq!((outcome.best().fit, outcome.best().relative_error), (0.0, 1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_fit_reported_is_that_of_the_model(
        seed in 0_u64..1000, planted in 1_usize..4, rank in 1_usize..6, other in 1_usize..6,
        holes in 0_usize..2,
    ) {
        let mut coo = common::planted(&[6, 5, 7], &[planted; 3], 0.1, seed);
        if holes == 1 {
            coo = coo.filtered(|entry| entry % 3 != 1);
        }
        let ranks = [rank, other.min(rank * rank), rank];
        let [wide, narrow] =
            [all_methods::<f64>(&coo, &ranks, seed), all_methods::<f32>(&coo, &ranks, seed)];
        prop_assert!(wide.is_ok(), "{wide:?}");
        prop_assert!(narrow.is_ok(), "{narrow:?}");
    }
}
