//! Lowering itself.
//!
//! 1. A loop over the next level of a sparse operand, inside loops over all levels above, runs over
//!    its nodes; every other loop is dense.  This is always allowed: every sparse operand
//!    multiplies everything, so what lies outside its pattern contributes nothing.  Where a loop is over
//!    the next levels of several operands it visits what all of them have: the first operand leads,
//!    since its nodes are cut into tasks, otherwise the one with the shortest fibres, and the
//!    coordinate is located in the others.
//! 2. A dense innermost loop around one term becomes lanes of a vector statement if every array
//!    stores its index contiguously.
//! 3. A buffer is cleared where its fused loops end, or assigned if nothing is summed into it.
//! 4. Dense operands and the output are stored in the order that suits the loops: indices of the
//!    sparse operand first, in the order of its levels, then the others as they are looped, so that
//!    what the innermost loop runs over is contiguous.  Of an operand those come before all that are
//!    looped outside the loops over the tree: these read one block of it.
//! 5. The output is accumulated in a buffer as far out as its sparse indices allow, so that a row
//!    is written once.  A coordinate that another operand lacks leaves its row as it was; so with several
//!    sparse operands the output is cleared, and added to.
//! 6. An assembled output is summed up in its workspace inside the outermost loops of the last term that are over
//!    its indices, and appended where such an iteration ends.  Sums that surely meet something are accumulated as in
//!    5, inside all loops over indices of the output but lanes.

use crate::einsum::{Expr, Index, IndexSet};
use crate::error::CoreError;
use crate::lower::check::check;
use crate::lower::ir::{
    Addressing, Array, LevelParam, LevelStorage, Pieces, Place, PrefetchRow, Program, Stmt, Tasks,
    TreeLevel, TreeParam, Update, Zeroing,
};
use crate::nest::{Buffer, Node, buffers};
use crate::path::{Source, Term};
use crate::schedule::{
    Conflict, Cut, Prefetch, PrefetchOf, Problem, Schedule, Space, Split, Workspace,
};

/// Output blocks of up to this many bytes are accumulated in a buffer: half a first-level cache.
const MAX_ACCUMULATOR_BYTES: u64 = 16 << 10;

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
    let internal = |why: &str| CoreError::Internal(format!("{why} in {}", problem.expr));
    let buffers = buffers(&schedule.path, &schedule.nest).ok_or_else(|| internal("no buffers"))?;
    let orders = schedule.nest.orders(schedule.path.terms.len());
    let orders = orders.ok_or_else(|| internal("no loop orders"))?;
    if problem.sparse.is_empty() || stored.len() != problem.sparse.len() {
        return Err(internal("a sparse operand that is not stored"));
    }
    let mut emitter = Emitter { problem, schedule, buffers, orders, accumulator: None };
    let mut program = emitter.empty_program(stored);
    emitter.place_accumulator(&mut program);
    program.body = emitter.nodes(&schedule.nest.roots, &mut Vec::new(), &program);
    if program.is_assembled() && emitter.outside().is_empty() {
        program.body.push(Stmt::Append { outside: Vec::new() });
    }
    program.zeroing = emitter.zeroing();
    check(&program)?;
    Ok(program)
}

struct Emitter<'a> {
    problem: &'a Problem,
    schedule: &'a Schedule,
    buffers: Vec<Buffer>,
    /// The loops around each term.
    orders: Vec<Vec<Index>>,
    accumulator: Option<Accumulator>,
}

