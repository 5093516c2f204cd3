//! Tensors of a problem whose indices are cut into pieces.
//!
//! A sparse operand gets a column for each part of a cut index, a result gives them back.  Dense operands are cut as they
//! are packed.

use decompose_formats::narrow_ints::Width;
use decompose_formats::{Coo, Ints, Value};

use crate::einsum::{Access, Extents, Index};
use crate::error::CoreError;
use crate::schedule::{Problem, SplitIndex};

/// Where an index that may be a part of another one counts: coordinates of the whole index, in steps of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    index: Index,
    of: Index,
    step: u64,
}

/// Returns what each of `indices` is a part of.  Parts may be cut again.
fn parts(indices: &[Index], splits: &[SplitIndex]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let whole = |index| Part { index, of: index, step: 1 };
    for own in splits {
        let cut = own.split.index;
        let before = parts.iter().find(|part| part.index == cut).copied().unwrap_or(whole(cut));
        if !parts.contains(&before) {
            parts.push(before);
        }
        parts.push(Part { index: own.split.outer, step: before.step * own.size(), ..before });
    }
    let part = |&index: &Index| {
        parts.iter().find(|part| part.index == index).copied().unwrap_or(whole(index))
    };
    indices.iter().map(part).collect()
}

/// Returns the extent of an index before it was cut.
pub(super) fn whole_extent(index: Index, splits: &[SplitIndex], extents: &Extents) -> u64 {
    let own = splits.iter().find(|own| own.split.index == index);
    own.map_or_else(|| extents.of(index), |own| own.extent)
}

/// Returns `list`, an operand with the stored indices `cut` of `problem`, with both parts of each index that is cut.
///
/// Time `O(nnz)` for each index.
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
    let parts = parts(&cut.indices, &splits);
    if parts.iter().all(|part| part.index == part.of) {
        return Ok(list);
    }
    let (_, columns, values) = list.into_parts();
    let whole: Vec<Index> = cut.indices.iter().copied().filter(|&i| is_whole(i, &splits)).collect();
    let column = |part: &Part| {
        let mode = whole.iter().position(|&index| index == part.of);
        let mode = mode.ok_or_else(|| CoreError::Internal(format!("{cut} lacks {}", part.of)))?;
        let (column, extent) = (&columns[mode], problem.extents.of(part.index));
        let coords = (0..column.len()).map(|at| column.get(at) / part.step % extent);
        Ok(Ints::collect(coords, Width::listed(extent)))
    };
    let cut_columns = parts.iter().map(column).collect::<Result<Vec<Ints>, CoreError>>()?;
    let extents = cut.indices.iter().map(|&index| problem.extents.of(index)).collect();
    Ok(Coo::new(extents, cut_columns, values)?)
}

/// Tells whether an index is not the outer part of another one.
pub(super) fn is_whole(index: Index, splits: &[SplitIndex]) -> bool {
    !splits.iter().any(|own| own.split.outer == index)
}

/// Returns `list`, a result with the indices `cut` of `problem`, without its splits; what lies beyond the tensor is left
/// out.
///
/// Time `O(nnz)` for each index, and that of a sort.
///
/// # Errors
///
/// If there is no memory.
pub(super) fn whole_list<V: Value>(
    list: Coo<V>,
    cut: &Access,
    (splits, extents): (&[SplitIndex], &Extents),
) -> Result<Coo<V>, CoreError> {
    let parts = parts(&cut.indices, splits);
    if parts.iter().all(|part| part.index == part.of) {
        return Ok(list);
    }
    let (_, columns, values) = list.into_parts();
    let whole = cut.indices.iter().copied().filter(|&index| is_whole(index, splits));
    let sum = |index: Index| {
        let own = parts.iter().zip(&columns).filter(|(part, _)| part.of == index);
        let own: Vec<(u64, &Ints)> = own.map(|(part, column)| (part.step, column)).collect();
        let coord = |at: usize| own.iter().map(|(step, column)| step * column.get(at)).sum();
        let coords: Vec<u64> = (0..values.len()).map(coord).collect();
        (whole_extent(index, splits, extents), coords)
    };
    let columns: Vec<(u64, Vec<u64>)> = whole.map(sum).collect();
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
    let stored: Vec<(Index, u64)> = stored.collect();
    let indices: Vec<Index> = stored.iter().map(|&(index, _)| index).collect();
    let one = |(part, &(_, extent)): (Part, &(Index, u64))| {
        let of = whole.iter().position(|&other| other == part.of)?;
        Some(Axis { of, step: part.step as usize, extent: extent as usize })
    };
    parts(&indices, splits).into_iter().zip(&stored).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::{Part, parts};
    use crate::einsum::indices;
    use crate::schedule::{Command, Cut, Split, SplitIndex};

    #[test]
    fn parts_may_be_cut_again() {
        let [k, outer, third, j] = indices("kKLj")[..] else { panic!("four indices") };
        let split = |index, outer, factor, extent| SplitIndex {
            split: Split { index, outer, command: Command::Split, factor, cut: Cut::Coordinates },
            extent,
        };
        let splits = [split(k, outer, 8, 40), split(outer, third, 2, 5)];
        let part = |index, of, step| Part { index, of, step };
        let expected = [part(third, k, 16), part(outer, k, 8), part(k, k, 1), part(j, j, 1)];
        assert_eq!(parts(&[third, outer, k, j], &splits), expected);
        // The inner part is cut.
        let splits = [split(k, outer, 8, 40), split(k, third, 2, 8)];
        let expected = [part(outer, k, 8), part(third, k, 2), part(k, k, 1)];
        assert_eq!(parts(&[outer, third, k], &splits), expected);
    }
}
