//! The pass that decides which buffers are kept in vector registers.

use std::collections::BTreeSet;

use crate::lower::ir::{Kept, Place, Program, Stmt};
use crate::lower::vectors::lanes;
#[cfg(doc)]
use crate::optimisation::Optimisation;

/// Vector registers that buffers may take together: of the 32 of AVX-512, some are left for
/// operands.
pub const REGISTER_BUDGET: usize = 24;

/// The same where there are more than two buffers: under loops so deep the C compiler keeps addresses in
/// vector registers too, and with 21 for buffers gcc 12 moved the innermost sums to the stack.
const DEEP_BUDGET: usize = 20;

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
