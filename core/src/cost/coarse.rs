//! What a kernel takes on a tree, estimated coarsely, without a schedule.
//!
//! Each level multiplies by the dense operands that it completes: from the leaves up to the deepest level that the result
//! keeps, and from the root down to it.  What is handed on has the dense indices of all operands so far that another operand
//! or the result still needs.  With the levels `l` of the tree, of which loops visit `n(l)` nodes, and `c(l)` columns over
//! which the operands there are multiplied,
//!
//! ```text
//! seconds = sum over l:  level(l) + n(l) (c(l) flop + rows(l))
//! ```
//!
//! where `rows(l)` gathers a row of each operand from where all its rows fit.  Loop orders, buffers and what neighbours
//! leave in a cache are not looked at: the estimate says which trees are worth a price, and nothing else.

use crate::cost::Machine;
use crate::cost::caches::{LINE_BYTES, Shares};
use crate::cost::levels::level_seconds;
use crate::cost::threads::{copying_seconds, output_bytes};
use crate::einsum::{Index, IndexSet};
use crate::schedule::Problem;

/// Coarse estimates of one kernel on the trees of its sparse operand.
pub(crate) struct Coarse<'a> {
    problem: &'a Problem,
    machine: &'a Machine,
    operands: Vec<Operand>,
    result: Operand,
}

/// A dense operand, or the result.
struct Operand {
    /// Its indices that are levels of the tree.
    sparse: IndexSet,
    /// Its other indices.
    dense: IndexSet,
    /// Seconds to gather what one node of the tree needs of it.
    row: f64,
}

/// A tree with what loops over it visit.
pub(crate) struct VisitedTree {
    levels: Vec<Index>,
    /// By level.
    nodes: Vec<f64>,
    seconds: f64,
}

impl VisitedTree {
    /// Counts what loops visit of the sparse operand of `problem`, as it is stored there.
    pub(crate) fn of(problem: &Problem, machine: &Machine) -> VisitedTree {
        let Some(x) = problem.leader() else {
            return VisitedTree { levels: Vec::new(), nodes: Vec::new(), seconds: 0.0 };
        };
        let depth = x.levels().len();
        let visited = |level: usize| {
            x.nodes(x.levels()[..=level].iter().copied().collect(), &problem.extents) as f64
        };
        let seconds = (0..depth).map(|level| level_seconds(problem, machine, level)).sum();
        VisitedTree {
            levels: x.levels().to_vec(),
            nodes: (0..depth).map(visited).collect(),
            seconds,
        }
    }
}

impl<'a> Coarse<'a> {
    /// Prepares estimates for the kernel that `problem` poses, however its sparse operand is stored there.
    pub(crate) fn new(problem: &'a Problem, machine: &'a Machine) -> Coarse<'a> {
        let sparse = |input: &usize| problem.sparse.iter().any(|x| x.input == *input);
        let inputs = 0..problem.expr.inputs.len();
        let dense = inputs.filter(|input| !sparse(input)).map(|at| problem.expr.inputs[at].set());
        let operand = |set| Operand::of(set, problem, machine);
        let operands = dense.map(operand).collect();
        Coarse { problem, machine, operands, result: operand(problem.expr.output.set()) }
    }

    /// Returns the seconds on the tree of `tree`, on all threads of the machine.
    ///
    /// Time: `O(N F)` for `N` levels and `F` dense operands.
    pub(crate) fn seconds(&self, tree: &VisitedTree) -> f64 {
        let deepest = |set: IndexSet| tree.levels.iter().rposition(|&level| set.contains(level));
        let meet = deepest(self.result.sparse).unwrap_or(0);
        let at: Vec<Option<usize>> =
            self.operands.iter().map(|operand| deepest(operand.sparse)).collect();
        let completed = |level: usize| {
            let here = at.iter().zip(&self.operands).filter(move |(at, _)| **at == Some(level));
            here.map(|(_, operand)| operand)
        };
        let rows = |level| completed(level).map(|operand| operand.row).sum::<f64>();
        let all = |set, level| completed(level).fold(set, |set, operand| set | operand.dense);
        let mut seconds = tree.seconds;
        let mut up = IndexSet::EMPTY;
        for level in (meet + 1..tree.levels.len()).rev() {
            up = all(up, level);
            seconds += tree.nodes[level] * (self.multiply_adds(up) + rows(level));
            up = up & self.needed(&at, |done| done >= level);
        }
        let mut down = IndexSet::EMPTY;
        for level in 0..meet {
            down = all(down, level);
            seconds += tree.nodes[level] * (self.multiply_adds(down) + rows(level));
            down = down & self.needed(&at, |done| done <= level);
        }
        if let Some(nodes) = tree.nodes.get(meet) {
            let joined = all(up | down, meet) | self.result.dense;
            seconds += nodes * (self.multiply_adds(joined) + rows(meet) + 2.0 * self.result.row);
        }
        let threads = self.machine.threads.max(1) as f64;
        let owned = tree.levels.first().is_some_and(|&root| self.result.sparse.contains(root));
        let copies = match owned || self.problem.has_pattern_output() {
            true => 0.0,
            false => copying_seconds(output_bytes(self.problem), self.machine, threads),
        };
        seconds / threads + copies
    }

    /// The dense indices of the result and of the operands that are not `done`, by the level `at` which each is completed.
    fn needed(&self, at: &[Option<usize>], done: impl Fn(usize) -> bool) -> IndexSet {
        let open = at.iter().zip(&self.operands).filter(|(at, _)| !at.is_some_and(&done));
        open.fold(self.result.dense, |set, (_, operand)| set | operand.dense)
    }

    /// Seconds to multiply and add as many values as the columns `dense` have.
    fn multiply_adds(&self, dense: IndexSet) -> f64 {
        columns(self.problem, dense) * self.machine.flop_pair
    }
}

impl Operand {
    fn of(set: IndexSet, problem: &Problem, machine: &Machine) -> Operand {
        let sparse = set & problem.sparse_indices();
        let dense = set - sparse;
        let bytes = columns(problem, dense) * problem.value_bytes as f64;
        let rows = problem.leader().map_or(1, |x| x.pattern.count(sparse, &problem.extents));
        let lines = (bytes / LINE_BYTES).max(1.0);
        let table = rows as f64 * lines * LINE_BYTES;
        let line = Shares::shared(machine, table).line(machine, machine.memory_line);
        Operand { sparse, dense, row: lines * line }
    }
}

/// The product of the extents of `dense`.
fn columns(problem: &Problem, dense: IndexSet) -> f64 {
    dense.iter().map(|index| problem.extents.of(index) as f64).product()
}