/// A buffer that collects a block of the output inside the first `depth` loops of the last term.
struct Accumulator {
    depth: usize,
    buffer: usize,
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
        let dense = dense_inputs.iter().map(|&input| {
            let access = &expr.inputs[input];
            let reads = |term: &Term| term.inputs.contains(&Source::Input(input));
            let reader = self.schedule.path.terms.iter().position(reads);
            let reader = reader.expect("a path that reads every input");
            array(&names[input], &self.problem.operand_order(&access.indices, &self.orders[reader]))
        });
        let pattern = self.problem.has_pattern_output();
        let sparse_indices = self.problem.sparse_indices();
        let outside: IndexSet = self.outside().iter().copied().collect();
        let in_block = |index: &Index| {
            !(outside.contains(*index) || pattern && sparse_indices.contains(*index))
        };
        let output: Vec<Index> =
            self.problem.stored(&expr.output.indices).filter(in_block).collect();
        let loops = self.orders.last().map_or(&[][..], Vec::as_slice);
        let output = self.problem.output_order(&output, loops);
        let conflict = if pattern { Conflict::Positions } else { Conflict::Privatise };
        let trees = self.problem.sparse.iter().zip(&self.schedule.layouts).zip(stored);
        let trees = trees.map(|((operand, layout), stored)| {
            let mut stored = stored.iter().copied().peekable();
            let levels = layout.levels.iter().filter_map(|level| {
                let cut = self.problem.position_cut(level.index);
                let storage = if cut.is_some() { stored.peek().copied() } else { stored.next() };
                Some(LevelParam {
                    index: level.index,
                    extent: self.problem.extents.of(level.index),
                    storage: storage?,
                    fusion: level.fusion,
                    pieces: cut.and_then(pieces),
                })
            });
            let name = operand_names[operand.input].clone();
            TreeParam { name, levels: levels.collect() }
        });
        let buffers = self.buffers.iter().map(|buffer| {
            let order = &self.orders[buffer.term];
            let stored = self.problem.stored(order);
            let stored: Vec<Index> =
                stored.filter(|&index| buffer.stored.contains(index)).collect();
            array(&format!("T{}", buffer.term + 1), &stored)
        });
        Program {
            title: expr.to_string(),
            schedule: self.schedule.text(expr),
            value_bytes: bytes,
            trees: trees.collect(),
            dense: dense.collect(),
            output: array(&expr.output.tensor, &output),
            addressing: match (self.schedule.workspace, pattern) {
                (Some(workspace), _) => Addressing::Assembled(workspace),
                (None, true) => Addressing::Positions,
                (None, false) => Addressing::Coordinates,
            },
            buffers: buffers.collect(),
            conflict: self.schedule.parallel.map_or(conflict, |p| p.conflict),
            tasks: Tasks {
                space: self.schedule.parallel.map_or(Space::Position, |parallel| parallel.space),
                cut: self.schedule.parallel.and_then(|parallel| parallel.tasks),
                per_thread: self.schedule.tasks_per_thread(self.problem),
            },
            vectors: self.schedule.vectors,
            zeroing: Zeroing::All,
            prefetches: self.prefetches(&dense_inputs),
            optimisations: self.problem.optimisations,
            body: Vec::new(),
        }
    }

    /// The loops around the last term outside of what an assembled output sums up together.
    fn outside(&self) -> &[Index] {
        let last = self.orders.last().map_or(&[][..], Vec::as_slice);
        match self.schedule.workspace {
            Some(_) => &last[..self.problem.assembled_outside(last)],
            None => &[],
        }
    }

    /// Returns the prefetches, where `dense` are the dense inputs.
    fn prefetches(&self, dense: &[usize]) -> Vec<PrefetchRow> {
        let levels = self.problem.leader().map_or(&[][..], |x| &x.levels);
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

    /// Decides where the output is accumulated, and adds the buffer.
    fn place_accumulator(&mut self, program: &mut Program) {
        let Some(order) = self.orders.last() else { return };
        let output = self.problem.expr.output.set();
        let depth = match self.schedule.workspace {
            Some(workspace) => self.problem.workspace_sums(order, workspace),
            None => {
                let sparse = output & self.problem.sparse_indices();
                let depth = order.iter().rposition(|&index| sparse.contains(index));
                depth
                    .map(|at| at + 1)
                    .filter(|&depth| order[depth..].iter().any(|&index| !output.contains(index)))
            }
        };
        let Some(depth) = depth else { return };
        let outside: IndexSet = order[..depth].iter().copied().collect();
        let dims: Vec<(Index, u64)> = program
            .output
            .indices
            .iter()
            .copied()
            .filter(|&index| !outside.contains(index))
            .map(|index| (index, self.problem.extents.of(index)))
            .collect();
        // Of a block over an index that is a level of another operand, few elements are met.
        let others = self.problem.sparse.iter().skip(1).flat_map(|x| &x.levels);
        if !program.is_assembled()
            && others.into_iter().any(|level| dims.iter().any(|(index, _)| index == level))
        {
            return;
        }
        let array = Array::new("sum", &dims, self.problem.value_bytes);
        if array.len * self.problem.value_bytes as u64 <= MAX_ACCUMULATOR_BYTES {
            self.accumulator = Some(Accumulator { depth, buffer: program.buffers.len() });
            program.buffers.push(array);
        }
    }

    /// Rows are assigned once only if the accumulator sits directly in the owned root loop, and
    /// positions if it sits in the loops over all levels or nothing is summed into them.
    fn zeroing(&self) -> Zeroing {
        if self.problem.sparse.len() > 1 {
            return Zeroing::All;
        }
        let owned = self.schedule.parallel.is_some_and(|p| p.conflict == Conflict::Boundary);
        let Some(Accumulator { depth, .. }) = self.accumulator else {
            return if self.assigns_positions() { Zeroing::Gaps } else { Zeroing::All };
        };
        let levels = self.problem.leader().map_or(&[][..], |x| &x.levels);
        let inside = self.orders.last().is_some_and(|order| order[..depth] == levels[..]);
        let positions = self.problem.has_pattern_output() && inside;
        if positions || owned && depth == 1 { Zeroing::Gaps } else { Zeroing::All }
    }

    /// Tells whether the last term meets every element of a pattern's output once at most.
    fn assigns_positions(&self) -> bool {
        let output = self.problem.expr.output.set();
        let once = |order: &Vec<Index>| order.iter().all(|&index| output.contains(index));
        self.problem.has_pattern_output() && self.orders.last().is_some_and(once)
    }

    fn nodes(&self, nodes: &[Node], around: &mut Vec<Index>, program: &Program) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        for node in nodes {
            for buffer in self.cleared_before(node, around) {
                stmts.push(Stmt::Clear { buffer });
            }
            match node {
                Node::Term(term) => stmts.push(self.product(*term, None, program)),
                Node::Loop { index, body } => {
                    stmts.push(self.looped(*index, body, around, program));
                }
            }
        }
        stmts
    }

    fn looped(
        &self,
        index: Index,
        body: &[Node],
        around: &mut Vec<Index>,
        program: &Program,
    ) -> Stmt {
        let visited = self.problem.visited_levels(index, around);
        let visited: Vec<TreeLevel> =
            visited.into_iter().map(|(tree, level)| TreeLevel { tree, level }).collect();
        let vector = self.schedule.vectors.allow(index);
        if let ([], [Node::Term(term)], true) = (visited.as_slice(), body, vector) {
            let product = self.product(*term, Some(index), program);
            if contiguous(&product, index, program) {
                return product;
            }
        }
        around.push(index);
        let mut stmts = self.nodes(body, around, program);
        let here = |a: &&Accumulator| a.depth == around.len() && self.holds_last(body);
        if let Some(accumulator) = self.accumulator.as_ref().filter(here) {
            stmts.insert(0, Stmt::Clear { buffer: accumulator.buffer });
            stmts.push(self.store(accumulator.buffer, program));
        }
        let outside = self.outside();
        if !outside.is_empty() && outside == around.as_slice() && self.holds_last(body) {
            stmts.push(Stmt::Append { outside: outside.to_vec() });
        }
        around.pop();
        match visited.split_first() {
            Some((&lead, located)) => {
                Stmt::LevelLoop { lead, located: located.to_vec(), body: stmts }
            }
            None => Stmt::DenseLoop { index, extent: self.problem.extents.of(index), body: stmts },
        }
    }

    /// The buffers that are built inside `node` and rebuilt in each iteration of `around`.
    fn cleared_before(&self, node: &Node, around: &[Index]) -> Vec<usize> {
        let (first, end) = term_range(node);
        let here = |buffer: &&Buffer| {
            (first..end).contains(&buffer.term)
                && buffer.fused == around
                && self.update_of(buffer.term) == Update::Add
        };
        self.buffers.iter().filter(here).map(|buffer| buffer.term).collect()
    }

    /// A buffer is assigned if every loop below its fused ones is dense and one of its own.
    fn update_of(&self, term: usize) -> Update {
        let buffer = &self.buffers[term];
        let order = &self.orders[term];
        let depth = buffer.fused.len();
        let own = |at: usize| {
            buffer.stored.contains(order[at])
                && self.problem.visited_levels(order[at], &order[..at]).is_empty()
        };
        if (depth..order.len()).all(own) { Update::Assign } else { Update::Add }
    }

    fn holds_last(&self, nodes: &[Node]) -> bool {
        nodes.last().is_some_and(|node| term_range(node).1 == self.orders.len())
    }

    fn product(&self, term: usize, lanes: Option<Index>, program: &Program) -> Stmt {
        let dense = |input: usize| self.problem.dense_inputs().filter(|&i| i < input).count();
        let factors = self.schedule.path.terms[term].inputs.iter().map(|source| match *source {
            Source::Input(input) => match self.problem.sparse_place(input) {
                Some(tree) => Place::Value(tree),
                None => Place::Dense(dense(input)),
            },
            Source::Term(t) => Place::Buffer(t),
        });
        let factors = factors.collect();
        if term + 1 < self.orders.len() {
            let target = Place::Buffer(term);
            return Stmt::Product { target, factors, update: self.update_of(term), lanes };
        }
        let accumulated = self.accumulator.as_ref().map(|a| Place::Buffer(a.buffer));
        debug_assert!(accumulated.is_none_or(|place| program.array(place).is_some()));
        let once = accumulated.is_none() && self.assigns_positions();
        let update = if once { Update::Assign } else { Update::Add };
        let target = accumulated.unwrap_or(Place::Output);
        Stmt::Product { target, factors, update, lanes }
    }

    /// Writes the accumulator to the output.
    fn store(&self, buffer: usize, program: &Program) -> Stmt {
        let update = if self.zeroing() == Zeroing::Gaps { Update::Assign } else { Update::Add };
        let array = &program.buffers[buffer];
        let (target, factors) = (Place::Output, vec![Place::Buffer(buffer)]);
        // The output may store another index last, one outside the accumulator.
        let last = array.indices.last().copied();
        let lanes = last.filter(|&last| has_rows(program) && ends_with(&program.output, last));
        let mut stmt = Stmt::Product { target, factors, update, lanes };
        let outer = array.indices.len() - usize::from(lanes.is_some());
        for at in (0..outer).rev() {
            let (index, extent) = (array.indices[at], array.extents[at]);
            stmt = Stmt::DenseLoop { index, extent, body: vec![stmt] };
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

/// Tells whether every array of `product` that has `index` stores it contiguously.
fn contiguous(product: &Stmt, index: Index, program: &Program) -> bool {
    let Stmt::Product { target, factors, .. } = product else { return false };
    if *target == Place::Output && !has_rows(program) {
        return false;
    }
    let mut arrays = factors.iter().chain([target]).filter_map(|&place| program.array(place));
    arrays.all(|array| !array.indices.contains(&index) || ends_with(array, index))
}

/// Tells whether the output has rows: a list of cells has none.
fn has_rows(program: &Program) -> bool {
    program.addressing != Addressing::Assembled(Workspace::List)
}

fn ends_with(array: &Array, index: Index) -> bool {
    array.indices.last() == Some(&index)
}

/// The terms below `node`: the first and one past the last.
fn term_range(node: &Node) -> (usize, usize) {
    (outermost(node, <[Node]>::first), outermost(node, <[Node]>::last) + 1)
}

/// The first or the last term inside `node`, as `end` takes the first or the last node of a body.
fn outermost(node: &Node, end: fn(&[Node]) -> Option<&Node>) -> usize {
    match node {
        Node::Term(term) => *term,
        Node::Loop { body, .. } => end(body).map_or(0, |node| outermost(node, end)),
    }
}
