//! Schedules generated from partition templates: each computes what the dense oracle does.

mod random;

use std::sync::Arc;

use decompose_core::autoschedule::partition::{
    Base, Generated, Parameters, PartitionConfig, Target, templates,
};
use decompose_core::codegen::emit_c;
use decompose_core::contract::{Contraction, Request, preview, split_list, trees};
use decompose_core::cost::Family;
use decompose_core::einsum::{Expr, oracle};
use decompose_core::path::{Path, unfactorised};
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{Command, Problem, Schedule};
use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};
use decompose_formats::{Coo, Csf, DenseTensor, Matrix, PatternCounts, Value};
use ndarray::IxDyn;
use rayon::ThreadPoolBuilder;

/// Sums of some thousand products of numbers up to 1, each rounded with a unit of 1.1e-16.
const TOLERANCE: f64 = 1e-12;

/// A kernel on a small tensor.
struct Kernel {
    expr: Expr,
    sparse: Coo<f64>,
    operands: Vec<DenseTensor<f64>>,
    want: DenseTensor<f64>,
    problem: Problem,
}

impl Kernel {
    fn new(text: &str, extents: &[u64], dense: &[&[usize]]) -> Kernel {
        let expr: Expr = text.parse().expect("an expression");
        let config = SynthConfig {
            extents: extents.to_vec(),
            nnz: 700,
            pattern: Pattern::Uniform,
            values: Values::Uniform { low: 0.5, high: 1.5 },
            seed: 3,
        };
        let sparse = generate::<f64>(&config).expect("a tensor");
        let number = |at: usize| ((at * 7919 + 13) % 101) as f64 / 101.0;
        let array = |shape: &&[usize]| {
            let len: usize = shape.iter().product();
            let elements = (0..len).map(number).collect();
            DenseTensor::from_shape_vec(IxDyn(shape), elements).expect("an array")
        };
        let operands: Vec<DenseTensor<f64>> = dense.iter().map(array).collect();
        let all: Vec<DenseTensor<f64>> =
            std::iter::once(random::dense(&sparse)).chain(operands.iter().cloned()).collect();
        let want = oracle::evaluate(&expr, &all);
        let shapes: Vec<Vec<u64>> =
            all.iter().map(|x| x.shape().iter().map(|&n| n as u64).collect()).collect();
        let request = Request::new(expr.clone(), 0, &PatternCounts::of(&sparse), &shapes);
        let problem = request.expect("a request").problem_on(&[]);
        Kernel { expr, sparse, operands, want, problem }
    }

    /// Computes a schedule on three threads.
    fn check(&self, generated: &Generated, toolchain: &Toolchain) {
        let Generated { problem, schedule } = generated;
        let text = schedule.text(&self.expr);
        assert_eq!(Schedule::parse(&text, &self.expr).expect("a schedule"), *schedule, "{text}");
        let pool = ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
        let list = split_list(self.sparse.clone(), &problem.stored_expr().inputs[0], problem);
        let layout = trees(problem).swap_remove(0);
        let tree = Csf::build(list.expect("memory"), &layout.order).expect("a tree");
        let got = pool.install(|| {
            let mut built = Contraction::build(problem, schedule, Arc::new(tree), toolchain)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(built.kernel().failed().is_none() || built.kernel().interpreted().is_some());
            let packed = self.operands.iter().enumerate();
            let packed: Vec<Matrix<f64>> =
                packed.map(|(at, x)| built.pack(at, x).expect("packed")).collect();
            let mut output = built.output().expect("memory");
            built.run(&packed.iter().collect::<Vec<_>>(), &mut output).expect("a result");
            // An output with the pattern of the operand is a list.
            let listed = || Some(random::dense(&built.pattern(&output)?.expect("memory")));
            built.dense(&output).or_else(listed).expect("a result")
        });
        for (got, want) in got.iter().zip(&self.want) {
            assert!((got - want).abs() <= TOLERANCE * want.abs().max(1.0), "{text}: {got}, {want}");
        }
    }
}

/// Generates all schedules of a kernel; returns them with the number of those that are not generated.
fn all(kernel: &Kernel, path: &Path) -> (Vec<Generated>, usize) {
    let machine = Family::Zen.machine();
    let base = Base { problem: &kernel.problem, path, machine: &machine };
    let config = PartitionConfig {
        commands: vec![Command::Split, Command::Divide],
        ..PartitionConfig::default()
    };
    let parameters = Parameters { factors: vec![3, 8], ..Parameters::cpu() };
    let mut generated = Vec::new();
    let mut refused = 0;
    for split in templates(&base.space(), &config, Target::Cpu, &parameters) {
        for (template, settings) in split.templates {
            for setting in settings {
                match base.generate(&template, &setting) {
                    Ok(one) => generated.push(one),
                    Err(_) => refused += 1,
                }
            }
        }
    }
    (generated, refused)
}

fn native() -> (tempfile::TempDir, Toolchain) {
    let folder = tempfile::tempdir().expect("a folder");
    let here = Toolchain::detect();
    let compiler = here.compiler().expect("this test needs a C compiler").clone();
    let toolchain = Toolchain::Native(compiler.with_cache(folder.path().to_owned()));
    (folder, toolchain)
}

/// Keeps every `step`-th schedule.
fn every(step: usize, generated: Vec<Generated>) -> Vec<Generated> {
    generated.into_iter().skip(step - 1).step_by(step).collect()
}

