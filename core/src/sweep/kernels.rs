//! The MTTKRPs of one tensor, put to work.

use std::sync::Arc;
use std::time::Instant;

use decompose_formats::csf::Layout;
use decompose_formats::narrow_ints::Width;
use decompose_formats::{Coo, Csf, Panels, Value};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::einsum::Index;
use crate::error::CoreError;
use crate::kernels::mode_index;
use crate::lower::{LevelStorage, lower};
use crate::runtime::{Compiled, Executor, Kernel, Toolchain};
use crate::schedule::Problem;
use crate::sweep::layout::TreeLayout;
use crate::sweep::problems::at_rank;
use crate::sweep::tree_plan::{Step, TreePlan};

/// The trees of one tensor and a kernel for each mode, ready to run.
pub(super) struct TreeKernels<V: Value> {
    /// By mode: one for each panel of the factors, the widest first.
    executors: ByStep<V>,
    /// The factors of a vector: one row of ones.
    ones: Option<Panels<V>>,
    /// Seconds of every run, by kernel.
    seconds: Vec<Vec<f64>>,
}

/// How an engine was built.
#[derive(Clone, Debug, Default)]
pub struct BuildReport {
    /// Seconds to sort and build all trees.
    pub build_seconds: f64,
    /// Seconds until all kernels were compiled; they are while the trees are built.
    pub compile_seconds: f64,
    /// Kernels that were compiled.
    pub compiled: usize,
    /// Kernels found in the cache.
    pub cached: usize,
    /// Kernels that are interpreted since compiling them would take longer than it saves.
    pub unneeded: usize,
    /// Why kernels are interpreted that should have been compiled, if there are any.
    pub interpreted: Option<String>,
    /// Bytes of all trees.
    pub tree_bytes: u64,
    /// Bytes of private copies and shared rows.
    pub side_bytes: u64,
}

impl BuildReport {
    /// Adds what another part of the engine took.
    pub(crate) fn and(self, other: BuildReport) -> BuildReport {
        BuildReport {
            build_seconds: self.build_seconds + other.build_seconds,
            compile_seconds: self.compile_seconds + other.compile_seconds,
            compiled: self.compiled + other.compiled,
            cached: self.cached + other.cached,
            unneeded: self.unneeded + other.unneeded,
            interpreted: self.interpreted.or(other.interpreted),
            tree_bytes: self.tree_bytes + other.tree_bytes,
            side_bytes: self.side_bytes + other.side_bytes,
        }
    }
}

impl<V: Value> TreeKernels<V> {
    /// Builds the trees of `plan` from `coo`, which must be sorted without duplicates, and the
    /// kernels for factors in panels of `columns`; the list is freed on the way.
    ///
    /// # Errors
    ///
    /// If the plan was made for another tensor, or memory runs out.
    pub(super) fn build(
        coo: Coo<V>,
        plan: &TreePlan,
        columns: &[usize],
        toolchain: &Toolchain,
    ) -> Result<(TreeKernels<V>, BuildReport), CoreError> {
        let order = coo.order();
        let problems = plan.steps.iter().map(|step| {
            columns.iter().map(|&width| at_rank(&step.problem, width)).collect::<Vec<_>>()
        });
        let (executors, report) = bound(coo, plan, &problems.collect::<Vec<_>>(), toolchain)?;
        let ones = if order == 1 { Some(ones(columns)?) } else { None };
        let seconds = vec![Vec::new(); plan.steps.len()];
        Ok((TreeKernels { executors, ones, seconds }, report))
    }

