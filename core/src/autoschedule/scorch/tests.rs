//! The orders that the paper names, and their numbers of iterations.

use std::collections::BTreeSet;

use crate::autoschedule::{OrdersFound, SearchLimits, StopReason, scheduler, storages};
use crate::cost::Family;
use crate::einsum::{Expr, Extents, Index, IndexSet};
use crate::schedule::{Format, OutputForm, Pattern, Problem, SparseOperand, Workspace};

/// Poses `expr`, whose inputs `sparse` have so many non-zeros, with their levels in the order of their names.
pub(super) fn pose(expr: &str, sparse: &[(usize, u64)], extent: impl Fn(char) -> u64) -> Problem {
    let expr: Expr = expr.parse().unwrap();
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index.letter()))).collect();
    let operand = |&(input, nonzeros): &(usize, u64)| {
        let levels = expr.inputs[input].indices.clone();
        let all: IndexSet = levels.iter().copied().collect();
        let pattern = Pattern::from_iter([(all, nonzeros)]);
        SparseOperand { input, format: Format::csf(levels), pattern }
    };
    let sparse = sparse.iter().map(operand).collect();
    Problem::joining(expr, extents, sparse)
}

/// The same with a result that is assembled, unless it has the pattern of an operand.
pub(super) fn assembled(problem: Problem) -> Problem {
    let output = match problem.output {
        OutputForm::Dense => OutputForm::Assembled,
        other => other,
    };
    Problem { output, ..problem }
}

/// What is found without tiles.
fn found(problem: &Problem) -> OrdersFound {
    let limits = SearchLimits { tiles: false, ..SearchLimits::default() };
    found_within(problem, limits)
}

fn found_within(problem: &Problem, limits: SearchLimits) -> OrdersFound {
    let scorch = scheduler("scorch").unwrap();
    let machine = Family::Zen.machine();
    let found = scorch.search_storages(problem, &storages(problem), &machine, &limits).unwrap();
    for one in &found.candidates {
        let posed = one.problem(problem);
        one.candidate.schedule.verify(&posed).unwrap();
    }
    found
}

/// The nest of the first candidate, and the levels of each sparse operand, as text.
fn first(problem: &Problem) -> (String, Vec<String>) {
    let found = found(problem);
    let best = &found.candidates[0];
    let mut operands = best.storage.operands.clone();
    operands.sort_by_key(|(input, _)| *input);
    let letters = |levels: &[Index]| levels.iter().map(|i| i.letter()).collect::<String>();
    let levels = operands.iter().map(|(_, order)| letters(order.levels())).collect();
    (best.candidate.schedule.nest.to_string(), levels)
}

/// A thousand rows with ten entries each.
fn square(_: char) -> u64 {
    1_000
}

const ENTRIES: u64 = 10_000;

#[test]
fn the_four_kernels_of_the_paper_have_its_orders() {
    let spmv = pose("y(i) = A(i,j) * x(j)", &[(0, ENTRIES)], square);
    assert_eq!(first(&spmv), ("i{ j{ T1 } }".into(), vec!["ij".into()]));
    let spmm = |columns| {
        let extent = move |letter| if letter == 'k' { columns } else { 1_000 };
        pose("C(i,k) = A(i,j) * B(j,k)", &[(0, ENTRIES)], extent)
    };
    for columns in [8, 64, 1_000] {
        assert_eq!(first(&spmm(columns)), ("i{ j{ k{ T1 } } }".into(), vec!["ij".into()]));
    }
    // Of long rows only the columns are cut, with the loop over tiles outermost (algorithm 2).
    let tiled = found_within(&spmm(1_000), SearchLimits::default()).candidates.swap_remove(0);
    assert_eq!(tiled.candidate.schedule.nest.to_string(), "K{ i{ j{ k{ T1 } } } }");
    let sddmm = pose("S(i,j) = A(i,j) * U(i,k) * V(j,k)", &[(0, ENTRIES)], square);
    let (nest, levels) = first(&sddmm);
    assert!(nest.starts_with("i{ j{ k{"), "{nest}");
    assert_eq!(levels, ["ij"]);
    // Gustavson's algorithm, with a workspace for a row.
    let spmspm = assembled(pose("C(i,k) = A(i,j) * B(j,k)", &[(0, ENTRIES), (1, ENTRIES)], square));
    assert_eq!(first(&spmspm), ("i{ j{ k{ T1 } } }".into(), vec!["ij".into(), "jk".into()]));
    let workspace = found(&spmspm).candidates[0].candidate.schedule.workspace;
    assert_eq!(workspace, Some(Workspace::Dense));
}

