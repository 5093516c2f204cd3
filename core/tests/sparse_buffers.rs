//! Sparse buffers: between a producer that meets few coordinates and a consumer that would loop over all.

use std::collections::BTreeMap;
use std::sync::Arc;

use decompose_core::autoschedule::{default_scheduler, finish};
use decompose_core::contract::{Contraction, Request, ResultForm};
use decompose_core::cost::{Family, estimate};
use decompose_core::einsum::Expr;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{BufferKind, Problem, Schedule, resolve};
use decompose_core::sweep::TreeLayout;
use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};
use decompose_formats::{Coo, Csf, DenseTensor, Matrix, ModeOrder, PatternCounts};
use ndarray::IxDyn;
use rayon::ThreadPoolBuilder;

const CHAIN: &str = "A(i,l) = X(i,j) * Y(j,k) * Z(k,l)";

/// The cells of row `i` of `X Y` are met, and those visited that were met.
const FUSED: &str =
    "path X*Y T1*Z\nnest i{ j{ k{ T1 } } k{ l{ T2 } } }\nlayout X: i j\nlayout Y: j k\n";

/// More than 64 * 64 cells, so that the upper bitmap has several words.
const WIDE: u64 = 20_000;

fn matrix(rows: u64, columns: u64, nnz: u64, seed: u64) -> Coo<f64> {
    let values = Values::Uniform { low: 0.5, high: 1.5 };
    let extents = vec![rows, columns];
    let config = SynthConfig { extents, nnz, pattern: Pattern::Uniform, values, seed };
    generate(&config).expect("a matrix")
}

fn natural() -> ModeOrder {
    ModeOrder::new(vec![0, 1]).expect("an order")
}

/// Poses the chain for three matrices, or for two and a dense one.
fn pose(lists: &[&Coo<f64>], shapes: &[Vec<u64>], result: ResultForm) -> Problem {
    let counts: Vec<PatternCounts> = lists.iter().map(|list| PatternCounts::of(list)).collect();
    let counted: Vec<(usize, &PatternCounts)> = counts.iter().enumerate().collect();
    let expr: Expr = CHAIN.parse().expect("an expression");
    let mut request = Request::joining(expr, &counted, shapes).expect("a request");
    request.result = result;
    request.problem_on(&vec![TreeLayout::new(natural(), 1); lists.len()])
}

fn trees(lists: &[&Coo<f64>]) -> Vec<Arc<Csf<f64>>> {
    let tree = |list: &&Coo<f64>| Csf::build((*list).clone(), &natural()).expect("a tree");
    lists.iter().map(|list| Arc::new(tree(list))).collect()
}

fn entries(list: &Coo<f64>) -> Vec<(u64, u64, f64)> {
    let at = |n: usize| (list.coords(0).get(n), list.coords(1).get(n), list.values()[n]);
    (0..list.nnz()).map(at).collect()
}

/// The product of two matrices.
fn product(a: &[(u64, u64, f64)], b: &[(u64, u64, f64)]) -> Vec<(u64, u64, f64)> {
    let mut sums: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for &(i, j, x) in a {
        for &(_, k, y) in b.iter().filter(|(row, ..)| *row == j) {
            *sums.entry((i, k)).or_default() += x * y;
        }
    }
    sums.into_iter().map(|((i, k), sum)| (i, k, sum)).collect()
}

fn toolchains() -> [Toolchain; 2] {
    [Toolchain::detect(), Toolchain::Interpreter("asked for".into())]
}

#[test]
fn a_chain_of_three_sparse_matrices_is_one_nest() {
    let (x, y, z) = (matrix(50, 60, 300, 1), matrix(60, WIDE, 400, 2), matrix(WIDE, 40, 9_000, 3));
    let lists = [&x, &y, &z];
    let shapes = lists.map(|list| list.extents().to_vec());
    let want = product(&product(&entries(&x), &entries(&y)), &entries(&z));
    for (form, end) in [
        (ResultForm::Sparse, "workspace dense\nparallel i position assemble\n"),
        (ResultForm::Dense, "parallel i position boundary\n"),
    ] {
        let problem = pose(&lists, &shapes, form);
        let text = format!("{FUSED}layout Z: k l\nbuffer sparse\n{end}");
        let schedule = Schedule::parse(&text, &problem.expr).expect("a schedule");
        for toolchain in toolchains() {
            for threads in [1, 2, 5] {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
                let got = pool.install(|| run(&problem, &schedule, &lists, &toolchain));
                assert_eq!(got.len(), want.len());
                for (got, want) in got.iter().zip(&want) {
                    assert_eq!((got.0, got.1), (want.0, want.1));
                    assert!((got.2 - want.2).abs() <= 1e-12 * want.2, "{got:?}, {want:?}");
                }
            }
        }
    }
}

/// The elements of the result that are not zero, of the second run: the bitmaps are left as the first needs them.
fn run(
    problem: &Problem,
    schedule: &Schedule,
    lists: &[&Coo<f64>],
    toolchain: &Toolchain,
) -> Vec<(u64, u64, f64)> {
    let contraction = Contraction::joining(problem, schedule, trees(lists), toolchain);
    let mut contraction = contraction.expect("a kernel");
    if contraction.is_assembled() {
        contraction.assemble(&[], u64::MAX).expect("a list");
        return entries(&contraction.assemble(&[], u64::MAX).expect("a list"));
    }
    let mut output = contraction.output().expect("memory");
    contraction.run(&[], &mut output).expect("a run");
    contraction.run(&[], &mut output).expect("a run");
    let dense = contraction.dense(&output).expect("an array");
    let at = |((i, l), &value): ((usize, usize), &f64)| (i as u64, l as u64, value);
    let dense = dense.into_dimensionality::<ndarray::Ix2>().expect("a matrix");
    dense.indexed_iter().map(at).filter(|(.., value)| *value != 0.0).collect()
}

