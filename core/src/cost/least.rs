//! What an MTTKRP takes at least on a tree, whatever its schedule.
//!
//! A search of schedules takes longer than many prices of single accesses.  Who chooses among many trees
//! therefore asks for a bound first and searches only what may be chosen.  With the levels `1 .. N` of the tree, of which
//! a walk visits `n(l)` nodes, every legal schedule
//!
//! - walks the whole tree once;
//! - multiplies `R` values for each non-zero;
//! - reaches the rows of the mode of level `l`, of a factor or of the result, in a term that
//!   - loops over all levels down to `l`: it reaches `n(l)` of them, each with `R` multiply-adds;
//!   - or lacks one of these levels.  Then rows over that mode are kept in a buffer, which must be allowed.  Either what
//!     comes from the tensor is added to `n(l)` of its rows; or a product of factors, made at least at every root, is read
//!     from as many, which takes two levels above.
//!
//! That holds where all terms have their lanes over the columns.  If one has not, lanes over a mode are no way
//! round: what they read or write has another order than what comes from the tensor, and between the two a term
//! without any lanes must stand.  It loops over all levels above those whose rows it reaches, and over the columns, and
//! stands for all rows of levels above its own.
//!
//! Multiply-adds are counted once, although a term may read two factors: the terms that bring a set of factors
//! together, and then to what comes from the tensor, are as many as these factors, and each runs for the deepest
//! level below it.  Only the first one, which reads the tensor, has no such count left.  Terms of more than
//! two inputs, which are searched where more than two levels are fused or not even a row fits a buffer, are counted by
//! non-zeros alone.

use crate::cost::Machine;
use crate::cost::access::{Access, Role};
use crate::cost::estimate::{Cost, row_bytes};
use crate::cost::memory::{LINE_BYTES, NEAR_BYTES, Shares};
use crate::cost::threads::{copying_seconds, tasks};
use crate::cost::walks::first_walk_seconds;
use crate::einsum::{Index, IndexSet};
use crate::schedule::{Problem, SparseOperand};

/// Sums in another order differ by no more than this part of them.
pub(super) const ROUNDING: f64 = 1e-12;

/// Bounds for the MTTKRPs of one tensor.
pub(crate) struct LeastSeconds<'a> {
    /// One of the kernels, as the tensor was stored last.
    problem: Problem,
    /// The index of the columns.
    columns: Index,
    machine: &'a Machine,
    /// Of the tree that was asked for last.
    levels: Vec<Level>,
}

/// What a level of a tree costs at least.
#[derive(Clone, Copy)]
struct Level {
    index: Index,
    /// Whether one position loop walks it and the others of the tail.
    fused: bool,
    /// Nodes that a walk visits.
    nodes: f64,
    /// Seconds to walk it.
    walk: f64,
    /// Seconds to reach the rows of its mode: of a factor, with what is computed with them.
    read: f64,
    /// The same of a result.
    added: f64,
}

impl<'a> LeastSeconds<'a> {
    /// Prepares bounds for the kernels of the sparse operand of `problem`, one of them: MTTKRPs of factors of
    /// `columns`, each with the index of one mode.
    pub(crate) fn new(problem: Problem, columns: Index, machine: &'a Machine) -> LeastSeconds<'a> {
        LeastSeconds { problem, columns, machine, levels: Vec::new() }
    }

    /// Returns the least seconds, on all threads of the machine, of the kernel with each of `modes` as the index of
    /// its result, where the sparse operand is stored by `levels`, the last `tail` of them fused.
    ///
    /// Time: a few prices of accesses for each level that the tree that was asked for before does not share.
    pub(crate) fn on_order(&mut self, levels: &[Index], tail: usize, modes: &[Index]) -> Vec<f64> {
        let tree = &mut self.problem.sparse[0];
        (tree.levels, tree.tail) = (levels.to_vec(), tail);
        let same = |(at, level): &(usize, &Level)| {
            levels[*at] == level.index && self.tree().is_fused(*at) == level.fused
        };
        let kept = self.levels.iter().enumerate().take_while(same).count();
        self.levels.truncate(kept);
        for at in kept..levels.len() {
            let level = self.level(at);
            self.levels.push(level);
        }
        modes.iter().map(|&mode| self.of_result(mode)).collect()
    }

    /// The sparse operand, as it was stored last.
    fn tree(&self) -> &SparseOperand {
        &self.problem.sparse[0]
    }

    /// Values of a row.
    fn row(&self) -> f64 {
        self.problem.extents.of(self.columns) as f64
    }

    /// Tells whether terms of more than two inputs may be searched.
    fn any_inputs(&self) -> bool {
        let row = IndexSet::EMPTY.with(self.columns);
        self.tree().tail > 2 || !self.problem.allows_buffer(row)
    }

    fn level(&self, at: usize) -> Level {
        let tree = self.tree();
        let (index, fused) = (tree.levels[at], tree.is_fused(at));
        let walked = tree.levels[..=at].iter().copied().collect();
        let nodes = tree.nodes(walked, &self.problem.extents) as f64;
        let walk = first_walk_seconds(&self.problem, self.machine, at);
        let (mut read, mut added) = (0.0, 0.0);
        if index != Index::BLOCK {
            read = self.reaching(at, nodes, Role::Operand);
            let roles = self.roles(at).iter().map(|&role| self.reaching(at, nodes, role));
            added = roles.fold(f64::INFINITY, f64::min);
        }
        Level { index, fused, nodes, walk, read, added }
    }

    /// How tasks may add to the rows of a result over the mode of level `at`.
    fn roles(&self, at: usize) -> &'static [Role] {
        let tree = self.tree();
        match tree.in_blocks() {
            true if tree.pattern.ranged() == Some(tree.levels[at]) => {
                &[Role::Sum, Role::SumInRanges]
            }
            true => &[Role::Sum],
            false if at == 0 => &[Role::Sum],
            false => &[Role::SumInCopies],
        }
    }

