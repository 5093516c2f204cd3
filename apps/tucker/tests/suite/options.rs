//! Options that make no sense, and tensors that are hard.

use std::ops::ControlFlow;

use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::kernels::mode_index;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{Merging, Trees};
use decompose_formats::PatternCounts;
use decompose_tucker::{
    Forming, Method, PlanRequest, SolverError, Start, TuckerConfig, check_ranks, plan, solve,
};

use crate::common::{self, departure, true_error};

#[test]
fn ranks_that_make_no_sense_are_named() {
    let cases: [(&[u64], &[usize], &str); 6] = [
        (&[5], &[1], "order 1"),
        (&[5, 5, 5], &[2, 2], "2 ranks for a tensor of 3 modes"),
        (&[5, 5, 5], &[2, 0, 2], "the rank of mode 2 is 0"),
        (&[5, 5, 5], &[2, 6, 3], "the rank 6 of mode 2 is above its extent 5"),
        (&[9, 9, 9], &[2, 2, 5], "the rank 5 of mode 3 is above the product 4"),
        (&[9, 9], &[2, 3], "above the product 2"),
    ];
    for (extents, ranks, message) in cases {
        let error = check_ranks(extents, ranks).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    check_ranks(&[5, 4], &[3, 3]).unwrap();
}

/// Kernels in windows have a tree each, planned one by one.
#[test]
fn kernels_in_windows_keep_a_limit_on_memory_together() {
    let extents = [50, 40, 30];
    let counts = PatternCounts::uniform(&extents, 5_000);
    let pattern = Pattern::of(&counts, &[0, 1, 2].map(mode_index));
    let free = PlanRequest {
        extents: &extents,
        pattern: &pattern,
        ranks: &[4, 4, 4],
        method: Method::Hooi,
        value_bytes: 8,
        threads: 2,
        trees: Trees::Choose,
        merging: Merging::Never,
        memory: None,
        most_whole: Some(1),
    };
    let bytes = |request: &PlanRequest<'_>| {
        let plan = plan(request, Machine::here())?;
        assert!(plan.forming.iter().all(|forming| matches!(forming, Forming::Windows(_))));
        Ok::<_, CoreError>(plan.tree_bytes() + plan.side_bytes())
    };
    let all = bytes(&free).unwrap();
    for limit in (1..8).map(|eighths| all * eighths / 8).chain([all - 1, all]) {
        match bytes(&PlanRequest { memory: Some(limit), ..free.clone() }) {
            Ok(taken) => assert!(taken <= limit, "{taken} of {limit}"),
            Err(CoreError::Memory { .. }) => assert!(limit < all),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn other_options_are_checked() {
    let coo = common::sparse::<f64>(&[5, 5, 5], 0.5, 1);
    let good = TuckerConfig::new(vec![2, 2, 2]);
    let mut engine = common::engine(coo, &good, None);
    let mut refuse = |change: &dyn Fn(&mut TuckerConfig), message: &str| {
        let mut config = good.clone();
        change(&mut config);
        let refused =
            solve(&mut engine, Start::Random, &config, &mut |_| ControlFlow::Continue(()));
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
    };
    refuse(&|c| c.restarts = 0, "restarts is 0");
    refuse(&|c| c.stop.max_iters = 0, "max_iters is 0");
    refuse(&|c| c.stop.tol = f64::NAN, "tol is NaN");
    refuse(&|c| c.ranks = vec![2, 2, 9], "above its extent");
    let other = common::run(
        &common::sparse::<f64>(&[5, 5, 4], 0.5, 1),
        Start::Random,
        &TuckerConfig::new(vec![2, 2, 2]),
    );
    let given =
        solve(&mut engine, Start::Given(other.model), &good, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(given, Err(SolverError::Start { .. })));
}

#[test]
fn a_rank_above_that_of_the_tensor_keeps_the_factors_orthonormal() {
    let coo = common::planted(&[14, 12, 300], &[2, 2, 2], 0.4, 7);
    let outcome = common::run(&coo, Start::Random, &TuckerConfig::new(vec![4, 4, 5]));
    for factor in outcome.model.factors() {
        assert!(departure(factor) < 1e-12, "{:e}", departure(factor));
    }
    // Directions beyond the rank are rounding: they may cost half of the digits.
    let error = true_error(&coo, &outcome.model);
    assert!(error < 1e-7, "{error:e}");
}

#[test]
fn empty_slices_and_single_entries_do_no_harm() {
    let coo = common::dense::<f64>(&[6, 5, 4], |at| if at == [2, 3, 1] { -3.0 } else { 0.0 });
    let outcome = common::run(&coo, Start::Random, &TuckerConfig::new(vec![1, 1, 1]));
    assert!(true_error(&coo, &outcome.model) < 1e-12);
    let wide = common::run(&coo, Start::Random, &TuckerConfig::new(vec![2, 2, 2]));
    assert!(true_error(&coo, &wide.model) < 1e-12);
    assert!(wide.model.factors().iter().all(|factor| departure(factor) < 1e-12));
}
