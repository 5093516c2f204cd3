//! The verifier of programs.
//!
//! 1. The loops over the levels of each tree go from the root down, each inside the one above; levels that are
//!    joined store the same index.
//! 2. The value of a non-zero is read only inside loops over all levels of its tree.
//! 3. Every index of every array is bound by a loop around it or by the lanes.
//! 4. No index is bound twice.
//! 5. Buffers exist.
//! 6. An output addressed by positions is written only inside loops over all levels of the first tree.
//! 7. An assembled output is appended where the indices are bound that it is appended at.

use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::lower::ir::{Addressing, Place, Program, Stmt};
use crate::schedule::TreeLevel;

/// Checks `program` against the rules above.
///
/// # Errors
///
/// [`CoreError::Internal`]: a program that breaks a rule is a fault of lowering.
pub(super) fn check(program: &Program) -> Result<(), CoreError> {
    let at = At { bound: IndexSet::EMPTY, levels_around: vec![0; program.trees.len()] };
    program
        .body
        .iter()
        .try_for_each(|stmt| check_stmt(program, stmt, &at))
        .map_err(|why| CoreError::Internal(format!("{why} in the program of {}", program.title)))
}

#[derive(Clone)]
struct At {
    bound: IndexSet,
    /// How many levels of each tree the loops around run over.
    levels_around: Vec<usize>,
}

impl At {
    /// Returns what is bound inside a loop over `index`.
    fn inside(&self, index: Index) -> Result<At, String> {
        match self.bound.contains(index) {
            true => Err(format!("{index} is bound twice")),
            false => {
                Ok(At { bound: self.bound.with(index), levels_around: self.levels_around.clone() })
            }
        }
    }

    /// Tells whether loops over all levels of `tree` are around.
    fn is_at_leaf(&self, program: &Program, tree: usize) -> bool {
        self.levels_around.get(tree)
            == program.trees.get(tree).map(|tree| tree.levels.len()).as_ref()
    }
}

fn check_stmt(program: &Program, stmt: &Stmt, at: &At) -> Result<(), String> {
    match stmt {
        Stmt::LevelLoop { lead, located, body } => {
            let index = program.level(*lead).index;
            let mut at = at.inside(index)?;
            for &TreeLevel { tree, level } in std::iter::once(lead).chain(located) {
                let levels = &program.trees[tree].levels;
                if level != at.levels_around[tree] || level >= levels.len() {
                    let levels_around = at.levels_around[tree];
                    return Err(format!(
                        "a loop over level {level} stands inside loops over {levels_around} levels"
                    ));
                }
                if levels[level].index != index {
                    return Err(format!("{} is looped over as {index}", levels[level].index));
                }
                at.levels_around[tree] += 1;
            }
            body.iter().try_for_each(|stmt| check_stmt(program, stmt, &at))
        }
        Stmt::DenseLoop { index, body, .. } => {
            let at = at.inside(*index)?;
            body.iter().try_for_each(|stmt| check_stmt(program, stmt, &at))
        }
        Stmt::Append { outside } => {
            let bound = outside.iter().all(|index| at.bound.contains(*index));
            match bound && program.is_assembled() {
                true => Ok(()),
                false => Err(format!("{} is appended", program.output.name)),
            }
        }
        Stmt::Clear { buffer } => {
            let known = program.buffers.get(*buffer).is_some();
            if known { Ok(()) } else { Err(format!("there is no buffer {buffer}")) }
        }
        Stmt::Product { target, factors, lanes, .. } => {
            let at = lanes.map_or_else(|| Ok(at.clone()), |index| at.inside(index))?;
            factors.iter().chain([target]).try_for_each(|&place| check_place(program, place, &at))
        }
    }
}

fn check_place(program: &Program, place: Place, at: &At) -> Result<(), String> {
    match place {
        Place::Value(tree) if !at.is_at_leaf(program, tree) => {
            Err("a value is read outside of loops over all levels".into())
        }
        Place::Output
            if program.addressing == Addressing::Positions && !at.is_at_leaf(program, 0) =>
        {
            Err("a position is written outside of loops over all levels".into())
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
