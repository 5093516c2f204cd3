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
use crate::cost::buffers::WORD_BITS;
use crate::cost::caches::{L1_BYTES, LINE_BYTES, Shares};
use crate::cost::locate::{cells, lookups};
use crate::cost::predicted::Cost;
use crate::einsum::Index;
use crate::nest::set_of;
use crate::schedule::{
    Layout, LevelKind, Loop, LoopNest, Over, Problem, SparseOperand, TreeLevel, Visited,
};

/// What a loop costs again, as a share of [`Machine::loop_overhead`], where what is visited in between stays near: its
/// end comes as it came before.
const AGAIN_SHARE: f64 = 0.1;

/// Adds every loop over a level of a tree in `nest`.
pub(super) fn add_levels(
    cost: &mut Cost,
    problem: &Problem,
    (layouts, nest): (&[Layout], &LoopNest),
    machine: &Machine,
) {
    let Some(x) = problem.leader() else { return };
    let mut costs = LevelCosts { problem, machine, layouts, x, bytes: 0.0, streamed: 0 };
    costs.bytes = (0..x.levels().len()).map(|level| costs.level_bytes(0, level)).sum();
    let (mut around, mut runs): (Vec<Index>, Vec<f64>) = (Vec::new(), vec![1.0]);
    for Loop { index, depth, over, iterations, .. } in &nest.loops {
        around.truncate(*depth);
        runs.truncate(depth + 1);
        let counts = Counts { loops: runs[*depth], visits: *iterations };
        if let Over::Coordinates { lead, located } = over {
            match *lead {
                Visited::Level(TreeLevel { tree: 0, level }) => {
                    costs.add_level(cost, level, &around, counts);
                }
                Visited::Level(lead) => costs.walk(cost, lead, counts),
                Visited::Buffer(term) => costs.find(cost, nest, (term, *index), counts.loops),
            }
            costs.locate(cost, nest, (*index, *lead, located), counts);
        }
        around.push(*index);
        runs.push(*iterations);
    }
}

/// How often a loop opens, and how many coordinates it visits in all that all others have.
#[derive(Clone, Copy)]
struct Counts {
    loops: f64,
    visits: f64,
}

/// Returns the seconds that a level takes when it is visited first, in loops over those above it.
pub(super) fn level_seconds(problem: &Problem, machine: &Machine, level: usize) -> f64 {
    let Some(x) = problem.leader() else { return 0.0 };
    let mut cost = Cost::default();
    // What comes again is none of that.
    let mut costs = LevelCosts { problem, machine, layouts: &[], x, bytes: 0.0, streamed: level };
    let runs = |depth: usize| problem.iterations(set_of(&x.levels()[..depth])) as f64;
    let counts = Counts { loops: runs(level), visits: runs(level + 1) };
    costs.add_level(&mut cost, level, &x.levels()[..level], counts);
    cost.seconds
}

/// The nodes of the uppermost `depth` levels, at least one.
fn nodes(problem: &Problem, x: &SparseOperand, depth: usize) -> f64 {
    x.nodes(x.levels()[..depth].iter().copied().collect(), &problem.extents).max(1) as f64
}

struct LevelCosts<'a> {
    problem: &'a Problem,
    machine: &'a Machine,
    layouts: &'a [Layout],
    x: &'a SparseOperand,
    /// Bytes of the tree.
    bytes: f64,
    /// Levels that have been read from memory.
    streamed: usize,
}

