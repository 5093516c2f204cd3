//! One product, by one kernel.

use decompose_formats::{Coo, DenseTensor, Matrix, Value};

use crate::autoschedule::{Scheduler, SearchLimits, storages};
use crate::compute::dense::contract_dense;
use crate::compute::steps::Known;
use crate::compute::tensor::Tensor;
use crate::contract::{Contraction, Planned, StoredTrees};
use crate::cost::Machine;
use crate::error::CoreError;
use crate::runtime::Toolchain;

/// The operands of a product, parted by form.
#[derive(Debug)]
pub struct Operands<V: Value> {
    /// The sparse ones, each with the input that it is.
    pub sparse: Vec<(usize, Coo<V>)>,
    /// The dense ones in the order of the expression.
    pub dense: Vec<DenseTensor<V>>,
}

impl<V: Value> Operands<V> {
    /// Parts operands, one an input.
    pub fn of(tensors: Vec<Tensor<V>>) -> Operands<V> {
        let mut operands = Operands { sparse: Vec::new(), dense: Vec::new() };
        for (input, tensor) in tensors.into_iter().enumerate() {
            match tensor {
                Tensor::Sparse(list) => operands.sparse.push((input, list)),
                Tensor::Dense(array) => operands.dense.push(array),
            }
        }
        operands
    }
}

/// Computes a product of `tensors`, of which `known` tells all, with one kernel, which `scheduler` finds, compiled and
/// run; dense operands alone are multiplied as matrices.
///
/// # Errors
///
/// No schedule, no memory.
pub fn product<V: Value>(
    known: &Known,
    tensors: Vec<Tensor<V>>,
    stored: &mut StoredTrees<V>,
    scheduler: &dyn Scheduler,
    toolchain: &Toolchain,
) -> Result<Tensor<V>, CoreError> {
    let planned = plan_product(known, scheduler)?;
    run_product(known, planned.as_ref(), tensors, stored, toolchain)
}

/// Finds the schedule of a product of which `known` tells all; `None` for dense operands alone.
///
/// # Errors
///
/// No schedule.
pub(super) fn plan_product(
    known: &Known,
    scheduler: &dyn Scheduler,
) -> Result<Option<Planned>, CoreError> {
    let Some(request) = known.request() else { return Ok(None) };
    let base = request.problem_on(&[]);
    let (machine, limits) = (Machine::here(), SearchLimits::default());
    let found = scheduler.search_storages(&base, &storages(&base), machine, &limits)?;
    let best = found.candidates.into_iter().next();
    let best = best.ok_or_else(|| CoreError::Internal("a search without a result".into()))?;
    Ok(Some(Planned::of(&base, best)))
}

/// Computes a product of `tensors` as [`plan_product`] planned it; trees that are stored are not built again.
///
/// # Errors
///
/// No memory.
pub(super) fn run_product<V: Value>(
    known: &Known,
    planned: Option<&Planned>,
    tensors: Vec<Tensor<V>>,
    stored: &mut StoredTrees<V>,
    toolchain: &Toolchain,
) -> Result<Tensor<V>, CoreError> {
    let operands = Operands::of(tensors);
    let Some(planned) = planned else {
        let arrays: Vec<&DenseTensor<V>> = operands.dense.iter().collect();
        return contract_dense(&known.expr, &arrays).map(Tensor::Dense);
    };
    let trees = planned.build_trees(operands.sparse, &known.operands, stored)?;
    let mut contraction =
        Contraction::joining(&planned.problem, &planned.schedule, trees, toolchain)?;
    let pack = |(at, array): (usize, &DenseTensor<V>)| contraction.pack(at, array);
    let packed = operands.dense.iter().enumerate().map(pack).collect::<Result<Vec<_>, _>>()?;
    run(&mut contraction, &packed.iter().collect::<Vec<_>>(), u64::MAX)
}

/// Runs a kernel on packed `dense` operands; an assembled result takes no more than `most_bytes`.
///
/// # Errors
///
/// As [`Contraction::run`] and [`Contraction::assemble`].
pub fn run<V: Value>(
    contraction: &mut Contraction<V>,
    dense: &[&Matrix<V>],
    most_bytes: u64,
) -> Result<Tensor<V>, CoreError> {
    if contraction.is_assembled() {
        return contraction.assemble(dense, most_bytes).map(Tensor::Sparse);
    }
    let mut output = contraction.output()?;
    contraction.run(dense, &mut output)?;
    match (contraction.dense(&output), contraction.pattern(&output)) {
        (Some(array), _) => Ok(Tensor::Dense(array)),
        (None, Some(list)) => list.map(Tensor::Sparse),
        (None, None) => Err(CoreError::Internal("a result of neither form".into())),
    }
}
