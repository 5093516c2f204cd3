//! The verifier of programs.
//!
//! 1. Levels are walked from the root down, each below the one above.
//! 2. The value of a non-zero is read only where all levels are walked.
//! 3. Every index of every array is bound by a loop around it or by the lanes.
//! 4. No index is bound twice.
//! 5. Buffers exist.
//! 6. An output addressed by positions is written only where all levels are walked.

use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::lower::ir::{Addressing, Place, Program, Stmt};

/// Checks `program` against the rules above.
///
/// # Errors
///
/// [`CoreError::Internal`]: a program that breaks a rule is a fault of lowering.
pub(super) fn check(program: &Program) -> Result<(), CoreError> {
    let at = At { bound: IndexSet::EMPTY, walked: 0 };
    program
        .body
        .iter()
        .try_for_each(|stmt| check_stmt(program, stmt, at))
        .map_err(|why| CoreError::Internal(format!("{why} in the program of {}", program.title)))
}

#[derive(Clone, Copy)]
struct At {
    bound: IndexSet,
    walked: usize,
}

fn check_stmt(program: &Program, stmt: &Stmt, at: At) -> Result<(), String> {
    let inside = |index, walked| {
        if at.bound.contains(index) {
            return Err(format!("{index} is bound twice"));
        }
        Ok(At { bound: at.bound.with(index), walked })
    };
    match stmt {
        Stmt::Walk { level, body } => {
            if *level != at.walked || *level >= program.levels.len() {
                return Err(format!("level {level} is walked inside {} levels", at.walked));
            }
            let at = inside(program.levels[*level].index, at.walked + 1)?;
            body.iter().try_for_each(|stmt| check_stmt(program, stmt, at))
        }
        Stmt::Range { index, body, .. } => {
            let at = inside(*index, at.walked)?;
            body.iter().try_for_each(|stmt| check_stmt(program, stmt, at))
        }
        Stmt::Clear { buffer } => {
            let known = program.buffers.get(*buffer).is_some();
            if known { Ok(()) } else { Err(format!("there is no buffer {buffer}")) }
        }
        Stmt::Product { target, factors, lanes, .. } => {
            let at = lanes.map_or(Ok(at), |index| inside(index, at.walked))?;
            factors.iter().chain([target]).try_for_each(|&place| check_place(program, place, at))
        }
    }
}

fn check_place(program: &Program, place: Place, at: At) -> Result<(), String> {
    match place {
        Place::Value if at.walked < program.levels.len() => {
            Err(format!("a value is read inside {} levels", at.walked))
        }
        Place::Output
            if program.addressing == Addressing::Positions && at.walked < program.levels.len() =>
        {
            Err(format!("a position is written inside {} levels", at.walked))
        }
        Place::Buffer(buffer) if buffer >= program.buffers.len() => {
            Err(format!("there is no buffer {buffer}"))
        }
        _ => {
            let array = program.array(place);
            let free =
                array.map(|array| array.indices.iter().copied().collect::<IndexSet>() - at.bound);
            match (array, free) {
                (Some(array), Some(free)) if !free.is_empty() => {
                    Err(format!("{} is read with {free} unbound", array.name))
                }
                _ => Ok(()),
            }
        }
    }
}