/// Checks every schedule with the interpreter, and every `compiled`-th one compiled.
fn check_all(kernel: &Kernel, generated: &[Generated], compiled: usize) {
    let (_folder, native) = native();
    let interpreter = Toolchain::Interpreter("asked for".into());
    for (at, one) in generated.iter().enumerate() {
        kernel.check(one, &interpreter);
        if at % compiled == 0 {
            kernel.check(one, &native);
        }
    }
}

#[test]
fn all_schedules_of_spmv_are_right() {
    let kernel = Kernel::new("y(i) = A(i,j) * x(j)", &[70, 60], &[&[60]]);
    let (generated, refused) = all(&kernel, &unfactorised(&kernel.expr));
    assert_eq!((generated.len(), refused), (98, 44));
    check_all(&kernel, &generated, 8);
}

#[test]
fn schedules_of_spmm_are_right() {
    let kernel = Kernel::new("C(i,k) = A(i,j) * B(j,k)", &[70, 60], &[&[60, 21]]);
    let (generated, refused) = all(&kernel, &unfactorised(&kernel.expr));
    assert_eq!((generated.len(), refused), (2_374, 1_977));
    check_all(&kernel, &every(11, generated), 12);
}

#[test]
fn all_schedules_of_mttkrp_are_right() {
    let kernel =
        Kernel::new("A(i,j) = B(i,k,l) * C(k,j) * D(l,j)", &[23, 19, 31], &[&[19, 9], &[31, 9]]);
    let text = "path B*D T1*C";
    let path = Schedule::parse(text, &kernel.expr).expect("a path").path;
    let (generated, refused) = all(&kernel, &path);
    assert_eq!((generated.len(), refused), (90, 69));
    check_all(&kernel, &generated, 12);
}

#[test]
fn schedules_of_sddmm_are_right() {
    let kernel = Kernel::new("S(i,j) = A(i,j) * U(i,r) * V(j,r)", &[70, 60], &[&[70, 9], &[60, 9]]);
    let (generated, refused) = all(&kernel, &unfactorised(&kernel.expr));
    assert_eq!((generated.len(), refused), (2_374, 1_977));
    check_all(&kernel, &every(11, generated), 12);
}

#[test]
fn all_schedules_of_ttmc_are_right() {
    let kernel =
        Kernel::new("Y(i,s,t) = A(i,j,k) * U(j,s) * V(k,t)", &[23, 19, 31], &[&[19, 5], &[31, 6]]);
    let text = "path A*V T1*U";
    let path = Schedule::parse(text, &kernel.expr).expect("a path").path;
    let (generated, refused) = all(&kernel, &path);
    assert_eq!((generated.len(), refused), (90, 69));
    check_all(&kernel, &generated, 12);
}

/// Computes `y(i) = A(i,j) * B(i,j) * w(i)` with vectors over the non-zeros of a row, and the definition in f64.
fn gathered<V: Value>() -> Vec<(f64, f64)> {
    let expr: Expr = "y(i) = A(i,j) * B(i,j) * w(i)".parse().expect("an expression");
    let config = SynthConfig {
        extents: vec![40, 300],
        nnz: 3_000,
        pattern: Pattern::Uniform,
        values: Values::Uniform { low: 0.5, high: 1.5 },
        seed: 8,
    };
    let sparse = generate::<V>(&config).expect("a tensor");
    let shapes = [vec![], vec![40, 300], vec![40]];
    let request = Request::new(expr.clone(), 0, &PatternCounts::of(&sparse), &shapes);
    let mut problem = request.expect("a request").problem_on(&[]);
    problem.value_bytes = V::BYTES;
    let text =
        "path A*B*w\nnest i{ j{ T1 } }\nlayout i j\nparallel i position owner\nvectorize j\n";
    let schedule = Schedule::parse(text, &expr).expect("a schedule");
    let code = emit_c(&preview(&problem, &schedule).expect("a program"));
    assert!(code.contains("__builtin_ia32_gather"), "{code}");
    let number = |at: usize| V::from_f64(((at * 7919 + 13) % 101) as f64 / 101.0);
    let b = DenseTensor::from_shape_fn(IxDyn(&[40, 300]), |at| number(at[0] * 300 + at[1]));
    let w = DenseTensor::from_shape_fn(IxDyn(&[40]), |at| number(at[0] + 5));
    let mut want = vec![0.0_f64; 40];
    for at in 0..sparse.nnz() {
        let [i, j] = [0, 1].map(|mode| sparse.coords(mode).get(at) as usize);
        want[i] += sparse.values()[at].to_f64() * b[[i, j]].to_f64() * w[[i]].to_f64();
    }
    let tree = Arc::new(Csf::build(sparse, &trees(&problem)[0].order).expect("a tree"));
    let (_folder, toolchain) = native();
    let built = Contraction::build(&problem, &schedule, tree, &toolchain);
    let mut built = built.expect("a kernel");
    let packed = [built.pack(0, &b).expect("packed"), built.pack(1, &w).expect("packed")];
    let mut output = built.output().expect("memory");
    built.run(&packed.iter().collect::<Vec<_>>(), &mut output).expect("a result");
    let got = built.dense(&output).expect("a dense result");
    got.iter().map(|got| got.to_f64()).zip(want).collect()
}

#[test]
fn vectors_over_nodes_gather_elements() {
    for (got, want) in gathered::<f64>() {
        assert!((got - want).abs() <= TOLERANCE * want.abs().max(1.0), "{got}, {want}");
    }
    // A hundred terms, each rounded with a unit of 6e-8.
    for (got, want) in gathered::<f32>() {
        assert!((got - want).abs() <= 1e-5 * want.abs().max(1.0), "{got}, {want}");
    }
}
