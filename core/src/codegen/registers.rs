//! Which buffers live in vector registers.

use std::collections::BTreeSet;

use crate::codegen::{DEEP_BUDGET, REGISTER_BUDGET, VECTOR_BYTES};
use crate::lower::{Place, Program, Stmt};
use crate::optimisation::Optimisation;

/// Returns the values in a vector over rows of `row` values: a whole line, or a shorter row; a single
/// value of a shorter row whose length must not be known.
pub(super) fn lanes(program: &Program, row: u64) -> u64 {
    let line = (VECTOR_BYTES / program.value_bytes) as u64;
    match row < line && !program.optimisations.has(Optimisation::Constants) {
        true => 1,
        false => row.min(line),
    }
}

/// Where the buffers that vector registers could hold are kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// In registers.
    pub(super) registers: BTreeSet<usize>,
    /// In memory, though registers could hold each of them alone: a C compiler would put them there
    /// too, and others on the stack.
    pub(super) memory: BTreeSet<usize>,
}

/// Returns where buffers are kept: in registers those of one index, used in vector statements over it
/// only, smallest first while the budget lasts; of equal ones the inner first.  Without
/// [`Optimisation::Registers`] all are in memory.
pub(super) fn kept(program: &Program) -> Kept {
    if !program.optimisations.keeps_registers() {
        let arrays = program.buffers.iter().enumerate();
        let memory = arrays.filter(|(_, array)| !array.indices.is_empty()).map(|(at, _)| at);
        return Kept { registers: BTreeSet::new(), memory: memory.collect() };
    }
    let mut candidates: Vec<(u64, usize)> = program
        .buffers
        .iter()
        .enumerate()
        .filter(|(buffer, array)| {
            let plain = array.indices.len() == 1 && !program.marked.contains(buffer);
            plain && only_vectors(program, &program.body, *buffer)
        })
        .map(|(buffer, array)| (array.len / lanes(program, array.len), buffer))
        .collect();
    candidates.sort_unstable();
    let deep = candidates.len() > 2;
    let mut left = if deep { DEEP_BUDGET } else { REGISTER_BUDGET } as u64;
    let mut kept = Kept::default();
    for (vectors, buffer) in candidates {
        if vectors <= left {
            left -= vectors;
            kept.registers.insert(buffer);
        } else if vectors <= REGISTER_BUDGET as u64 {
            kept.memory.insert(buffer);
        }
    }
    kept
}

fn only_vectors(program: &Program, stmts: &[Stmt], buffer: usize) -> bool {
    stmts.iter().all(|stmt| match stmt {
        Stmt::LevelLoop { body, .. }
        | Stmt::Union { body, .. }
        | Stmt::Within { body, .. }
        | Stmt::DenseLoop { body, .. } => only_vectors(program, body, buffer),
        Stmt::Clear { .. } | Stmt::Mark { .. } | Stmt::Append { .. } => true,
        Stmt::Product { target, factors, lanes, .. } => {
            let used = factors.iter().chain([target]).any(|&p| p == Place::Buffer(buffer));
            !used || lanes.as_ref() == program.buffers[buffer].indices.first()
        }
    })
}
