//! Iterations of CP-ALS, whole and in parts.

use std::ops::ControlFlow;

use decompose_common::machine::size;
use decompose_common::memory::left;
use decompose_common::progress::Screen;
use decompose_common::stopping::StopRule;
use decompose_core::cost::Machine;
use decompose_core::sweep::{Engine, MttkrpSweep, SweepPlan};
use decompose_cp::{CpConfig, PlanRequest, Planner, Start};
use decompose_formats::Value;
use decompose_formats::dense::{matrix_bytes, padded};
use rayon::ThreadPool;

use crate::bench::record::{BenchRecord, BenchTask, PlanText, WorkKey};
use crate::bench::roofline::{Bound, Caches, Limits, Work};
use crate::bench::settings::Settings;
use crate::bench::tensors::Subject;
use crate::bench::turns::{self, Runner};
use crate::cli::Done;
use crate::failure::Failure;

/// Iterations a round; the last is measured, when factors and caches are in their stride.
const ITERATIONS: usize = 2;

/// Measures iterations on each number of threads, with all optimisations and without those that are to be
/// left out, all in turn.
///
/// # Errors
///
/// Too little memory, a tensor of zeros, or a plan or kernel that fails.
pub(crate) fn measure<V: Value>(
    settings: &Settings,
    subject: &Subject<V>,
    rank: usize,
    record: &mut BenchRecord,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    let plans = plans(settings, subject, rank)?;
    let trees: u64 = plans.iter().map(|p| p.plan.tree_bytes() + p.plan.side_bytes()).sum();
    let extents = subject.tensor.extents();
    let factors: u64 = extents.iter().map(|&rows| matrix_bytes(rows, rank, V::BYTES)).sum();
    let list = (subject.tensor.nnz() * (4 * extents.len() + V::BYTES)) as u64;
    let need = factors.saturating_mul(2).saturating_add(trees + 2 * list);
    check_memory(need, &format!("{} configurations of sweeps at rank {rank}", plans.len()))?;
    let mut runners: Vec<Box<dyn Runner + '_>> = Vec::new();
    for Planned { key, pool, plan } in plans {
        let build = || {
            let tensor = subject.tensor.clone();
            pool.install(|| Engine::build(tensor, &plan, &settings.toolchain))
        };
        let built = screen.phase("build", build);
        let (engine, report) = built.0?;
        if let Some(why) = report.interpreted {
            screen.warn(format!("kernels run in the interpreter, many times slower: {why}"));
        }
        let caches = Caches::of(Machine::here(), key.threads);
        let limits = record.limits(rank, key.threads).cloned();
        let count = || tasks(&key, rank, &plan, &engine, &caches, limits.as_ref());
        let (tasks, _) = screen.phase("count", || pool.install(count));
        record.tasks.extend(tasks);
        record.plans.push(PlanText {
            program: key.program.clone(),
            tensor: key.tensor.clone(),
            rank,
            threads: key.threads,
            predicted_seconds: plan.seconds(),
            text: plan.to_string(),
        });
        let stop = StopRule { tol: 0.0, max_iters: ITERATIONS, ..StopRule::default() };
        let config = CpConfig { stop, ..CpConfig::new(rank) };
        let steps = plan.steps().map(|(name, step)| (quantity(&name), step.runs)).collect();
        runners.push(Box::new(SweepRun { pool, key, steps, engine, config }));
    }
    turns::take(&mut runners, settings, record, screen)
}

/// Refuses what does not fit memory.
///
/// # Errors
///
/// If fewer than `need` bytes are available.
pub(crate) fn check_memory(need: u64, what: &str) -> Result<(), Failure> {
    match left().filter(|&limit| need > limit) {
        None => Ok(()),
        Some(limit) => {
            let (need, limit) = (size(need), size(limit));
            let why = format!("{what} need {need} of memory together but {limit} is available");
            let help = "measure fewer with --threads, --without or --what, or at a lower --rank";
            Err(Failure::input(why).help(help))
        }
    }
}

/// A plan with its name and the threads that run it.
struct Planned<'a> {
    key: WorkKey,
    pool: &'a ThreadPool,
    plan: SweepPlan,
}

/// Plans every configuration.
fn plans<'a, V: Value>(
    settings: &'a Settings,
    subject: &Subject<V>,
    rank: usize,
) -> Result<Vec<Planned<'a>>, Failure> {
    let mut request = PlanRequest::new::<V>(&CpConfig::new(rank), subject.tensor.order());
    let mut plans = Vec::new();
    for optimisations in settings.configurations() {
        request.optimisations = optimisations;
        let mut planner = Planner::new(&subject.tensor, &subject.counts, &request);
        for (threads, pool) in &settings.pools {
            request.options.threads = *threads;
            let plan = planner.plan(&request.options)?;
            let key = WorkKey {
                program: WorkKey::program(optimisations),
                tensor: subject.name.clone(),
                rank: Some(rank),
                threads: *threads,
                quantity: "iteration".to_owned(),
            };
            plans.push(Planned { key, pool, plan });
        }
    }
    Ok(plans)
}

