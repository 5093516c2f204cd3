//! One kernel at a time, on the tree that suits it best.

use std::sync::Arc;
use std::time::Instant;

use decompose_common::progress::Screen;
use decompose_core::contract::{Contraction, Request, random_operands};
use decompose_core::cost::Machine;
use decompose_core::einsum::{Access, Expr};
use decompose_core::error::CoreError;
use decompose_core::kernels::{mode_index, mttkrp, ttmc, tttp};
use decompose_core::sweep::{
    Merging, PlanOptions, Step, TreeLayout, TreePlan, Trees, plan_kernels,
};
use decompose_formats::{Csf, Matrix, ModeOrder, Value};
use rayon::ThreadPool;

use crate::bench::record::{BenchRecord, BenchTask, PROGRAM, PlanText, WorkKey};
use crate::bench::roofline::{Bound, Caches, Work};
use crate::bench::settings::Settings;
use crate::bench::sweep::check_memory;
use crate::bench::tensors::Subject;
use crate::bench::turns::{self, Runner};
use crate::cli::Done;
use crate::failure::Failure;
use crate::schedule::measure::dense_bytes;

/// A sample lasts at least this long: short kernels run several times for one.
const LEAST_SECONDS: f64 = 1e-3;

/// Measures each kernel on each number of threads.
///
/// # Errors
///
/// Too little memory, or a kernel that cannot be planned or run.
pub(crate) fn measure<V: Value>(
    settings: &Settings,
    subject: &Subject<V>,
    rank: usize,
    record: &mut BenchRecord,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    for (name, expr) in expressions(&settings.kernels, subject.tensor.order()) {
        let mut runners: Vec<Box<dyn Runner + '_>> = Vec::new();
        for (threads, pool) in &settings.pools {
            let key = WorkKey {
                program: PROGRAM.to_owned(),
                tensor: subject.name.clone(),
                rank: Some(rank),
                threads: *threads,
                quantity: name.clone(),
            };
            let plan = match plan(subject, rank, &expr, *threads) {
                Err(error @ CoreError::NoSchedule { .. }) => {
                    screen.warn(format!("{name} is left out: {error}"));
                    continue;
                }
                other => other?,
            };
            let planned = Planned { key, rank, pool, plan };
            let prepared = || prepare(settings, subject, planned, record);
            runners.push(Box::new(screen.phase("kernel", prepared).0?));
        }
        if turns::take(&mut runners, settings, record, screen)? == Done::Interrupted {
            return Ok(Done::Interrupted);
        }
    }
    Ok(Done::Complete)
}

/// Returns the kernels called `names` for tensors of `order`, with their full names.
fn expressions(names: &[String], order: usize) -> Vec<(String, Expr)> {
    let of = |name: &String| -> Vec<(String, Expr)> {
        let modes = |kernel: &dyn Fn(usize) -> Expr| {
            (0..order).map(|mode| (format!("{name}:{order}:{}", mode + 1), kernel(mode))).collect()
        };
        match name.as_str() {
            "mttkrp" => modes(&|mode| mttkrp(order, mode)),
            "ttmc" => modes(&|mode| ttmc(order, Some(mode))),
            _ => vec![(format!("{name}:{order}"), tttp(order))],
        }
    };
    names.iter().flat_map(of).collect()
}

/// A kernel that is planned at a rank, and the threads that run it.
struct Planned<'a> {
    key: WorkKey,
    rank: usize,
    pool: &'a ThreadPool,
    plan: TreePlan,
}

/// A kernel with its operands on the threads of a pool.
struct KernelRun<'a, V: Value> {
    pool: &'a ThreadPool,
    key: WorkKey,
    contraction: Contraction<V>,
    dense: Vec<Matrix<V>>,
    output: Matrix<V>,
    /// Runs a sample; 0: not known yet.
    runs: usize,
}

