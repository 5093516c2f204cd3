//! Searches of expressions with many operands and indices: the work that they do is counted and bounded, and what they find
//! is what theory says.

use decompose_core::autoschedule::{
    SearchLimits, SearchOutcome, StopReason, default_scheduler, scheduler, storages,
};
use decompose_core::cost::{Family, Machine};
use decompose_core::einsum::{Expr, Extents, Index, IndexSet};
use decompose_core::kernels;
use decompose_core::schedule::{Format, Pattern, Problem, SparseOperand};
use decompose_formats::PatternCounts;

const NNZ: u64 = 1_000;

/// A kernel on 1,000 non-zeros that are spread evenly; the tree has the modes in their order.
fn pose(expr: Expr, rank: u64) -> Problem {
    let levels = expr.inputs[0].indices.clone();
    let extent = |index| levels.iter().position(|&l| l == index).map_or(rank, |m| 20 + m as u64);
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let shape: Vec<u64> = levels.iter().map(|&level| extents.of(level)).collect();
    let pattern = Pattern::of(&PatternCounts::uniform(&shape, NNZ), &levels);
    Problem::new(expr, extents, SparseOperand { input: 0, format: Format::csf(levels), pattern })
}

fn machine() -> Machine {
    Family::Zen.machine()
}

fn search(problem: &Problem, limits: &SearchLimits) -> SearchOutcome {
    default_scheduler().search_within(problem, &machine(), limits).expect("a schedule")
}

/// All kernels of an order, each on first, middle and last mode, with their ranks.
fn all_kernels(order: usize) -> Vec<(Expr, u64)> {
    let mut all = vec![
        (kernels::ttmc(order, None), 2),
        (kernels::tttp(order), 16),
        (kernels::tttc(order, None), 4),
        (kernels::train_values(order), 4),
        (kernels::tucker_values(order), 2),
    ];
    for mode in [0, order / 2, order - 1] {
        all.push((kernels::mttkrp(order, mode), 16));
        all.push((kernels::ttmc(order, Some(mode)), 2));
        all.push((kernels::tttc(order, Some(mode)), 4));
        all.push((kernels::normal(order, mode), 4));
    }
    all
}

#[test]
fn every_kernel_of_every_order_is_searched_within_the_limits() {
    let limits = SearchLimits::default();
    for order in [6, 7, 9, 12, 18, 25] {
        for (expr, rank) in all_kernels(order) {
            let problem = pose(expr, rank);
            let found = search(&problem, &limits);
            let report = &found.report;
            assert!(report.explored as u64 <= limits.max_work, "{}: {report}", problem.expr);
            assert!(found.candidates.len() <= limits.max_nests + 8, "{}: {report}", problem.expr);
            for candidate in &found.candidates {
                candidate.schedule.verify(&problem).expect("a legal schedule");
            }
        }
    }
}

/// Multiplications and additions of a chain along the tree: at each node of a level but the root's, a row is scaled and
/// added.
fn chain_flops(problem: &Problem, rank: u64) -> f64 {
    let x = problem.leader().expect("a sparse operand");
    let levels = x.levels();
    let nodes = |depth: usize| {
        let prefix: IndexSet = levels[..depth].iter().copied().collect();
        x.nodes(prefix, &problem.extents)
    };
    let all: u64 = (2..=levels.len()).map(nodes).sum();
    (2 * rank * all) as f64
}

#[test]
fn an_mttkrp_walks_the_tree_once_and_scales_a_row_at_each_node() {
    for order in [6, 9, 10, 17, 25] {
        let problem = pose(kernels::mttkrp(order, 0), 16);
        let best = &search(&problem, &SearchLimits::default()).candidates[0];
        assert_eq!(best.cost.flops, chain_flops(&problem, 16), "order {order}");
        assert_eq!(best.cost.buffer_dims, 1, "order {order}");
        assert_eq!(best.schedule.path.terms.len(), order - 1);
    }
}

#[test]
fn a_chain_of_matrices_stores_no_more_than_it_may() {
    // Rows of 2^24 numbers: what the levels make of each other outgrows any buffer that is allowed.
    for order in [12, 20, 25] {
        let problem = pose(kernels::ttmc(order, Some(0)), 2);
        let best = &search(&problem, &SearchLimits::default()).candidates[0];
        let row = 2_f64.powi(order as i32 - 1);
        assert!(best.cost.buffer_elements as f64 <= row, "order {order}");
        // No less than each row of the result once, no more than each row once a non-zero and factor.
        let (least, most) = (20.0 * row, (NNZ * order as u64) as f64 * row);
        assert!((least..=most).contains(&best.cost.flops), "order {order}: {}", best.cost);
    }
}

