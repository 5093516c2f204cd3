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

pub(crate) use buffer::buffers_at;
pub use buffer::{Buffer, buffers};

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

/// A loop of a forest: its number, in the order in which they open, and its index.
pub type Place = (usize, Index);

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
        self.places(terms).map(|places| orders_of(&places))
    }

    /// Returns what [`Forest::orders`] does, with the numbers of the loops.
    pub fn places(&self, terms: usize) -> Option<Vec<Vec<Place>>> {
        let mut places = Vec::with_capacity(terms);
        collect_places(&self.roots, &mut Vec::with_capacity(DEPTH), &mut 0, &mut places)?;
        (places.len() == terms).then_some(places)
    }
}

/// Room for the loops around a term: few terms have more.
const DEPTH: usize = 8;

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

fn collect_places(
    nodes: &[Node],
    around: &mut Vec<Place>,
    next: &mut usize,
    places: &mut Vec<Vec<Place>>,
) -> Option<()> {
    for node in nodes {
        match node {
            Node::Term(term) => {
                if *term != places.len() {
                    return None;
                }
                places.push(around.clone());
            }
            Node::Loop { index, body } => {
                if around.iter().any(|place| place.1 == *index) || body.is_empty() {
                    return None;
                }
                around.push((*next, *index));
                *next += 1;
                collect_places(body, around, next, places)?;
                around.pop();
            }
        }
    }
    Some(())
}

/// Returns the indices of the loops at `places`.
pub(crate) fn orders_of(places: &[Vec<Place>]) -> Vec<Vec<Index>> {
    places.iter().map(|loops| loops.iter().map(|place| place.1).collect()).collect()
}

/// Returns the set of the indices in `order`.
pub fn set_of(order: &[Index]) -> IndexSet {
    order.iter().copied().collect()
}
