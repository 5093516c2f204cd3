//! Lowering itself.
//!
//! What every loop does, and where sums stand, is decided before (`schedule::resolve`).  Here it becomes statements: a
//! level loop with the levels that it joins, a clear where fused loops end, a product for each term.  With several sparse
//! operands a coordinate that another operand lacks leaves its row as it was; so the output is cleared, and added to.  An
//! assembled output is appended where an iteration of the innermost loop outside of it ends.

use crate::einsum::{Expr, Index};
use crate::error::CoreError;
use crate::lower::check::check;
use crate::lower::ir::{
    Addressing, Array, Kept, LevelParam, LevelStorage, Pieces, Place, PrefetchRow, Program, Stmt,
    Tasks, Together, TreeParam, Update, Zeroing,
};
use crate::lower::registers::kept;
use crate::lower::together::together;
use crate::path::Source;
use crate::schedule::{
    Accumulator, Conflict, Cut, Intermediate, LoopNest, Marks, Over, Prefetch, PrefetchOf, Problem,
    Schedule, Space, Split, Step, has_rows, resolve,
};

/// Lowers `schedule` to a program for sparse operands whose levels are stored as `stored` says, in the
/// order of the problem's list.
///
/// # Errors
///
/// [`CoreError::Illegal`] if the schedule breaks a rule.
pub fn lower(
    problem: &Problem,
    schedule: &Schedule,
    stored: &[Vec<LevelStorage>],
) -> Result<Program, CoreError> {
    schedule.verify(problem)?;
    if problem.sparse.is_empty() || stored.len() != problem.sparse.len() {
        let why = format!("a sparse operand that is not stored in {}", problem.expr);
        return Err(CoreError::Internal(why));
    }
    let emitter = Emitter { problem, schedule, nest: resolve(problem, schedule)? };
    let mut program = emitter.empty_program(stored);
    program.body = emitter.steps(&emitter.nest.roots, 0);
    if program.is_assembled() && emitter.nest.outside == 0 {
        program.body.push(Stmt::Append { outside: Vec::new() });
    }
    passes(&mut program)?;
    Ok(program)
}

/// Decides which buffers are kept in registers, and which iterations are taken together; checks the program after each
/// pass.
pub(super) fn passes(program: &mut Program) -> Result<(), CoreError> {
    check(program)?;
    program.kept = kept(program);
    check(program)?;
    together(program);
    check(program)
}

struct Emitter<'a> {
    problem: &'a Problem,
    schedule: &'a Schedule,
    nest: LoopNest,
}

