//! Compressed sparse fibres: the non-zeros as a tree, one level a mode.
//!
//! Sorted by a mode order `(m_1, ..., m_N)`, entries that share their first `l` coordinates share
//! a node at level `l`.  Level `l` stores for each node its coordinate in mode `m_l`, and where
//! its children begin in level `l + 1`; the nodes of the last level are the non-zeros.
//! (Smith, Karypis: "Tensor-matrix products with a compressed sparse tensor", IA^3 2015.)
//!
//! Where fibres are short, pointers cost more than they save: the last levels may be *fused*
//! ([`Csf::fuse`]).  Fused levels list a coordinate for every non-zero, as a coordinate list does,
//! and one position loop walks them all.
//!
//! Coordinates are as narrow as the extent of their mode allows, two bytes up to 65,536, and pointers
//! as the number of non-zeros allows; a list has at least four bytes a coordinate.

mod build;
mod check;
mod expand;
mod merge;

use crate::array::Array;
use crate::coo::Coo;
use crate::dims::ModeOrder;
use crate::error::FormatError;
use crate::ints::{Ints, Width};
use crate::value::Value;

pub(crate) use crate::csf::build::node_counts;
pub use crate::csf::merge::Merged;

/// A sparse tensor as compressed sparse fibres.
#[derive(Clone, Debug, PartialEq)]
pub struct Csf<V: Value> {
    extents: Vec<u64>,
    order: ModeOrder,
    levels: Vec<Level>,
    values: Array<V>,
}

/// One level of a [`Csf`].
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The coordinate of each node in the level's mode.
    pub coords: Ints,
    /// The children of node `p` are the nodes `pointers[p]..pointers[p + 1]` of the next level;
    /// empty for the last level, and for a level fused with the next: there, node `p` has the one
    /// child `p`.
    pub pointers: Ints,
}

impl Level {
    /// Returns the position of the first child of `node`; `node` may be one past the last.
    pub fn first_child(&self, node: usize) -> u64 {
        if self.pointers.is_empty() { node as u64 } else { self.pointers.get(node) }
    }
}

impl<V: Value> Csf<V> {
    /// Builds the tree of a list sorted by `order`, which keeps its arrays.
    ///
    /// Duplicates must have been merged: each would become a node of its own.  Parallel, time
    /// `O(nnz * order)`.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if `order` is not of the list's modes, or the list is not
    /// sorted by it.
    pub fn from_sorted(coo: &Coo<V>, order: &ModeOrder) -> Result<Csf<V>, FormatError> {
        let upper = upper_levels(coo, order)?;
        let (extents, mode) = (coo.extents().to_vec(), last_of(order));
        let last = coo.coords(mode).copy_as(Width::below(extents[mode]));
        Ok(Csf::assemble(extents, order.clone(), (upper, last), coo.copy_values()))
    }

    /// Sorts a list by `order` and turns it into a tree; the values are not copied, and the last level
    /// only if it becomes narrower, when the other columns are freed.
    ///
    /// # Errors
    ///
    /// As [`Coo::sort`].
    pub fn build(mut coo: Coo<V>, order: &ModeOrder) -> Result<Csf<V>, FormatError> {
        coo.sort(order)?;
        let upper = upper_levels(&coo, order)?;
        let (extents, mut coords, values) = coo.into_parts();
        let mode = last_of(order);
        let last = coords.swap_remove(mode);
        drop(coords);
        let last = last.into_width(Width::below(extents[mode]));
        Ok(Csf::assemble(extents, order.clone(), (upper, last), values))
    }

    /// Builds a tree for each of `orders`, in their order.
    ///
    /// The list is sorted from one order to the nearest of the remaining ones (fewest key bits to
    /// sort, see [`Coo::sort`]) and given up for the last tree.  Peak memory: the trees, the list
    /// and the memory of one sort.
    ///
    /// # Errors
    ///
    /// As [`Coo::sort`].
    pub fn build_all(mut coo: Coo<V>, orders: &[ModeOrder]) -> Result<Vec<Csf<V>>, FormatError> {
        orders.iter().try_for_each(|order| coo.check_order(order))?;
        let mut trees: Vec<Option<Csf<V>>> = orders.iter().map(|_| None).collect();
        let mut pending: Vec<usize> = (0..orders.len()).collect();
        while pending.len() > 1 {
            let work = |&at: &usize| (coo.bits_to_sort(&orders[pending[at]]), at);
            let nearest = (0..pending.len()).min_by_key(work).unwrap_or(0);
            let next = pending.remove(nearest);
            coo.sort(&orders[next])?;
            trees[next] = Some(Csf::from_sorted(&coo, &orders[next])?);
        }
        if let Some(last) = pending.pop() {
            trees[last] = Some(Csf::build(coo, &orders[last])?);
        }
        Ok(trees.into_iter().flatten().collect())
    }

