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
use crate::schedule::{Loop, LoopNest, Over, Problem, SparseOperand, TreeLevel};

/// What a loop costs again, as a share of [`Machine::loop_overhead`], where what is visited in between stays near: its
/// end comes as it came before.
const AGAIN_SHARE: f64 = 0.1;

/// Adds every loop over a level of a tree in `nest`.
pub(super) fn add_levels(cost: &mut Cost, problem: &Problem, nest: &LoopNest, machine: &Machine) {
    let Some(x) = problem.leader() else { return };
    let bytes = (0..x.levels.len()).map(|level| level_bytes(problem, x, level)).sum();
    let mut costs = LevelCosts { problem, machine, x, bytes, streamed: 0 };
    let mut around: Vec<Index> = Vec::new();
    for Loop { index, depth, over, .. } in &nest.loops {
        around.truncate(*depth);
        if let Over::Level { lead, located } = over {
            match lead.tree {
                0 => costs.add_level(cost, lead.level, &around),
                _ => costs.walk(cost, *lead, (*index, &around)),
            }
            if !located.is_empty() {
                costs.locate(cost, located, (*index, &around));
            }
        }
        around.push(*index);
    }
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

/// Bytes of a level.
fn level_bytes(problem: &Problem, x: &SparseOperand, level: usize) -> f64 {
    let prefix = x.levels[..=level].iter().copied().collect();
    x.nodes(prefix, &problem.extents) as f64 * node_bytes(problem, x, level)
}

/// The nodes of the uppermost `depth` levels, at least one.
fn nodes(problem: &Problem, x: &SparseOperand, depth: usize) -> f64 {
    x.nodes(x.levels[..depth].iter().copied().collect(), &problem.extents).max(1) as f64
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

    /// Adds a loop over `index` inside loops over `around` that visits a level of another operand than the leader.
    fn walk(
        &self,
        cost: &mut Cost,
        TreeLevel { tree, level }: TreeLevel,
        (index, around): (Index, &[Index]),
    ) {
        let x = &self.problem.sparse[tree];
        let outside: IndexSet = around.iter().copied().collect();
        let visits = self.problem.iterations(outside.with(index)) as f64;
        let bytes = node_bytes(self.problem, x, level);
        cost.streamed_bytes += visits * bytes;
        cost.seconds += visits * bytes / LINE_BYTES * self.line(x, level);
        if level > 0 {
            // Loops over the leader's levels come in between, so that no end is foreseen.
            cost.seconds += self.loops(outside, visits, None);
        }
    }

    /// Adds the location of the coordinates that a loop over `index` inside loops over `around` visits, in other levels.
    ///
    /// In a root that has every coordinate there is nothing to seek.
    fn locate(&self, cost: &mut Cost, located: &[TreeLevel], (index, around): (Index, &[Index])) {
        let outside: IndexSet = around.iter().copied().collect();
        let met = self.problem.iterations(outside.with(index)) as f64;
        let extent = self.problem.extents.of(index).max(1) as f64;
        let share = |&TreeLevel { tree, level }: &TreeLevel| {
            let children = self.problem.sparse[tree].children(level, &self.problem.extents);
            (children / extent).clamp(f64::MIN_POSITIVE, 1.0)
        };
        // Of the coordinates that are visited, this share occurs in all of them.
        let occur: f64 = located.iter().map(share).product();
        for at in located {
            let (x, level) = (&self.problem.sparse[at.tree], at.level);
            let is_full = level == 0 && share(at) >= 1.0;
            let sought = if is_full { 0.0 } else { met / occur };
            cost.streamed_bytes += met * node_bytes(self.problem, x, level);
            cost.seconds += met * self.line(x, level) + sought * self.machine.loop_end;
        }
    }

    /// Seconds of a line of a level of another operand than the leader.
    fn line(&self, x: &SparseOperand, level: usize) -> f64 {
        let bytes = nodes(self.problem, x, level + 1) * node_bytes(self.problem, x, level);
        Shares::shared(self.machine, bytes).line(self.machine, self.machine.stream_line)
    }

    /// Bytes of the tree that are walked before a node comes again: what lies below the loops
    /// outside the first dense one.
    fn between(&self, around: &[Index]) -> f64 {
        let walked = around.iter().zip(&self.x.levels).take_while(|(a, l)| a == l).count();
        let prefix = self.x.levels[..walked].iter().copied().collect();
        self.bytes / self.x.nodes(prefix, &self.problem.extents).max(1) as f64
    }
}
