//! The frontier of time and memory: searched equals listed, on one tree and on all, and no nest beats it.

mod products;

use std::collections::BTreeSet;

use decompose_core::autoschedule::Storage;
use decompose_core::autoschedule::sparseauto::{
    AskedNest, FrontierPoint, Method, Nests, Origin, Space, Staged, Stages, Standing, staged,
};
use decompose_core::autoschedule::storages;
use decompose_core::cost::symbolic::{Monomial, Polynomial};
use decompose_core::einsum::{Expr, Extents, Index};
use decompose_core::nest::{Buffer, buffers};
use decompose_core::schedule::{Format, Pattern, Problem, SparseOperand};
use decompose_formats::PatternCounts;

use products::{Draw, SDDMM_SPMM, SPMM_GEMM, machine, pose, problem, unbounded};

/// The problem with each order of the levels of each sparse operand.
fn on_all_trees(problem: &Problem) -> Vec<Problem> {
    let plain = |storage: &Storage| storage.operands.iter().all(|(_, order)| order.fused() == 1);
    let stored = storages(problem).into_iter().filter(plain);
    stored.map(|storage| unbounded(storage.problem(problem))).collect()
}

/// Ranges and assumptions that the problem has the sizes of, or none.
fn sizes(problem: &Problem, sizes: Sizes) -> Stages {
    let has_both = || {
        let j = Index::new('j').expect("a letter");
        problem.expr.all().contains(j) && problem.leader().is_some_and(|x| x.levels().len() == 2)
    };
    let (ranges, assumptions) = match sizes {
        Sizes::Restricted if has_both() => {
            (&["i=10:100000", "sparsity=0.001:0.01"][..], &["10*i<j"][..])
        }
        Sizes::Restricted | Sizes::Any => (&[][..], &[][..]),
    };
    Stages {
        ranges: ranges.iter().map(|text| text.parse().expect("a range")).collect(),
        assumptions: assumptions.iter().map(|text| text.parse().expect("an assumption")).collect(),
        ..Stages::default()
    }
}

#[derive(Clone, Copy)]
enum Sizes {
    Any,
    Restricted,
}

/// The rows of the frontier, in any order.
fn rows(staged: &Staged) -> Vec<(usize, String, String, bool, u128)> {
    let row = |p: &FrontierPoint| {
        let kept = p.standing == Standing::Frontier;
        (p.tree, staged.time(p), staged.memory(p), kept, p.nests)
    };
    let mut rows: Vec<_> = staged.frontier.iter().map(row).collect();
    rows.sort();
    rows
}

#[test]
fn the_search_leaves_what_the_list_leaves() {
    let mut posed: Vec<Problem> =
        [SDDMM_SPMM, SPMM_GEMM, "A(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)"].map(pose).into();
    let mut draw = Draw(11);
    posed.extend((0..25).map(|_| problem(&mut draw)));
    let mut several = 0;
    for problem in &posed {
        let (one, all) = (vec![problem.clone()], on_all_trees(problem));
        for (trees, named) in [(&one, Sizes::Any), (&one, Sizes::Restricted), (&all, Sizes::Any)] {
            let run =
                |method| staged(trees, &machine(), &Stages { method, ..sizes(problem, named) });
            let (Ok(listed), Ok(searched)) = (run(Method::Listed), run(Method::Searched)) else {
                // An index that the sizes name is missing.
                assert!(run(Method::Listed).is_err() && run(Method::Searched).is_err());
                continue;
            };
            assert!(!listed.cut && !searched.cut);
            assert_eq!(rows(&listed), rows(&searched), "{}", problem.expr);
            let nests = |staged: &Staged| staged.stages.iter().map(|s| s.nests).collect::<Vec<_>>();
            assert_eq!(nests(&listed), nests(&searched), "{}", problem.expr);
            let met: BTreeSet<usize> = searched.frontier.iter().map(|point| point.tree).collect();
            several += usize::from(met.len() > 1);
        }
    }
    assert!(several >= 2, "{several} frontiers on several trees");
}

/// Prices every nest on every tree with the sizes of the problem, and looks for one that no point of the frontier equals.
#[test]
fn no_nest_on_any_tree_beats_the_frontier() {
    let mut draw = Draw(23);
    let mut posed: Vec<Problem> = (0..25).map(|_| problem(&mut draw)).collect();
    posed.push(pose(SPMM_GEMM));
    let mut nests = 0;
    for problem in &posed {
        let trees = on_all_trees(problem);
        let asked = Stages::default();
        let staged = staged(&trees, &machine(), &asked).expect("a frontier");
        let frontier: Vec<&FrontierPoint> =
            staged.frontier.iter().filter(|p| p.standing == Standing::Frontier).collect();
        for tree in &trees {
            let space = Space::new(tree).expect("few operands");
            for (path, nest) in Nests::of(&space) {
                let stored = buffers(&path, &nest).expect("buffers");
                let depth = stored.iter().map(|b| b.stored.iter().count()).max().unwrap_or(0);
                if depth >= asked.memory_depth {
                    continue;
                }
                let value = |products: Vec<Monomial>| -> f64 {
                    let value = |one| space.symbols.value(&Polynomial::from(one), tree);
                    products.into_iter().map(value).sum()
                };
                let orders = nest.orders(path.terms.len()).expect("orders");
                let time = value(orders.iter().map(|o| space.symbols.iterations(o)).collect());
                let store = |b: &Buffer| Monomial { extents: b.stored, walked: 0 };
                let memory = value(stored.iter().map(store).collect());
                let covered = frontier.iter().any(|point| {
                    point.iterations <= time * (1.0 + 1e-9) && point.elements <= memory + 1e-9
                });
                assert!(covered, "{}: {nest} takes {time} and {memory}", tree.expr);
                nests += 1;
            }
        }
    }
    assert!(nests > 5_000, "{nests} nests");
}

