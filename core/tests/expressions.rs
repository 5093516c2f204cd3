//! Random expressions under random legal schedules, against the dense oracle.
//!
//! A case is a number: the expression, the tensors, the path (binary or not), the loop orders, which
//! loops are fused, the tree and how tasks share the output all follow from it.  `DECOMPOSE_CASES`
//! sets how many are tried.

mod random;

use std::collections::BTreeMap;
use std::sync::Arc;

use decompose_core::autoschedule::{SCHEDULERS, default_scheduler};
use decompose_core::contract::{Contraction, Request, ResultForm, split_list};
use decompose_core::cost::Family;
use decompose_core::einsum::{Access, Expr, oracle};
use decompose_core::optimisation::{Optimisation, Optimisations};
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{BufferKind, LevelKind, Problem, Schedule};
use decompose_core::sweep::TreeLayout;
use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};
use decompose_formats::{Coo, Csf, DenseTensor, Matrix, ModeOrder, PatternCounts};
use rayon::{ThreadPool, ThreadPoolBuilder};

use random::Case;

/// Cases tried unless `DECOMPOSE_CASES` says otherwise.
const CASES: u64 = 240;

/// Cases of several sparse operands.
const JOINED_CASES: u64 = 300;

/// Cases that each scheduler is asked for.
const SEARCHED_CASES: u64 = 80;

/// Cases of many operands.
const LONG_CASES: u64 = 60;

/// Relative to the same expression on absolute values: sums of up to thousands of products whose
/// order differs, each rounded with a unit of 1.1e-16.
const TOLERANCE: f64 = 1e-12;

#[test]
fn random_schedules_of_random_expressions_agree_with_the_oracle() {
    check_all(cases(CASES), |native, interpreter, seed| {
        (Case::new(seed), vec![native, interpreter])
    });
}

#[test]
fn several_sparse_operands_agree_with_the_oracle() {
    check_all(cases(JOINED_CASES), |native, interpreter, seed| {
        // Compiling takes most of the time: every third case is compiled.
        let compiled = (seed % 3 == 0).then_some(native);
        (Case::of_several_sparse(seed), compiled.into_iter().chain([interpreter]).collect())
    });
}

/// Buffers of both kinds are drawn.
#[test]
fn some_drawn_buffers_are_sparse() {
    let sparse = |seed: &u64| {
        let case = Case::of_several_sparse(*seed);
        case.schedule.buffers.contains(&BufferKind::Sparse)
    };
    let count = (0..JOINED_CASES).filter(sparse).count();
    assert!((30..JOINED_CASES as usize / 2).contains(&count), "{count}");
}

#[test]
fn schedules_of_every_scheduler_agree_with_the_oracle() {
    check_all(cases(SEARCHED_CASES) * SCHEDULERS.len() as u64, |native, interpreter, seed| {
        let number = SCHEDULERS.len() as u64;
        let case = Case::searched(seed / number, SCHEDULERS[(seed % number) as usize]);
        let compiled = (seed / number).is_multiple_of(8).then_some(native);
        (case, compiled.into_iter().chain([interpreter]).collect())
    });
}

/// How many cases are tried, if not `usual`.
fn cases(usual: u64) -> u64 {
    std::env::var("DECOMPOSE_CASES").map_or(usual, |n| n.parse().expect("a number"))
}

/// Checks `cases` cases on two threads, each made with the toolchains that it is for: native, or the interpreter.
fn check_all(
    cases: u64,
    make: impl for<'a> Fn(&'a Toolchain, &'a Toolchain, u64) -> (Case, Vec<&'a Toolchain>) + Sync,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let here = Toolchain::detect();
    let compiler = here.compiler().expect("this test needs a C compiler").clone();
    let native = Toolchain::Native(compiler.with_cache(folder.path().to_owned()));
    let interpreter = Toolchain::Interpreter("asked for".into());
    std::thread::scope(|scope| {
        for part in 0..2 {
            let (native, interpreter, make) = (&native, &interpreter, &make);
            scope.spawn(move || {
                let pools = [1, 2, 5].map(pool);
                for seed in (part..cases).step_by(2) {
                    let (case, toolchains) = make(native, interpreter, seed);
                    check(&case, &toolchains, &pools);
                }
            });
        }
    });
}

