//! How many values a vector of a row has, and how long the rows of a statement are.

use crate::einsum::Index;
use crate::lower::ir::{Place, Program};
use crate::optimisation::Optimisation;

/// Bytes of a vector: a cache line, the widest register of any machine.
pub const VECTOR_BYTES: usize = 64;

/// Returns the values in a vector over rows of `row` values: a whole line, or a shorter row; a single
/// value of a shorter row whose length must not be known.
pub(crate) fn lanes(program: &Program, row: u64) -> u64 {
    let line = (VECTOR_BYTES / program.value_bytes) as u64;
    match row < line && !program.optimisations.has(Optimisation::Constants) {
        true => 1,
        false => row.min(line),
    }
}

/// Returns the values of a row over `index` that `target` and `factors` all have.
pub(crate) fn common_row(program: &Program, target: Place, factors: &[Place], index: Index) -> u64 {
    let arrays = factors.iter().chain([&target]).filter_map(|&place| program.array(place));
    let rows = arrays.filter(|array| array.indices.contains(&index)).map(|array| array.row());
    rows.min().expect("an array along whose index the statement has lanes")
}
