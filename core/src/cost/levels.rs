//! What it costs to loop over the levels of the sparse operands' trees.
//!
//! A loop over a level visits a node for each iteration of the loops around it; inside dense loops
//! the same nodes come again, from wherever the part of the tree fits that is visited in between.
//! Opening a loop over a few children costs, and its end is mispredicted unless nearly every node has one
//! child only.
//!
//! Where another operand has the index too, each coordinate of the leading one is located in it, which ends in a
//! branch that no processor foresees.

use decompose_formats::narrow_ints::Width;

use crate::cost::Machine;
use crate::cost::caches::{L1_BYTES, LINE_BYTES, Shares};
use crate::cost::predicted::Cost;
use crate::einsum::{Index, IndexSet};
use crate::nest::{Forest, Node};
use crate::schedule::{Problem, SparseOperand};

/// What a loop costs again, as a share of [`Machine::loop_overhead`], where what is visited in between stays near: its
/// end comes as it came before.
const AGAIN_SHARE: f64 = 0.1;

/// Adds every loop over a level of the tree in `nest`.
pub(super) fn add_levels(cost: &mut Cost, problem: &Problem, nest: &Forest, machine: &Machine) {
    let Some(x) = problem.leader() else { return };
    let bytes = (0..x.levels.len()).map(|level| level_bytes(problem, x, level)).sum();
    let mut costs = LevelCosts { problem, machine, x, bytes, streamed: 0 };
    costs.add(cost, &nest.roots, &mut Vec::new());
}

/// Returns the seconds that a level takes when it is visited first, in loops over those above it.
pub(super) fn level_seconds(problem: &Problem, machine: &Machine, level: usize) -> f64 {
    let Some(x) = problem.leader() else { return 0.0 };
    let mut cost = Cost::default();
    // What comes again is none of that.
    let mut costs = LevelCosts { problem, machine, x, bytes: 0.0, streamed: level };
    costs.add_level(&mut cost, level, &x.levels[..level]);
    cost.seconds
}

/// Tells whether the loop at a position of `order` is over a level of a tree.
pub(super) fn loops_over_level(problem: &Problem, order: &[Index], at: usize) -> bool {
    problem.sparse.iter().any(|x| level_at(x, order, at).is_some())
}

/// Tells whether the loop at a position of `order` is over a level of the tree that is cut into tasks.
pub(super) fn is_cut(problem: &Problem, order: &[Index], at: usize) -> bool {
    problem.leader().is_some_and(|x| level_at(x, order, at).is_some())
}

/// Returns the level of `x` that the loop at a position of `order` is over, if it is.
fn level_at(x: &SparseOperand, order: &[Index], at: usize) -> Option<usize> {
    let walked = x.walked(order[..at].iter().copied());
    (x.levels.get(walked) == Some(&order[at])).then_some(walked)
}

/// Tells whether the innermost of the loops `order` is over a level of another operand than `x` too.
fn is_joined(problem: &Problem, x: &SparseOperand, order: &[Index]) -> bool {
    let others = problem.sparse.iter().filter(|other| other.input != x.input);
    others.into_iter().any(|other| level_at(other, order, order.len() - 1).is_some())
}

/// Bytes of a level.
fn level_bytes(problem: &Problem, x: &SparseOperand, level: usize) -> f64 {
    let prefix = x.levels[..=level].iter().copied().collect();
    x.nodes(prefix, &problem.extents) as f64 * node_bytes(problem, x, level)
}

/// Bytes of a node: a coordinate, a value in the last level, a pointer above the fused levels.
fn node_bytes(problem: &Problem, x: &SparseOperand, level: usize) -> f64 {
    let coordinate = Width::below(problem.extents.of(x.levels[level])).bytes();
    let value = if level + 1 == x.levels.len() { problem.value_bytes } else { 0 };
    let opens = level + x.fused < x.levels.len();
    let nnz = || x.nodes(x.levels.iter().copied().collect(), &problem.extents);
    let pointer = if opens { Width::below(nnz().saturating_add(1)).bytes() } else { 0 };
    (coordinate + value + pointer) as f64
}

struct LevelCosts<'a> {
    problem: &'a Problem,
    machine: &'a Machine,
    x: &'a SparseOperand,
    /// Bytes of the tree.
    bytes: f64,
    /// Levels that have been read from memory.
    streamed: usize,
}

