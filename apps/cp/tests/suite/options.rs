//! Ridge, non-negativity, update order, starts: each does what it says.

use decompose_common::init;
use decompose_cp::{Arrangement, CpConfig, CpModel, NonNegModes, SolverError, Start, nvecs_start};
use decompose_formats::{Coo, ModeOrder};

use crate::common::{self, NaiveSweep};

fn config(rank: usize) -> CpConfig {
    let mut config = CpConfig::new(rank);
    config.stop.max_iters = 30;
    config
}

fn mixed_signs() -> NaiveSweep {
    let noise = decompose_common::rng::MatrixRng::new(4, 4);
    common::dense(&[6, 5, 4], |at| noise.uniform(at[0] as u64, (at[1] * 4 + at[2]) as u64) - 0.3)
}

#[test]
fn non_negative_modes_have_no_negative_entry() {
    for nonneg in [NonNegModes::All, NonNegModes::Listed(vec![1])] {
        let config = CpConfig { nonneg: nonneg.clone(), ..config(3) };
        let outcome = common::run::<f64>(&mixed_signs(), Start::Random, &config);
        for (mode, factor) in outcome.model.factors().iter().enumerate() {
            let negative = factor.as_slice().iter().any(|&x| x < 0.0);
            assert_eq!(negative, !nonneg.contains(mode), "mode {mode} of {nonneg:?}");
        }
    }
}

#[test]
fn non_negative_data_of_low_rank_are_recovered_without_signs() {
    let tensor = common::planted(&[8, 7, 6], 2, 3);
    let mut config = CpConfig { nonneg: NonNegModes::All, ..config(2) };
    config.stop = decompose_cp::StopRule { tol: 0.0, max_iters: 2000, max_time: None };
    let outcome = common::run::<f64>(&tensor, Start::Random, &config);
    assert!(outcome.best().relative_error < 1e-4, "{:?}", outcome.best());
}

#[test]
fn a_ridge_shrinks_the_model_and_cures_singular_equations() {
    let tensor = mixed_signs();
    let norm = |reg: f64| {
        let outcome = common::run::<f64>(&tensor, Start::Random, &CpConfig { reg, ..config(2) });
        outcome.model.weights().iter().map(|w| w * w).sum::<f64>()
    };
    assert!(norm(1.0) < norm(0.1) && norm(0.1) < norm(0.0));
    let ridge = CpConfig { reg: 1e-3, ..config(9) };
    let small = common::planted(&[2, 2, 2], 2, 1);
    assert_eq!(common::run::<f64>(&small, Start::Random, &ridge).gram.singular, 0);
}

#[test]
fn any_update_order_reaches_the_same_optimum() {
    let tensor = common::planted(&[6, 5, 4], 4, 2);
    let fit = |modes: Option<Vec<usize>>| {
        let update_order = modes.map(|modes| ModeOrder::new(modes).unwrap());
        let mut config = CpConfig { update_order, ..config(1) };
        config.stop.tol = 1e-12;
        common::run::<f64>(&tensor, Start::Random, &config).best().fit
    };
    assert!((fit(None) - fit(Some(vec![2, 0, 1]))).abs() < 1e-9);
}

#[test]
fn components_can_stay_as_computed() {
    let tensor = common::planted(&[6, 5, 4], 4, 2);
    let as_computed = CpConfig { arrangement: Arrangement::AsComputed, ..config(3) };
    let plain = common::run::<f64>(&tensor, Start::Random, &as_computed);
    let sorted = common::run::<f64>(&tensor, Start::Random, &config(3));
    let mut weights = plain.model.weights().to_vec();
    weights.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(weights, sorted.model.weights());
}

#[test]
fn leading_vectors_start_better_than_chance() {
    let tensor = mixed_signs();
    let coords = |m: usize| tensor.entries.iter().map(|(at, _)| at[m] as u32).collect::<Vec<_>>();
    let values: Vec<f64> = tensor.entries.iter().map(|(_, value)| *value).collect();
    let coords = (0..3).map(|m| coords(m).into()).collect();
    let coo = Coo::new(tensor.extents.clone(), coords, values).unwrap();
    let mut config = config(2);
    config.stop.max_iters = 1;
    let first = |start: Start<f64>| common::run(&tensor, start, &config).best().fit;
    let nvecs = first(nvecs_start(&coo, &config).unwrap());
    assert!(nvecs > first(Start::Random), "{nvecs}");
}

#[test]
fn options_that_make_no_sense_are_named() {
    let message = |config: CpConfig| match config.check(3) {
        Err(SolverError::Config(why)) => why,
        other => panic!("{other:?}"),
    };
    let base = config(2);
    assert!(message(CpConfig { restarts: 0, ..base.clone() }).contains("restarts"));
    assert!(message(CpConfig { reg: -1.0, ..base.clone() }).contains("reg is -1"));
    assert!(message(CpConfig { reg: f64::NAN, ..base.clone() }).contains("reg is NaN"));
    let listed = NonNegModes::Listed(vec![3]);
    assert!(message(CpConfig { nonneg: listed, ..base.clone() }).contains("mode 4"));
    let short = Some(ModeOrder::natural(2));
    assert!(message(CpConfig { update_order: short, ..base }).contains("dimorder 1-2"));
}

#[test]
fn weights_of_a_given_start_do_not_matter() {
    let tensor = common::planted(&[6, 5, 4], 4, 2);
    let start = |weight: f64| {
        let factors = init::random(&tensor.extents, 2, 0).unwrap();
        Start::Given(CpModel::new(vec![weight; 2], factors).unwrap())
    };
    let fit = |start| common::run::<f64>(&tensor, start, &config(2)).best().fit;
    assert_eq!(fit(start(1.0)), fit(start(5.0)));
    assert_eq!(fit(start(1.0)), fit(Start::Random), "the random start of seed 0");
}