#[test]
fn the_core_of_a_tucker_model_shrinks_by_an_index_a_term() {
    for (order, rank) in [(4, 5), (7, 5), (8, 4), (9, 10)] {
        let problem = pose(kernels::tucker_values(order), rank);
        let best = &search(&problem, &SearchLimits::default()).candidates[0];
        // One term multiplies as often as the core has elements, at each non-zero.
        let cells = (rank as f64).powi(order as i32);
        let together = NNZ as f64 * cells * (order + 2) as f64;
        assert!(best.cost.flops < together / 3.0, "order {order}: {}", best.cost);
        assert!(best.cost.buffer_dims < order, "order {order}: {}", best.cost);
    }
}

#[test]
fn a_search_that_was_cut_says_so() {
    let problem = pose(kernels::ttmc(8, Some(3)), 3);
    let with = |max_work| search(&problem, &SearchLimits { max_work, ..SearchLimits::default() });
    let (little, much) = (with(100), with(3_000_000));
    assert_eq!(little.report.stop, StopReason::Work);
    assert!(little.report.to_string().contains("work limit reached"), "{}", little.report);
    assert!(little.report.explored <= 100);
    assert_ne!(much.report.stop, StopReason::Work, "{}", much.report);
    assert!(much.report.explored > 1_000, "{}", much.report);
    let long = search(&pose(kernels::mttkrp(12, 1), 8), &SearchLimits::default());
    assert_eq!(long.report.stop, StopReason::OperandLimit);
}

#[test]
fn ranked_lists_and_the_exhaustive_search_are_bounded_too() {
    let limits = SearchLimits::all();
    for expr in [kernels::mttkrp(7, 2), kernels::ttmc(9, Some(0)), kernels::tttc(25, None)] {
        let problem = pose(expr, 3);
        let found = search(&problem, &limits);
        assert!(found.report.explored as u64 <= limits.max_work, "{}", found.report);
        let exhaustive = scheduler("exhaustive").expect("a scheduler");
        let few = SearchLimits { max_work: 12_800, ..limits };
        let found = exhaustive.search_within(&problem, &machine(), &few).expect("a schedule");
        assert!(found.report.explored as u64 <= few.max_work / SearchLimits::NEST_CHOICES + 2);
        assert_eq!(found.report.stop, StopReason::Work);
    }
}

#[test]
fn orders_share_the_work() {
    let problem = pose(kernels::ttmc(12, Some(0)), 2);
    let orders = storages(&problem);
    let limits = SearchLimits::default();
    let found = default_scheduler().search_storages(&problem, &orders, &machine(), &limits);
    let report = found.expect("schedules").report;
    let most = limits.max_work.max(SearchLimits::LEAST_WORK * orders.len() as u64);
    assert!(report.explored as u64 <= most, "{report}");
}

#[test]
fn an_expression_over_all_letters_has_a_schedule() {
    let letters: Vec<Index> = ('a'..='z').chain('A'..='Z').filter_map(Index::named).collect();
    let access = |name: String, indices: &[Index]| decompose_core::einsum::Access {
        tensor: name,
        indices: indices.to_vec(),
    };
    let mut inputs = vec![access("X".into(), &letters[..3])];
    inputs.extend(letters.windows(4).enumerate().map(|(at, few)| access(format!("B{at}"), few)));
    let output = access("Y".into(), &letters[..1]);
    let problem = pose(Expr { output, inputs }, 2);
    let found = search(&problem, &SearchLimits::default());
    assert!(found.report.explored as u64 <= SearchLimits::default().max_work);
    found.candidates[0].schedule.verify(&problem).expect("a legal schedule");
}

#[test]
fn the_greedy_orders_of_scorch_are_bounded_too() {
    let limits = SearchLimits::default();
    let scorch = scheduler("scorch").expect("a scheduler");
    for expr in [kernels::mttkrp(7, 2), kernels::ttmc(9, Some(0)), kernels::tttc(25, None)] {
        let problem = pose(expr, 3);
        let found = scorch.search_within(&problem, &machine(), &limits).expect("a schedule");
        let most = limits.max_work / SearchLimits::NEST_CHOICES;
        assert!(found.report.explored as u64 <= most, "{}", found.report);
    }
}
