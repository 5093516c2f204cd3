//! The parts of an assembled output, one from each task, as one list, and the memory that they take.

use decompose_formats::coo::sort_entry_bytes;
use decompose_formats::narrow_ints::Width;
use decompose_formats::{Coo, Ints, Value};
use rayon::prelude::*;

use crate::cost::Cost;
use crate::einsum::{Expr, Extents, Index};
use crate::error::CoreError;
use crate::lower::{Assembled, Block, Program, part_bytes};
use crate::schedule::{Problem, Schedule, resolve};

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

/// In which order tasks append the elements of an assembled output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// In that of the list of all of them.
    InOrder,
    /// In another one, so that the list is sorted.
    InAnother,
}

impl Appended {
    /// Returns the order in which tasks append the elements of the output of `problem` by `schedule`.
    pub fn by(problem: &Problem, schedule: &Schedule) -> Appended {
        let nest = resolve(problem, schedule);
        match nest.is_ok_and(|nest| problem.is_assembled_in_order(nest.last())) {
            true => Appended::InOrder,
            false => Appended::InAnother,
        }
    }
}

/// Returns the bytes that an element of an assembled output takes: in the list of all of them, and beside it as a task
/// appends it, or while the list is sorted.
pub fn element_bytes(
    expr: &Expr,
    extents: &Extents,
    value_bytes: usize,
    appended: Appended,
) -> u64 {
    let shape: Vec<u64> = expr.output.indices.iter().map(|&index| extents.of(index)).collect();
    let widths = shape.iter().map(|&extent| Width::listed(extent).bytes());
    let listed = widths.sum::<usize>() + value_bytes;
    let beside = size_of::<u32>() + value_bytes;
    let beside = match appended {
        Appended::InOrder => beside,
        Appended::InAnother => beside.max(sort_entry_bytes(&shape)),
    };
    (listed + beside) as u64
}

/// Returns the bytes of the output of `problem`, assembled by `schedule` as the cost model predicts: of its elements as
/// [`element_bytes`] says, and of the parts that are appended.
pub fn assembled_bytes(problem: &Problem, schedule: &Schedule, cost: &Cost) -> u64 {
    let appended = Appended::by(problem, schedule);
    let element = element_bytes(&problem.expr, &problem.extents, problem.value_bytes, appended);
    let elements = problem.assembled_elements().max(cost.appended_elements);
    let parts = resolve(problem, schedule).map_or(0, |nest| {
        let parts = nest.iterations(nest.buffers.len(), nest.outside);
        (parts as u64).min(elements).saturating_mul(part_bytes(nest.outside))
    });
    elements.saturating_mul(element).saturating_add(parts)
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
