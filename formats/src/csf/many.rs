//! Several trees from one list.
//!
//! A sorted list has the arrays of its tree already: values, and the coordinates of the last level or of
//! the fused ones.  Tree and list share them, and the next tree is sorted from the list into arrays of
//! its own.  So nothing is copied, and the list stays sorted as it was if that is nearer to what follows.

use crate::blocking::Blocking;
use crate::coo::Coo;
use crate::csf::{Csf, check_fused};
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::value::Value;

/// How a tree is to be built.
#[derive(Clone, Debug)]
pub struct Layout<'a> {
    /// The blocks that are the root's nodes, if it has blocks.
    pub blocks: Option<&'a Blocking>,
    /// The modes of the levels, root first; the number of the block is one more mode, the last.
    pub order: ModeOrder,
    /// How many levels at the end are fused; 1 is plain CSF.
    pub fused: usize,
}

impl From<&(ModeOrder, usize)> for Layout<'_> {
    fn from((order, fused): &(ModeOrder, usize)) -> Self {
        Layout { blocks: None, order: order.clone(), fused: *fused }
    }
}

/// Builds the trees of `layouts`, in their order; see [`Csf::build_all`].
pub(super) fn build<V: Value>(
    mut list: Coo<V>,
    layouts: &[Layout<'_>],
) -> Result<Vec<Csf<V>>, FormatError> {
    for layout in layouts {
        check_fused(layout.fused, layout.order.modes().len())?;
        match layout.blocks {
            Some(blocks) => blocks.check(&list)?,
            None => list.check_order(&layout.order)?,
        }
    }
    list.narrow();
    list.keep_room();
    let mut trees: Vec<Option<Csf<V>>> = layouts.iter().map(|_| None).collect();
    let mut pending: Vec<usize> = (0..layouts.len()).collect();
    while let Some(next) = nearest(&list, layouts, &pending) {
        pending.retain(|&at| at != next);
        let Layout { blocks, order, fused } = &layouts[next];
        // While others follow, arrays that a tree has, and a list without numbers, stay as they are.
        let stays = !pending.is_empty() && (blocks.is_some() || !list.is_own());
        let before = if stays { Some(list.share()) } else { None };
        let mut sorted = match blocks {
            Some(blocks) => list.with_blocks(blocks)?,
            None => list,
        };
        sorted.sort(order)?;
        if pending.is_empty() {
            sorted.give_room_back();
        }
        trees[next] = Some(Csf::sharing(&mut sorted, order, *fused)?);
        let rest = || pending.iter().map(|&at| &layouts[at]);
        let farther = |before: &Coo<V>| to_sort(before, rest()) > to_sort(&sorted, rest());
        let (kept, other) = match before {
            Some(before) if blocks.is_some() || !farther(&before) => (before, Some(sorted)),
            before => (sorted, before),
        };
        other.into_iter().for_each(Coo::recycle);
        list = kept;
    }
    Ok(trees.into_iter().flatten().collect())
}

/// Returns which of the `pending` layouts has the fewest bits to sort.
fn nearest<V: Value>(list: &Coo<V>, layouts: &[Layout<'_>], pending: &[usize]) -> Option<usize> {
    pending.iter().copied().min_by_key(|&at| to_sort(list, [&layouts[at]]))
}

/// Returns how many key bits the sorts by `layouts` would have to sort.
fn to_sort<'a, V: Value>(list: &Coo<V>, layouts: impl IntoIterator<Item = &'a Layout<'a>>) -> u32 {
    layouts.into_iter().map(|layout| list.bits_to_sort(layout.blocks, &layout.order)).sum()
}