    /// Seconds to reach the rows of the mode of level `at`, of which a walk visits `nodes`.
    fn reaching(&self, at: usize, nodes: f64, role: Role) -> f64 {
        let counted = role == Role::Operand && !self.any_inputs();
        let pairs = if counted { nodes * self.row() } else { 0.0 };
        let walked = self.access(at, role) + pairs * self.machine.flop_pair;
        walked.min(self.through_buffer(at, nodes, role))
    }

    /// Seconds to gather the rows of level `at` in its walk.
    fn access(&self, at: usize, role: Role) -> f64 {
        let (problem, machine, levels) = (&self.problem, self.machine, &self.tree().levels);
        let order: Vec<Index> = levels[..=at].iter().copied().chain([self.columns]).collect();
        let indices = vec![levels[at], self.columns];
        let touches = if role == Role::Operand { 1.0 } else { 2.0 };
        let lane = Some(self.columns);
        let mut cost = Cost::default();
        Access { problem, machine, order: &order, indices, lane, touches, role }.add(&mut cost);
        cost.seconds
    }

    /// Seconds to reach `nodes` rows of the mode of level `at` in a buffer, if there may be one.
    fn through_buffer(&self, at: usize, nodes: f64, role: Role) -> f64 {
        let (problem, machine, index) = (&self.problem, self.machine, self.tree().levels[at]);
        let stored = [index, self.columns].into_iter().collect();
        if at == 0 || !problem.allows_buffer(stored) {
            return f64::INFINITY;
        }
        let bytes = problem.buffer_bytes(stored) as f64;
        let line = match bytes <= NEAR_BYTES {
            true => machine.buffer_line,
            false => Shares::private(machine, bytes).line(machine, machine.memory_line),
        };
        let lines = (row_bytes(problem, Some(self.columns)) / LINE_BYTES).max(1.0);
        let read = nodes * lines * line;
        let product = match problem.max_buffer_dims {
            0..=2 if at < 2 => f64::INFINITY,
            0..=2 => {
                let roots = self.levels.first().map_or(0.0, |root| root.nodes);
                let extent = problem.extents.of(index) as f64;
                roots * extent * self.row() * machine.flop_pair
            }
            _ => 0.0,
        };
        if role == Role::Operand { read + read.min(product) } else { 2.0 * read }
    }

    /// Seconds of the kernel whose result has the index `mode`.
    fn of_result(&self, mode: Index) -> f64 {
        let (machine, row) = (self.machine, self.row());
        let root = self.levels.first().map(|level| level.index);
        let copies = root.is_some_and(|root| root != Index::BLOCK && root != mode);
        let rows = |level: &Level| if level.index == mode { level.added } else { level.read };
        let nonzeros = self.levels.last().map_or(0.0, |level| level.nodes);
        let factors = self.levels.iter().filter(|level| level.index != mode);
        let counted = match self.any_inputs() {
            true => 0.0,
            false => factors.map(|level| level.nodes).fold(0.0, f64::max),
        };
        let (mut below, mut least) = (0.0, f64::INFINITY);
        for level in self.levels.iter().rev() {
            // A term without lanes for all rows from here up.
            least = f64::min(least, below + level.nodes * row * machine.scalar_pair);
            below += rows(level);
        }
        let in_lanes = below + (nonzeros - counted) * row * machine.flop_pair;
        let walk: f64 = self.levels.iter().map(|level| level.walk).sum();
        let alone = (walk + in_lanes.min(least)) / tasks(&self.problem, machine);
        let output = self.problem.extents.of(mode) as f64;
        let output = output * row_bytes(&self.problem, Some(self.columns));
        let copying = match copies {
            true => copying_seconds(output, machine, machine.threads as f64),
            false => 0.0,
        };
        (alone + copying) * (1.0 - ROUNDING)
    }
}
