//! Any product of sparse and dense operands, on real data.
//!
//! ```text
//! Request (expression, extents, pattern) + tree order -> Problem -> search -> Schedule
//! Schedule + tree -> Contraction: pack operands -> run -> packed output -> tensor
//! ```

mod assembled;
mod join_counts;
mod kernels;
mod measure;
mod pack;
mod planned;
mod preview;
mod request;
mod saved_choices;
mod shared;
mod split;
mod stored_trees;
mod sum;

use std::ops::Range;
use std::sync::Arc;

use decompose_formats::narrow_ints::Width;
use decompose_formats::{Coo, Csf, DenseTensor, Ints, Level, Matrix, Value};

use crate::autoschedule::default_scheduler;
use crate::cost::Machine;
use crate::einsum::{Access, Expr, Extents, Index};
use crate::error::CoreError;
use crate::lower::{Addressing, LevelStorage, Room, lower};
use crate::runtime::{Executor, Kernel, Toolchain};
use crate::schedule::{Problem, Schedule, SparseOperand, SplitIndex};
use crate::sweep::TreeLayout;
use assembled::joined;
pub use assembled::{Appended, assembled_bytes, element_bytes};
pub use join_counts::{count_join, join_bytes};
use pack::{pack, unpack};
use split::{axes, is_whole, whole_extent, whole_list};

pub use kernels::{build_all, build_merged};
pub use measure::{
    Entrant, RaceReport, RaceTime, Sampled, Sampling, race, random_operands, sample,
};
pub use planned::{Planned, trees};
pub use preview::preview;
pub use request::{Request, ResultForm, SparseInput};
pub use saved_choices::{Choice, Choices, Fingerprint};
pub use shared::{Roots, best_tree};
pub use split::split_list;
pub use stored_trees::{Operand, StoredTrees};
pub use sum::plan_sum;

/// A scheduled expression bound to its sparse operands.
///
/// Dense operands and the output are *packed*: matrices whose rows, the last stored index, are
/// padded.  The kernel may store the indices of an operand in another order than the expression
/// names them.
pub struct Contraction<V: Value> {
    /// With both parts of each index that is cut.
    expr: Expr,
    splits: Vec<SplitIndex>,
    /// The sparse inputs, the one whose tree is cut into tasks first.
    sparse: Vec<usize>,
    extents: Extents,
    /// In which order the elements of an assembled output are appended.
    appended: Appended,
    executor: Executor<V>,
}

impl<V: Value> Contraction<V> {
    /// Lowers `schedule`, compiles the kernel and binds it to `tree`, which must have the levels of
    /// the problem's sparse operand, for the threads of the current pool.
    ///
    /// # Errors
    ///
    /// [`CoreError::Illegal`] if the schedule breaks a rule, [`CoreError::Operand`] if the tree is
    /// another one, or if there is no memory for private copies of the output.
    pub fn build(
        problem: &Problem,
        schedule: &Schedule,
        tree: Arc<Csf<V>>,
        toolchain: &Toolchain,
    ) -> Result<Contraction<V>, CoreError> {
        Contraction::joining(problem, schedule, vec![tree], toolchain)
    }

    /// Does what [`Contraction::build`] does with a tree for each sparse operand of the problem, in their
    /// order.
    ///
    /// # Errors
    ///
    /// As [`Contraction::build`].
    pub fn joining(
        problem: &Problem,
        schedule: &Schedule,
        mut trees: Vec<Arc<Csf<V>>>,
        toolchain: &Toolchain,
    ) -> Result<Contraction<V>, CoreError> {
        let sparse = problem.sparse.iter().map(|x| x.input).collect();
        if trees.is_empty() || trees.len() != problem.sparse.len() {
            return Err(no_sparse(&problem.expr));
        }
        let stored = problem.sparse.iter().zip(&trees).map(|(x, tree)| stored(problem, x, tree));
        let program = lower(problem, schedule, &stored.collect::<Result<Vec<_>, _>>()?)?;
        let beside = trees.split_off(1);
        let kernel = Kernel::new(program, toolchain);
        let executor = Executor::joining(kernel, trees.remove(0), beside)?;
        let (expr, splits) = (problem.stored_expr(), problem.stored_splits());
        let (extents, appended) = (problem.extents.clone(), Appended::by(problem, schedule));
        Ok(Contraction { expr, splits, sparse, extents, appended, executor })
    }

