//! Tensors of a problem whose indices are cut into pieces.
//!
//! A sparse operand gets a column for each part of a cut index, a result gives them back.  Dense operands are cut as they
//! are packed.

use decompose_formats::narrow_ints::Width;
use decompose_formats::{Coo, Ints, Value};

use crate::einsum::{Access, Extents, Index};
use crate::error::CoreError;
use crate::schedule::{Problem, SplitIndex};

/// Returns `list`, an operand with the stored indices `cut` of `problem`, with both parts of each index that is cut.
///
/// Time `O(nnz)` for each cut index.
///
/// # Errors
///
/// If there is no memory.
pub fn split_list<V: Value>(
    list: Coo<V>,
    cut: &Access,
    problem: &Problem,
) -> Result<Coo<V>, CoreError> {
    let splits = problem.stored_splits();
    let piece = |index: Index| splits.iter().find(|own| own.split.outer == index);
    if !cut.indices.iter().any(|&index| piece(index).is_some()) {
        return Ok(list);
    }
    let (extents, columns, values) = list.into_parts();
    let whole = cut.indices.iter().filter(|&&index| piece(index).is_none());
    let whole: Vec<Index> = whole.copied().collect();
    let parts = cut.indices.iter().map(|&index| {
        // The outer part stands before the inner one, which has the letter of the whole index.
        let own = piece(index).map_or(index, |own| own.split.index);
        let mode = whole.iter().position(|&other| other == own);
        let mode = mode.ok_or_else(|| CoreError::Internal(format!("{cut} lacks {own}")))?;
        let extent = problem.extents.of(index);
        let size = splits.iter().find(|cut| cut.split.index == own).map(SplitIndex::size);
        let part = |coord: u64| match size {
            None => coord,
            Some(size) if own == index => coord % size,
            Some(size) => coord / size,
        };
        let column = &columns[mode];
        let coords = (0..column.len()).map(|at| part(column.get(at)));
        let extent = if size.is_none() { extents[mode] } else { extent };
        Ok((extent, Ints::collect(coords, Width::listed(extent))))
    });
    let (extents, columns): (Vec<u64>, Vec<Ints>) =
        parts.collect::<Result<Vec<_>, CoreError>>()?.into_iter().unzip();
    Ok(Coo::new(extents, columns, values)?)
}

/// Returns `list`, a result with the indices `cut` of `problem`, without its splits; what lies beyond the tensor is left
/// out.
///
/// Time `O(nnz)` for each cut index, and that of a sort.
///
/// # Errors
///
/// If there is no memory.
pub(super) fn whole_list<V: Value>(
    list: Coo<V>,
    cut: &Access,
    (splits, extents): (&[SplitIndex], &Extents),
) -> Result<Coo<V>, CoreError> {
    let outer = |index: Index| splits.iter().find(|own| own.split.outer == index);
    if !cut.indices.iter().any(|&index| outer(index).is_some()) {
        return Ok(list);
    }
    let (_, columns, values) = list.into_parts();
    let place = |index: Index| cut.indices.iter().position(|&own| own == index);
    let whole = cut.indices.iter().copied().filter(|&index| outer(index).is_none());
    let columns = whole.map(|index| {
        let missing = || CoreError::Internal(format!("{cut} lacks a part of {index}"));
        let inner = &columns[place(index).ok_or_else(missing)?];
        let own = splits.iter().find(|own| own.split.index == index);
        let Some(own) = own else {
            return Ok((extents.of(index), (0..inner.len()).map(|at| inner.get(at)).collect()));
        };
        let pieces = &columns[place(own.split.outer).ok_or_else(missing)?];
        let coord = |at: usize| pieces.get(at) * own.size() + inner.get(at);
        Ok((own.extent, (0..inner.len()).map(coord).collect::<Vec<u64>>()))
    });
    let columns = columns.collect::<Result<Vec<_>, CoreError>>()?;
    let inside = |at: &usize| columns.iter().all(|(extent, coords)| coords[*at] < *extent);
    let kept: Vec<usize> = (0..values.len()).filter(inside).collect();
    let column = |(extent, coords): &(u64, Vec<u64>)| {
        Ints::collect(kept.iter().map(|&at| coords[at]), Width::listed(*extent))
    };
    let shape = columns.iter().map(|(extent, _)| *extent).collect();
    let values = kept.iter().map(|&at| values[at]).collect::<Vec<V>>();
    let mut list = Coo::new(shape, columns.iter().map(column).collect(), values)?;
    list.sum_duplicates()?;
    Ok(list)
}

/// An axis of a packed tensor: which axis of the whole tensor it counts, and in steps of how many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// The axis of the whole tensor.
    pub(super) of: usize,
    /// Elements of that axis from one to the next.
    pub(super) step: usize,
    /// The iterations.
    pub(super) extent: usize,
}

/// Returns the axes of a tensor that is stored over `stored` and whose whole form is over `whole`.
pub(super) fn axes(
    stored: impl Iterator<Item = (Index, u64)>,
    whole: &[Index],
    splits: &[SplitIndex],
) -> Vec<Axis> {
    let one = |(index, extent): (Index, u64)| {
        let pieces = splits.iter().find(|own| own.split.outer == index);
        let own = pieces.map_or(index, |own| own.split.index);
        let of = whole.iter().position(|&other| other == own)?;
        let step = pieces.map_or(1, SplitIndex::size) as usize;
        Some(Axis { of, step, extent: extent as usize })
    };
    stored.filter_map(one).collect()
}