/// Counts what the parts of an iteration must do.
fn tasks<V: Value>(
    key: &WorkKey,
    rank: usize,
    plan: &SweepPlan,
    engine: &Engine<V>,
    caches: &Caches,
    limits: Option<&Limits>,
) -> Vec<BenchTask> {
    let works = plan.steps().zip(engine.trees()).map(|((name, step), tree)| {
        let panels = plan.problems(step);
        let panels = panels.map(|one| Work::of(&one, &step.candidate.schedule, tree, caches));
        let work = panels.fold(Work::default(), Work::and);
        (quantity(&name), work.times(step.runs))
    });
    let works: Vec<(String, Work)> = works.collect();
    let kernels = together(key.with("mttkrp"), works.iter().map(|(_, work)| *work), limits);
    let dense = engine.extents().iter().map(|&extent| dense_work(caches, extent, rank, V::BYTES));
    let dense = together(key.with("dense"), dense, limits);
    let bounds = kernels.bound.zip(dense.bound).map(|(a, b)| Bound {
        seconds: a.seconds + b.seconds,
        part: if a.seconds >= b.seconds { a.part } else { b.part },
    });
    let all = BenchTask { key: key.clone(), work: kernels.work.and(dense.work), bound: bounds };
    let steps = works
        .into_iter()
        .map(|(name, work)| together(key.with(name), std::iter::once(work), limits));
    [all, kernels, dense].into_iter().chain(steps).collect()
}

/// The quantity of a step: `mode 1` becomes `mttkrp-mode-1`.
fn quantity(step: &str) -> String {
    format!("mttkrp-{}", step.replace(' ', "-"))
}

/// Adds up works that are done one after the other.
fn together(key: WorkKey, works: impl Iterator<Item = Work>, limits: Option<&Limits>) -> BenchTask {
    let mut task = BenchTask { key, work: Work::default(), bound: None };
    let mut longest = 0.0;
    for work in works {
        task.work = task.work.and(work);
        let Some(one) = limits.map(|limits| Bound::of(&work, limits)) else { continue };
        let before = task.bound.map_or(0.0, |bound| bound.seconds);
        let part = task.bound.map_or(one.part, |bound| bound.part);
        let part = if one.seconds > longest { one.part } else { part };
        longest = one.seconds.max(longest);
        task.bound = Some(Bound { seconds: before + one.seconds, part });
    }
    task
}

/// The work of one pass over the rows of a factor: each is multiplied by an `R x R` matrix, its
/// share of the Gram matrix, which is symmetric, is added up, and it is written back.
fn dense_work(caches: &Caches, extent: u64, rank: usize, value_bytes: usize) -> Work {
    let row = (padded(rank, value_bytes) * value_bytes) as f64;
    let pass = Work::dense(caches, extent as f64 * row).times(2);
    let rank = rank as f64;
    Work { flops: extent as f64 * (2.0 * rank * rank + rank * (rank + 1.0)), ..pass }
}

/// CP-ALS on the threads of a pool.
struct SweepRun<'a, V: Value> {
    pool: &'a ThreadPool,
    key: WorkKey,
    /// What the kernels compute, and how often each runs in a sweep.
    steps: Vec<(String, usize)>,
    engine: Engine<V>,
    config: CpConfig,
}

impl<V: Value> Runner for SweepRun<'_, V> {
    fn threads(&self) -> usize {
        self.key.threads
    }

    fn run(&mut self) -> Result<Vec<(WorkKey, f64)>, Failure> {
        let (engine, config, key) = (&mut self.engine, &self.config, &self.key);
        let solve = || {
            let observer = &mut |_: &_| ControlFlow::Continue(());
            engine.forget();
            decompose_cp::solve(engine, Start::Random, config, observer)
        };
        let solved = self.pool.install(solve)?;
        let iteration = solved.history.last().map_or(0.0, |record| record.seconds);
        // The last runs of each kernel are those of the last iteration.
        let steps = self.steps.iter().zip(engine.seconds()).map(|((name, runs), seconds)| {
            let last = &seconds[seconds.len().saturating_sub(*runs)..];
            (key.with(name.as_str()), last.iter().sum::<f64>())
        });
        let steps: Vec<(WorkKey, f64)> = steps.collect();
        let kernels: f64 = steps.iter().map(|(_, seconds)| seconds).sum();
        let parts = [
            (key.clone(), iteration),
            (key.with("mttkrp"), kernels),
            (key.with("dense"), iteration - kernels),
        ];
        Ok(parts.into_iter().chain(steps).collect())
    }
}