    /// Replaces `result` by the matricised tensor times the Khatri-Rao product of `others`, the
    /// factors of all other modes in their order.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if a factor does not fit.
    pub(super) fn product(
        &mut self,
        mode: usize,
        others: &[&Panels<V>],
        result: &mut Panels<V>,
    ) -> Result<(), CoreError> {
        let start = Instant::now();
        let executors = self.executors[mode].iter_mut().enumerate();
        for ((panel, executor), rows) in executors.zip(result.parts_mut()) {
            let others = others.iter().copied().chain(&self.ones);
            let dense: Vec<&[V]> = others.map(|factor| factor.parts()[panel].as_slice()).collect();
            executor.run(&dense, rows.as_mut_slice())?;
        }
        self.seconds[mode].push(start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Returns the seconds of every run so far, by kernel.
    pub(super) fn seconds(&self) -> impl Iterator<Item = &[f64]> {
        self.seconds.iter().map(Vec::as_slice)
    }

    /// Returns the kernel of each mode, for the widest panel.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.by_mode().map(Executor::kernel)
    }

    /// Returns the tree that the kernel of each mode walks.
    pub(super) fn trees(&self) -> impl Iterator<Item = &Csf<V>> {
        self.by_mode().map(|executor| &**executor.tree())
    }

    fn by_mode(&self) -> impl Iterator<Item = &Executor<V>> {
        self.executors.iter().filter_map(|panels| panels.first())
    }
}

/// Builds the trees of `plan` from `coo`, which must be sorted without duplicates, and meanwhile the
/// kernels, and binds them, in the order of the steps; the list is freed on the way.
///
/// # Errors
///
/// If the plan was made for another tensor, or memory runs out.
pub(crate) fn executors<V: Value>(
    coo: Coo<V>,
    plan: &TreePlan,
    toolchain: &Toolchain,
) -> Result<(Vec<Executor<V>>, BuildReport), CoreError> {
    let problems: Vec<_> = plan.steps.iter().map(|step| vec![step.problem.clone()]).collect();
    let (executors, report) = bound(coo, plan, &problems, toolchain)?;
    Ok((executors.into_iter().flatten().collect(), report))
}

/// The executors of each step.
type ByStep<V> = Vec<Vec<Executor<V>>>;

/// Does what [`executors`] does, with a kernel for each of the problems that are given for a step.
fn bound<V: Value>(
    coo: Coo<V>,
    plan: &TreePlan,
    problems: &[Vec<Problem>],
    toolchain: &Toolchain,
) -> Result<(ByStep<V>, BuildReport), CoreError> {
    let extents = coo.extents().to_vec();
    let nnz = coo.nnz() as u64;
    let (trees, kernels) = rayon::join(
        || timed(|| trees(coo, plan)),
        || {
            let each = plan.steps.iter().zip(problems);
            let each =
                each.flat_map(|(step, each)| each.iter().map(move |problem| (step, problem)));
            let each: Vec<_> = each.collect();
            timed(|| {
                each.into_par_iter()
                    .map(|(step, problem)| compiled(step, problem, &extents, nnz, toolchain))
                    .collect()
            })
        },
    );
    let (trees, build_seconds): (Result<Vec<Csf<V>>, CoreError>, f64) = trees;
    let (kernels, compile_seconds): (Result<Vec<Compiled>, CoreError>, f64) = kernels;
    let trees: Vec<Arc<Csf<V>>> = trees?.into_iter().map(Arc::new).collect();
    let kernels: Vec<Kernel> = kernels?.into_iter().map(Compiled::load).collect();
    let built = |k: &&Kernel| k.origin().is_some_and(|o| o.compiled_in.is_some());
    let compiled = kernels.iter().filter(built).count();
    let cached = kernels.iter().filter(|k| k.origin().is_some()).count() - compiled;
    let interpreted = kernels.iter().find_map(|k| k.failed().map(str::to_owned));
    let unneeded = kernels.iter().filter(|k| k.interpreted().is_some() && k.failed().is_none());
    let unneeded = unneeded.count();
    let mut kernels = kernels.into_iter();
    let on_tree = |(step, each): (&Step, &Vec<Problem>)| {
        let own = kernels.by_ref().take(each.len());
        own.map(|kernel| Executor::new(kernel, Arc::clone(&trees[step.tree]))).collect()
    };
    let executors: ByStep<V> =
        plan.steps.iter().zip(problems).map(on_tree).collect::<Result<_, _>>()?;
    let report = BuildReport {
        build_seconds,
        compile_seconds,
        compiled,
        cached,
        unneeded,
        interpreted,
        tree_bytes: trees.iter().map(|tree| tree.bytes()).sum(),
        side_bytes: executors.iter().flatten().map(Executor::side_bytes).sum(),
    };
    Ok((executors, report))
}

/// Builds the trees, all from one list, which they use up.
fn trees<'a, V: Value>(coo: Coo<V>, plan: &'a TreePlan) -> Result<Vec<Csf<V>>, CoreError> {
    let layout = |tree: &'a TreeLayout| Layout {
        blocks: tree.blocks.as_ref(),
        order: tree.list_order(),
        fused: tree.fused,
    };
    Ok(Csf::build_all(coo, plan.trees.iter().map(layout))?)
}

pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// Lowers and compiles a problem of a step for the extents and index widths that its tree will have: those of
/// merged modes were estimates when it was planned.
fn compiled(
    step: &Step,
    problem: &Problem,
    extents: &[u64],
    nnz: u64,
    toolchain: &Toolchain,
) -> Result<Compiled, CoreError> {
    let levels = problem.leader().map_or(&[][..], |x| x.levels());
    let mut problem = problem.clone();
    for (mode, &extent) in extents.iter().enumerate() {
        problem.extents.set(mode_index(mode), extent);
    }
    let stored = levels.iter().map(|&level: &Index| LevelStorage {
        coords: Width::below(problem.extents.of(level)),
        pointers: Width::below(nnz + 1),
    });
    let program = lower(&problem, &step.candidate.schedule, &[stored.collect()])?;
    Ok(Compiled::new(program, toolchain))
}

fn ones<V: Value>(parts: &[usize]) -> Result<Panels<V>, CoreError> {
    let mut ones = Panels::zeros(1, parts)?;
    ones.parts_mut().iter_mut().for_each(|part| part.row_mut(0).fill(V::from_f64(1.0)));
    Ok(ones)
}
