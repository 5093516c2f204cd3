//! TTMcs that share partial products, against the definition, exactly: all numbers are small integers.

mod common;

use common::{Case, corpus};
use decompose_core::contract::build_merged;
use decompose_core::cost::Machine;
use decompose_core::einsum::Extents;
use decompose_core::kernels::{mode_index, mode_rank_index, ttmc};
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::{
    Merging, PlanOptions, Trees, TtmcMerge, TtmcSweep, plan_kernels, plan_ttmc_merges, posed,
};
use decompose_formats::Matrix;
use ndarray::{ArrayD, IxDyn};

const RANKS: [usize; 5] = [2, 9, 3, 4, 2];

fn options(merging: Merging) -> PlanOptions {
    PlanOptions {
        rank: 0,
        value_bytes: 8,
        threads: rayon::current_num_threads(),
        memory: None,
        sweeps: 20,
        trees: Trees::Choose,
        merging,
        panels: None,
        updates: Vec::new(),
    }
}

fn plan(case: &Case, merging: Merging) -> (Vec<TtmcMerge>, f64) {
    let order = case.extents.len();
    let pattern = case.pattern();
    let mut extents: Extents =
        case.extents.iter().enumerate().map(|(m, &extent)| (mode_index(m), extent)).collect();
    for (m, &rank) in RANKS.iter().enumerate().take(order) {
        extents.set(mode_rank_index(order, m), rank as u64);
    }
    let problems: Vec<_> = (0..order)
        .map(|mode| posed(ttmc(order, Some(mode)), extents.clone(), pattern.clone(), 8))
        .collect();
    let machine = Machine::here();
    let plain = plan_kernels(&case.extents, &problems, &options(Merging::Never), machine);
    let plain = plain.expect("a plan");
    let modes: Vec<usize> = (0..order).collect();
    let sweep = TtmcSweep {
        extents: &case.extents,
        pattern: &pattern,
        ranks: &RANKS[..order],
        modes: &modes,
    };
    let planned = plan_ttmc_merges(&sweep, &plain.steps, &options(merging), machine);
    (planned.expect("merges").0, plain.seconds())
}

/// `Y(i,s,t) = X(i,j,k) U2(j,s) U3(k,t)` by its definition, the columns in the order of the modes.
fn definition(case: &Case, factors: &[Matrix<f64>], mode: usize) -> ArrayD<f64> {
    let order = case.extents.len();
    let mut shape = vec![case.extents[mode] as usize];
    shape.extend((0..order).filter(|&m| m != mode).map(|m| RANKS[m]));
    let mut result = ArrayD::zeros(IxDyn(&shape));
    for (at, value) in case.entries() {
        let row = result.index_axis_mut(ndarray::Axis(0), at[mode] as usize);
        let others: Vec<usize> = (0..order).filter(|&m| m != mode).collect();
        for (columns, sum) in row.into_dyn().indexed_iter_mut() {
            let entry = |(k, &m): (usize, &usize)| factors[m].row(at[m] as usize)[columns[k]];
            *sum += value * others.iter().enumerate().map(entry).product::<f64>();
        }
    }
    result
}

#[test]
fn shared_partial_products_change_no_result() {
    let corpus = corpus();
    let toolchains = [Toolchain::detect(), Toolchain::Interpreter("a test".into())];
    for case in corpus.tensor.iter().filter(|case| (3..6).contains(&case.extents.len())) {
        let order = case.extents.len();
        let factors: Vec<Matrix<f64>> =
            (0..order).map(|m| case.factors(RANKS[m]).swap_remove(m)).collect();
        let sets = (1_usize..1 << order)
            .map(|bits| (0..order).filter(|m| bits >> m & 1 == 1).collect::<Vec<usize>>())
            .filter(|set| set.len() > 1 && set.len() < order);
        for set in sets {
            let (merges, _) = plan(case, Merging::Given(vec![set.clone()]));
            for toolchain in &toolchains {
                let mut coo = case.coo::<f64>();
                coo.sort(&decompose_formats::ModeOrder::natural(order)).expect("sorted");
                check(case, (coo, &merges, &factors), &set, toolchain);
            }
        }
    }
}

fn check(
    case: &Case,
    (coo, merges, factors): (decompose_formats::Coo<f64>, &[TtmcMerge], &[Matrix<f64>]),
    set: &[usize],
    toolchain: &Toolchain,
) {
    let order = case.extents.len();
    let none = decompose_core::sweep::TreePlan::default();
    let (mut kernels, _) = build_merged(coo, &none, merges, toolchain).expect("kernels");
    let outside: Vec<&Matrix<f64>> =
        (0..order).filter(|m| !set.contains(m)).map(|m| &factors[m]).collect();
    let mut partial = kernels[0].output().expect("memory");
    kernels[0].run(&outside, &mut partial).expect("a partial product");
    for (step, kernel) in merges[0].updates.steps.iter().zip(&mut kernels[1..]) {
        let others = set.iter().filter(|&&m| m != step.mode).map(|&m| &factors[m]);
        let operands: Vec<&Matrix<f64>> = others.chain([&partial]).collect();
        let mut output = kernel.output().expect("memory");
        kernel.run(&operands, &mut output).expect("a result");
        let have = kernel.dense(&output).expect("dense");
        let want = definition(case, factors, step.mode);
        assert_eq!(have, want, "{} mode {} of {set:?}", case.name, step.mode);
    }
}

#[test]
fn merges_are_chosen_where_they_are_predicted_to_gain() {
    let corpus = corpus();
    for case in corpus.tensor.iter().filter(|case| (3..6).contains(&case.extents.len())) {
        let (merges, plain) = plan(case, Merging::Choose);
        let merged: f64 = merges.iter().map(TtmcMerge::seconds).sum();
        assert!(merged <= plain, "{}: {merged} {plain}", case.name);
        let mut modes: Vec<usize> = merges.iter().flat_map(|merge| merge.modes.clone()).collect();
        modes.sort_unstable();
        assert!(modes.windows(2).all(|pair| pair[0] != pair[1]), "{modes:?}");
        assert!(plan(case, Merging::Never).0.is_empty());
    }
}
