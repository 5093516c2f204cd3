//! A plan put to work.

use std::sync::Arc;
use std::time::Instant;

use decompose_formats::ints::Width;
use decompose_formats::{Coo, Csf, Matrix, Value};

use crate::error::CoreError;
use crate::lower::lower;
use crate::runtime::{Executor, Kernel, Toolchain};
use crate::sweep::{MttkrpSweep, Step, SweepPlan};

/// The trees and kernels of a sweep, ready to run.
pub struct Engine<V: Value> {
    extents: Vec<u64>,
    norm_squared: f64,
    /// One a mode.
    executors: Vec<Executor<V>>,
    /// The factors of a vector: one row of ones.
    ones: Option<Matrix<V>>,
    rank: usize,
}

/// How an engine was built.
#[derive(Clone, Debug)]
pub struct BuildReport {
    /// Seconds to sort and build all trees.
    pub build_seconds: f64,
    /// Seconds until all kernels were ready; they are made while the trees are built.
    pub compile_seconds: f64,
    /// Kernels that were compiled.
    pub compiled: usize,
    /// Kernels found in the cache.
    pub cached: usize,
    /// Why kernels are interpreted, if they are.
    pub interpreted: Option<String>,
    /// Bytes of all trees.
    pub tree_bytes: u64,
    /// Bytes of private copies and shared rows.
    pub side_bytes: u64,
}

impl<V: Value> Engine<V> {
    /// Builds the trees of `plan` from `coo`, which must be sorted without duplicates, and the
    /// kernels; the list is freed on the way.
    ///
    /// # Errors
    ///
    /// If the plan was made for another tensor, or memory runs out.
    pub fn build(
        coo: Coo<V>,
        plan: &SweepPlan,
        toolchain: &Toolchain,
    ) -> Result<(Engine<V>, BuildReport), CoreError> {
        let extents = coo.extents().to_vec();
        let norm_squared = coo.norm_squared();
        let nnz = coo.nnz() as u64;
        let (trees, kernels) = rayon::join(
            || timed(|| trees(coo, plan)),
            || timed(|| plan.steps.iter().map(|s| kernel(s, &extents, nnz, toolchain)).collect()),
        );
        let (trees, build_seconds): (Result<Vec<Csf<V>>, CoreError>, f64) = trees;
        let (kernels, compile_seconds): (Result<Vec<Kernel>, CoreError>, f64) = kernels;
        let trees: Vec<Arc<Csf<V>>> = trees?.into_iter().map(Arc::new).collect();
        let kernels = kernels?;
        let built = |k: &&Kernel| k.origin().is_some_and(|o| o.compiled_in.is_some());
        let compiled = kernels.iter().filter(built).count();
        let cached = kernels.iter().filter(|k| k.origin().is_some()).count() - compiled;
        let interpreted = kernels.iter().find_map(|k| k.interpreted().map(str::to_owned));
        let executors = kernels
            .into_iter()
            .zip(&plan.steps)
            .map(|(kernel, step)| Executor::new(kernel, Arc::clone(&trees[step.tree])));
        let executors = executors.collect::<Result<Vec<_>, _>>()?;
        let rank = plan
            .steps
            .first()
            .map_or(0, |step| step.problem.extents.of(crate::kernels::rank_index()) as usize);
        let report = BuildReport {
            build_seconds,
            compile_seconds,
            compiled,
            cached,
            interpreted,
            tree_bytes: trees.iter().map(|tree| tree.bytes()).sum(),
            side_bytes: executors.iter().map(Executor::side_bytes).sum(),
        };
        let ones = if extents.len() == 1 { Some(ones(rank)?) } else { None };
        Ok((Engine { extents, norm_squared, executors, ones, rank }, report))
    }

    /// Returns the kernel of each mode.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.executors.iter().map(Executor::kernel)
    }
}

fn trees<V: Value>(coo: Coo<V>, plan: &SweepPlan) -> Result<Vec<Csf<V>>, CoreError> {
    let orders: Vec<_> = plan.trees.iter().map(|tree| tree.order.clone()).collect();
    let trees = Csf::build_all(coo, &orders)?;
    Ok(trees.into_iter().zip(&plan.trees).map(|(csf, tree)| csf.fuse(tree.tail)).collect())
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// Lowers and compiles one step for the index widths that its tree will have.
fn kernel(
    step: &Step,
    extents: &[u64],
    nnz: u64,
    toolchain: &Toolchain,
) -> Result<Kernel, CoreError> {
    let levels = &step.problem.sparse[0].levels;
    let modes = (0..extents.len()).map(crate::kernels::mode_index).collect::<Vec<_>>();
    let widths = levels.iter().map(|level| {
        let mode = modes.iter().position(|mode| mode == level).unwrap_or_default();
        (Width::below(extents[mode]), Width::below(nnz + 1))
    });
    let widths: Vec<(Width, Width)> = widths.collect();
    let program = lower(&step.problem, &step.candidate.schedule, &widths)?;
    Ok(Kernel::new(program, toolchain))
}

fn ones<V: Value>(rank: usize) -> Result<Matrix<V>, CoreError> {
    let mut ones = Matrix::zeros(1, rank)?;
    ones.row_mut(0).fill(V::from_f64(1.0));
    Ok(ones)
}

impl<V: Value> MttkrpSweep<V> for Engine<V> {
    fn extents(&self) -> &[u64] {
        &self.extents
    }

    fn norm_squared(&self) -> f64 {
        self.norm_squared
    }

    fn mttkrp(&mut self, mode: usize, factors: &mut [Matrix<V>]) -> Result<(), CoreError> {
        for (m, (factor, &extent)) in factors.iter().zip(&self.extents).enumerate() {
            if factor.rows() as u64 != extent || factor.cols() != self.rank {
                let operand = format!("factor {}", m + 1);
                let (rows, cols, rank) = (factor.rows(), factor.cols(), self.rank);
                let why = format!("{rows} x {cols} where {extent} x {rank} is expected");
                return Err(CoreError::Operand { operand, why });
            }
        }
        let (before, rest) = factors.split_at_mut(mode);
        let Some((result, after)) = rest.split_first_mut() else {
            let why = format!("the tensor has no mode {}", mode + 1);
            return Err(CoreError::Operand { operand: "mode".into(), why });
        };
        let others = before.iter().chain(&*after).chain(&self.ones);
        let dense: Vec<&[V]> = others.map(Matrix::as_slice).collect();
        self.executors[mode].run(&dense, result.as_mut_slice())
    }
}
