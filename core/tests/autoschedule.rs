//! The searches and the schedules that they find.

use decompose_core::autoschedule::{
    Breadth, SCHEDULERS, SearchLimits, SearchOutcome, default_scheduler, scheduler, storages,
};
use decompose_core::cost::{Family, Machine};
use decompose_core::einsum::{Access, Expr, Extents, Index, IndexSet, indices};
use decompose_core::kernels;
use decompose_core::path::Path;
use decompose_core::schedule::{Format, Pattern, Problem, Schedule, SparseOperand, Vectors};
use proptest::prelude::*;

/// A problem whose sparse operand is input 0 of `expr`, its levels in the order of its indices.
fn pose(expr: Expr, extent: impl Fn(Index) -> u64, nnz: u64) -> Problem {
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let levels = expr.inputs[0].indices.clone();
    let pattern = Pattern::from_iter([(levels.iter().copied().collect::<IndexSet>(), nnz)]);
    Problem::new(expr, extents, SparseOperand { input: 0, format: Format::csf(levels), pattern })
}

/// A sparse tensor times up to three dense ones over at most six indices.
fn expressions() -> impl Strategy<Value = Expr> {
    let letters = || proptest::sample::subsequence(indices("ijkrst"), 1..=3);
    let dense = proptest::collection::vec(letters(), 1..=3);
    (2..=3usize, dense, proptest::bits::u8::masked(0b11_1111)).prop_map(|(order, dense, keep)| {
        let mut inputs = vec![Access { tensor: "X".into(), indices: indices(&"ijk"[..order]) }];
        inputs.extend(
            dense
                .into_iter()
                .enumerate()
                .map(|(at, indices)| Access { tensor: format!("A{at}"), indices }),
        );
        let all = inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
        let kept = all.iter().filter(|index| keep >> (index.number() % 6) & 1 == 1).collect();
        Expr { output: Access { tensor: "Y".into(), indices: kept }, inputs }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_found_is_legal_and_comes_back_from_its_text(expr in expressions()) {
        let problem = pose(expr, |_| 9, 100);
        if let Ok(found) = default_scheduler().search(&problem, Machine::here()) {
            for candidate in found.candidates {
                prop_assert!(candidate.schedule.verify(&problem).is_ok());
                let text = candidate.schedule.text(&problem.expr);
                let back = Schedule::parse(&text, &problem.expr).unwrap();
                prop_assert_eq!(back, candidate.schedule);
            }
        }
    }
}

#[test]
fn mttkrp_is_scheduled_as_in_the_literature() {
    let problem = pose(kernels::mttkrp(3, 0), |_| 50, 10_000);
    let found = default_scheduler().search(&problem, Machine::here()).unwrap();
    let text = found.candidates[0].schedule.text(&problem.expr);
    assert!(text.contains("nest     i{ j{ k{ r{ T1 } } r{ T2 } } }"), "{text}");
    assert!(text.contains("parallel i position boundary"), "{text}");
}

#[test]
fn both_schedulers_agree_on_the_best_mttkrp() {
    for mode in 0..3 {
        let problem = pose(kernels::mttkrp(3, mode), |_| 40, 5_000);
        let best = |name: &str| {
            let found = scheduler(name).unwrap().search(&problem, Machine::here()).unwrap();
            found.candidates[0].cost.seconds
        };
        assert!(best("spttn") <= best("exhaustive") * 1.000_001, "mode {mode}");
    }
}

#[test]
fn names_are_unique_and_found() {
    for one in SCHEDULERS {
        assert_eq!(SCHEDULERS.iter().filter(|other| other.name() == one.name()).count(), 1);
        assert!(scheduler(one.name()).is_some());
    }
    assert!(scheduler("magic").is_none());
}

#[test]
fn a_bound_that_no_pair_of_terms_keeps_leaves_one_term() {
    // Two terms need an intermediate, and even a scalar one takes 8 bytes.
    let mut problem = pose(kernels::mttkrp(3, 0), |_| 10, 1000);
    problem.max_buffer_bytes = 4;
    for one in SCHEDULERS {
        let found = one.search(&problem, Machine::here()).expect("a schedule");
        assert_eq!(found.report.breadth, Breadth::All);
        assert!(found.report.to_string().contains("any number of inputs"), "{}", found.report);
        let terms = found.candidates.iter().map(|candidate| candidate.schedule.path.terms.len());
        assert_eq!(terms.max(), Some(1));
    }
}

#[test]
fn deeper_paths_are_searched_if_no_shallow_one_keeps_the_bound() {
    // On a tree rooted at `i`, the shallow paths of mode 2 store intermediates of three indices.
    let mut problem = pose(kernels::ttmc(5, Some(2)), |_| 12, 10_000);
    problem.max_buffer_dims = 2;
    let limits = SearchLimits { breadth: Breadth::LeastDepth, ..SearchLimits::default() };
    let found = default_scheduler().search_within(&problem, Machine::here(), &limits);
    assert_eq!(found.expect("a schedule").report.breadth, Breadth::AnyDepth);
}

#[test]
fn buffers_hold_all_indices_of_a_row_but_one_or_fewer() {
    for (order, most) in [(3, 2), (4, 2), (5, 3), (6, 4)] {
        let extent = |index: Index| if index.letter() < 'r' { 90_000 } else { 4 };
        let problem = pose(kernels::ttmc(order, Some(0)), extent, 1_000_000);
        assert_eq!(problem.max_buffer_dims, most, "order {order}");
        let found = default_scheduler().search(&problem, Machine::here()).expect("a schedule");
        let paths = found.candidates.iter().map(|candidate| &candidate.schedule.path);
        let buffers = |path: &Path| {
            let same = found.candidates.iter().filter(|one| one.schedule.path == *path);
            let mut dims: Vec<usize> = same.map(|one| one.cost.buffer_dims).collect();
            dims.sort_unstable();
            dims
        };
        let want = if most > 2 { vec![most - 1, most] } else { vec![most.min(order - 2)] };
        let all: Vec<_> = paths.into_iter().map(buffers).collect();
        assert!(all.contains(&want), "order {order}: {all:?}");
    }
    // Rows of a TTTP are in the result's pattern, and those of an MTTKRP have one index.
    for expr in [kernels::mttkrp(5, 0), kernels::tttp(5)] {
        assert_eq!(pose(expr, |_| 12, 10_000).max_buffer_dims, 2);
    }
}

#[test]
fn a_deeper_path_that_walks_the_tree_beats_a_shallow_one_that_does_not() {
    // Of the last mode, four loops would run over all of `i` and `k`, five over the non-zeros.
    let problem =
        pose(kernels::ttmc(3, Some(2)), |i| if i.letter() < 'r' { 3_000 } else { 8 }, 9_000);
    let search = |breadth| {
        let limits = SearchLimits { breadth, ..SearchLimits::default() };
        let found = default_scheduler().search_within(&problem, Machine::here(), &limits);
        found.expect("a schedule").candidates.swap_remove(0)
    };
    let (shallow, any) = (search(Breadth::LeastDepth), search(Breadth::AnyDepth));
    assert!(any.schedule.path.depth() > shallow.schedule.path.depth());
    assert!(any.cost.seconds < shallow.cost.seconds / 10.0);
}

#[test]
fn a_problem_that_cannot_be_lowered_has_no_schedule() {
    let mut problem = pose(kernels::mttkrp(3, 0), |_| 10, 1000);
    let again = problem.leader().expect("a sparse operand").clone();
    problem.sparse.push(again);
    let error = default_scheduler().search(&problem, Machine::here()).expect_err("no schedule");
    assert!(error.to_string().contains("no nest is legal"), "{error}");
}

#[test]
fn wider_limits_see_more_and_never_choose_worse() {
    let problem = pose(kernels::mttkrp(4, 1), |_| 30, 5_000);
    let search = |limits: &SearchLimits| {
        default_scheduler().search_within(&problem, Machine::here(), limits).expect("a schedule")
    };
    let (few, all) = (search(&SearchLimits::default()), search(&SearchLimits::all()));
    assert!(few.report.paths < all.report.paths);
    assert!(few.candidates.len() < all.candidates.len());
    assert!(all.candidates[0].cost.seconds <= few.candidates[0].cost.seconds);
    let terms =
        |found: &SearchOutcome| found.candidates.iter().map(|c| c.schedule.path.terms.len()).min();
    assert_eq!((terms(&few), terms(&all)), (Some(3), Some(1)));
}

#[test]
fn long_sums_are_gathered_where_a_family_is_known_to_gain() {
    let vectors = |nnz: u64, family: Family| {
        let problem = pose("y(i) = X(i,j) * x(j)".parse().unwrap(), |_| 10_000, nnz);
        let found = default_scheduler().search(&problem, &family.machine()).unwrap();
        found.candidates[0].schedule.vectors
    };
    assert_eq!(vectors(400_000, Family::Xeon), Vectors::Over(indices("j")[0]));
    assert_eq!(vectors(40_000, Family::Xeon), Vectors::All);
    assert_eq!(vectors(400_000, Family::Zen), Vectors::All);
}

#[test]
fn what_a_second_level_cache_holds_has_no_tiles() {
    let tiles = |columns_of_x: u64| {
        let extent = |index: Index| match index.letter() {
            'j' => columns_of_x,
            'k' => 512,
            _ => 100_000,
        };
        let base = pose("A(i,k) = X(i,j) * C(j,k)".parse().unwrap(), extent, 2_000_000);
        let (machine, limits) = (Family::Xeon.machine(), SearchLimits::default());
        let found = default_scheduler()
            .search_storages(&base, &storages(&base), &machine, &limits)
            .unwrap();
        found.candidates[0].candidate.schedule.splits.len()
    };
    assert_eq!(tiles(100_000), 1);
    assert_eq!(tiles(500), 0);
}