#[test]
fn a_nest_that_is_asked_for_is_a_row() {
    let problem = pose(SPMM_GEMM);
    let space = Space::new(&problem).expect("few operands");
    let trees = std::slice::from_ref(&problem);
    let mut standings = BTreeSet::new();
    for (path, nest) in Nests::of(&space) {
        let own = AskedNest { tree: 0, path, nest: nest.clone() };
        let asked = Stages { nest: Some(own), ..Stages::default() };
        let staged = staged(trees, &machine(), &asked).expect("a frontier");
        let mut rows = staged.frontier.iter().filter(|point| point.origin == Origin::Asked);
        let row = rows.next().expect("a row");
        assert!(rows.next().is_none() && row.example.1 == nest);
        let others = || staged.frontier.iter().filter(|p| p.origin == Origin::Searched);
        let worse = |p: &&FrontierPoint| {
            p.iterations <= row.iterations
                && p.elements <= row.elements
                && (p.iterations, p.elements) != (row.iterations, row.elements)
        };
        if row.standing == Standing::Beaten {
            assert!(others().any(|point| worse(&point)), "{nest}");
        }
        standings.insert(row.standing == Standing::Beaten);
    }
    assert_eq!(standings.len(), 2, "some are beaten and some are not");
}

#[test]
fn the_work_limit_holds_under_ranges() {
    let problem = pose("Y(a,g) = A(a,b) * B(b,c) * C(c,d) * D(d,e) * E(e,f) * F(f,g)");
    let trees = std::slice::from_ref(&problem);
    let run = |ranges: &str, max_work| {
        let ranges = ranges.split(' ').map(|range| range.parse().expect("a range")).collect();
        staged(trees, &machine(), &Stages { ranges, max_work, ..Stages::default() }).expect("rows")
    };
    // Extents of one value leave nothing open, and non-zeros of one value in such extents.
    let given = ["a=5:5", "c=7:7", "a=200 b=300 nnz(A)=5000", "a=200 b=300 sparsity=0.01:0.01"];
    for ranges in given {
        let staged = run(ranges, Stages::default().max_work);
        assert_eq!((staged.undecided, staged.cut), (0, false), "{ranges}");
    }
    // A range of non-zeros needs boxes; with little work the best so far is told, and that it is cut.
    let few = run("nnz(A)=1000:2000", 20_000);
    assert!(few.cut && !few.frontier.is_empty());
}

#[test]
fn prefixes_of_every_operand_have_bounds() {
    // Both are sparse, and the second shares its indices with the first: fewer of its levels leave more to do.
    let expr: Expr = "y = X(i,j,k) * B(k,i) * Z(i,j)".parse().expect("a product");
    let extents: Extents = expr.all().iter().map(|index| (index, 50)).collect();
    let operand = |input: usize| {
        let levels = expr.inputs[input].indices.clone();
        let shape = vec![50; levels.len()];
        let pattern = Pattern::of(&PatternCounts::uniform(&shape, 400), &levels);
        SparseOperand { input, format: Format::csf(levels), pattern }
    };
    let problem = Problem::joining(expr.clone(), extents, vec![operand(0), operand(2)]);
    let staged = staged(&on_all_trees(&problem), &machine(), &Stages::default()).expect("rows");
    for row in staged.frontier.iter().filter(|row| row.elements > 0.0) {
        let time = staged.time(row);
        let more = ["nnz(X_ijk)*density(Z_j)", "nnz(X_ijk)*density(Z_i)"];
        assert!(!more.iter().any(|more| time.ends_with(more)), "{time} | {}", staged.memory(row));
    }
}

#[test]
fn the_stages_choose_as_the_paper_does() {
    let wanted = [
        (SDDMM_SPMM, "k*nnz(B_ij) + l*nnz(B_ij)", "1"),
        (SPMM_GEMM, "k*nnz(B_ij) + k*l*nnz(B_i)", "1"),
    ];
    for (text, time, memory) in wanted {
        let problem = pose(text);
        let trees = std::slice::from_ref(&problem);
        let staged = staged(trees, &machine(), &Stages::default()).expect("a choice");
        let texts: Vec<(String, String)> = staged
            .frontier
            .iter()
            .map(|point| (staged.time(point), staged.memory(point)))
            .collect();
        let has = texts.iter().any(|(t, m)| t == time && m == memory);
        assert!(has, "{text}: {texts:?}");
    }
}
