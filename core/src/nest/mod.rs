//! Loop-nest forests: which loops run around which terms of a path.
//!
//! ```text
//! forest := node*          node := index "{" forest "}" | "T" number
//! i{ j{ k{ r{ T1 } } r{ T2 } } }
//! ```
//!
//! A forest may branch at any level.  The loops that two terms share are *fused*; the *fully
//! fused* forest of a loop order per term fuses every common prefix of neighbouring terms (SpTTN,
//! definition 4.4), and any other forest fuses less (SparseAuto).  What a fused loop iterates, it
//! need not store: see [`Buffer`].

mod buffer;
mod text;

use crate::einsum::{Index, IndexSet};

pub use buffer::{Buffer, buffers, places};

/// A loop or a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A loop over an index.
    Loop {
        /// The index.
        index: Index,
        /// What it repeats, in order; never empty.
        body: Vec<Node>,
    },
    /// A term of the path, by position: one multiply-add.
    Term(usize),
}

/// A loop-nest forest over the terms of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Forest {
    /// The roots, in order.
    pub roots: Vec<Node>,
}

impl Forest {
    /// Returns the fully fused forest of one loop order a term, by repeated peeling: neighbouring
    /// terms share their longest common prefix of loops.
    ///
    /// # Example
    ///
    /// ```
    /// use decompose_core::{einsum::indices, nest::Forest};
    ///
    /// let forest = Forest::fused(&[indices("ijkr"), indices("ijr")]);
    /// assert_eq!(forest.to_string(), "i{ j{ k{ r{ T1 } } r{ T2 } } }");
    /// ```
    pub fn fused(orders: &[Vec<Index>]) -> Forest {
        let orders: Vec<&[Index]> = orders.iter().map(Vec::as_slice).collect();
        Forest { roots: peel(&orders, 0) }
    }

    /// Returns the loops around each of `terms` terms, outermost first; `None` unless every term
    /// stands in the forest exactly once and in order, and no loop repeats an index or is empty.
    pub fn orders(&self, terms: usize) -> Option<Vec<Vec<Index>>> {
        let mut orders = Vec::new();
        collect_orders(&self.roots, &mut Vec::new(), &mut orders)?;
        (orders.len() == terms).then_some(orders)
    }
}

fn peel(orders: &[&[Index]], first: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut at = 0;
    while let Some(order) = orders.get(at) {
        let Some(&index) = order.first() else {
            nodes.push(Node::Term(first + at));
            at += 1;
            continue;
        };
        let shared = orders[at..].iter().take_while(|o| o.first() == Some(&index)).count();
        let inner: Vec<&[Index]> = orders[at..at + shared].iter().map(|o| &o[1..]).collect();
        nodes.push(Node::Loop { index, body: peel(&inner, first + at) });
        at += shared;
    }
    nodes
}

fn collect_orders(
    nodes: &[Node],
    around: &mut Vec<Index>,
    orders: &mut Vec<Vec<Index>>,
) -> Option<()> {
    for node in nodes {
        match node {
            Node::Term(term) => {
                if *term != orders.len() {
                    return None;
                }
                orders.push(around.clone());
            }
            Node::Loop { index, body } => {
                if around.contains(index) || body.is_empty() {
                    return None;
                }
                around.push(*index);
                collect_orders(body, around, orders)?;
                around.pop();
            }
        }
    }
    Some(())
}

/// Returns the set of the indices in `order`.
pub fn set_of(order: &[Index]) -> IndexSet {
    order.iter().copied().collect()
}
