//! Options that make no sense are refused with their value and the remedy.

use decompose_formats::Coo;
use decompose_tt::{Method, Ranks, SolverError, Start, Train, TtConfig};

use crate::common;

fn refusal(coo: &Coo<f64>, config: &TtConfig) -> String {
    common::run(coo, Start::Random, config).unwrap_err().to_string()
}

#[test]
fn every_mistake_has_its_message() {
    let coo = common::sparse(&[4, 5, 6], 0.5, 1);
    let each = |ranks: &[usize]| TtConfig::new(Method::Als, Ranks::Each(ranks.to_vec()));
    let within = |method, eps| TtConfig::new(method, Ranks::Error { eps, max_rank: None });
    let changed = |change: &dyn Fn(&mut TtConfig)| {
        let mut config = each(&[2, 2]);
        change(&mut config);
        config
    };
    let cases = [
        (each(&[2]), "1 ranks for a tensor of order 3, whose train has 2 bonds"),
        (each(&[2, 0]), "a rank is 0"),
        (each(&[5, 2]), "rank 5 of bond 1 is more than the 4"),
        (each(&[1, 6]), "rank 6 of bond 2 is more than the 5"),
        (within(Method::Als, 0.1), "give ranks, or use dmrg or svd"),
        (within(Method::Svd, 0.0), "eps is 0; use a number between 0 and 1"),
        (within(Method::Dmrg, 1.5), "eps is 1.5"),
        (within(Method::Svd, f64::NAN), "eps is NaN"),
        (changed(&|c| c.stop.max_iters = 0), "max_iters is 0"),
        (changed(&|c| c.stop.tol = -1.0), "tol is -1"),
        (changed(&|c| c.restarts = 0), "restarts is 0"),
    ];
    for (config, message) in cases {
        let error = refusal(&coo, &config);
        assert!(error.contains(message), "{error}");
    }
    let vector = common::sparse(&[9], 0.9, 1);
    assert!(refusal(&vector, &each(&[])).contains("order 1"));
    let matrix = common::sparse(&[5, 6], 0.5, 1);
    assert!(refusal(&matrix, &within(Method::Dmrg, 0.1)).contains("use svd or als"));
}

#[test]
fn a_single_rank_is_cut_to_what_a_bond_can_have() {
    let coo = common::sparse(&[3, 5, 6], 0.5, 1);
    let config = TtConfig::new(Method::Als, Ranks::Uniform(5));
    assert_eq!(common::run(&coo, Start::Random, &config).unwrap().train.ranks(), [3, 5]);
}

#[test]
fn tensors_and_starts_that_do_not_fit_are_refused() {
    let coo = common::sparse(&[3, 5, 6], 0.5, 1);
    let config = TtConfig::new(Method::Als, Ranks::Uniform(2));
    let other = Train::random(&[3, 5, 6], &[2, 3], 0);
    let error = common::run(&coo, Start::Given(other), &config).unwrap_err();
    assert!(matches!(error, SolverError::Start { .. }), "{error}");
    assert!(error.to_string().contains("[2, 3]"), "{error}");
    let zero = Coo::new(vec![2, 2], vec![vec![0_u32].into(), vec![1_u32].into()], vec![0.0]);
    let zero = zero.unwrap();
    for method in [Method::Als, Method::Svd] {
        let config = TtConfig::new(method, Ranks::Uniform(1));
        let error = common::run(&zero, Start::Random, &config).unwrap_err();
        assert!(matches!(error, SolverError::ZeroTensor), "{error}");
    }
}

#[test]
fn overflow_is_told_with_its_remedy() {
    let coo = common::sparse(&[3, 5, 6], 0.5, 1);
    let (extents, coords, values) = coo.into_parts();
    let huge: Vec<f32> = values.iter().map(|x| (x * 3e38) as f32).collect();
    let coo = Coo::new(extents, coords, huge).unwrap();
    let config = TtConfig::new(Method::Als, Ranks::Uniform(2));
    let error = common::run(&coo, Start::Random, &config).unwrap_err().to_string();
    assert!(error.contains("use double precision"), "{error}");
}
