//! Programs over rows whose fringe, their last columns, is stored apart.
//!
//! A row of 50 values of 8 bytes takes seven lines of 64 bytes, the last for two values.  Where the two are
//! stored apart, a gather brings six lines, and one line of the fringe serves four rows.  One walk takes both:
//!
//! ```text
//! for k in level 3 of X:                       for k in level 3 of X:
//!     T1(r) += X(i,j,k) * A3(k,r)      ->          T1(r) += X(i,j,k) * A3(k,r)               r < 48
//!                                                  T1_fringe(a) += X(i,j,k) * A3_fringe(k,a)     a < 2
//! ```

use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::lower::check::check;
use crate::lower::ir::{Array, Place, Program, Stmt};

/// Returns the program that does for `columns` more columns, stored apart, what `program` does for the
/// columns counted by `lanes`: dense operands with that index are followed, after all others, by one with
/// the fringe of their rows, and the output by [`Program::fringe`].  `None` if a statement mixes columns, or
/// rows of the output have more indices than one.
///
/// # Errors
///
/// [`CoreError::Internal`] for a program that breaks a rule: a fault of this function.
pub fn with_fringe(
    program: &Program,
    lanes: Index,
    columns: u64,
) -> Result<Option<Program>, CoreError> {
    let Some(own) = unused(program) else { return Ok(None) };
    let apart = Apart { program, lanes, own, columns };
    if program.output.indices.len() != 2 || apart.fringe_of(&program.output).is_none() {
        return Ok(None);
    }
    let Some(body) = apart.stmts(&program.body) else { return Ok(None) };
    let all =
        |arrays: &[Array]| arrays.iter().filter_map(|a| apart.fringe_of(a)).collect::<Vec<_>>();
    let with = Program {
        dense: [program.dense.clone(), all(&program.dense)].concat(),
        buffers: [program.buffers.clone(), all(&program.buffers)].concat(),
        fringe: apart.fringe_of(&program.output),
        body,
        ..program.clone()
    };
    check(&with)?;
    Ok(Some(with))
}

/// An index that the program does not use.
fn unused(program: &Program) -> Option<Index> {
    let arrays = program.dense.iter().chain(&program.buffers).chain([&program.output]);
    let dense = arrays.flat_map(|array| array.indices.iter().copied());
    let used: IndexSet = dense.chain(program.levels.iter().map(|level| level.index)).collect();
    ('a'..='z').filter_map(Index::new).find(|&index| !used.contains(index))
}

/// What is stored apart.
struct Apart<'a> {
    program: &'a Program,
    /// The index of columns.
    lanes: Index,
    /// That of the columns of the fringe, and how many there are.
    own: Index,
    columns: u64,
}

impl Apart<'_> {
    /// The array of the fringe of the rows of `array`; `None` if it does not end in the index of columns.
    fn fringe_of(&self, array: &Array) -> Option<Array> {
        let (&last, outer) = array.indices.split_last()?;
        let dims = outer.iter().copied().zip(array.extents.iter().copied());
        let dims: Vec<_> = dims.chain([(self.own, self.columns)]).collect();
        let name = format!("{}_fringe", array.name);
        (last == self.lanes).then(|| Array::new(&name, &dims, self.program.value_bytes))
    }

    /// The place of the fringe of `place`: itself if it lacks the index of columns.
    fn fringe_place(&self, place: Place) -> Place {
        let has = |array: &&Array| array.indices.contains(&self.lanes);
        if !self.program.array(place).is_some_and(|array| has(&array)) {
            return place;
        }
        let after =
            |arrays: &[Array], at: usize| arrays.len() + arrays[..at].iter().filter(has).count();
        match place {
            Place::Dense(at) => Place::Dense(after(&self.program.dense, at)),
            Place::Buffer(at) => Place::Buffer(after(&self.program.buffers, at)),
            Place::Output => Place::Fringe,
            Place::Value | Place::Fringe => place,
        }
    }

    /// The statements with those for the fringe; `None` if one mixes columns.
    fn stmts(&self, stmts: &[Stmt]) -> Option<Vec<Stmt>> {
        let mut all = Vec::with_capacity(2 * stmts.len());
        for stmt in stmts {
            let (first, second) = self.stmt(stmt)?;
            all.extend([first].into_iter().chain(second));
        }
        Some(all)
    }

    /// A statement, and that for the fringe if it has columns.
    fn stmt(&self, stmt: &Stmt) -> Option<(Stmt, Option<Stmt>)> {
        match stmt {
            Stmt::Walk { level, body } => {
                Some((Stmt::Walk { level: *level, body: self.stmts(body)? }, None))
            }
            Stmt::Range { index, extent, body } => {
                let (index, extent, body) = (*index, *extent, self.stmts(body)?);
                (index != self.lanes).then_some((Stmt::Range { index, extent, body }, None))
            }
            Stmt::Clear { buffer } => {
                let second = match self.fringe_place(Place::Buffer(*buffer)) {
                    Place::Buffer(own) if own != *buffer => Some(Stmt::Clear { buffer: own }),
                    _ => None,
                };
                Some((stmt.clone(), second))
            }
            Stmt::Product { target, factors, mode, lanes } => {
                let own: Vec<Place> =
                    factors.iter().map(|&place| self.fringe_place(place)).collect();
                let to = self.fringe_place(*target);
                if own == *factors && to == *target {
                    return Some((stmt.clone(), None));
                }
                // Arrays in a statement over lanes end in their index.
                let apart = *lanes == Some(self.lanes) && to != *target;
                let second =
                    Stmt::Product { target: to, factors: own, mode: *mode, lanes: Some(self.own) };
                apart.then_some((stmt.clone(), Some(second)))
            }
        }
    }
}