/// Builds the kernel that is planned, and counts what it must do.
fn prepare<'a, V: Value>(
    settings: &Settings,
    subject: &Subject<V>,
    planned: Planned<'a>,
    record: &mut BenchRecord,
) -> Result<KernelRun<'a, V>, Failure> {
    let Planned { key, rank, pool, plan } = planned;
    let step = &plan.steps[0];
    // The list is copied to be sorted, and sorting takes as much again.
    let list = (subject.tensor.nnz() * (4 * subject.tensor.order() + V::BYTES)) as u64;
    let need = plan.tree_bytes
        + plan.side_bytes
        + dense_bytes(&step.problem, (&step.candidate.schedule, &step.candidate.cost))
        + 2 * list;
    check_memory(need, &format!("{} at rank {rank}", key.quantity))?;
    let layout = &plan.trees[step.tree];
    let tree = Csf::build(subject.tensor.clone(), &layout.order)?.fuse(layout.fused);
    let task = task(settings, &key, rank, step, &tree, record);
    record.tasks.push(task);
    record.plans.push(PlanText {
        program: format!("{} {}", key.program, key.quantity),
        tensor: key.tensor.clone(),
        rank,
        threads: key.threads,
        predicted_seconds: plan.seconds(),
        text: plan.to_string(),
    });
    pool.install(|| {
        let (problem, schedule) = (&step.problem, &step.candidate.schedule);
        let tree = Arc::new(tree);
        let contraction = Contraction::build(problem, schedule, tree, &settings.toolchain)?;
        let dense = random_operands::<V>(contraction.kernel().program())?;
        let output = contraction.output()?;
        Ok(KernelRun { pool, key, contraction, dense, output, runs: 0 })
    })
}

fn plan<V: Value>(
    subject: &Subject<V>,
    rank: usize,
    expr: &Expr,
    threads: usize,
) -> Result<TreePlan, CoreError> {
    let extents = subject.tensor.extents();
    let shape = |access: &Access| -> Vec<u64> {
        let mode = |index| (0..extents.len()).find(|&mode| mode_index(mode) == index);
        let extents = access.indices.iter().map(|&i| mode(i).map_or(rank as u64, |m| extents[m]));
        extents.collect()
    };
    let shapes: Vec<Vec<u64>> = expr.inputs.iter().map(shape).collect();
    let mut request = Request::new(expr.clone(), 0, &subject.counts, &shapes)?;
    request.value_bytes = V::BYTES;
    let natural = TreeLayout::new(ModeOrder::natural(extents.len()), 1);
    let options = PlanOptions {
        rank,
        value_bytes: V::BYTES,
        threads,
        memory: None,
        // Only the kernel counts, not the building of its tree.
        sweeps: usize::MAX,
        trees: Trees::Choose,
        merging: Merging::Never,
        panels: None,
        updates: Vec::new(),
    };
    plan_kernels(extents, &[request.problem(&natural)], &options, Machine::here())
}

fn task<V: Value>(
    settings: &Settings,
    key: &WorkKey,
    rank: usize,
    step: &Step,
    tree: &Csf<V>,
    record: &BenchRecord,
) -> BenchTask {
    let caches = Caches::of(Machine::here(), key.threads);
    let schedule = &step.candidate.schedule;
    let counting = || Work::of(&step.problem, schedule, tree, &caches);
    let pool = settings.pools.iter().max_by_key(|(threads, _)| *threads);
    let work = pool.map_or_else(counting, |(_, pool)| pool.install(counting));
    let limits = record.limits(rank, key.threads);
    BenchTask { key: key.clone(), work, bound: limits.map(|limits| Bound::of(&work, limits)) }
}

impl<V: Value> Runner for KernelRun<'_, V> {
    fn threads(&self) -> usize {
        self.key.threads
    }

    fn run(&mut self) -> Result<Vec<(WorkKey, f64)>, Failure> {
        let dense: Vec<&Matrix<V>> = self.dense.iter().collect();
        let (contraction, output) = (&mut self.contraction, &mut self.output);
        let runs = self.runs.max(1);
        let seconds = self.pool.install(|| -> Result<f64, Failure> {
            let start = Instant::now();
            for _ in 0..runs {
                contraction.run(&dense, output)?;
            }
            Ok(start.elapsed().as_secs_f64() / runs as f64)
        })?;
        if self.runs == 0 {
            self.runs = (LEAST_SECONDS / seconds.max(1e-9)).ceil().max(1.0) as usize;
        }
        Ok(vec![(self.key.clone(), seconds)])
    }
}
