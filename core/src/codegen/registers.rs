//! Which buffers live in vector registers.

use std::collections::BTreeSet;

use crate::codegen::REGISTER_BUDGET;
use crate::lower::{Place, Program, Stmt};

/// Bytes of a vector: a cache line, the widest register of any machine.
const VECTOR_BYTES: u64 = 64;

/// Returns the values in a vector over rows of `row` values: a whole line, or a shorter row.
pub(super) fn lanes(row: u64, value_bytes: usize) -> u64 {
    row.min(VECTOR_BYTES / value_bytes as u64)
}

/// Returns the buffers that are kept in registers: those of one index, used in vector statements
/// over it only, smallest first while the budget lasts.
pub(super) fn in_registers(program: &Program) -> BTreeSet<usize> {
    let mut candidates: Vec<(u64, usize)> = program
        .buffers
        .iter()
        .enumerate()
        .filter(|(buffer, array)| {
            array.indices.len() == 1 && only_vectors(program, &program.body, *buffer)
        })
        .map(|(buffer, array)| (array.len / lanes(array.len, program.value_bytes), buffer))
        .collect();
    candidates.sort_unstable();
    let mut left = REGISTER_BUDGET as u64;
    let mut kept = BTreeSet::new();
    for (vectors, buffer) in candidates {
        if vectors <= left {
            left -= vectors;
            kept.insert(buffer);
        }
    }
    kept
}

fn only_vectors(program: &Program, stmts: &[Stmt], buffer: usize) -> bool {
    stmts.iter().all(|stmt| match stmt {
        Stmt::Walk { body, .. } | Stmt::Range { body, .. } => only_vectors(program, body, buffer),
        Stmt::Clear { .. } => true,
        Stmt::Product { target, factors, lanes, .. } => {
            let used = factors.iter().chain([target]).any(|&p| p == Place::Buffer(buffer));
            !used || lanes.as_ref() == program.buffers[buffer].indices.first()
        }
    })
}