#[test]
fn a_transposition_is_paid_for_where_it_avoids_the_inner_product() {
    // The rows of both operands are stored: their inner products need no transposition, and a loop over all pairs.
    let problem =
        assembled(pose("C(i,k) = A(i,j) * B(k,j)", &[(0, ENTRIES), (1, ENTRIES)], square));
    assert_eq!(first(&problem), ("i{ j{ k{ T1 } } }".into(), vec!["ij".into(), "jk".into()]));
    // Of nearly dense operands the inner product visits as many pairs, and needs no transposition.
    let dense = assembled(pose("C(i,k) = A(i,j) * B(k,j)", &[(0, 90), (1, 90)], |_| 10));
    assert!(first(&dense).1.contains(&"ij".into()));
}

#[test]
fn a_cycle_of_mode_orders_transposes_the_smallest_operand() {
    let problem = pose(
        "s() = A(i,j) * B(j,k) * C(k,i)",
        &[(0, 8 * ENTRIES), (1, 9 * ENTRIES), (2, ENTRIES)],
        square,
    );
    let (nest, levels) = first(&problem);
    assert_eq!(levels, ["ij", "jk", "ik"], "{nest}");
    let elementwise = pose("S(i,j) = A(i,j) * B(j,i)", &[(0, ENTRIES), (1, 9 * ENTRIES)], square);
    assert_eq!(first(&elementwise).1, ["ji", "ji"]);
}

#[test]
fn a_chain_of_sparse_matrices_goes_row_by_row() {
    let sparse = [(0, ENTRIES), (1, ENTRIES), (2, ENTRIES)];
    let chain = assembled(pose("D(i,l) = A(i,j) * B(j,k) * C(k,l)", &sparse, square));
    let (nest, levels) = first(&chain);
    assert!(nest.starts_with("i{ j{ k{"), "{nest}");
    assert_eq!(levels, ["ij", "jk", "kl"]);
}

#[test]
fn kernels_of_decomposition_walk_the_tree_and_hand_on_small_buffers() {
    let extent = |letter: char| if letter < 'r' { 300 } else { 16 };
    let nest = |text: &str| first(&pose(text, &[(0, 1_000_000)], extent)).0;
    assert_eq!(nest("A(i,r) = X(i,j,k) * B(j,r) * C(k,r)"), "i{ j{ k{ r{ T1 } } r{ T2 } } }");
    let ttmc = nest("A(i,r,s) = X(i,j,k) * B(j,r) * C(k,s)");
    assert!(ttmc.starts_with("i{ j{ k{ s{ T1 } }"), "{ttmc}");
    let tttp = nest("S(i,j,k) = X(i,j,k) * A(i,r) * B(j,r) * C(k,r)");
    assert!(tttp.starts_with("i{ j{"), "{tttp}");
}

#[test]
fn given_levels_are_kept_even_where_they_contradict_each_other() {
    let machine = Family::Zen.machine();
    let limits = SearchLimits::default();
    let search =
        |problem: &Problem| scheduler("scorch").unwrap().search_within(problem, &machine, &limits);
    let mut problem = pose("C(i,k) = A(i,j) * B(k,j)", &[(0, ENTRIES), (1, ENTRIES)], square);
    let found = search(&problem).unwrap();
    let best = &found.candidates[0];
    best.schedule.verify(&problem).unwrap();
    assert_eq!(best.schedule.nest.to_string(), "i{ k{ j{ T1 } } }");
    assert_eq!((found.report.scheduler, found.report.stop), ("scorch", StopReason::Enough));
    // No loops suit `i` above `j` and `j` above `i`.
    problem = pose("S(i,j) = A(i,j) * B(j,i)", &[(0, 50), (1, 50)], square);
    let error = search(&problem).unwrap_err().to_string();
    assert!(error.contains("no nest is legal"), "{error}");
}