/// What is not met is never read: rows of the dense operand that no product needs are no numbers.
#[test]
fn the_consumer_visits_marked_cells_only() {
    let (x, y) = (matrix(30, 40, 90, 4), matrix(40, WIDE, 100, 5));
    let met: Vec<u64> = entries(&y).iter().map(|(_, k, _)| *k).collect();
    let mut c = DenseTensor::from_elem(IxDyn(&[WIDE as usize, 6]), f64::NAN);
    let mut plain = Vec::new();
    for &k in &met {
        for l in 0..6 {
            let value = 1.0 + (k % 7) as f64 + l as f64;
            c[IxDyn(&[k as usize, l])] = value;
            plain.push((k, l as u64, value));
        }
    }
    plain.sort_by_key(|&(k, l, _)| (k, l));
    plain.dedup();
    let want = product(&product(&entries(&x), &entries(&y)), &plain);
    let shapes = [x.extents().to_vec(), y.extents().to_vec(), vec![WIDE, 6]];
    let problem = pose(&[&x, &y], &shapes, ResultForm::Dense);
    let text = format!("{FUSED}buffer sparse\nparallel i position boundary\n");
    let schedule = Schedule::parse(&text, &problem.expr).expect("a schedule");
    for toolchain in toolchains() {
        let made = Contraction::joining(&problem, &schedule, trees(&[&x, &y]), &toolchain);
        let mut contraction = made.expect("a kernel");
        let packed: Matrix<f64> = contraction.pack(0, &c).expect("packed");
        let mut output = contraction.output().expect("memory");
        contraction.run(&[&packed], &mut output).expect("a run");
        let dense = contraction.dense(&output).expect("an array");
        for &(i, l, value) in &want {
            let got = dense[IxDyn(&[i as usize, l as usize])];
            assert!((got - value).abs() <= 1e-12 * value, "{got}, {value}");
        }
        assert!(dense.iter().all(|value| value.is_finite()));
    }
}

/// A problem with a dense `Z` and uniform patterns of these extents.
fn uniform(rows: u64, wide: u64, nnz: u64) -> Problem {
    let counts = [[rows, rows], [rows, wide]].map(|shape| PatternCounts::uniform(&shape, nnz));
    let shapes = [vec![rows, rows], vec![rows, wide], vec![wide, 6]];
    let expr: Expr = CHAIN.parse().expect("an expression");
    let counted = [(0, &counts[0]), (1, &counts[1])];
    let request = Request::joining(expr, &counted, &shapes).expect("a request");
    request.problem_on(&vec![TreeLayout::new(natural(), 1); 2])
}

#[test]
fn iterations_of_the_consumer_do_not_depend_on_the_extent() {
    let machine = Family::Zen.machine();
    let told = |wide: u64, kind: &str| {
        let problem = uniform(10_000, wide, 100_000);
        let text = format!("{FUSED}buffer {kind}\nparallel i position boundary\n");
        let schedule = Schedule::parse(&text, &problem.expr).expect("a schedule");
        schedule.verify(&problem).expect("a legal schedule");
        let nest = resolve(&problem, &schedule).expect("a nest");
        (nest.iterations(1, 2), estimate(&problem, &schedule, &machine).seconds)
    };
    let ((few, short), (many, long)) = (told(30_000, "sparse"), told(3_000_000, "sparse"));
    // Ten rows of ten cells each, of which the longer row has next to none twice.
    assert!((few - 1e6).abs() < 1e4 && (many - 1e6).abs() < 1e3, "{few}, {many}");
    let (all, dense) = told(30_000, "dense");
    assert_eq!(all, 3e8);
    assert!(short < dense && long < 10.0 * short, "{short}, {dense}, {long}");
}

#[test]
fn predicted_seconds_choose_the_kind_of_a_buffer() {
    let machine = Family::Zen.machine();
    for (problem, kind) in [
        // Rows of a hundred products among 100,000 cells; and rows in which nearly every cell is met.
        (uniform(100_000, 100_000, 1_000_000), BufferKind::Sparse),
        (uniform(1_000, 100, 90_000), BufferKind::Dense),
    ] {
        let text = format!("{FUSED}buffer dense\nparallel i position boundary\n");
        let Schedule { path, nest, .. } = Schedule::parse(&text, &problem.expr).expect("a nest");
        let finished = finish(&problem, path, nest, &machine);
        assert_eq!(finished.buffers, [kind], "{}", finished.text(&problem.expr));
    }
}

/// The chain of sparse matrices whose result has few elements is searched for like any other product.
#[test]
fn searches_find_the_chain_with_a_sparse_buffer() {
    let machine = Family::Zen.machine();
    let (n, nnz) = (100_000, 400_000);
    let counts = PatternCounts::uniform(&[n, n], nnz);
    let counted: Vec<(usize, &PatternCounts)> = (0..3).map(|input| (input, &counts)).collect();
    let expr: Expr = CHAIN.parse().expect("an expression");
    let mut request = Request::joining(expr, &counted, &vec![vec![n, n]; 3]).expect("a request");
    request.result = ResultForm::Sparse;
    let problem = request.problem_on(&vec![TreeLayout::new(natural(), 1); 3]);
    let found = default_scheduler().search(&problem, &machine).expect("schedules");
    let best = &found.candidates[0].schedule;
    assert_eq!(best.buffers, [BufferKind::Sparse], "{}", best.text(&problem.expr));
    assert_eq!(best.nest.to_string(), "i{ j{ k{ T1 } } k{ l{ T2 } } }");
}
