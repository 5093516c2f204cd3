//! The parts of an assembled output as one list.

use std::collections::HashMap;

use decompose_formats::ints::Width;
use decompose_formats::{Coo, Ints, Value};
use rayon::prelude::*;

use crate::einsum::{Access, Expr, Extents, Index};
use crate::error::CoreError;
use crate::lower::{Assembled, Block, Program};

/// Joins the parts that the tasks of `program` assembled to a list over the indices of the output of `expr`.
///
/// Time `O(n)`, parallel, where the parts follow each other in order, that of a sort otherwise.
///
/// # Errors
///
/// If there is no memory to sort in.
pub(super) fn joined<V: Value>(
    program: &Program,
    expr: &Expr,
    extents: &Extents,
    parts: Vec<Assembled<V>>,
) -> Result<Coo<V>, CoreError> {
    let columns = expr.output.indices.iter().map(|&index| {
        let digits = Digits::of(program, index);
        match Width::listed(extents.of(index)) {
            Width::W64 => column(&parts, |task, out: &mut [u64]| digits.write(task, out, |n| n)),
            _ => column(&parts, |task, out: &mut [u32]| digits.write(task, out, |n| n as u32)),
        }
    });
    let columns: Vec<Ints> = columns.collect();
    let shape = expr.output.indices.iter().map(|&index| extents.of(index)).collect();
    let values: Vec<V> = column(&parts, |task, out: &mut [V]| {
        let values = task.blocks.iter().flat_map(|block| &block.values);
        out.iter_mut().zip(values).for_each(|(out, &value)| *out = value);
    });
    drop(parts);
    let mut list = Coo::new(shape, columns, values)?;
    list.sum_duplicates()?;
    Ok(list)
}

/// Returns the bytes that an element of an assembled output takes: as a task appends it, and in the list of all of them.
pub fn element_bytes(expr: &Expr, extents: &Extents, value_bytes: usize) -> u64 {
    let width = |&index: &Index| Width::listed(extents.of(index)).bytes();
    let listed = expr.output.indices.iter().map(width).sum::<usize>() + value_bytes;
    (size_of::<u32>() + value_bytes + listed) as u64
}

/// Counts the products of non-zeros of two operands whose coordinates agree in the indices that both have: as many as a
/// join of the two has.
///
/// Time `O(nnz)`; memory a count for each cell of these coordinates, or for each that the first operand has if
/// these are few.  Saturates.
pub fn count_products<V: Value>(first: (&Access, &Coo<V>), second: (&Access, &Coo<V>)) -> u64 {
    let ((a, left), (b, right)) = (first, second);
    let shared: Vec<Index> = (a.set() & b.set()).iter().collect();
    let (own, others) = (numbered(a, left, &shared), numbered(b, right, &shared));
    let cells = shared.iter().filter_map(|index| {
        let mode = a.indices.iter().position(|own| own == index)?;
        Some(left.extents()[mode])
    });
    let cells = cells.fold(1_u64, u64::saturating_mul);
    if cells <= (left.nnz() as u64).saturating_mul(CELLS_PER_ENTRY).max(FEW_CELLS) {
        let mut counts = vec![0_u32; cells as usize];
        (0..left.nnz()).for_each(|entry| counts[own(entry) as usize] += 1);
        let met = |entry| u64::from(counts[others(entry) as usize]);
        return (0..right.nnz()).map(met).fold(0, u64::saturating_add);
    }
    let mut counts: HashMap<u128, u64> = HashMap::new();
    for entry in 0..left.nnz() {
        *counts.entry(own(entry)).or_default() += 1;
    }
    let met = |entry| counts.get(&others(entry)).copied().unwrap_or(0);
    (0..right.nnz()).map(met).fold(0, u64::saturating_add)
}

/// Cells for each non-zero up to which products are counted in an array.
const CELLS_PER_ENTRY: u64 = 8;

/// Up to so many cells are counted in an array in any case.
const FEW_CELLS: u64 = 1 << 16;

/// Returns the number of each entry's cell in the modes of the indices `shared`; of cells beyond 128 bits equal ones may
/// have the same number.
fn numbered<'a, V: Value>(
    access: &Access,
    list: &'a Coo<V>,
    shared: &[Index],
) -> impl Fn(usize) -> u128 + use<'a, V> {
    let mode = |index| access.indices.iter().position(|own| own == index);
    let modes: Vec<usize> = shared.iter().filter_map(mode).collect();
    move |entry| {
        modes.iter().fold(0, |number: u128, &mode| {
            let extent = u128::from(list.extents()[mode]);
            number.wrapping_mul(extent).wrapping_add(u128::from(list.coords(mode).get(entry)))
        })
    }
}

/// Makes a column of all parts, in parallel, each part written by `write`.
fn column<V: Value, T: Copy + Default + Send, C: From<Vec<T>>>(
    parts: &[Assembled<V>],
    write: impl Fn(&Assembled<V>, &mut [T]) + Sync,
) -> C {
    let elements: usize = parts.iter().map(Assembled::len).sum();
    let mut all = vec![T::default(); elements];
    let mut rest = all.as_mut_slice();
    let mut own = Vec::with_capacity(parts.len());
    for part in parts {
        let (first, after) = rest.split_at_mut(part.len());
        own.push((part, first));
        rest = after;
    }
    own.into_par_iter().for_each(|(part, out)| write(part, out));
    all.into()
}

/// Where the coordinate of an index stands.
enum Digits {
    /// Among the coordinates of the loops outside: number `at` of `count`.
    Outside { at: usize, count: usize },
    /// It is the number of a cell.
    Number,
    /// In the number of a cell: `cell % outer / stride`.
    Cell { outer: u64, stride: u64 },
}

impl Digits {
    fn of(program: &Program, index: Index) -> Digits {
        let outside = program.outside();
        if let Some(at) = outside.iter().position(|&own| own == index) {
            return Digits::Outside { at, count: outside.len() };
        }
        let array = &program.output;
        if array.indices.len() == 1 {
            return Digits::Number;
        }
        let at = array.indices.iter().position(|&own| own == index).unwrap_or(0);
        // Rows are padded: the stride of the index before is that of all that lies inside it.
        let outer = at.checked_sub(1).map_or(array.len, |above| array.strides[above]);
        Digits::Cell { outer, stride: array.strides.get(at).copied().unwrap_or(1) }
    }

    /// Writes the coordinate of each element of a part.
    fn write<V: Value, T: Copy>(&self, part: &Assembled<V>, out: &mut [T], cut: impl Fn(u64) -> T) {
        match *self {
            Digits::Outside { at, count } => {
                let mut begin = 0;
                for (run, &end) in part.ends.iter().enumerate() {
                    out[begin..end].fill(cut(part.outside[run * count + at]));
                    begin = end;
                }
            }
            Digits::Number => {
                let cells = part.blocks.iter().flat_map(Block::cells);
                out.iter_mut().zip(cells).for_each(|(out, cell)| *out = cut(cell));
            }
            Digits::Cell { outer, stride } => {
                let cells = part.blocks.iter().flat_map(Block::cells);
                out.iter_mut().zip(cells).for_each(|(out, cell)| *out = cut(cell % outer / stride));
            }
        }
    }
}