/// The positions of the non-zeros of an operand, in the order of its indices.
type Entries = Vec<Vec<u64>>;

/// Counts how often the loops of one term run on these non-zeros: those of the operand with the fewest
/// coordinates, located in the others.
fn iterations(problem: &Problem, order: &[Index], operands: &[(Vec<Index>, Entries)]) -> u64 {
    let Some((&index, rest)) = order.split_first() else { return 0 };
    let coordinates: Vec<BTreeSet<u64>> = operands
        .iter()
        .filter_map(|(indices, entries)| {
            let at = indices.iter().position(|&one| one == index)?;
            Some(entries.iter().map(|entry| entry[at]).collect())
        })
        .collect();
    let all = problem.extents.of(index);
    let visits = coordinates.iter().map(|set| set.len() as u64).min().unwrap_or(all);
    if rest.is_empty() {
        return visits;
    }
    let inside = |coordinate: u64| {
        let narrowed = operands.iter().map(|(indices, entries)| {
            let at = indices.iter().position(|&one| one == index);
            let kept = entries.iter().filter(|entry| at.is_none_or(|at| entry[at] == coordinate));
            (indices.clone(), kept.cloned().collect())
        });
        narrowed.collect::<Vec<(Vec<Index>, Entries)>>()
    };
    if coordinates.is_empty() {
        return visits + all * iterations(problem, rest, operands);
    }
    let common = (0..all).filter(|c| coordinates.iter().all(|set| set.contains(c)));
    visits + common.map(|c| iterations(problem, rest, &inside(c))).sum::<u64>()
}

/// A matrix of extent `n` with `degree` entries a row.
fn matrix(n: u64, degree: u64, seed: u64) -> Entries {
    let mut state = seed;
    let mut draw = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut entries = BTreeSet::new();
    for row in 0..n {
        for _ in 0..degree {
            entries.insert(vec![row, draw(n)]);
        }
    }
    entries.into_iter().collect()
}

fn permutations(of: &[Index]) -> Vec<Vec<Index>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let with = |&first: &Index| {
        let rest: Vec<Index> = of.iter().copied().filter(|&index| index != first).collect();
        permutations(&rest).into_iter().map(move |order| [vec![first], order].concat())
    };
    of.iter().flat_map(with).collect()
}

#[test]
fn no_order_of_the_four_kernels_has_fewer_iterations_asymptotically() {
    for n in [16, 32, 64] {
        for (expr, sparse) in [
            ("y(i) = A(i,j) * x(j)", &[0][..]),
            ("C(i,k) = A(i,j) * B(j,k)", &[0]),
            ("S(i,j) = A(i,j) * U(i,k) * V(j,k)", &[0]),
            ("C(i,k) = A(i,j) * B(j,k)", &[0, 1]),
            ("C(i,k) = A(i,j) * B(k,j)", &[0, 1]),
        ] {
            let parsed: Expr = expr.parse().unwrap();
            let stored: Vec<(Vec<Index>, Entries)> = sparse
                .iter()
                .map(|&at| (parsed.inputs[at].indices.clone(), matrix(n, 3, at as u64 + 1)))
                .collect();
            let counts: Vec<(usize, u64)> = sparse
                .iter()
                .zip(&stored)
                .map(|(&at, (_, entries))| (at, entries.len() as u64))
                .collect();
            let problem = assembled(pose(expr, &counts, |_| n));
            let schedule = found(&problem).candidates.swap_remove(0).candidate.schedule;
            let orders = schedule.nest.orders(schedule.path.terms.len()).unwrap();
            let deepest = orders.iter().max_by_key(|order| order.len()).unwrap();
            let all: Vec<Index> = parsed.all().iter().collect();
            let counted = |order: &[Index]| iterations(&problem, order, &stored);
            let best = permutations(&all).iter().map(|order| counted(order)).min().unwrap();
            let own = counted(deepest);
            assert!(own <= 2 * best, "{expr}, n = {n}: {own} iterations, {best} at best");
        }
    }
}
