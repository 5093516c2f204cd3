//! Unites the programs of the products of a sum into one program.
//!
//! ```text
//! for i in level 1 of X           for i in level 1 of W        for i in level 1 of X or level 1 of W
//!   for j in level 2 of X           for k in level 2 of W        if in level 1 of X
//!     for k in level 2 of Y           Z(k) += W(i,k)               for j in level 2 of X ...
//!       Z(k) += X(i,j) * Y(j,k)     append Z at (i)              if in level 1 of W
//!   append Z at (i)                                                for k in level 2 of W ...
//!                                                                append Z at (i)
//! ```
//!
//! The loops outside of the workspace become unions, and all products add to one workspace.  Each element of the
//! sum is therefore appended once, and no product gets a list of its own.

use crate::einsum::Index;
use crate::error::CoreError;
use crate::lower::ir::{Array, Place, Program, Stmt};
use crate::lower::nest::passes;
use crate::schedule::{LevelKind, TreeLevel, Visited};

/// Unites programs of products with the same assembled output; returns `None` unless all of these hold:
///
/// - The loops outside of the workspaces are over the same indices.
/// - Each of them walks a compressed or dense level of the program's first tree, and no other level.
/// - The first of them walks the root.
/// - The workspaces are of the same kind.
/// - Only trees of the first program have fused levels.
///
/// Operands and buffers are numbered in the order of `programs`.  Tasks are cut from the first tree of the first program.
///
/// # Errors
///
/// [`CoreError::Internal`] if the united program fails the verifier: a fault of this function.
pub fn unite(programs: Vec<Program>) -> Result<Option<Program>, CoreError> {
    let mut programs = programs.into_iter().enumerate();
    let Some((_, mut united)) = programs.next() else { return Ok(None) };
    let outside = united.outside().to_vec();
    if outside.is_empty() || !united.appends_by_root() {
        return Ok(None);
    }
    let mut bodies = vec![(0, std::mem::take(&mut united.body))];
    for (number, mut other) in programs {
        let like = Like::of(&united, &bodies[0].1);
        let mut levels = other.trees.iter().flat_map(|tree| &tree.levels);
        let one_loop = levels.any(|level| level.kind == LevelKind::Singleton);
        if like != Like::of(&other, &other.body) || other.outside() != outside || one_loop {
            return Ok(None);
        }
        let first = united.trees.len();
        let mut body = std::mem::take(&mut other.body);
        let shift =
            Shift { trees: first, dense: united.dense.len(), buffers: united.buffers.len() };
        body.iter_mut().for_each(|stmt| shift.stmt(stmt));
        bodies.push((first, body));
        let named =
            |array: Array| Array { name: format!("{}_{}", array.name, number + 1), ..array };
        united.marked.extend(other.marked.iter().map(|buffer| buffer + shift.buffers));
        united.trees.extend(other.trees);
        united.dense.extend(other.dense.into_iter().map(named));
        united.buffers.extend(other.buffers.into_iter().map(named));
        let (_, product) = other.title.split_once('=').unwrap_or_default();
        united.title = format!("{} +{product}", united.title);
        united.schedule = format!("{}\n{}", united.schedule.trim_end(), other.schedule);
    }
    let Some(body) = unite_bodies(&united, bodies, &outside) else { return Ok(None) };
    united.body = body;
    passes(&mut united)?;
    Ok(Some(united))
}

/// What programs must have in common.
#[derive(PartialEq)]
struct Like {
    output: Array,
    addressing: crate::lower::Addressing,
    value_bytes: usize,
    /// See [`Program::cells_met_together`].
    together: u64,
}

impl Like {
    fn of(program: &Program, body: &[Stmt]) -> Like {
        Like {
            output: program.output.clone(),
            addressing: program.addressing,
            value_bytes: program.value_bytes,
            together: program.cells_met_together_in(body),
        }
    }
}

/// Unites the loops over `outside` of bodies, each with the number of the first of its trees.
fn unite_bodies(
    program: &Program,
    bodies: Vec<(usize, Vec<Stmt>)>,
    outside: &[Index],
) -> Option<Vec<Stmt>> {
    let (&index, inner) = outside.split_first()?;
    let (mut leads, mut inside) = (Vec::new(), Vec::new());
    for (first, mut body) in bodies {
        let one = body.pop().filter(|_| body.is_empty());
        let Some(Stmt::LevelLoop { lead: Visited::Level(lead), located, body, .. }) = one else {
            return None;
        };
        let level = program.level(lead);
        let listed = matches!(level.kind, LevelKind::Compressed | LevelKind::Dense);
        if level.index != index || !listed || level.pieces.is_some() || !located.is_empty() {
            return None;
        }
        // The same tree all the way down: a level of another one may have no node above.
        if lead.tree != first {
            return None;
        }
        leads.push(lead);
        inside.push((first, body));
    }
    let body = match inner {
        [] => within(&leads, inside)?,
        _ => unite_bodies(program, inside, inner)?,
    };
    Some(vec![Stmt::Union { leads, body }])
}

/// Puts bodies one behind the other, each within its level, and one append at the end.
fn within(leads: &[TreeLevel], bodies: Vec<(usize, Vec<Stmt>)>) -> Option<Vec<Stmt>> {
    let mut all = Vec::with_capacity(bodies.len() + 1);
    let mut append = None;
    for (&lead, (_, mut body)) in leads.iter().zip(bodies) {
        append = body.pop().filter(|stmt| matches!(stmt, Stmt::Append { .. }));
        append.as_ref()?;
        all.push(Stmt::Within { lead, body });
    }
    all.extend(append);
    Some(all)
}

/// What is added to the numbers of trees, dense operands and buffers of a later program.
#[derive(Clone, Copy)]
struct Shift {
    trees: usize,
    dense: usize,
    buffers: usize,
}

impl Shift {
    fn stmt(self, stmt: &mut Stmt) {
        match stmt {
            Stmt::LevelLoop { lead, located, body, .. } => {
                self.visited(lead);
                located.iter_mut().for_each(|at| self.visited(at));
                body.iter_mut().for_each(|stmt| self.stmt(stmt));
            }
            Stmt::Union { leads, body } => {
                leads.iter_mut().for_each(|lead| lead.tree += self.trees);
                body.iter_mut().for_each(|stmt| self.stmt(stmt));
            }
            Stmt::Within { lead, body } => {
                lead.tree += self.trees;
                body.iter_mut().for_each(|stmt| self.stmt(stmt));
            }
            Stmt::DenseLoop { body, .. } => body.iter_mut().for_each(|stmt| self.stmt(stmt)),
            Stmt::Clear { buffer } | Stmt::Mark { buffer } => *buffer += self.buffers,
            Stmt::Append { .. } => {}
            Stmt::Product { target, factors, .. } => {
                factors.iter_mut().chain([target]).for_each(|place| self.place(place));
            }
        }
    }

    fn visited(self, at: &mut Visited) {
        match at {
            Visited::Level(at) => at.tree += self.trees,
            Visited::Buffer(buffer) => *buffer += self.buffers,
        }
    }

    fn place(self, place: &mut Place) {
        match place {
            Place::Value(tree) => *tree += self.trees,
            Place::Dense(dense) => *dense += self.dense,
            Place::Buffer(buffer) => *buffer += self.buffers,
            Place::Output => {}
        }
    }
}