impl LevelCosts<'_> {
    fn add(&mut self, cost: &mut Cost, nodes: &[Node], around: &mut Vec<Index>) {
        for node in nodes {
            let Node::Loop { index, body } = node else { continue };
            let level = self.x.walked(around.iter().copied());
            if self.x.levels.get(level) == Some(index) {
                self.add_level(cost, level, around);
            }
            around.push(*index);
            for other in self.problem.sparse.iter().skip(1) {
                if let Some(level) = level_at(other, around, around.len() - 1) {
                    self.join(cost, (other, level), around);
                }
            }
            self.add(cost, body, around);
            around.pop();
        }
    }

    /// Adds one loop over `level` inside loops over `around`.
    fn add_level(&mut self, cost: &mut Cost, level: usize, around: &[Index]) {
        let outside: IndexSet = around.iter().copied().collect();
        let inside = outside.with(self.x.levels[level]);
        let visits = self.problem.iterations(inside) as f64;
        let prefix = self.x.levels[..=level].iter().copied().collect();
        let nodes = self.x.nodes(prefix, &self.problem.extents) as f64;
        // A level is read from memory once, at its first visit.
        let fresh = if level < self.streamed { 0.0 } else { nodes.min(visits) };
        self.streamed = self.streamed.max(level + 1);
        let bytes = node_bytes(self.problem, self.x, level);
        let stream = self.machine.stream_line;
        let again = Shares::shared(self.machine, self.between(around)).line(self.machine, stream);
        cost.streamed_bytes += visits * bytes;
        cost.seconds += (fresh * stream + (visits - fresh) * again) * bytes / LINE_BYTES;
        // Fused levels have one loop.
        if level > 0 && level + self.x.fused <= self.x.levels.len() {
            let above = self.x.levels[..level].iter().copied().collect();
            let parents = self.x.nodes(above, &self.problem.extents) as f64;
            let near = self.between(around) <= L1_BYTES;
            cost.seconds += self.loops(outside, visits, near.then_some(parents));
        }
    }

    /// Returns the seconds of the loops inside those over `outside`, which visit nodes; if `again` of them are different,
    /// the others come near the first.
    fn loops(&self, outside: IndexSet, visits: f64, again: Option<f64>) -> f64 {
        let loops = (self.problem.iterations(outside) as f64).max(1.0);
        // A loop over one child ends as the processor expects.
        let unforeseen = (visits / loops - 1.0).clamp(0.0, 1.0);
        let each = self.machine.loop_overhead + unforeseen * self.machine.loop_end;
        let first = again.map_or(loops, |different| loops.min(different));
        first * each + (loops - first) * self.machine.loop_overhead * AGAIN_SHARE
    }

    /// Adds the nodes of a level of another operand that the innermost of the loops `order` meets.
    fn join(&self, cost: &mut Cost, (x, level): (&SparseOperand, usize), order: &[Index]) {
        let extents = &self.problem.extents;
        let nodes = |depth: usize| {
            x.nodes(x.levels[..depth].iter().copied().collect(), extents).max(1) as f64
        };
        let visits = self.problem.iterations(order.iter().copied().collect()) as f64;
        let bytes = node_bytes(self.problem, x, level);
        let table = Shares::shared(self.machine, nodes(level + 1) * bytes);
        let line = table.line(self.machine, self.machine.stream_line);
        let located = is_joined(self.problem, x, order);
        let (lines, sought) = match located {
            // Of the coordinates that another operand has, this share occurs here.
            true => {
                let fibre = nodes(level + 1) / if level == 0 { 1.0 } else { nodes(level) };
                let share = fibre / extents.of(x.levels[level]).max(1) as f64;
                (visits, visits / share.clamp(f64::MIN_POSITIVE, 1.0))
            }
            false => (visits * bytes / LINE_BYTES, 0.0),
        };
        cost.streamed_bytes += visits * bytes;
        cost.seconds += lines * line + sought * self.machine.loop_end;
        if level > 0 && !located {
            let outside = order[..order.len() - 1].iter().copied().collect();
            let near = nodes(x.levels.len()) * bytes <= L1_BYTES;
            cost.seconds += self.loops(outside, visits, near.then_some(nodes(level)));
        }
    }

    /// Bytes of the tree that are walked before a node comes again: what lies below the loops
    /// outside the first dense one.
    fn between(&self, around: &[Index]) -> f64 {
        let walked = around.iter().zip(&self.x.levels).take_while(|(a, l)| a == l).count();
        let prefix = self.x.levels[..walked].iter().copied().collect();
        self.bytes / self.x.nodes(prefix, &self.problem.extents).max(1) as f64
    }
}
