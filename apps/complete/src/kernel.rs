//! A scheduled expression whose dense operands are the blocks of a network.

use std::sync::Arc;

use decompose_common::SolverError;
use decompose_core::contract::{Contraction, Request};
use decompose_core::einsum::{Expr, Index};
use decompose_core::runtime::Toolchain;
use decompose_formats::{Csf, DenseTensor, Matrix, PatternCounts};
use ndarray::IxDyn;

/// A contraction with the shapes of its dense operands.
pub(crate) struct BlockKernel {
    contraction: Contraction<f64>,
    /// The shape of each dense operand.
    shapes: Vec<Vec<usize>>,
    /// Memory for an output that is stored otherwise than its block.
    scratch: Option<Matrix<f64>>,
}

/// Asks `expr`, whose first input is the tensor that `counts` describe; `shapes` are those of all
/// inputs.
///
/// # Errors
///
/// If they do not fit.
pub(crate) fn request(
    expr: Expr,
    counts: &PatternCounts,
    shapes: &[Vec<u64>],
) -> Result<Request, SolverError> {
    Ok(Request::new(expr, 0, counts, shapes)?)
}

impl BlockKernel {
    /// Schedules and builds `request` on `tree`.
    ///
    /// # Errors
    ///
    /// If there is no schedule, or no memory.
    pub(crate) fn new(
        request: &Request,
        tree: &Arc<Csf<f64>>,
        toolchain: &Toolchain,
    ) -> Result<BlockKernel, SolverError> {
        let contraction = Contraction::scheduled(request, Arc::clone(tree), toolchain)?;
        Ok(BlockKernel::of(contraction, request))
    }

    fn of(contraction: Contraction<f64>, request: &Request) -> BlockKernel {
        let shape = |indices: &[Index]| -> Vec<usize> {
            indices.iter().map(|&index| request.extents.of(index) as usize).collect()
        };
        let inputs = request.expr.inputs.iter().skip(1);
        let shapes = inputs.map(|access| shape(&access.indices)).collect();
        BlockKernel { contraction, shapes, scratch: None }
    }

    /// Returns the tree of the tensor.
    pub(crate) fn tree(&self) -> &Csf<f64> {
        self.contraction.tree()
    }

    /// Returns why the kernel is interpreted, if it is.
    pub(crate) fn interpreted(&self) -> Option<&str> {
        self.contraction.kernel().interpreted()
    }

    /// Computes an output with the tensor's pattern: one value for each entry, in tree order.
    ///
    /// # Errors
    ///
    /// If an operand does not fit.
    pub(crate) fn at_entries(
        &mut self,
        values: &[f64],
        blocks: &[&Matrix<f64>],
        output: &mut [f64],
    ) -> Result<(), SolverError> {
        let packed = self.packed(blocks)?;
        let operands = operands(blocks, &packed);
        Ok(self.contraction.run_on_into(values, &operands, output)?)
    }

    /// Computes a dense output into the matrix of a block.
    ///
    /// # Errors
    ///
    /// If an operand does not fit.
    pub(crate) fn write_block(
        &mut self,
        values: &[f64],
        blocks: &[&Matrix<f64>],
        output: &mut Matrix<f64>,
    ) -> Result<(), SolverError> {
        let packed = self.packed(blocks)?;
        let operands = operands(blocks, &packed);
        if self.contraction.gives_as_named() {
            return Ok(self.contraction.run_on(values, &operands, output)?);
        }
        let mut scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => self.contraction.output()?,
        };
        self.contraction.run_on(values, &operands, &mut scratch)?;
        if let Some(dense) = self.contraction.dense(&scratch) {
            let cols = output.cols().max(1);
            let mut elements = dense.iter().copied();
            for row in 0..output.rows() {
                let to = output.row_mut(row).iter_mut();
                to.zip(elements.by_ref().take(cols)).for_each(|(to, from)| *to = from);
            }
        }
        self.scratch = Some(scratch);
        Ok(())
    }

    /// Stores the blocks that the kernel wants in another order of indices.
    fn packed(&self, blocks: &[&Matrix<f64>]) -> Result<Vec<Option<Matrix<f64>>>, SolverError> {
        let one = |(at, block): (usize, &&Matrix<f64>)| {
            if self.contraction.takes_as_named(at) {
                return Ok(None);
            }
            let elements = (0..block.rows()).flat_map(|row| block.row(row).iter().copied());
            let shape = IxDyn(&self.shapes[at]);
            let dense = DenseTensor::from_shape_vec(shape, elements.collect());
            let dense = dense.map_err(|e| SolverError::Data(e.to_string()))?;
            Ok(Some(self.contraction.pack(at, &dense)?))
        };
        blocks.iter().enumerate().map(one).collect()
    }
}

fn operands<'a>(
    blocks: &[&'a Matrix<f64>],
    packed: &'a [Option<Matrix<f64>>],
) -> Vec<&'a Matrix<f64>> {
    blocks.iter().zip(packed).map(|(&block, packed)| packed.as_ref().unwrap_or(block)).collect()
}
