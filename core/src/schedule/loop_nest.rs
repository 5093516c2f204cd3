//! What every loop of a schedule does, decided in one place.
//!
//! 1. A loop over the next level of a sparse operand, inside loops over all levels above, runs over its nodes; every
//!    other loop is dense.  This is always allowed: every sparse operand multiplies everything, so what lies outside its
//!    pattern contributes nothing.  Where a loop is over the next levels of several operands it visits what all of them
//!    have: the first operand leads, since its nodes are cut into tasks, otherwise the one with the shortest fibres, and
//!    the coordinate is located in the others.
//!    Loops between the reader of a sparse buffer and its fused loops visit marked cells only, for the same reason: the
//!    buffer multiplies whatever follows it.  It leads, or each coordinate is looked up in its marks.
//! 2. A buffer is cleared where its fused loops end, or assigned if nothing is summed into it.  A sparse one is marked
//!    where its producer surely meets the cell.
//! 3. Dense operands and the output are stored in the order that suits the loops ([`Problem::operand_order`]), buffers
//!    in that of the loops that make them.
//! 4. The output is accumulated in a buffer as far out as its sparse indices allow, so that a row is written once.
//! 5. An assembled output is summed up in its workspace inside the outermost loops of the last term that are over its
//!    indices.  Sums that surely meet something are accumulated as in 4, inside all loops over indices of the output but
//!    lanes.
//! 6. A dense innermost loop around one term becomes lanes of a vector statement if every array stores its index
//!    contiguously.
//!
//! Searches ask about a term's loops before there is a schedule: [`Problem::iterations`], [`Problem::assembled_outside`]
//! and [`SparseOperand::walked`] answer from the order of these loops alone.

use decompose_formats::dense::padded;

use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::{Buffer, Node, buffers, set_of};
use crate::path::Source;
use crate::schedule::{
    BufferKind, Problem, Rule, Schedule, SparseOperand, Workspace, has_rows, spread_pairs,
};

/// Output blocks of up to this many bytes are accumulated in a buffer: half a first-level cache.
const MAX_ACCUMULATOR_BYTES: u64 = 16 << 10;

/// The nest of a schedule, in which every loop says what it does.
#[derive(Clone, Debug, Default)]
pub struct LoopNest {
    /// The loops, in the order in which they open.
    pub loops: Vec<Loop>,
    /// The roots, in order.
    pub roots: Vec<Step>,
    /// The indices of the loops around each term, outermost first.
    pub orders: Vec<Vec<Index>>,
    /// The numbers of these loops.
    pub around: Vec<Vec<usize>>,
    /// The intermediate of each term but the last.
    pub buffers: Vec<Intermediate>,
    /// The stored indices of each dense input, outermost first; of a sparse one none.
    pub inputs: Vec<Vec<Index>>,
    /// The stored indices of the output: of its block at a position, or of its workspace.
    pub output: Vec<Index>,
    /// How many loops around the last term are outside of what an assembled output sums up together.
    pub outside: usize,
    /// Where the output is accumulated, if it is.
    pub accumulator: Option<Accumulator>,
}

/// A loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Its index.
    pub index: Index,
    /// How many loops are around it.
    pub depth: usize,
    /// What it runs over.
    pub over: Over,
    /// About how often its body runs: what [`Problem::iterations`] says of the loops, times `share`.
    pub iterations: f64,
    /// The part of these iterations that sparse buffers leave.
    pub share: f64,
    /// What it repeats, in order.
    pub body: Vec<Step>,
}

/// What stands in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A loop, by number.
    Loop(usize),
    /// A term, by position.
    Term(usize),
}

/// What a loop runs over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// The coordinates that all of these have, or pieces of the nodes of the next level.
    Coordinates {
        /// Whose coordinates are visited.
        lead: Visited,
        /// In what each of them is located.
        located: Vec<Visited>,
    },
    /// The extent of its index.
    Extent,
    /// The extent of its index, in a vector statement.
    Lanes,
}

/// What has coordinates of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visited {
    /// A level: the nodes below the current one above.
    Level(TreeLevel),
    /// The intermediate of a term, stored sparsely: its marked cells.
    Buffer(usize),
}

/// A level of one of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLevel {
    /// The tree: a place in [`Problem::sparse`].
    pub tree: usize,
    /// Its level.
    pub level: usize,
}

/// An intermediate.
#[derive(Clone, Debug)]
pub struct Intermediate {
    /// Its fused loops and the indices that it stores.
    pub buffer: Buffer,
    /// Those that stand in memory, outermost first.
    pub order: Vec<Index>,
    /// Whether several iterations add to one element, so that it is cleared beforehand.
    pub summed: bool,
    /// The cells that are marked of a sparse buffer.
    pub marks: Option<Marks>,
}