    /// Searches the best schedule of `request` for `tree` and builds it.
    ///
    /// # Errors
    ///
    /// [`CoreError::NoSchedule`] if there is none, and as [`Contraction::build`].
    pub fn scheduled(
        request: &Request,
        tree: Arc<Csf<V>>,
        toolchain: &Toolchain,
    ) -> Result<Contraction<V>, CoreError> {
        let layout = TreeLayout::new(tree.mode_order().clone(), tree.fused());
        let problem = request.problem(&layout);
        let found = default_scheduler().search(&problem, Machine::here())?;
        let best = found.candidates.first().ok_or_else(|| no_sparse(&problem.expr))?;
        Contraction::build(&problem, &best.schedule, tree, toolchain)
    }

    /// Returns the tree of the first sparse operand.
    pub fn tree(&self) -> &Csf<V> {
        self.executor.tree()
    }

    /// Returns the tree of the first sparse operand, shared.
    pub fn shared_tree(&self) -> Arc<Csf<V>> {
        Arc::clone(self.executor.tree())
    }

    /// Tells whether dense operand number `operand` is stored as the expression names its indices:
    /// a matrix whose rows are the last index is then packed as it is.
    pub fn takes_as_named(&self, operand: usize) -> bool {
        let stored = self.kernel().program().dense.get(operand);
        self.splits.is_empty()
            && self.dense_input(operand).zip(stored).is_some_and(|(a, b)| a.indices == b.indices)
    }

    /// Tells whether a dense output is stored as the expression names its indices.
    pub fn gives_as_named(&self) -> bool {
        self.splits.is_empty() && self.kernel().program().output.indices == self.expr.output.indices
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Kernel {
        self.executor.kernel()
    }

    /// Packs `tensor`, dense operand number `operand`, in the order in which the kernel stores it.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if its shape is not that of the expression, or there is no memory.
    pub fn pack(&self, operand: usize, tensor: &DenseTensor<V>) -> Result<Matrix<V>, CoreError> {
        let (Some(access), Some(array)) =
            (self.dense_input(operand), self.kernel().program().dense.get(operand))
        else {
            let why = format!("{} has no such dense operand", self.expr);
            return Err(CoreError::Operand { operand: format!("number {operand}"), why });
        };
        let whole = self.whole(access);
        let shape: Vec<u64> = whole.iter().map(|&index| self.extent(index)).collect();
        if !tensor.shape().iter().map(|&extent| extent as u64).eq(shape) {
            let why = format!("its shape {:?} is not that of {access}", tensor.shape());
            return Err(CoreError::Operand { operand: access.tensor.clone(), why });
        }
        let stored = array.indices.iter().copied().zip(array.extents.iter().copied());
        pack(&tensor.view(), &axes(stored, &whole, &self.splits))
    }

    /// The indices of `access` without the outer parts of those that are cut.
    fn whole(&self, access: &Access) -> Vec<Index> {
        access.indices.iter().copied().filter(|&index| is_whole(index, &self.splits)).collect()
    }

    /// The extent of an index, whole if it is cut.
    fn extent(&self, index: Index) -> u64 {
        whole_extent(index, &self.splits, &self.extents)
    }

    /// Makes memory for the output.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn output(&self) -> Result<Matrix<V>, CoreError> {
        let cols = self.block().last().map_or(1, |&(_, extent)| extent) as usize;
        let row = decompose_formats::dense::padded(cols, V::BYTES) as u64;
        let rows = self.executor.output_len() / row;
        Ok(Matrix::zeros(rows as usize, cols)?)
    }

    /// Computes the expression: `dense` are the dense operands in their order in the expression,
    /// packed by [`Contraction::pack`]; `output` is memory from [`Contraction::output`].
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if one has not the shape of the expression.
    pub fn run(&mut self, dense: &[&Matrix<V>], output: &mut Matrix<V>) -> Result<(), CoreError> {
        let slices: Vec<&[V]> = dense.iter().map(|matrix| matrix.as_slice()).collect();
        self.executor.run(&slices, output.as_mut_slice())
    }

    /// As [`Contraction::run`], into memory of the caller, aligned to 64 bytes: the elements of
    /// [`Contraction::output`].
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if an operand or `output` does not fit.
    pub fn run_into(&mut self, dense: &[&Matrix<V>], output: &mut [V]) -> Result<(), CoreError> {
        let slices: Vec<&[V]> = dense.iter().map(|matrix| matrix.as_slice()).collect();
        self.executor.run(&slices, output)
    }

