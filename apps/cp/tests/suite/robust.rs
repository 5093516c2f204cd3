//! Singular normal equations, dead components, tensors without anything to fit.

use std::ops::ControlFlow;

use decompose_cp::{CpConfig, CpModel, SolverError, Start, solve};
use decompose_formats::Matrix;

use crate::common::{self, NaiveSweep};

fn config(rank: usize) -> CpConfig {
    let mut config = CpConfig::new(rank);
    config.stop.max_iters = 8;
    config
}

fn check_finite(tensor: &NaiveSweep, start: Start<f64>, rank: usize) -> Option<String> {
    let outcome = common::run(tensor, start, &config(rank));
    assert!(outcome.best().fit.is_finite() && outcome.best().fit > -1e-12, "{:?}", outcome.best());
    assert!(outcome.model.weights().iter().all(|w| w.is_finite() && *w >= 0.0));
    for factor in outcome.model.factors() {
        assert!(factor.as_slice().iter().all(|x| x.is_finite()));
    }
    outcome.gram.warning()
}

#[test]
fn a_rank_beyond_every_extent_warns_and_fits() {
    for extents in [vec![2, 3, 2], vec![1, 1, 1], vec![2, 2], vec![3], vec![1, 2, 1, 2]] {
        let tensor = common::planted(&extents, 2, 1);
        for rank in [7, 8, 9, 50, 200] {
            let warning = check_finite(&tensor, Start::Random, rank);
            assert!(warning.unwrap().contains("pseudo-inverse"), "{extents:?} {rank}");
        }
    }
}

#[test]
fn duplicate_and_zero_columns_do_no_harm() {
    let tensor = common::planted(&[5, 4, 3], 3, 1);
    let start = |column: fn(usize, usize) -> f64| {
        let factor = |&extent: &u64| {
            let mut factor = Matrix::<f64>::zeros(extent as usize, 3).unwrap();
            for i in 0..extent as usize {
                factor.row_mut(i).iter_mut().enumerate().for_each(|(r, x)| *x = column(i, r));
            }
            factor
        };
        let factors = tensor.extents.iter().map(factor).collect();
        Start::Given(CpModel::new(vec![1.0; 3], factors).unwrap())
    };
    assert!(check_finite(&tensor, start(|i, _| 1.0 + i as f64), 3).is_some());
    assert!(
        check_finite(&tensor, start(|i, r| if r == 1 { 0.0 } else { (i + r) as f64 }), 3).is_some()
    );
    assert!(check_finite(&tensor, start(|_, _| 0.0), 3).is_some());
}

#[test]
fn empty_slices_and_single_entries_are_fitted() {
    let mut tensor = common::planted(&[5, 4, 3], 1, 1);
    tensor.entries.retain(|(at, _)| at[0] != 2 && at[1] != 0);
    check_finite(&tensor, Start::Random, 2);
    let single = NaiveSweep { extents: vec![9, 5, 7], entries: vec![(vec![3, 0, 6], -2.5)] };
    let outcome = common::run::<f64>(&single, Start::Random, &config(1));
    assert!(outcome.best().relative_error < 1e-7, "{:?}", outcome.best());
    assert!((outcome.model.weights()[0] - 2.5).abs() < 1e-12);
    check_finite(&single, Start::Random, 4);
}

#[test]
fn hopeless_input_is_refused_with_a_reason() {
    let refuse = |tensor: &NaiveSweep, config: &CpConfig, start: Start<f64>| -> String {
        let solved = solve(&mut tensor.clone(), start, config, &mut |_| ControlFlow::Continue(()));
        solved.err().unwrap().to_string()
    };
    let tensor = common::planted(&[5, 4], 1, 1);
    let zero = NaiveSweep { extents: vec![2, 2], entries: vec![(vec![0, 1], 0.0)] };
    assert!(refuse(&zero, &config(1), Start::Random).contains("zero"));
    assert!(refuse(&tensor, &config(0), Start::Random).contains("rank is 0"));
    let narrow = CpModel::new(vec![1.0], decompose_common::init::random(&[5, 4], 1, 0).unwrap());
    let error = refuse(&tensor, &config(2), Start::Given(narrow.unwrap()));
    assert!(error.contains("rank 1") && error.contains("rank 2"), "{error}");
    let huge = common::dense(&[4, 4, 4], |at| 1e200 * (1 + at[0]) as f64);
    let solved = solve::<f32>(&mut huge.clone(), Start::Random, &config(2), &mut |_| {
        ControlFlow::Continue(())
    });
    match solved.err().unwrap() {
        SolverError::NotFinite { what, .. } => {
            assert_eq!(what, "iteration 1: the factor of mode 1")
        }
        other => assert!(matches!(other, SolverError::Common(_)), "{other}"),
    }
}
