//! Golden texts: the program and the C of the named kernels, to be read in review.
//!
//! `UPDATE_GOLDEN=1 cargo test -p decompose-core --test golden` writes them anew.

use decompose_core::autoschedule::constraints::{Layouts, Solution, System};
use decompose_core::autoschedule::{default_scheduler, finish};
use decompose_core::codegen::emit_c;
use decompose_core::cost::{Family, Machine};
use decompose_core::einsum::{Expr, Extents, Index, IndexSet, indices};
use decompose_core::kernels;
use decompose_core::lower::{LevelStorage, Program, lower, unite};
use decompose_core::optimisation::{Optimisation, Optimisations};
use decompose_core::path::{Arity, Path, enumerate};
use decompose_core::schedule::{
    Format, LevelKind, OutputForm, Pattern, Problem, Schedule, SparseOperand,
};
use decompose_formats::narrow_ints::Width;

/// A machine that does not depend on where the test runs.
fn machine() -> Machine {
    Machine {
        name: "golden".into(),
        l1_bytes: 48 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: 32 << 20,
        l2_share: 0.8,
        l3_share: 0.8,
        l2_together: None,
        threads: 2,
        ..Family::Zen.machine()
    }
}

/// Schedules `expr` for a tensor of 10,000 a mode, its dense extents `rank`, on the tree of its own
/// mode order with the last `fused` levels fused.
fn check(name: &str, expr: Expr, fused: usize, rank: u64) {
    check_limited(name, expr, (fused, rank), Optimisations::default());
}

/// The same with these optimisations only.
fn check_limited(
    name: &str,
    expr: Expr,
    (fused, rank): (usize, u64),
    optimisations: Optimisations,
) {
    compare(name, &program(expr, (fused, rank), optimisations));
}

/// The program of the schedule that is found.
fn program(expr: Expr, (fused, rank): (usize, u64), optimisations: Optimisations) -> Program {
    let levels = expr.inputs[0].indices.clone();
    let order = levels.len();
    let extent = |index| match index {
        Index::BLOCK => 64,
        _ if levels.contains(&index) => 10_000,
        _ => rank,
    };
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let counts = (1..=order).map(|n| {
        let set: IndexSet = levels[..n].iter().copied().collect();
        (set, 10_000u64.pow(n.min(2) as u32) / if n > 1 { 20 } else { 1 } * n as u64)
    });
    let pattern = Pattern::from_iter(counts);
    let mut problem = Problem::new(
        expr,
        extents,
        SparseOperand { input: 0, format: Format::with_fused(levels, fused), pattern },
    );
    problem.optimisations = optimisations;
    let found = default_scheduler().search(&problem, &machine()).expect("a schedule");
    let level = LevelStorage { coords: Width::below(10_000), pointers: Width::W32 };
    lower(&problem, &found.candidates[0].schedule, &[vec![level; order]]).expect("a program")
}

