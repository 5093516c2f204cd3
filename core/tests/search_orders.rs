//! Searches that choose the order of the levels.

use std::collections::HashSet;

use decompose_core::autoschedule::{
    OrdersFound, SCHEDULERS, SearchLimits, Storage, default_scheduler, level_orders, storages,
};
use decompose_core::cost::{Family, Machine, on_threads};
use decompose_core::einsum::{Extents, Index, IndexSet};
use decompose_core::error::CoreError;
use decompose_core::kernels;
use decompose_core::schedule::{Conflict, Format, Pattern, Problem, SparseOperand};

/// A named kernel on a tensor of these extents; ranks are 16.
fn pose(name: &str, sparse: &[u64], nnz: u64) -> Problem {
    let expr = kernels::parse(name).expect("a kernel");
    let levels = expr.inputs[0].indices.clone();
    let extent = |index| levels.iter().position(|&l| l == index).map_or(16, |mode| sparse[mode]);
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let pattern = Pattern::from_iter([(levels.iter().copied().collect::<IndexSet>(), nnz)]);
    Problem::new(expr, extents, SparseOperand { input: 0, format: Format::csf(levels), pattern })
}

fn machine() -> Machine {
    Family::Zen.machine()
}

fn search(problem: &Problem) -> Result<OrdersFound, CoreError> {
    default_scheduler().search_storages(
        problem,
        &storages(problem),
        &machine(),
        &SearchLimits::default(),
    )
}

#[test]
fn orders_are_permutations_and_differ() {
    for (name, extents, count) in [
        ("mttkrp:2:1", &[5, 6][..], 2),
        ("mttkrp:3:1", &[5, 6, 7], 6),
        ("mttkrp:4:1", &[5, 6, 7, 8], 24),
        ("mttkrp:5:1", &[5, 6, 7, 8, 9], 120),
        ("mttkrp:6:1", &[50, 60, 70, 80, 90, 9], 12),
    ] {
        let problem = pose(name, extents, 1000);
        let x = problem.leader().expect("a sparse operand");
        let orders = level_orders(x.levels(), &problem.extents, &x.pattern);
        let distinct: HashSet<&Vec<Index>> = orders.iter().collect();
        assert_eq!(distinct.len(), orders.len(), "{name}");
        assert!(orders.len() <= count && orders.len() >= extents.len(), "{name}");
        assert_eq!(orders.len() == count, extents.len() <= 5, "{name}");
        for order in &orders {
            let set: IndexSet = order.iter().copied().collect();
            assert_eq!((set, order.len()), (problem.sparse_indices(), extents.len()));
        }
    }
}

#[test]
fn many_operands_leave_room_for_few_orders() {
    let few = pose("mttkrp:5:1", &[5, 6, 7, 8, 9], 1000);
    assert_eq!(storages(&few).len(), 240);
    let mut many = few.clone();
    let factor = many.expr.inputs[1].clone();
    many.expr.inputs.extend(std::iter::repeat_n(factor, 60));
    let found = storages(&many);
    assert!((10..=22).contains(&found.len()), "{}", found.len());
    let distinct: HashSet<&Storage> = found.iter().collect();
    assert_eq!(distinct.len(), found.len());
}

#[test]
fn the_root_is_the_mode_whose_rows_are_written_if_they_are_many() {
    for mode in 1..=3 {
        let mut extents = [1_000; 3];
        extents[mode - 1] = 5_000_000;
        let problem = pose(&format!("mttkrp:3:{mode}"), &extents, 10_000_000);
        let found = search(&problem).expect("a schedule");
        let best = &found.candidates[0];
        let (_, order) = &best.storage.operands[0];
        assert_eq!(order.levels()[0], kernels::mode_index(mode - 1), "{order:?}");
        assert_eq!(best.side_bytes, 0);
    }
}

#[test]
fn candidates_are_ranked_across_orders_and_fit_theirs() {
    let problem = pose("ttmc:4:2", &[300, 200, 100, 50], 1_000_000);
    let found = search(&problem).expect("a schedule");
    assert!(found.candidates.is_sorted_by(|a, b| a.seconds <= b.seconds));
    let orders: HashSet<_> = found.candidates.iter().map(|c| c.storage.clone()).collect();
    assert!(orders.len() > 24, "plain and fused orders");
    assert!(found.report.paths >= 15 * orders.len());
    for one in &found.candidates {
        let problem = one.problem(&problem);
        let (schedule, cost) = (&one.candidate.schedule, &one.candidate.cost);
        schedule.verify(&problem).expect("a legal schedule");
        let threaded = on_threads(&problem, schedule, cost, &machine(), 2);
        assert!((threaded.seconds - one.seconds).abs() <= 1e-12);
        let private = schedule.parallel.map(|parallel| parallel.conflict);
        assert_eq!(threaded.side_bytes > 0, private == Some(Conflict::Privatise));
    }
}

#[test]
fn no_order_is_no_schedule() {
    let problem = pose("spmv", &[5, 6], 10);
    let found =
        default_scheduler().search_storages(&problem, &[], &machine(), &SearchLimits::default());
    let error = found.expect_err("nothing to search").to_string();
    assert!(error.contains("no order of the levels"), "{error}");
}

#[test]
fn every_scheduler_chooses_among_the_ways_to_store_the_operands() {
    for name in ["mttkrp:3:2", "ttmc:3:1", "tttp:3", "sddmm", "spmm", "spmv"] {
        let expr = kernels::parse(name).expect("a kernel");
        let problem = pose(name, &vec![40; expr.inputs[0].indices.len()], 300);
        for one in SCHEDULERS {
            let limits = SearchLimits::default();
            let ways = storages(&problem);
            for allowed in [&ways[..], &ways[ways.len() - 1..]] {
                let found = one.search_storages(&problem, allowed, &machine(), &limits);
                for found in found.expect("a schedule").candidates {
                    // Both parts of an index that is cut are levels, of which none is fused.
                    let splits = &found.candidate.schedule.splits;
                    let outer = |index: &Index| splits.iter().any(|own| own.outer == *index);
                    let levels = |storage: &Storage| -> Vec<Vec<Index>> {
                        let own = |(_, x): &(usize, Format)| {
                            x.levels().iter().copied().filter(|index| !outer(index)).collect()
                        };
                        storage.operands.iter().map(own).collect()
                    };
                    let is_found = |own: &Storage| match splits.is_empty() {
                        true => *own == found.storage,
                        false => levels(own) == levels(&found.storage),
                    };
                    assert!(allowed.iter().any(is_found), "{} {name}", one.name());
                    let posed = found.problem(&problem);
                    found.candidate.schedule.verify(&posed).expect("a legal schedule");
                }
            }
            let none = one.search_storages(&problem, &[], &machine(), &limits);
            assert!(none.expect_err("nothing").to_string().contains("no order of the levels"));
        }
    }
}
