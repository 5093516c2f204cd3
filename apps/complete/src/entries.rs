//! The values of a model at a list of entries.

use std::sync::Arc;

use decompose_common::SolverError;
use decompose_core::contract::{Roots, best_tree};
use decompose_core::cost::Machine;
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::TreeLayout;
use decompose_formats::{Coo, Csf, Matrix, PatternCounts};

use crate::kernel::{BlockKernel, request};
use crate::network::Network;

/// Entries as a tree, with the kernel of the model's values at them.
pub(crate) struct Entries {
    kernel: BlockKernel,
    ones: Vec<f64>,
    /// The model's values, in tree order.
    model: Vec<f64>,
}

impl Entries {
    /// Makes the tree and the kernel.
    ///
    /// # Errors
    ///
    /// If there is no memory for the tree.
    pub(crate) fn new(
        tensor: &Coo<f64>,
        network: &Network,
        toolchain: &Toolchain,
    ) -> Result<Entries, SolverError> {
        let counts = PatternCounts::of(tensor);
        let asked = request(network.values(), &counts, &network.shapes())?;
        let (layout, _) = best_tree(std::slice::from_ref(&asked), Roots::Any, Machine::here())?;
        let tree = tree(tensor, &layout)?;
        let kernel = BlockKernel::new(&asked, &tree, toolchain)?;
        Ok(Entries::of(kernel))
    }

    /// Uses a kernel that is there.
    pub(crate) fn of(kernel: BlockKernel) -> Entries {
        let nnz = kernel.tree().nnz();
        Entries { kernel, ones: vec![1.0; nnz], model: vec![0.0; nnz] }
    }

    /// Returns the entries' values, in tree order.
    pub(crate) fn observed(&self) -> &[f64] {
        self.kernel.tree().values()
    }

    /// Returns the tree.
    pub(crate) fn tree(&self) -> &Csf<f64> {
        self.kernel.tree()
    }

    /// Returns why the kernel is interpreted, if it is.
    pub(crate) fn interpreted(&self) -> Option<&str> {
        self.kernel.interpreted()
    }

    /// Computes the model's values at the entries.
    ///
    /// # Errors
    ///
    /// If the blocks do not fit.
    pub(crate) fn evaluate(&mut self, blocks: &[&Matrix<f64>]) -> Result<&[f64], SolverError> {
        self.kernel.at_entries(&self.ones, blocks, &mut self.model)?;
        Ok(&self.model)
    }

    /// Returns the values that [`Entries::evaluate`] computed last.
    pub(crate) fn model(&self) -> &[f64] {
        &self.model
    }
}

/// Builds the tree of `layout`.
///
/// # Errors
///
/// If there is no memory.
pub(crate) fn tree(tensor: &Coo<f64>, layout: &TreeLayout) -> Result<Arc<Csf<f64>>, SolverError> {
    Ok(Arc::new(Csf::build(tensor.clone(), &layout.order)?.fuse(layout.fused)))
}

/// Returns the entries of `tensor`, in the order of a tree, and the values of the model with
/// `blocks` at them.
///
/// # Errors
///
/// If the blocks do not fit the network, or there is no memory.
pub fn values_at(
    tensor: &Coo<f64>,
    network: &Network,
    blocks: &[Matrix<f64>],
    toolchain: &Toolchain,
) -> Result<(Coo<f64>, Vec<f64>), SolverError> {
    let mut entries = Entries::new(tensor, network, toolchain)?;
    entries.evaluate(&blocks.iter().collect::<Vec<_>>())?;
    Ok((entries.tree().to_coo(), entries.model))
}