#[test]
fn expressions_of_many_operands_agree_with_the_oracle() {
    let interpreter = Toolchain::Interpreter("asked for".into());
    let pools = [pool(2)];
    for seed in 0..LONG_CASES {
        check(&Case::of_many_operands(seed), &[&interpreter], &pools);
    }
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

fn check(case: &Case, toolchains: &[&Toolchain], pools: &[ThreadPool]) {
    let sparse = &case.sparse;
    let dense_x = random::dense(sparse);
    let beside = case.beside.iter().map(|(list, _)| random::dense(list));
    let operands: Vec<DenseTensor<f64>> =
        std::iter::once(dense_x).chain(beside).chain(case.dense.iter().cloned()).collect();
    let want = oracle::evaluate(&case.expr, &operands);
    let sizes: Vec<DenseTensor<f64>> = operands.iter().map(|x| x.mapv(f64::abs)).collect();
    let scale = oracle::evaluate(&case.expr, &sizes);
    let shapes: Vec<Vec<u64>> =
        operands.iter().map(|x| x.shape().iter().map(|&n| n as u64).collect()).collect();
    let lists = std::iter::once(sparse).chain(case.beside.iter().map(|(list, _)| list));
    let counts: Vec<(usize, PatternCounts)> = lists.map(PatternCounts::of).enumerate().collect();
    let counted: Vec<(usize, &PatternCounts)> =
        counts.iter().map(|(input, counts)| (*input, counts)).collect();
    let mut request = Request::joining(case.expr.clone(), &counted, &shapes).expect("a request");
    request.result = case.result;
    let beside = case.beside.iter().map(|(_, order)| TreeLayout::new(order.clone(), 1));
    let layouts: Vec<TreeLayout> = std::iter::once(case.tree.clone()).chain(beside).collect();
    let base = request.problem_on(&[]).split(&case.splits).expect("legal splits");
    let problem = random::stored_as_trees(&base, &layouts);
    let problem = problem.split(&case.pieces).expect("legal pieces");
    let lists = std::iter::once(sparse).chain(case.beside.iter().map(|(list, _)| list));
    let tree = |((list, layout), x): ((&Coo<f64>, &TreeLayout), &Access)| {
        let list = split_list(list.clone(), x, &problem).expect("memory");
        Arc::new(Csf::build(list, &layout.order).expect("a tree").fuse(layout.fused))
    };
    let trees: Vec<Arc<Csf<f64>>> =
        lists.zip(&layouts).zip(&problem.stored_expr().inputs).map(tree).collect();
    for toolchain in toolchains {
        for pool in pools {
            let got = pool.install(|| run(case, &problem, &trees, toolchain));
            compare(case, &got, &want, &scale);
        }
    }
    // Every other generated case once more, without an optimisation.
    let left_out = [Optimisation::Constants, Optimisation::Registers];
    let native = matches!(toolchains[0], Toolchain::Native(_));
    if let Some(&optimisation) = left_out.get(case.seed as usize % 4).filter(|_| native) {
        let problem = Problem { optimisations: Optimisations::all_but([optimisation]), ..problem };
        let got = pools[1].install(|| run(case, &problem, &trees, toolchains[0]));
        compare(case, &got, &want, &scale);
    }
}

/// Computes the case.
fn run(
    case: &Case,
    problem: &Problem,
    trees: &[Arc<Csf<f64>>],
    toolchain: &Toolchain,
) -> DenseTensor<f64> {
    let mut contraction = Contraction::joining(problem, &case.schedule, trees.to_vec(), toolchain)
        .unwrap_or_else(|e| panic!("{case}: {e}"));
    let native = matches!(toolchain, Toolchain::Native(_));
    let interpreted = contraction.kernel().interpreted();
    assert_eq!(interpreted.is_none(), native, "{case}: {interpreted:?}");
    let packed = (0..).zip(&case.dense).map(|(at, x)| contraction.pack(at, x).expect("packed"));
    let packed: Vec<Matrix<f64>> = packed.collect();
    let packed: Vec<&Matrix<f64>> = packed.iter().collect();
    if contraction.is_assembled() {
        let list =
            contraction.assemble(&packed, u64::MAX).unwrap_or_else(|e| panic!("{case}: {e}"));
        return random::dense(&list);
    }
    let mut output = contraction.output().expect("memory");
    // What an earlier run left must not matter.
    output.as_mut_slice().fill(7.0);
    contraction.run(&packed, &mut output).unwrap_or_else(|e| panic!("{case}: {e}"));
    match contraction.dense(&output) {
        Some(dense) => dense,
        None => random::dense(&result_list(&contraction, &output)),
    }
}

fn result_list(contraction: &Contraction<f64>, output: &Matrix<f64>) -> Coo<f64> {
    contraction.pattern(output).expect("a list").expect("a tensor")
}

fn compare(case: &Case, got: &DenseTensor<f64>, want: &DenseTensor<f64>, scale: &DenseTensor<f64>) {
    assert_eq!(got.shape(), want.shape(), "{case}");
    for ((got, want), scale) in got.iter().zip(want).zip(scale) {
        assert!((got - want).abs() <= TOLERANCE * scale, "{case}: {got} for {want}");
    }
}

/// The coordinates of the entries of a matrix of eight rows and columns.
fn matrix(entries: &[(u64, u64)]) -> Coo<f64> {
    let rows: Vec<u64> = entries.iter().map(|entry| entry.0).collect();
    let columns: Vec<u64> = entries.iter().map(|entry| entry.1).collect();
    let values: Vec<f64> = (1..=entries.len()).map(|n| n as f64).collect();
    Coo::new(vec![8, 8], vec![rows.into(), columns.into()], values).expect("a matrix")
}

/// Rows and columns that have no index in common give no element, whichever loop is inside.
#[test]
fn only_what_was_met_is_listed() {
    let x = matrix(&[(0, 1), (0, 5), (2, 3), (3, 0), (3, 7), (6, 2)]);
    let z = matrix(&[(0, 4), (1, 0), (1, 6), (4, 4), (5, 6), (6, 1), (7, 4), (7, 5)]);
    let expr: Expr = "F(i,m) = X(i,j) * Z(j,m)".parse().expect("an expression");
    let counts = [PatternCounts::of(&x), PatternCounts::of(&z)];
    let counted = [(0, &counts[0]), (1, &counts[1])];
    let mut request =
        Request::joining(expr.clone(), &counted, &[vec![8, 8], vec![8, 8]]).expect("a request");
    request.result = ResultForm::Sparse;
    // 1 meets 0 and 6, 5 meets 6, 0 meets 4, 7 meets 4 and 5.
    let want = vec![(0, 0), (0, 6), (3, 4), (3, 5)];
    for (order, levels, loops) in [
        ([0, 1], "j m", "i{ j{ m{ T1 } } }"),
        ([1, 0], "m j", "i{ m{ j{ T1 } } }"),
        ([0, 1], "j:dense m", "i{ j{ m{ T1 } } }"),
        ([1, 0], "m:dense j", "i{ m{ j{ T1 } } }"),
    ] {
        let orders = [[0, 1], order].map(|modes| ModeOrder::new(modes.to_vec()).expect("an order"));
        let layouts = orders.clone().map(|order| TreeLayout::new(order, 1));
        let problem = request.problem_on(&layouts);
        let text = format!(
            "path     X*Z\nnest     {loops}\nlayout   X: i j\nlayout   Z: {levels}\nworkspace dense\nparallel i position assemble\n"
        );
        let schedule = Schedule::parse(&text, &expr).expect("a schedule");
        let trees: Vec<Arc<Csf<f64>>> = [&x, &z]
            .iter()
            .zip(&orders)
            .map(|(list, order)| Arc::new(Csf::build((*list).clone(), order).expect("a tree")))
            .collect();
        for toolchain in [Toolchain::detect(), Toolchain::Interpreter("asked for".into())] {
            let mut contraction =
                Contraction::joining(&problem, &schedule, trees.clone(), &toolchain)
                    .expect("a kernel");
            let list = contraction.assemble(&[], u64::MAX).expect("a list");
            let at = |entry: usize| (list.coords(0).get(entry), list.coords(1).get(entry));
            let met: Vec<(u64, u64)> = (0..list.nnz()).map(at).collect();
            assert_eq!(met, want, "{loops}");
        }
    }
}

/// A vector with every coordinate is read at its coordinates, another one is searched.
#[test]
fn vectors_are_dense_where_all_coordinates_occur() {
    let x = matrix(&[(0, 1), (0, 5), (2, 3), (3, 0), (3, 7), (6, 2)]);
    let expr: Expr = "y(i) = X(i,j) * w(j)".parse().expect("an expression");
    for left_out in [None, Some(5)] {
        let coords: Vec<u64> = (0..8).filter(|at| Some(*at) != left_out).collect();
        let values: Vec<f64> = coords.iter().map(|&at| 10.0 + at as f64).collect();
        let w = Coo::new(vec![8], vec![coords.into()], values).expect("a vector");
        let counts = [PatternCounts::of(&x), PatternCounts::of(&w)];
        let counted = [(0, &counts[0]), (1, &counts[1])];
        let mut request =
            Request::joining(expr.clone(), &counted, &[vec![8, 8], vec![8]]).expect("a request");
        request.result = ResultForm::Dense;
        let orders = [ModeOrder::natural(2), ModeOrder::natural(1)];
        let problem = request.problem_on(&orders.clone().map(|order| TreeLayout::new(order, 1)));
        let machine = Family::Xeon.machine();
        let found = default_scheduler().search(&problem, &machine).expect("a schedule");
        let schedule = &found.candidates[0].schedule;
        let dense = schedule.layouts[1].format.kinds()[0] == LevelKind::Dense;
        assert_eq!(dense, left_out.is_none());
        let mut sought = schedule.clone();
        sought.layouts[1].format.set_kind(0, LevelKind::Dense);
        assert_eq!(sought.verify(&problem).is_ok(), left_out.is_none());
        let trees = [&x, &w].into_iter().zip(&orders);
        let trees: Vec<Arc<Csf<f64>>> = trees
            .map(|(list, order)| Arc::new(Csf::build(list.clone(), order).expect("a tree")))
            .collect();
        let mut want = [0.0; 8];
        for entry in 0..x.nnz() {
            let (row, column) = (x.coords(0).get(entry), x.coords(1).get(entry));
            if Some(column) != left_out {
                want[row as usize] += x.values()[entry] * (10.0 + column as f64);
            }
        }
        for toolchain in [Toolchain::detect(), Toolchain::Interpreter("asked for".into())] {
            let mut kernel = Contraction::joining(&problem, schedule, trees.clone(), &toolchain)
                .expect("a kernel");
            let mut out = kernel.output().expect("memory");
            kernel.run(&[], &mut out).expect("a result");
            let got = kernel.dense(&out).expect("a dense result");
            assert_eq!(got.iter().copied().collect::<Vec<f64>>(), want);
        }
    }
}

#[test]
fn wide_rows_of_a_product_come_in_order() {
    let made = |extents: [u64; 2], nnz, seed| {
        let values = Values::Uniform { low: 0.5, high: 1.5 };
        let extents = extents.to_vec();
        generate::<f64>(&SynthConfig { extents, nnz, pattern: Pattern::Uniform, values, seed })
            .expect("a matrix")
    };
    // The bitmap of 20,000 cells has five words of words; a row meets some dozens of cells.
    let (x, z) = (made([40, 60], 200, 1), made([60, 20_000], 900, 2));
    let expr: Expr = "F(i,m) = X(i,j) * Z(j,m)".parse().expect("an expression");
    let counts = [PatternCounts::of(&x), PatternCounts::of(&z)];
    let counted = [(0, &counts[0]), (1, &counts[1])];
    let shapes = [x.extents().to_vec(), z.extents().to_vec()];
    let mut request = Request::joining(expr.clone(), &counted, &shapes).expect("a request");
    request.result = ResultForm::Sparse;
    let order = ModeOrder::new(vec![0, 1]).expect("an order");
    let layouts = [order.clone(), order.clone()].map(|order| TreeLayout::new(order, 1));
    let problem = request.problem_on(&layouts);
    let text = "path X*Z\nnest i{ j{ m{ T1 } } }\nlayout X: i j\nlayout Z: j m\nworkspace dense\n\
                parallel i position assemble\n";
    let schedule = Schedule::parse(text, &expr).expect("a schedule");
    let mut want: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for a in 0..x.nnz() {
        for b in (0..z.nnz()).filter(|&b| z.coords(0).get(b) == x.coords(1).get(a)) {
            let at = (x.coords(0).get(a), z.coords(1).get(b));
            *want.entry(at).or_default() += x.values()[a] * z.values()[b];
        }
    }
    let tree = |list: Coo<f64>| Arc::new(Csf::build(list, &order).expect("a tree"));
    let trees = vec![tree(x), tree(z)];
    for toolchain in [Toolchain::detect(), Toolchain::Interpreter("asked for".into())] {
        let contraction = Contraction::joining(&problem, &schedule, trees.clone(), &toolchain);
        let mut contraction = contraction.expect("a kernel");
        // The workspace is empty again after each run.
        for _ in 0..2 {
            let list = contraction.assemble(&[], u64::MAX).expect("a list");
            let at = |entry: usize| (list.coords(0).get(entry), list.coords(1).get(entry));
            let met: Vec<(u64, u64)> = (0..list.nnz()).map(at).collect();
            assert_eq!(met, want.keys().copied().collect::<Vec<_>>());
            for (got, want) in list.values().iter().zip(want.values()) {
                assert!((got - want).abs() <= 1e-12 * want, "{got}, {want}");
            }
        }
    }
}