    /// Computes the result a few rows at a time and shows them to `visit`: see
    /// [`Executor::run_windows`].  A row is the block of a coordinate of the tree's root mode; the kernel
    /// must own its rows ([`Contraction::row_len`]).  Returns the seconds of the kernel.
    ///
    /// # Errors
    ///
    /// As [`Executor::run_windows`].
    pub fn run_windows<S: Send>(
        &mut self,
        dense: &[&Matrix<V>],
        most: u64,
        shares: Vec<(Range<u64>, S)>,
        visit: &(impl Fn(&mut S, Range<u64>, &[V]) + Sync),
    ) -> Result<f64, CoreError> {
        let slices: Vec<&[V]> = dense.iter().map(|matrix| matrix.as_slice()).collect();
        self.executor.run_windows(&slices, most, shares, visit)
    }

    /// Computes an assembled output from packed `dense` operands: the non-zeros' list, sorted, without duplicates,
    /// for which and for longer workspaces no more than `most_bytes` are taken.
    ///
    /// Elements whose sums are zero are listed too.
    ///
    /// # Errors
    ///
    /// [`CoreError::ResultMemory`] if they take more; [`CoreError::Operand`] if an operand does not fit;
    /// [`CoreError::Internal`] if the output is not assembled.
    pub fn assemble(&mut self, dense: &[&Matrix<V>], most_bytes: u64) -> Result<Coo<V>, CoreError> {
        let slices: Vec<&[V]> = dense.iter().map(|matrix| matrix.as_slice()).collect();
        let element = element_bytes(&self.expr, &self.extents, V::BYTES, self.appended);
        let parts = self.executor.assemble(&slices, Room::new(most_bytes, element))?;
        self.whole_list(joined(self.kernel().program(), &self.expr, &self.extents, parts)?)
    }

    /// Returns about how many elements an assembled output has, by a sample of the work; zero if it is not assembled.
    ///
    /// # Errors
    ///
    /// As [`Contraction::assemble`].
    pub fn estimate_elements(&self, dense: &[&Matrix<V>]) -> Result<u64, CoreError> {
        let slices: Vec<&[V]> = dense.iter().map(|matrix| matrix.as_slice()).collect();
        if self.is_assembled() { self.executor.estimate_elements(&slices) } else { Ok(0) }
    }

    /// Returns a result without splits.
    fn whole_list(&self, list: Coo<V>) -> Result<Coo<V>, CoreError> {
        whole_list(list, &self.expr.output, (&self.splits, &self.extents))
    }

    /// Tells whether the output is assembled: [`Contraction::assemble`] computes it.
    pub fn is_assembled(&self) -> bool {
        self.kernel().program().is_assembled()
    }

    /// Returns the bytes of private copies of the output and of shared rows.
    pub fn side_bytes(&self) -> u64 {
        self.executor.side_bytes()
    }

    /// Returns the elements of the output, padding included.
    pub fn output_len(&self) -> u64 {
        self.executor.output_len()
    }

    /// Returns the elements of the output for each coordinate of the tree's root mode, padding
    /// included; `None` if the kernel's tasks do not own rows.
    pub fn row_len(&self) -> Option<u64> {
        self.executor.row_len()
    }

    /// Returns the indices of the dense output, or of its block at a position, as they are stored:
    /// the last along a row, padded; with their extents.
    pub fn stored(&self) -> Vec<(Index, u64)> {
        self.block()
    }

    /// Computes the expression with `values` in the place of the first sparse operand's, one for each
    /// non-zero in the order of its tree.
    ///
    /// Solvers that change the values from step to step - residuals, weights, ones - thus keep one
    /// tree.
    ///
    /// # Errors
    ///
    /// As [`Contraction::run`].
    pub fn run_on(
        &mut self,
        values: &[V],
        dense: &[&Matrix<V>],
        output: &mut Matrix<V>,
    ) -> Result<(), CoreError> {
        let slices: Vec<&[V]> = dense.iter().map(|matrix| matrix.as_slice()).collect();
        self.executor.run_on(values, &slices, output.as_mut_slice())
    }

    /// Computes an expression whose output has the sparse operand's pattern into `output`: for each
    /// non-zero, in the order of the tree, its block, rows padded.
    ///
    /// # Errors
    ///
    /// As [`Contraction::run`].
    pub fn run_on_into(
        &mut self,
        values: &[V],
        dense: &[&Matrix<V>],
        output: &mut [V],
    ) -> Result<(), CoreError> {
        let slices: Vec<&[V]> = dense.iter().map(|matrix| matrix.as_slice()).collect();
        self.executor.run_on(values, &slices, output)
    }

