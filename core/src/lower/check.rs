//! The verifier of programs.
//!
//! 1. The loops over the levels of each tree go from the root down, each inside the one above; levels that are
//!    joined store the same index.
//! 2. The value of a non-zero is read only inside loops over all levels of its tree.
//! 3. Every index of every array is bound by a loop around it or by the lanes.
//! 4. No index is bound twice.
//! 5. Buffers exist.
//! 6. An output addressed by positions is written only inside loops over all levels of the first tree.
//! 7. A marked buffer is read inside a loop that visits or locates its marks, and written where its cell was marked.
//! 8. The levels of a union belong to different trees and store the same index.  What is done within one level stands
//!    in the union.
//! 9. Only an assembled output is appended.  The indices that it is appended with are bound.
//! 10. Buffers in registers have one index, and no marks.
//! 11. A loop takes iterations together only as the pass `together` decides for its form.

use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::lower::ir::{Addressing, Place, Program, Stmt, Together};
use crate::lower::together::of_loop;
use crate::schedule::{TreeLevel, Visited};

/// Checks `program` against the rules above.
///
/// # Errors
///
/// [`CoreError::Internal`]: a program that breaks a rule is a fault of lowering.
pub(super) fn check(program: &Program) -> Result<(), CoreError> {
    let levels_around = vec![0; program.trees.len()];
    let (visited, marked, united) = (Vec::new(), Vec::new(), Vec::new());
    let at = At { bound: IndexSet::EMPTY, levels_around, visited, marked, united };
    check_kept(program)
        .and_then(|()| check_stmts(program, &program.body, at))
        .map_err(|why| CoreError::Internal(format!("{why} in the program of {}", program.title)))
}

fn check_kept(program: &Program) -> Result<(), String> {
    let row = |&buffer: &usize| {
        let indices = program.buffers.get(buffer).map(|array| array.indices.len());
        indices == Some(1) && !program.marked.contains(&buffer)
    };
    match program.kept.registers.iter().find(|buffer| !row(buffer)) {
        Some(buffer) => Err(format!("buffer {buffer} is no row, and in registers")),
        None => Ok(()),
    }
}

#[derive(Clone)]
struct At {
    bound: IndexSet,
    /// How many levels of each tree the loops around run over.
    levels_around: Vec<usize>,
    /// Buffers whose cell is a marked one.
    visited: Vec<usize>,
    /// Buffers whose cell was marked.
    marked: Vec<usize>,
    /// Trees whose levels are united.
    united: Vec<usize>,
}

impl At {
    /// Returns what is bound inside a loop over `index`.
    fn inside(&self, index: Index) -> Result<At, String> {
        match self.bound.contains(index) {
            true => Err(format!("{index} is bound twice")),
            false => Ok(At { bound: self.bound.with(index), ..self.clone() }),
        }
    }

    /// Tells whether loops over all levels of `tree` are around.
    fn is_at_leaf(&self, program: &Program, tree: usize) -> bool {
        self.levels_around.get(tree)
            == program.trees.get(tree).map(|tree| tree.levels.len()).as_ref()
    }
}

/// Checks statements that follow each other: what one marks holds for those behind it.
fn check_stmts(program: &Program, stmts: &[Stmt], mut at: At) -> Result<(), String> {
    for stmt in stmts {
        if let Stmt::Mark { buffer } = stmt {
            at.marked.push(*buffer);
        }
        check_stmt(program, stmt, &at)?;
    }
    Ok(())
}

fn check_stmt(program: &Program, stmt: &Stmt, at: &At) -> Result<(), String> {
    if let Stmt::LevelLoop { together, .. } | Stmt::DenseLoop { together, .. } = stmt
        && *together != Together::One
        && *together != of_loop(program, stmt)
    {
        return Err(format!("a loop takes iterations together as {together:?}"));
    }
    match stmt {
        Stmt::LevelLoop { lead, located, body, .. } => {
            let index = program.index_of(*lead);
            let mut at = at.inside(index)?;
            for visited in std::iter::once(lead).chain(located) {
                let TreeLevel { tree, level } = match *visited {
                    Visited::Level(at) => at,
                    Visited::Buffer(buffer) if program.index_of(*visited) == index => {
                        at.visited.push(buffer);
                        continue;
                    }
                    Visited::Buffer(buffer) => {
                        return Err(format!("marks of {buffer} are looped over as {index}"));
                    }
                };
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
            check_stmts(program, body, at)
        }
        Stmt::DenseLoop { index, body, .. } => {
            let at = at.inside(*index)?;
            check_stmts(program, body, at)
        }
        Stmt::Union { leads, body } => check_union(program, (leads, body), at),
        Stmt::Within { lead, body } => {
            let united = at.united.contains(&lead.tree);
            let depth = at.levels_around.get(lead.tree);
            if !united || depth != Some(&(lead.level + 1)) {
                return Err(format!("tree {} is not united around", lead.tree));
            }
            check_stmts(program, body, at.clone())
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
        Stmt::Mark { buffer } => {
            let index = program.bitmaps(*buffer).map(|_| program.buffers[*buffer].indices[0]);
            match index.is_some_and(|index| at.bound.contains(index)) {
                true => Ok(()),
                false => Err(format!("a cell of buffer {buffer} is marked")),
            }
        }
        Stmt::Product { target, factors, lanes, .. } => {
            let unmarked = |place: &Place, known: &[usize]| match *place {
                Place::Buffer(buffer) => {
                    program.marked.contains(&buffer) && !known.contains(&buffer)
                }
                _ => false,
            };
            if unmarked(target, &at.marked) || factors.iter().any(|f| unmarked(f, &at.visited)) {
                return Err("cells are used that may not be marked".into());
            }
            let at = lanes.map_or_else(|| Ok(at.clone()), |index| at.inside(index))?;
            factors.iter().chain([target]).try_for_each(|&place| check_place(program, place, &at))
        }
    }
}

fn check_union(
    program: &Program,
    (leads, body): (&[TreeLevel], &[Stmt]),
    at: &At,
) -> Result<(), String> {
    let first = leads.first().ok_or("a union of nothing")?;
    let index = program.level(*first).index;
    let mut inside = at.inside(index)?;
    for &lead in leads {
        let TreeLevel { tree, level } = lead;
        if at.levels_around.get(tree) != Some(&level) || inside.levels_around[tree] != level {
            return Err(format!("level {level} of tree {tree} is united out of its place"));
        }
        if program.level(lead).index != index || program.level(lead).pieces.is_some() {
            return Err(format!("level {level} of tree {tree} is united over {index}"));
        }
        inside.levels_around[tree] += 1;
        inside.united.push(tree);
    }
    check_stmts(program, body, inside)
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
