//! Trees of operands that several kernels read.

use std::sync::Arc;

use decompose_formats::{Csf, Value};

use crate::einsum::Access;
use crate::sweep::TreeLayout;

/// A tensor of the text, or the diagonal of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The tensor's name.
    pub tensor: String,
    /// Modes of the same number are read along their diagonal: see [`Access::diagonal`].
    pub diagonal: Vec<usize>,
}

impl Operand {
    /// Returns the operand that an access of the text reads.
    pub fn of(access: &Access) -> Operand {
        Operand { tensor: access.tensor.clone(), diagonal: access.diagonal() }
    }
}

/// A tree of an operand.
#[derive(Debug)]
struct Stored<V: Value> {
    operand: Operand,
    layout: TreeLayout,
    tree: Arc<Csf<V>>,
}

/// The trees of operands that are read again.
#[derive(Debug)]
pub struct StoredTrees<V: Value> {
    stored: Vec<Stored<V>>,
    /// The tensors whose trees are kept.
    wanted: Vec<String>,
}

impl<V: Value> Default for StoredTrees<V> {
    fn default() -> StoredTrees<V> {
        StoredTrees { stored: Vec::new(), wanted: Vec::new() }
    }
}

impl<V: Value> StoredTrees<V> {
    /// Keeps trees of the tensors called `names` from now on, and no others.  Those that are there stay for the time being.
    pub fn want(&mut self, names: Vec<String>) {
        self.wanted = names;
    }

    /// Gives up the trees of all tensors that are not wanted.
    pub fn give_up_unwanted(&mut self) {
        self.stored.retain(|stored| self.wanted.contains(&stored.operand.tensor));
    }

    /// Gives up all trees.
    pub fn give_up_all(&mut self) {
        self.stored.clear();
    }

    /// Tells whether there are no trees.
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Returns the layouts of the trees of `operand`.
    pub fn layouts(&self, operand: &Operand) -> Vec<TreeLayout> {
        let own = self.stored.iter().filter(|stored| stored.operand == *operand);
        own.map(|stored| stored.layout.clone()).collect()
    }

    /// Returns the tree of `operand` in a layout, if it is there.
    pub fn get(&self, operand: &Operand, layout: &TreeLayout) -> Option<Arc<Csf<V>>> {
        let own = |stored: &&Stored<V>| stored.operand == *operand && stored.layout == *layout;
        self.stored.iter().find(own).map(|stored| Arc::clone(&stored.tree))
    }

    /// Keeps a tree of `operand` if the tensor is wanted.
    pub fn put(&mut self, operand: &Operand, layout: &TreeLayout, tree: &Arc<Csf<V>>) {
        if self.wanted.contains(&operand.tensor) && self.get(operand, layout).is_none() {
            let (operand, layout, tree) = (operand.clone(), layout.clone(), Arc::clone(tree));
            self.stored.push(Stored { operand, layout, tree });
        }
    }
}