    /// Returns the result as a dense tensor; `None` if it has the sparse operand's pattern.
    pub fn dense(&self, output: &Matrix<V>) -> Option<DenseTensor<V>> {
        let dense = self.kernel().program().addressing == Addressing::Coordinates;
        let whole = self.whole(&self.expr.output);
        let shape: Vec<usize> = whole.iter().map(|&index| self.extent(index) as usize).collect();
        let axes = axes(self.block().into_iter(), &whole, &self.splits);
        dense.then(|| unpack(output, &axes, &shape))
    }

    /// Returns the result as a list of non-zeros; `None` if it is dense.
    ///
    /// Every position of the sparse operand is listed, a zero there or not, with each element of
    /// its block.
    ///
    /// # Errors
    ///
    /// If the list is no tensor.
    pub fn pattern(&self, output: &Matrix<V>) -> Option<Result<Coo<V>, CoreError>> {
        let positions = self.kernel().program().addressing == Addressing::Positions;
        positions.then(|| self.whole_list(self.list(output)?))
    }

    /// Dense operand number `operand`.
    fn dense_input(&self, operand: usize) -> Option<&Access> {
        let inputs = self.expr.inputs.iter().enumerate();
        let mut dense = inputs.filter(|(at, _)| !self.sparse.contains(at));
        dense.nth(operand).map(|(_, access)| access)
    }

    /// The indices and extents of the stored dense block.
    fn block(&self) -> Vec<(Index, u64)> {
        let output = &self.kernel().program().output;
        output.indices.iter().copied().zip(output.extents.iter().copied()).collect()
    }

    fn list(&self, output: &Matrix<V>) -> Result<Coo<V>, CoreError> {
        let tree = self.executor.tree();
        let (own_extents, coords, _) = tree.to_coo().into_parts();
        let block = self.block();
        let size: u64 = block.iter().map(|&(_, extent)| extent).product();
        let nnz = tree.values().len() as u64;
        let [leader, ..] = self.sparse[..] else {
            return Err(CoreError::Internal("a kernel without a sparse operand".into()));
        };
        let access = &self.expr.inputs[leader].indices;
        let mut extents = Vec::new();
        let mut columns = Vec::new();
        for index in &self.expr.output.indices {
            if let Some(mode) = access.iter().position(|i| i == index) {
                extents.push(own_extents[mode]);
                let times = |position: u64| coords[mode].get((position / size) as usize);
                let width = Width::listed(own_extents[mode]);
                columns.push(Ints::collect((0..nnz * size).map(times), width));
                continue;
            }
            let Some(at) = block.iter().position(|(i, _)| i == index) else { continue };
            let below: u64 = block[at + 1..].iter().map(|&(_, extent)| extent).product();
            let extent = block[at].1;
            extents.push(extent);
            let width = Width::listed(extent);
            columns.push(Ints::collect((0..nnz * size).map(|p| p / below % extent), width));
        }
        let last = block.last().map_or(1, |&(_, extent)| extent) as usize;
        let rows = (0..output.rows()).flat_map(|row| output.row(row)[..last].iter().copied());
        Ok(Coo::new(extents, columns, rows.collect::<Vec<V>>())?)
    }
}

/// Returns how the levels of `tree` are stored, if they are those of `x`.
fn stored<V: Value>(
    problem: &Problem,
    x: &SparseOperand,
    tree: &Csf<V>,
) -> Result<Vec<LevelStorage>, CoreError> {
    let access = &problem.expr.inputs[x.input];
    let indices: Vec<Index> = problem.stored(&access.indices).collect();
    let modes = tree.mode_order().modes();
    let levels = modes.iter().map(|&mode| indices.get(mode).copied());
    if !levels.eq(problem.stored(x.levels()).map(Some)) || tree.fused() != x.fused() {
        let why = "its tree has other levels than the schedule".to_owned();
        return Err(CoreError::Operand { operand: access.tensor.clone(), why });
    }
    let width = |ints: &Ints| if ints.is_empty() { Width::W32 } else { ints.width() };
    let storage = |level: &Level| LevelStorage {
        coords: level.coords.width(),
        pointers: width(&level.pointers),
    };
    Ok(tree.levels().iter().map(storage).collect())
}

fn no_sparse(expr: &Expr) -> CoreError {
    let why = "no operand is sparse; one must be".to_owned();
    CoreError::NoSchedule { expr: expr.to_string(), why }
}
