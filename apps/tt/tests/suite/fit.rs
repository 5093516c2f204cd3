//! The errors that are reported are those of the train, and cores are orthonormal at ranks beyond the tensor's.

use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Value};
use decompose_tt::{Method, Ranks, Start, Train, TtConfig};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::common;

fn rounded<V: Value>(coo: &Coo<f64>) -> Coo<V> {
    let (extents, coords, values) = coo.clone().into_parts();
    let values: Vec<V> = values.iter().map(|&x| V::from_f64(x)).collect();
    Coo::new(extents, coords, values).unwrap()
}

/// Runs every method at the ranks `rank`, as far as they are possible.
fn all_methods<V: Value>(coo: &Coo<f64>, rank: usize, seed: u64) -> Result<(), String> {
    // What is not measured at the cells is known to 3 % of 6e-7, or of 8e-3.
    let (tolerance, orthonormal) = if V::BYTES == 4 { (1e-3, 1e-5) } else { (1e-7, 1e-12) };
    let coo = rounded::<V>(coo);
    for method in [Method::Als, Method::Dmrg, Method::Svd] {
        let mut config = TtConfig { seed, ..TtConfig::new(method, Ranks::Uniform(rank)) };
        config.stop.max_iters = 12;
        let interpreter = Toolchain::Interpreter("a test".into());
        let outcome = common::run_by(&coo, Start::Random, &config, interpreter).unwrap();
        let want = common::dense_error(&coo, &outcome.train);
        let of_solver = outcome.best().relative_error;
        for (what, error) in [("verified", outcome.verified.relative_error), ("solver", of_solver)]
        {
            if (error - want).abs() > tolerance {
                return Err(format!("{} {method} {what}: {error}, true {want}", V::NAME));
            }
        }
        // The centre is at the first core, of svd at the last.
        let centre = if method == Method::Svd { outcome.train.order() - 1 } else { 0 };
        let defect = outcome.train.orthogonality_defect(centre);
        if defect > orthonormal {
            return Err(format!("{} {method}: cores off by {defect}", V::NAME));
        }
    }
    Ok(())
}

#[test]
fn ranks_beyond_the_tensor_s_keep_cores_orthonormal() {
    let coo = common::of_train(&Train::random(&[4, 3, 5, 4], &[1, 1, 1], 2));
    for rank in [1, 2, 4] {
        all_methods::<f64>(&coo, rank, 1).unwrap();
        all_methods::<f32>(&coo, rank, 1).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_error_reported_is_that_of_the_train(
        seed in 0_u64..1000, planted in 1_usize..4, rank in 1_usize..7, holes in 0_usize..2,
    ) {
        let mut coo = common::of_train(&Train::random(&[4, 5, 4], &[planted; 2], seed));
        if holes == 1 {
            coo = coo.filtered(|entry| entry % 3 != 1);
        }
        let [wide, narrow] =
            [all_methods::<f64>(&coo, rank, seed), all_methods::<f32>(&coo, rank, seed)];
        prop_assert!(wide.is_ok(), "{wide:?}");
        prop_assert!(narrow.is_ok(), "{narrow:?}");
    }
}