/// Compares the text of `program` with what was written before.
fn compare(name: &str, program: &Program) {
    let have = emit_c(program);
    let path = format!("{}/tests/golden/{name}.c", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &have).expect("a written file");
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(have, want, "{path} differs; UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn mttkrp_at_the_root() {
    check("mttkrp-3-root-r16", kernels::mttkrp(3, 0), 1, 16);
}

/// A tree of 64 blocks with all modes fused below.
#[test]
fn mttkrp_in_blocks() {
    let mut expr = kernels::mttkrp(3, 1);
    expr.inputs[0].indices.insert(0, Index::BLOCK);
    check("mttkrp-3-blocks-r16", expr, 3, 16);
}

#[test]
fn mttkrp_without_optimisations() {
    for optimisation in [Optimisation::Constants, Optimisation::Registers] {
        let name = format!("mttkrp-3-root-r16-without-{}", optimisation.name());
        let optimisations = Optimisations::all_but([optimisation]);
        check_limited(&name, kernels::mttkrp(3, 0), (1, 16), optimisations);
    }
}

#[test]
fn mttkrp_in_the_middle() {
    check("mttkrp-3-middle-r16", kernels::mttkrp(3, 1), 1, 16);
}

#[test]
fn mttkrp_at_the_leaf() {
    check("mttkrp-3-leaf-r16", kernels::mttkrp(3, 2), 1, 16);
}

#[test]
fn mttkrp_above_the_register_budget() {
    check("mttkrp-4-root-r200", kernels::mttkrp(4, 0), 1, 200);
}

#[test]
fn mttkrp_on_fused_levels() {
    check("mttkrp-3-fused-r16", kernels::mttkrp(3, 0), 2, 16);
}

#[test]
fn ttmc_with_batched_outer_products() {
    check("ttmc-3-root-r16", kernels::ttmc(3, Some(0)), 1, 16);
    check("ttmc-3-core-r64", kernels::ttmc(3, None), 1, 64);
}

#[test]
fn tttp_at_the_positions() {
    check("tttp-3-r16", kernels::tttp(3), 1, 16);
}

#[test]
fn tttc_of_an_inner_mode() {
    check("tttc-4-second-r8", kernels::tttc(4, Some(1)), 1, 8);
}

/// Compares the kernel of `expr`, whose first operand is the only sparse one and has `counts`, with its file.
fn compare_full(name: &str, expr: Expr, extents: &[(&str, u64)], counts: &[(&str, u64)]) {
    let extents: Extents = extents.iter().map(|&(i, extent)| (indices(i)[0], extent)).collect();
    let set = |letters: &str| indices(letters).into_iter().collect::<IndexSet>();
    let pattern = Pattern::from_iter(counts.iter().map(|&(letters, count)| (set(letters), count)));
    let levels = expr.inputs[0].indices.clone();
    let level = LevelStorage { coords: Width::W16, pointers: Width::W32 };
    let stored = vec![vec![level; levels.len()]];
    let x = SparseOperand { input: 0, format: Format::csf(levels), pattern };
    let problem = Problem::new(expr, extents, x);
    let found = default_scheduler().search(&problem, &machine()).expect("a schedule");
    let schedule = &found.candidates[0].schedule;
    assert_eq!(schedule.layouts[0].format.kinds().last(), Some(&LevelKind::Dense));
    compare(name, &lower(&problem, schedule, &stored).expect("a program"));
}

#[test]
fn full_fibres_have_no_coordinates() {
    let extents = [("i", 100), ("j", 80), ("k", 30), ("r", 16)];
    let counts = [("i", 100), ("ij", 5_000), ("ijk", 150_000)];
    compare_full("mttkrp-3-full-r16", kernels::mttkrp(3, 0), &extents, &counts);
    let spmv = "y(i) = X(i,j) * v(j)".parse().expect("an expression");
    let counts = [("i", 900), ("ij", 900_000)];
    compare_full("spmv-full", spmv, &[("i", 1_000), ("j", 1_000)], &counts);
}

/// The product of two sparse matrices of 10,000 x 10,000, the second with an entry in each row.
#[test]
fn a_product_of_sparse_matrices_is_assembled() {
    let expr: Expr = "C(i,k) = X(i,j) * Z(j,k)".parse().expect("an expression");
    let extents: Extents = expr.all().iter().map(|index| (index, 10_000)).collect();
    let operand = |input: usize| {
        let levels = expr.inputs[input].indices.clone();
        let (root, all) = (levels[..1].iter().copied().collect(), expr.inputs[input].set());
        let pattern = Pattern::from_iter([(root, 10_000), (all, 200_000)]);
        SparseOperand { input, format: Format::csf(levels), pattern }
    };
    let mut problem = Problem::joining(expr.clone(), extents, vec![operand(0), operand(1)]);
    problem.output = OutputForm::Assembled;
    let found = default_scheduler().search(&problem, &machine()).expect("a schedule");
    let level = LevelStorage { coords: Width::below(10_000), pointers: Width::W32 };
    let stored = vec![vec![level; 2]; 2];
    let mut schedule = found.candidates[0].schedule.clone();
    compare("spgemm-dense-root", &lower(&problem, &schedule, &stored).expect("a program"));
    for (name, kind) in [
        ("spgemm-sought", LevelKind::Compressed),
        ("spgemm-bitmap", LevelKind::Bitmap),
        ("spgemm-hashed", LevelKind::Hashed),
    ] {
        schedule.layouts[1].format.set_kind(0, kind);
        compare(name, &lower(&problem, &schedule, &stored).expect("a program"));
    }
}

/// Two products add to one workspace: the rows of either are visited.
#[test]
fn a_sum_is_one_kernel() {
    let operand = |input: usize, levels: &str| {
        let levels = indices(levels);
        let sets = [levels[..1].iter().copied().collect(), levels.iter().copied().collect()];
        let pattern = Pattern::from_iter(sets.into_iter().zip([9_000, 40_000]));
        SparseOperand { input, format: Format::csf(levels), pattern }
    };
    let program = |expr: &str, levels: &[&str], text: &str| {
        let expr: Expr = expr.parse().expect("an expression");
        let extents: Extents = expr.all().iter().map(|index| (index, 10_000)).collect();
        let sparse = levels.iter().enumerate().map(|(input, levels)| operand(input, levels));
        let mut problem = Problem::joining(expr.clone(), extents, sparse.collect());
        problem.output = OutputForm::Assembled;
        let schedule = Schedule::parse(text, &expr).expect("a schedule");
        let level = LevelStorage { coords: Width::below(10_000), pointers: Width::W32 };
        lower(&problem, &schedule, &vec![vec![level; 2]; levels.len()]).expect("a program")
    };
    let product = "\
path     X*Y
nest     i{ j{ k{ T1 } } }
layout   X: i j
layout   Y: j:dense k
workspace dense
parallel i position assemble
";
    let copy = "\
path     W
nest     i{ k{ T1 } }
layout   i k
workspace dense
parallel i position assemble
";
    let product = || program("Z(i,k) = X(i,j) * Y(j,k)", &["ij", "jk"], product);
    let copied = program("Z(i,k) = W(i,k)", &["ik"], copy);
    let united = unite(vec![product(), copied.clone()]).expect("a legal program");
    compare("sum", &united.expect("one program"));
    let table = copy.replace("workspace dense", "workspace hashed");
    compare("copy-hash-table", &program("Z(i,k) = W(i,k)", &["ik"], &table));
    // Each element of the one is by rows, of the other by columns.
    let columns = copy.replace("i{ k{ T1 } }", "k{ i{ T1 } }").replace("i k", "k i");
    let columns = program("Z(i,k) = W(i,k)", &["ki"], &columns.replace("parallel i", "parallel k"));
    assert!(unite(vec![product(), columns]).expect("no fault").is_none());
    let list =
        program("Z(i,k) = W(i,k)", &["ik"], &copy.replace("workspace dense", "workspace list"));
    assert!(unite(vec![copied.clone(), list]).expect("no fault").is_none());
    let other = program("V(i,k) = W(i,k)", &["ik"], copy);
    assert!(unite(vec![copied, other]).expect("no fault").is_none());
}

/// A row of `r` is summed up in registers, and then added to the workspace as one.
#[test]
fn rows_of_an_assembled_output_are_met_together() {
    let expr: Expr = "F(i,m,r) = X(i,j,k) * Z(k,m) * B(j,r)".parse().expect("an expression");
    let extents: Extents = expr.all().iter().map(|index| (index, 24)).collect();
    let operand = |input: usize, levels: &str| {
        let levels = indices(levels);
        let counts = (1..=levels.len()).map(|n| {
            let set: IndexSet = levels[..n].iter().copied().collect();
            (set, if n == 1 { 24 } else { 24 * 4_u64.pow(n as u32 - 1) })
        });
        let pattern = Pattern::from_iter(counts);
        SparseOperand { input, format: Format::csf(levels), pattern }
    };
    let sparse = vec![operand(0, "ikj"), operand(1, "km")];
    let mut problem = Problem::joining(expr.clone(), extents, sparse);
    problem.output = OutputForm::Assembled;
    let text = "\
path     X*B T1*Z
nest     i{ k{ j{ r{ T1 } } m{ r{ T2 } } } }
layout   X: i k j
layout   Z: k m
buffer   dense
workspace dense
parallel i position assemble
";
    let schedule = Schedule::parse(text, &expr).expect("a schedule");
    let level = LevelStorage { coords: Width::below(24), pointers: Width::W32 };
    let stored = vec![vec![level; 3], vec![level; 2]];
    compare("rows-assembled", &lower(&problem, &schedule, &stored).expect("a program"));
}

/// A chain of three sparse matrices in one nest: marked cells lead the loop of the consumer.
#[test]
fn a_chain_with_a_sparse_buffer() {
    let expr: Expr = "A(i,l) = X(i,j) * Y(j,k) * Z(k,l)".parse().expect("an expression");
    let extents: Extents = expr.all().iter().map(|index| (index, 100_000)).collect();
    let operand = |input: usize, levels: &str| {
        let levels = indices(levels);
        let counts = (1..=2).map(|n| (levels[..n].iter().copied().collect(), 100_000 * n as u64));
        SparseOperand { input, pattern: Pattern::from_iter(counts), format: Format::csf(levels) }
    };
    let sparse = vec![operand(0, "ij"), operand(1, "jk"), operand(2, "kl")];
    let mut problem = Problem::joining(expr.clone(), extents, sparse);
    problem.output = OutputForm::Assembled;
    let text = "\
path     X*Y T1*Z
nest     i{ j{ k{ T1 } } k{ l{ T2 } } }
layout   X: i j
layout   Y: j k
layout   Z: k l
buffer   sparse
workspace dense
parallel i position assemble
";
    let schedule = Schedule::parse(text, &expr).expect("a schedule");
    let level = LevelStorage { coords: Width::W32, pointers: Width::W32 };
    let stored = vec![vec![level; 2]; 3];
    compare("chain-sparse-buffer", &lower(&problem, &schedule, &stored).expect("a program"));
}

/// The worked example of CoNST (Raje et al., 2024): the loops of its figure 5, from a solution of the constraints to C.
#[test]
fn const_worked_example() {
    let text = "R(i,j,k) = A(i,p,q) * B(j,p,r) * C(k,q,r) * D(j,k,r)";
    let expr: Expr = text.parse().expect("an expression");
    let extents: Extents = expr.all().iter().map(|index| (index, 40)).collect();
    let laid = [(1, "rjp"), (0, "pqi"), (2, "rqk"), (3, "rjk")];
    let sparse = laid.map(|(input, levels)| {
        let levels = indices(levels);
        let counts = (1..=3).map(|n| {
            let set: IndexSet = levels[..n].iter().copied().collect();
            (set, 40_u64.pow(n as u32) / if n > 1 { 10 } else { 1 })
        });
        let pattern = Pattern::from_iter(counts);
        SparseOperand { input, format: Format::csf(levels.clone()), pattern }
    });
    let problem = Problem::joining(expr, extents, sparse.to_vec());
    let (paths, _) = enumerate(&problem.expr, Arity::Binary);
    let wanted = "T1(i,j,q,r) = A(i,p,q) * B(j,p,r)\nT2(i,j,k,r) = T1(i,j,q,r) * C(k,q,r)";
    let of = |path: &&Path| path.display(&problem.expr).to_string().starts_with(wanted);
    let path = paths.iter().find(of).expect("the path of the paper");
    let system = System::new(&problem, path, Layouts::Given, 2);
    let loops = ["rjpqi", "rjqki", "rjki"].map(indices).to_vec();
    let solution = Solution::new(&system, vec![0, 1, 2], loops);
    assert_eq!(system.check(&solution), Ok(()));
    let schedule = finish(&problem, solution.path(path), solution.nest(), &machine());
    let level = LevelStorage { coords: Width::below(40), pointers: Width::W32 };
    let stored = vec![vec![level; 3]; 4];
    let program = lower(&problem, &schedule, &stored).expect("a program");
    compare("const-worked-example", &program);
}