impl LevelCosts<'_> {
    /// The kind of a level: that of the tree where no schedule says more.
    fn kind(&self, tree: usize, level: usize) -> LevelKind {
        let kind = |layout: &Layout| layout.format.kinds()[level];
        self.layouts.get(tree).map_or(self.problem.sparse[tree].format.kinds()[level], kind)
    }

    /// Bytes of a level.
    fn level_bytes(&self, tree: usize, level: usize) -> f64 {
        nodes(self.problem, &self.problem.sparse[tree], level + 1) * self.node_bytes(tree, level)
    }

    /// Bytes of a node: a coordinate unless the level is dense, a value in the last level, a pointer above the fused levels.
    fn node_bytes(&self, tree: usize, level: usize) -> f64 {
        let (problem, x) = (self.problem, &self.problem.sparse[tree]);
        let coordinate = match self.kind(tree, level) {
            LevelKind::Dense => 0,
            _ => Width::below(problem.extents.of(x.levels()[level])).bytes(),
        };
        let value = if level + 1 == x.levels().len() { problem.value_bytes } else { 0 };
        let opens = level + x.fused() < x.levels().len();
        let nnz = || x.nodes(x.levels().iter().copied().collect(), &problem.extents);
        let pointer = if opens { Width::below(nnz().saturating_add(1)).bytes() } else { 0 };
        (coordinate + value + pointer) as f64
    }

    /// Adds one loop over `level` inside loops over `around`.
    fn add_level(&mut self, cost: &mut Cost, level: usize, around: &[Index], counts: Counts) {
        let visits = counts.visits;
        let prefix = self.x.levels()[..=level].iter().copied().collect();
        let nodes = self.x.nodes(prefix, &self.problem.extents) as f64;
        // A level is read from memory once, at its first visit.
        let fresh = if level < self.streamed { 0.0 } else { nodes.min(visits) };
        self.streamed = self.streamed.max(level + 1);
        let bytes = self.node_bytes(0, level);
        let stream = self.machine.stream_line;
        let again = Shares::shared(self.machine, self.between(around)).line(self.machine, stream);
        cost.streamed_bytes += visits * bytes;
        cost.seconds += (fresh * stream + (visits - fresh) * again) * bytes / LINE_BYTES;
        // Fused levels have one loop.
        if level > 0 && level + self.x.fused() <= self.x.levels().len() {
            let above = self.x.levels()[..level].iter().copied().collect();
            let parents = self.x.nodes(above, &self.problem.extents) as f64;
            let near = self.between(around) <= L1_BYTES;
            cost.seconds += self.loops(counts, near.then_some(parents));
        }
    }

    /// Returns the seconds of loops that visit nodes; if `again` of them are different, the others come near the first.
    fn loops(&self, Counts { loops, visits }: Counts, again: Option<f64>) -> f64 {
        let loops = loops.max(1.0);
        // A loop over one child ends as the processor expects.
        let unforeseen = (visits / loops - 1.0).clamp(0.0, 1.0);
        let each = self.machine.loop_overhead + unforeseen * self.machine.loop_end;
        let first = again.map_or(loops, |different| loops.min(different));
        first * each + (loops - first) * self.machine.loop_overhead * AGAIN_SHARE
    }

    /// Adds a loop that visits a level of another operand than the leader.
    fn walk(&self, cost: &mut Cost, TreeLevel { tree, level }: TreeLevel, counts: Counts) {
        let visits = counts.visits;
        let bytes = self.node_bytes(tree, level);
        cost.streamed_bytes += visits * bytes;
        cost.seconds += visits * bytes / LINE_BYTES * self.line(tree, level);
        if level > 0 {
            // Loops over the leader's levels come in between, so that no end is foreseen.
            cost.seconds += self.loops(counts, None);
        }
        if self.kind(tree, level) == LevelKind::Dense {
            // Places without children are passed over.
            let extent = self.problem.extents.of(self.problem.sparse[tree].levels()[level]) as f64;
            let empty = (counts.loops.max(1.0) * extent - visits).max(0.0);
            cost.seconds += empty * self.machine.loop_overhead;
        }
    }

    /// Adds `loops` loops over the marked cells of the buffer of a term.
    ///
    /// They are found in order, word by word; where the bits of a word end no processor foresees.
    fn find(&self, cost: &mut Cost, nest: &LoopNest, (term, index): (usize, Index), loops: f64) {
        let (words, cells) = (self.problem.extents.of(index) as f64 / WORD_BITS, cells(nest, term));
        let looked_at = (words / WORD_BITS).ceil() + cells;
        let ends = cells.min(words) + 1.0;
        let each = looked_at * self.machine.loop_overhead + ends * self.machine.loop_end;
        cost.seconds += loops * each;
    }

    /// Adds the location of the coordinates of `index` that a loop visits in other levels, and in the marks of buffers.
    fn locate(
        &self,
        cost: &mut Cost,
        nest: &LoopNest,
        loop_over: (Index, Visited, &[Visited]),
        counts: Counts,
    ) {
        let Counts { loops, visits } = counts;
        for (at, lookups) in lookups(self.problem, nest, loop_over, (loops, visits)) {
            let Visited::Level(TreeLevel { tree, level }) = at else {
                cost.seconds += lookups.count * self.machine.loop_end;
                continue;
            };
            cost.streamed_bytes += visits * self.node_bytes(tree, level);
            cost.seconds += visits * self.line(tree, level);
            cost.seconds += lookups.seconds(self.kind(tree, level), self.machine);
        }
    }

    /// Seconds of a line of a level of another operand than the leader.
    fn line(&self, tree: usize, level: usize) -> f64 {
        Shares::shared(self.machine, self.level_bytes(tree, level))
            .line(self.machine, self.machine.stream_line)
    }

    /// Bytes of the tree that are walked before a node comes again: what lies below the loops
    /// outside the first dense one.
    fn between(&self, around: &[Index]) -> f64 {
        let walked = around.iter().zip(self.x.levels()).take_while(|(a, l)| a == l).count();
        let prefix = self.x.levels()[..walked].iter().copied().collect();
        self.bytes / self.x.nodes(prefix, &self.problem.extents).max(1) as f64
    }
}