/// The marked cells of a sparse buffer: the coordinates of its first index that its producer meets.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// The index.
    pub index: Index,
    /// Inside how many loops of the producer a cell is marked.
    pub depth: usize,
    /// About how many are marked in an iteration of the fused loops.
    pub cells: f64,
}

/// A buffer that collects a block of the output inside the outermost loops of the last term.
#[derive(Clone, Debug)]
pub struct Accumulator {
    /// How many loops.
    pub depth: usize,
    /// The indices of the block, outermost first.
    pub order: Vec<Index>,
}

/// Decides what the loops of `schedule` do, whose path must be one of `problem`.
///
/// # Errors
///
/// [`CoreError::Illegal`] if the nest does not hold the terms of the path.
pub fn resolve(problem: &Problem, schedule: &Schedule) -> Result<LoopNest, CoreError> {
    let path = &schedule.path;
    let Some(buffers) = buffers(path, &schedule.nest) else {
        return Err(CoreError::Illegal { rule: Rule::Nest, found: schedule.nest.to_string() });
    };
    // Few nests have more loops than a term has indices, and two more for each other term.
    let (terms, loops) = (path.terms.len(), problem.expr.all().len() + 2 * path.terms.len());
    let mut nest = LoopNest {
        loops: Vec::with_capacity(loops),
        orders: Vec::with_capacity(terms),
        around: Vec::with_capacity(terms),
        buffers: Vec::with_capacity(terms),
        ..LoopNest::default()
    };
    let given = Given { problem, schedule, buffers };
    nest.roots = nest.open(&given, &schedule.nest.roots, &mut Vec::new());
    nest.inputs = vec![Vec::new(); problem.expr.inputs.len()];
    for (term, order) in path.terms.iter().zip(&nest.orders) {
        for source in &term.inputs {
            if let Source::Input(input) = *source
                && problem.sparse_place(input).is_none()
            {
                let indices = &problem.expr.inputs[input].indices;
                nest.inputs[input] = problem.operand_order(indices, order);
            }
        }
    }
    nest.place_output(problem, schedule.workspace);
    for number in 0..nest.loops.len() {
        let Loop { index, over: Over::Extent, body, .. } = &nest.loops[number] else { continue };
        if let [Step::Term(term)] = **body
            && schedule.vectors.allow(*index)
            && nest.is_contiguous(schedule, term, *index)
        {
            nest.loops[number].over = Over::Lanes;
        }
    }
    Ok(nest)
}

/// What is resolved.
struct Given<'a> {
    problem: &'a Problem,
    schedule: &'a Schedule,
    buffers: Vec<Buffer>,
}

impl Visited {
    /// Returns the level, if it is one.
    pub fn level(self) -> Option<TreeLevel> {
        match self {
            Visited::Level(at) => Some(at),
            Visited::Buffer(_) => None,
        }
    }
}

impl Over {
    /// Tells whether an iteration comes for sure: each node has a child.
    fn surely_meets(&self) -> bool {
        match self {
            Over::Coordinates { lead: Visited::Level(lead), located } => {
                lead.level > 0 && located.is_empty()
            }
            Over::Coordinates { lead: Visited::Buffer(_), .. } => false,
            Over::Extent | Over::Lanes => true,
        }
    }
}

impl LoopNest {
    /// Tells whether the loop at a position around `term` visits coordinates that are stored.
    pub fn is_over_level(&self, term: usize, at: usize) -> bool {
        matches!(self.over(term, at), Over::Coordinates { .. })
    }

    /// Returns about how often the body of the innermost of the first `depth` loops around `term` runs.
    pub fn iterations(&self, term: usize, depth: usize) -> f64 {
        let innermost = depth.checked_sub(1).map(|at| self.around[term][at]);
        innermost.map_or(1.0, |number| self.loops[number].iterations)
    }

    /// Tells whether a loop around `term` is over a level of the tree that is cut into tasks.
    pub fn is_cut(&self, term: usize) -> bool {
        self.around[term].iter().any(|&number| match self.loops[number].over {
            Over::Coordinates { lead: Visited::Level(lead), .. } => lead.tree == 0,
            _ => false,
        })
    }

    /// Returns the index of the lanes of a term.
    pub fn lanes(&self, term: usize) -> Option<Index> {
        let innermost = &self.loops[*self.around[term].last()?];
        (innermost.over == Over::Lanes).then_some(innermost.index)
    }

    /// Returns the indices of the loops around the last term, outermost first.
    pub fn last(&self) -> &[Index] {
        self.orders.last().map_or(&[], Vec::as_slice)
    }

    fn over(&self, term: usize, at: usize) -> &Over {
        &self.loops[self.around[term][at]].over
    }