impl Emitter<'_> {
    fn empty_program(&self, stored: &[Vec<LevelStorage>]) -> Program {
        let expr = &self.problem.expr;
        let bytes = self.problem.value_bytes;
        let array = |name: &str, indices: &[Index]| {
            let dims: Vec<(Index, u64)> =
                indices.iter().map(|&index| (index, self.problem.extents.of(index))).collect();
            Array::new(name, &dims, bytes)
        };
        let (names, operand_names) = (c_names(expr), expr.operand_names());
        let dense_inputs: Vec<usize> = self.problem.dense_inputs().collect();
        let dense =
            dense_inputs.iter().map(|&input| array(&names[input], &self.nest.inputs[input]));
        let pattern = self.problem.has_pattern_output();
        let conflict = if pattern { Conflict::Positions } else { Conflict::Privatise };
        let trees = self.problem.sparse.iter().zip(&self.schedule.layouts).zip(stored);
        let trees = trees.map(|((operand, layout), stored)| {
            let mut stored = stored.iter().copied().peekable();
            let levels = layout.format.pairs().filter_map(|(index, kind)| {
                let cut = self.problem.position_cut(index);
                let storage = if cut.is_some() { stored.peek().copied() } else { stored.next() };
                Some(LevelParam {
                    index,
                    extent: self.problem.extents.of(index),
                    storage: storage?,
                    kind,
                    pieces: cut.and_then(pieces),
                })
            });
            let name = operand_names[operand.input].clone();
            TreeParam { name, levels: levels.collect() }
        });
        let made = self.nest.buffers.iter().enumerate();
        let made = made.map(|(term, made)| array(&format!("T{}", term + 1), &made.order));
        let sum = self.nest.accumulator.iter().map(|sum| array("sum", &sum.order));
        Program {
            title: expr.to_string(),
            schedule: self.schedule.text(expr),
            value_bytes: bytes,
            trees: trees.collect(),
            dense: dense.collect(),
            output: array(&expr.output.tensor, &self.nest.output),
            addressing: match (self.schedule.workspace, pattern) {
                (Some(workspace), _) => Addressing::Assembled(workspace),
                (None, true) => Addressing::Positions,
                (None, false) => Addressing::Coordinates,
            },
            buffers: made.chain(sum).collect(),
            kept: Kept::default(),
            marked: self.marks().map(|(term, _)| term).collect(),
            conflict: self.schedule.parallel.map_or(conflict, |p| p.conflict),
            tasks: Tasks {
                space: self.schedule.parallel.map_or(Space::Position, |parallel| parallel.space),
                cut: self.schedule.parallel.and_then(|parallel| parallel.tasks),
                per_thread: self.schedule.tasks_per_thread(self.problem),
            },
            vectors: self.schedule.vectors,
            zeroing: self.zeroing(),
            prefetches: self.prefetches(&dense_inputs),
            optimisations: self.problem.optimisations,
            body: Vec::new(),
        }
    }

    /// Returns the prefetches, where `dense` are the dense inputs.
    fn prefetches(&self, dense: &[usize]) -> Vec<PrefetchRow> {
        let levels = self.problem.leader().map_or(&[][..], |x| x.levels());
        let prefetch = |prefetch: &Prefetch| {
            let (place, set) = match prefetch.of {
                PrefetchOf::Output => (Place::Output, self.problem.expr.output.set()),
                PrefetchOf::Input(input) => {
                    let place = dense.iter().position(|&dense| dense == input)?;
                    (Place::Dense(place), self.problem.expr.inputs[input].set())
                }
            };
            let level = levels.iter().position(|&level| set.contains(level))?;
            Some(PrefetchRow { level, place, distance: prefetch.distance })
        };
        self.schedule.prefetches.iter().filter_map(prefetch).collect()
    }

    /// Rows are assigned once only if the accumulator sits directly in the owned root loop, and
    /// positions if it sits in the loops over all levels or nothing is summed into them.
    fn zeroing(&self) -> Zeroing {
        if self.problem.sparse.len() > 1 || self.marks().next().is_some() {
            return Zeroing::All;
        }
        let owned = self.schedule.parallel.is_some_and(|p| p.conflict == Conflict::Boundary);
        let Some(Accumulator { depth, .. }) = self.nest.accumulator else {
            return if self.assigns_positions() { Zeroing::Gaps } else { Zeroing::All };
        };
        let levels = self.problem.leader().map_or(&[][..], |x| x.levels());
        let positions = self.problem.has_pattern_output() && self.nest.last()[..depth] == *levels;
        if positions || owned && depth == 1 { Zeroing::Gaps } else { Zeroing::All }
    }

    /// Tells whether the last term meets every element of a pattern's output once at most.
    fn assigns_positions(&self) -> bool {
        let output = self.problem.expr.output.set();
        let once = self.nest.last().iter().all(|&index| output.contains(index));
        self.problem.has_pattern_output() && once
    }

    /// Lowers `steps` inside `depth` loops.
    fn steps(&self, steps: &[Step], depth: usize) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        for &step in steps {
            let cleared = self.cleared_before(step, depth);
            stmts.extend(cleared.map(|buffer| Stmt::Clear { buffer }));
            stmts.push(match step {
                Step::Term(term) => self.product(term),
                Step::Loop(number) => self.looped(number, depth),
            });
        }
        stmts
    }

    /// The sparse buffers, by term.
    fn marks(&self) -> impl Iterator<Item = (usize, Marks)> + '_ {
        let made = self.nest.buffers.iter().enumerate();
        made.filter_map(|(term, made)| Some((term, made.marks?)))
    }

    /// Lowers the loop `number` inside `depth` others.
    fn looped(&self, number: usize, depth: usize) -> Stmt {
        let own = &self.nest.loops[number];
        if let (Over::Lanes, [Step::Term(term)]) = (&own.over, own.body.as_slice()) {
            return self.product(*term);
        }
        let depth = depth + 1;
        let around = |term: usize| self.nest.around[term].get(depth - 1) == Some(&number);
        let marked = self.marks().filter(|(term, marks)| marks.depth == depth && around(*term));
        let mut body: Vec<Stmt> = marked.map(|(buffer, _)| Stmt::Mark { buffer }).collect();
        body.extend(self.steps(&own.body, depth));
        let last = own.body.last();
        let last = last.is_some_and(|&step| self.term(step, <[Step]>::last) == self.last_term());
        if let Some(sum) = self.nest.accumulator.as_ref().filter(|sum| last && sum.depth == depth) {
            body.insert(0, Stmt::Clear { buffer: self.last_term() });
            body.push(self.store(sum));
        }
        if last && self.nest.outside == depth {
            body.push(Stmt::Append { outside: self.nest.last()[..depth].to_vec() });
        }
        match &own.over {
            Over::Coordinates { lead, located } => {
                let (lead, located) = (*lead, located.clone());
                Stmt::LevelLoop { lead, located, together: Together::One, body }
            }
            Over::Extent | Over::Lanes => {
                let (index, extent) = (own.index, self.problem.extents.of(own.index));
                Stmt::DenseLoop { index, extent, together: Together::One, body }
            }
        }
    }

    /// The buffers that are built inside `step` and rebuilt in each iteration of the `depth` loops around it.
    fn cleared_before(&self, step: Step, depth: usize) -> impl Iterator<Item = usize> + '_ {
        let (first, last) = (self.term(step, <[Step]>::first), self.term(step, <[Step]>::last));
        let made = self.nest.buffers.iter().enumerate().take(last + 1).skip(first);
        let here = move |(_, made): &(usize, &Intermediate)| {
            made.summed && made.buffer.fused.len() == depth
        };
        made.filter(here).map(|(term, _)| term)
    }

    /// The first or the last term inside `step`, as `end` takes the first or the last step of a body.
    fn term(&self, step: Step, end: fn(&[Step]) -> Option<&Step>) -> usize {
        match step {
            Step::Term(term) => term,
            Step::Loop(number) => {
                end(&self.nest.loops[number].body).map_or(0, |&step| self.term(step, end))
            }
        }
    }

    /// The place of the last term in the path.
    fn last_term(&self) -> usize {
        self.nest.buffers.len()
    }

    fn product(&self, term: usize) -> Stmt {
        let lanes = self.nest.lanes(term);
        let dense = |input: usize| self.problem.dense_inputs().filter(|&i| i < input).count();
        let factors = self.schedule.path.terms[term].inputs.iter().map(|source| match *source {
            Source::Input(input) => match self.problem.sparse_place(input) {
                Some(tree) => Place::Value(tree),
                None => Place::Dense(dense(input)),
            },
            Source::Term(t) => Place::Buffer(t),
        });
        let factors = factors.collect();
        if let Some(made) = self.nest.buffers.get(term) {
            let update = if made.summed { Update::Add } else { Update::Assign };
            return Stmt::Product { target: Place::Buffer(term), factors, update, lanes };
        }
        let accumulated = self.nest.accumulator.is_some();
        let once = !accumulated && self.assigns_positions();
        let update = if once { Update::Assign } else { Update::Add };
        let target = if accumulated { Place::Buffer(term) } else { Place::Output };
        Stmt::Product { target, factors, update, lanes }
    }

    /// Writes the accumulator to the output.
    fn store(&self, sum: &Accumulator) -> Stmt {
        let update = if self.zeroing() == Zeroing::Gaps { Update::Assign } else { Update::Add };
        let (target, factors) = (Place::Output, vec![Place::Buffer(self.last_term())]);
        // The output may store another index last, one outside the accumulator, and only a dense workspace has rows.
        let rows = has_rows(self.schedule.workspace);
        let last = sum.order.last().copied();
        let lanes = last.filter(|_| rows && self.nest.output.last() == sum.order.last());
        let mut stmt = Stmt::Product { target, factors, update, lanes };
        for &index in sum.order.iter().rev().skip(usize::from(lanes.is_some())) {
            let extent = self.problem.extents.of(index);
            stmt = Stmt::DenseLoop { index, extent, together: Together::One, body: vec![stmt] };
        }
        stmt
    }
}

/// The pieces that a cut of positions makes.
fn pieces(split: &Split) -> Option<Pieces> {
    let Split { command, factor, .. } = *split;
    match split.cut {
        Cut::Positions { chunks, .. } => Some(Pieces { command, factor, chunks }),
        Cut::Coordinates => None,
    }
}

/// Returns names for the inputs in generated code that meet neither indices, keywords nor the names
/// that the code itself uses: capitals and digits stay as they are, others end in `_in` and the
/// input's number.
fn c_names(expr: &Expr) -> Vec<String> {
    let plain = |name: &str| {
        let capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
        let letter = name.len() == 1
            && name.chars().any(|c| Index::new(c).is_some_and(|i| expr.all().contains(i)));
        name.chars().all(capital) && !letter
    };
    let names = expr.operand_names().into_iter().enumerate();
    let safe = |(input, name): (usize, String)| match plain(&name) {
        true => name,
        false => format!("{}_in{}", expr.inputs[input].tensor, input + 1),
    };
    names.map(safe).collect()
}
