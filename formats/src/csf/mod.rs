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
//! as the number of non-zeros allows.

mod build;
mod check;
mod expand;
mod many;
mod merged_modes;

use crate::array::Array;
use crate::coo::Coo;
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::narrow_ints::{Ints, Width};
use crate::value::Value;

pub(crate) use crate::csf::build::node_counts;
pub use crate::csf::many::Layout;
pub use crate::csf::merged_modes::Merged;

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
        let upper = upper_levels(coo, order, 1)?;
        let copy = |&mode: &usize| coo.coords(mode).copy_as(Width::below(coo.extents()[mode]));
        let last = last_of(order, 1).iter().map(copy).collect();
        let extents = coo.extents().to_vec();
        Ok(Csf::assemble(extents, order.clone(), upper, last, coo.copy_values()))
    }

    /// Sorts a list by `order` and turns it into a tree; last level and values are not copied.
    ///
    /// # Errors
    ///
    /// As [`Coo::sort`].
    pub fn build(mut coo: Coo<V>, order: &ModeOrder) -> Result<Csf<V>, FormatError> {
        coo.check_order(order)?;
        coo.narrow();
        coo.sort(order)?;
        coo.give_room_back();
        Csf::sharing(&mut coo, order, 1)
    }

    /// Builds a tree for each of `layouts`, in their order.
    ///
    /// The first is sorted in the arrays of the list and keeps them, the others in arrays of their own;
    /// nothing is copied.  The next is always the one with the fewest key bits to sort (see
    /// [`Coo::sort`]), from the list or a tree.  Peak memory: the trees, the list with coordinates as
    /// narrow as those of trees, of which one tree shares values and fused columns, the columns of the
    /// tree being made, and the memory of one sort.
    ///
    /// # Errors
    ///
    /// As [`Coo::sort`] and [`Coo::with_blocks`]; [`FormatError::NotATensor`] if the root of a tree would
    /// be fused.
    pub fn build_all<'a>(
        coo: Coo<V>,
        layouts: impl IntoIterator<Item = impl Into<Layout<'a>>>,
    ) -> Result<Vec<Csf<V>>, FormatError> {
        let layouts: Vec<Layout<'_>> = layouts.into_iter().map(Into::into).collect();
        many::build(coo, &layouts)
    }

    /// Builds the tree of a sorted list, narrow as trees are, with its last `fused` levels fused; fused
    /// columns and values are those of the list.
    fn sharing(coo: &mut Coo<V>, order: &ModeOrder, fused: usize) -> Result<Csf<V>, FormatError> {
        let upper = upper_levels(coo, order, fused)?;
        let (extents, coords, values) = coo.share().into_parts();
        let mut coords: Vec<Option<Ints>> = coords.into_iter().map(Some).collect();
        let last = last_of(order, fused).iter().filter_map(|&mode| coords[mode].take()).collect();
        Ok(Csf::assemble(extents, order.clone(), upper, last, values))
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

    /// Fuses the last `fused` levels: 1 leaves the tree as it is, and the root is never fused.
    ///
    /// Time `O(fused * nnz)`, parallel.  The tree grows by a coordinate for each non-zero and fused
    /// level and shrinks by their pointers.
    ///
    /// # Panics
    ///
    /// If the tree has no `fused` levels below its root, or has fused levels already.
    pub fn fuse(mut self, fused: usize) -> Csf<V> {
        let order = self.levels.len();
        assert!(check_fused(fused, order).is_ok(), "{fused} of {order} levels");
        assert_eq!(self.fused(), 1, "fused already");
        if fused == 1 {
            return self;
        }
        let first = order - fused;
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
    pub fn fused(&self) -> usize {
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

    /// Makes a tree of its `upper` levels, and of the coordinates of the `last` ones, which have an entry for each
    /// value.
    fn assemble(
        extents: Vec<u64>,
        order: ModeOrder,
        upper: Vec<Level>,
        last: Vec<Ints>,
        values: Array<V>,
    ) -> Csf<V> {
        let entries = |coords| Level { coords, pointers: Vec::<u32>::new().into() };
        let mut levels = upper;
        levels.extend(last.into_iter().map(entries));
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

/// Builds all levels but the last `fused`.
fn upper_levels<V: Value>(
    coo: &Coo<V>,
    order: &ModeOrder,
    fused: usize,
) -> Result<Vec<Level>, FormatError> {
    coo.check_order(order)?;
    if !coo.is_sorted_by(order) {
        return Err(FormatError::NotATensor(format!("not sorted by {order}: sort it first")));
    }
    let columns = coo.columns();
    let upper = &order.modes()[..order.modes().len() - fused];
    let column = |&mode: &usize| (columns[mode], Width::below(coo.extents()[mode]));
    let upper: Vec<_> = upper.iter().map(column).collect();
    Ok(build::upper_levels(&upper, coo.nnz()))
}

fn last_of(order: &ModeOrder, fused: usize) -> &[usize] {
    &order.modes()[order.modes().len() - fused..]
}

/// Checks that `fused` of `order` levels can be fused: there is one, and the root is not.
fn check_fused(fused: usize, order: usize) -> Result<(), FormatError> {
    if fused == 1 || fused > 0 && fused < order {
        return Ok(());
    }
    Err(FormatError::NotATensor(format!("{fused} of {order} levels cannot be fused")))
}