    /// Adds the loops of `nodes` inside the loops numbered `around`.
    fn open(&mut self, given: &Given, nodes: &[Node], around: &mut Vec<usize>) -> Vec<Step> {
        let mut steps = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::Term(term) => {
                    self.orders.push(around.iter().map(|&at| self.loops[at].index).collect());
                    self.around.push(around.clone());
                    let buffer = given.buffers.get(*term).cloned();
                    let made = buffer.map(|buffer| self.intermediate(given, buffer));
                    self.buffers.extend(made);
                    steps.push(Step::Term(*term));
                }
                Node::Loop { index, body } => {
                    let number = self.loops.len();
                    let opened = self.opened(given, (*index, body), around);
                    self.loops.push(opened);
                    around.push(number);
                    self.loops[number].body = self.open(given, body, around);
                    around.pop();
                    steps.push(Step::Loop(number));
                }
            }
        }
        steps
    }

    /// Returns a loop over `index` around `body`, inside the loops numbered `around`, before its body is lowered.
    fn opened(&self, given: &Given, (index, body): (Index, &[Node]), around: &[usize]) -> Loop {
        let problem = given.problem;
        let indices = around.iter().map(|&at| self.loops[at].index);
        let next = |(tree, x): (usize, &SparseOperand)| {
            let level = x.walked(indices.clone());
            let here = x.levels().get(level) == Some(&index);
            here.then_some(Visited::Level(TreeLevel { tree, level }))
        };
        let levels = problem.sparse.iter().enumerate().filter_map(next);
        let marks = |term: usize| self.buffers[term].marks.filter(|marks| marks.index == index);
        let inside = Some(self.orders.len())..=last_term(body);
        let reads = |term: usize| inside.contains(&given.schedule.path.consumer(term));
        let buffers = (0..self.buffers.len()).filter(|&term| marks(term).is_some() && reads(term));
        let mut visited: Vec<Visited> = levels.chain(buffers.map(Visited::Buffer)).collect();
        let coordinates = |at: &Visited| match *at {
            Visited::Level(at) if at.tree == 0 => 0.0,
            Visited::Level(at) => problem.sparse[at.tree].children(at.level, &problem.extents),
            Visited::Buffer(term) => marks(term).map_or(0.0, |marks| marks.cells),
        };
        if visited.len() > 1 {
            visited.sort_by(|a, b| coordinates(a).total_cmp(&coordinates(b)));
        }
        let extent = problem.extents.of(index).max(1) as f64;
        let left = |at: &Visited| match at {
            Visited::Buffer(_) => (coordinates(at) / extent).min(1.0),
            Visited::Level(_) => 1.0,
        };
        let outer = around.last().map_or(1.0, |&at| self.loops[at].share);
        let share = visited.iter().map(left).fold(outer, |share, left| share * left);
        let all = indices.fold(IndexSet::EMPTY.with(index), IndexSet::with);
        let iterations = problem.iterations(all) as f64 * share;
        let over = match visited.split_first() {
            Some((&lead, located)) => Over::Coordinates { lead, located: located.to_vec() },
            None => Over::Extent,
        };
        Loop { index, depth: around.len(), over, iterations, share, body: Vec::new() }
    }

    /// Decides how the intermediate `buffer` is stored, whose producer was added last.
    fn intermediate(&self, given: &Given, buffer: Buffer) -> Intermediate {
        let (term, stored, fused) = (buffer.term, buffer.stored, buffer.fused.len());
        let loops = &self.orders[term];
        let order = given.problem.stored(loops).filter(|&index| stored.contains(index));
        let order: Vec<Index> = order.collect();
        // Every other loop below the fused ones is dense and one of its own.
        let summed = (fused..loops.len())
            .any(|at| !stored.contains(loops[at]) || self.is_over_level(term, at));
        let sparse = given.schedule.buffers.get(term) == Some(&BufferKind::Sparse);
        let first = order.first().filter(|_| sparse);
        let marks = first.and_then(|&index| self.marks(given.problem, (term, index), fused));
        Intermediate { buffer, order, summed, marks }
    }

    /// Returns the cells that `term` marks of a buffer inside `fused` loops, whose first index is `index`; `None` if the
    /// loop over it visits all of them.
    ///
    /// Cells are taken to be met at random, as [`spread_pairs`] says: of the coordinates that the operand has.
    fn marks(
        &self,
        problem: &Problem,
        (term, index): (usize, Index),
        fused: usize,
    ) -> Option<Marks> {
        let loops = &self.orders[term];
        let at = loops.iter().position(|&own| own == index)?;
        let Over::Coordinates { lead, .. } = self.over(term, at) else { return None };
        let unsure = (at + 1..loops.len()).rfind(|&at| !self.over(term, at).surely_meets());
        let depth = unsure.unwrap_or(at) + 1;
        let parts = match *lead {
            Visited::Level(lead) => {
                let own = IndexSet::EMPTY.with(index);
                problem.sparse[lead.tree].pattern.count(own, &problem.extents)
            }
            Visited::Buffer(_) => problem.extents.of(index),
        };
        let (times, met) = (self.iterations(term, fused).max(1.0), self.iterations(term, depth));
        let cells =
            if met > 0.0 { spread_pairs(times, met, parts.max(1) as f64) / times } else { 0.0 };
        Some(Marks { index, depth, cells })
    }

    /// Decides how the output is stored and where it is accumulated.
    fn place_output(&mut self, problem: &Problem, workspace: Option<Workspace>) {
        let last = self.last();
        let outside = workspace.map_or(0, |_| problem.assembled_outside(last));
        let mut elsewhere = set_of(&last[..outside]);
        if problem.has_pattern_output() {
            elsewhere = elsewhere | problem.sparse_indices();
        }
        let block = problem.stored(&problem.expr.output.indices);
        let block: Vec<Index> = block.filter(|&index| !elsewhere.contains(index)).collect();
        (self.output, self.outside) = (problem.output_order(&block, last), outside);
        self.accumulator = self.accumulator(problem, workspace);
    }

    fn accumulator(&self, problem: &Problem, workspace: Option<Workspace>) -> Option<Accumulator> {
        let last = self.last();
        let output = problem.expr.output.set();
        let depth = match workspace {
            Some(workspace) => self.sums_of_cells(output, workspace)?,
            None => {
                let sparse = output & problem.sparse_indices();
                let depth = last.iter().rposition(|&index| sparse.contains(index))? + 1;
                let summed = last[depth..].iter().any(|&index| !output.contains(index));
                summed.then_some(depth)?
            }
        };
        let inside = |index: &&Index| !last[..depth].contains(index);
        let order: Vec<Index> = self.output.iter().filter(inside).copied().collect();
        // Of a block over an index that is a level of another operand, few elements are met.
        let mut others = problem.sparse.iter().skip(1).flat_map(|x| x.levels());
        if workspace.is_none() && others.any(|level| order.contains(level)) {
            return None;
        }
        let (row, rows) = order.split_last().map_or((1, 1), |(&row, rows)| {
            let extents = rows.iter().map(|&index| problem.extents.of(index));
            (problem.extents.of(row), extents.fold(1, u64::saturating_mul))
        });
        let row = padded(row as usize, problem.value_bytes) as u64;
        let bytes = rows.saturating_mul(row).saturating_mul(problem.value_bytes as u64);
        (bytes <= MAX_ACCUMULATOR_BYTES).then_some(Accumulator { depth, order })
    }

    /// Returns inside how many loops of the last term a cell of the workspace, or a row of lanes, is summed up before it
    /// is added to the workspace; `None` if there is nothing to sum up, or if it may be that nothing is met: only what
    /// was met is listed.
    fn sums_of_cells(&self, output: IndexSet, workspace: Workspace) -> Option<usize> {
        let (last, term) = (self.last(), self.orders.len() - 1);
        let (&innermost, outer) = last.split_last()?;
        let rows = workspace == Workspace::Dense
            && output.contains(innermost)
            && !self.is_over_level(term, outer.len());
        let cells = &last[..last.len() - usize::from(rows)];
        let depth = cells.iter().rposition(|&at| output.contains(at))? + 1;
        let summed = last[depth..].iter().any(|&index| !output.contains(index));
        let surely_meets = |at: usize| self.over(term, at).surely_meets();
        (summed && (depth..last.len()).all(surely_meets)).then_some(depth)
    }

    /// Tells whether every array of `term` that has `index` stores it contiguously.  Only a dense
    /// workspace has rows.
    fn is_contiguous(&self, schedule: &Schedule, term: usize, index: Index) -> bool {
        let ends = |order: &[Index]| !order.contains(&index) || order.last() == Some(&index);
        let reads = |source: &Source| match *source {
            Source::Input(input) => ends(&self.inputs[input]),
            Source::Term(term) => ends(&self.buffers[term].order),
        };
        let writes = match (self.buffers.get(term), &self.accumulator) {
            (Some(buffer), _) => ends(&buffer.order),
            (None, Some(sum)) => ends(&sum.order),
            (None, None) => has_rows(schedule.workspace) && ends(&self.output),
        };
        writes && schedule.path.terms[term].inputs.iter().all(reads)
    }
}

/// The last term inside `nodes`.
fn last_term(nodes: &[Node]) -> Option<usize> {
    match nodes.last()? {
        Node::Term(term) => Some(*term),
        Node::Loop { body, .. } => last_term(body),
    }
}