    /// Makes a tree of its parts: levels root first, and a value for each node of the last level.
    ///
    /// # Errors
    ///
    /// As [`Csf::check`].
    pub fn from_parts(
        extents: Vec<u64>,
        order: ModeOrder,
        levels: Vec<Level>,
        values: Array<V>,
    ) -> Result<Csf<V>, FormatError> {
        let csf = Csf { extents, order, levels, values };
        csf.check()?;
        Ok(csf)
    }

    /// Checks what code over trees relies on.
    ///
    /// As many levels as extents and modes; pointers that begin at 0, ascend strictly and end at
    /// the number of nodes below; coordinates below their extents, strictly ascending among the
    /// children of a node (those of fused levels together); a value for each node of the last
    /// level.  Time `O(size)`, parallel.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] with the first invariant that fails.
    pub fn check(&self) -> Result<(), FormatError> {
        check::check(self)
    }

    /// Fuses the last `tail` levels: 1 leaves the tree as it is, and the root is never fused.
    ///
    /// Time `O(tail * nnz)`, parallel.  The tree grows by a coordinate for each non-zero and fused
    /// level and shrinks by their pointers.
    ///
    /// # Panics
    ///
    /// If the tree has no `tail` levels below its root, or has fused levels already.
    pub fn fuse(mut self, tail: usize) -> Csf<V> {
        let order = self.levels.len();
        assert!(tail >= 1 && (tail == 1 || tail < order), "{tail} of {order} levels");
        assert_eq!(self.tail(), 1, "fused already");
        if tail == 1 {
            return self;
        }
        let first = order - tail;
        let columns: Vec<Ints> = (first..order - 1)
            .map(|level| expand::column(&self.levels, level, self.values.len()))
            .collect();
        self.levels[first - 1].pointers = expand::skip_levels(&self.levels[first - 1..]);
        for (level, coords) in self.levels[first..].iter_mut().zip(columns) {
            *level = Level { coords, pointers: Vec::<u32>::new().into() };
        }
        self
    }

    /// Returns the number of levels at the end that one position loop walks; 1 if none are fused.
    pub fn tail(&self) -> usize {
        let upper = &self.levels[..self.levels.len() - 1];
        1 + upper.iter().rev().take_while(|level| level.pointers.is_empty()).count()
    }

    /// Returns the entries as a list sorted by the tree's mode order.  Time `O(nnz * order)`,
    /// parallel.
    pub fn to_coo(&self) -> Coo<V> {
        let nnz = self.values.len();
        let column = |mode| match self.order.level_of(mode) {
            Some(level) => expand::column(&self.levels, level, nnz),
            None => Vec::<u32>::new().into(),
        };
        let coords = (0..self.extents.len()).map(column).collect();
        Coo::sorted(self.extents.clone(), coords, self.values.copy(), self.order.clone())
    }

    /// Returns the number of non-zeros.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    fn assemble(
        extents: Vec<u64>,
        order: ModeOrder,
        (mut levels, last): (Vec<Level>, Ints),
        values: Array<V>,
    ) -> Csf<V> {
        levels.push(Level { coords: last, pointers: Vec::<u32>::new().into() });
        Csf { extents, order, levels, values }
    }

    /// Returns the extents of the modes, by mode number.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the order in which the modes are the levels.
    pub fn mode_order(&self) -> &ModeOrder {
        &self.order
    }

    /// Returns the levels, root first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the values, one for each node of the last level.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Returns the number of nodes of each level: without fused levels the exact prefix counts
    /// `nnz(X_{m_1})`, `nnz(X_{m_1 m_2})`, ..., `nnz(X)`.
    pub fn prefix_counts(&self) -> Vec<u64> {
        self.levels.iter().map(|level| level.coords.len() as u64).collect()
    }

    /// Returns the size of all arrays in bytes.
    pub fn bytes(&self) -> u64 {
        let levels: u64 = self.levels.iter().map(|l| l.coords.bytes() + l.pointers.bytes()).sum();
        levels + (self.values.len() * V::BYTES) as u64
    }
}

/// Builds all levels but the last.
fn upper_levels<V: Value>(coo: &Coo<V>, order: &ModeOrder) -> Result<Vec<Level>, FormatError> {
    coo.check_order(order)?;
    if !coo.is_sorted_by(order) {
        return Err(FormatError::NotATensor(format!("not sorted by {order}: sort it first")));
    }
    let columns = coo.columns();
    let upper = &order.modes()[..order.modes().len() - 1];
    let column = |&mode: &usize| (columns[mode], Width::below(coo.extents()[mode]));
    let upper: Vec<_> = upper.iter().map(column).collect();
    Ok(build::upper_levels(&upper, coo.nnz()))
}

fn last_of(order: &ModeOrder) -> usize {
    order.modes().last().copied().unwrap_or(0)
}
