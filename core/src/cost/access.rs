//! What it costs a term to reach the rows of a dense operand.
//!
//! A row is the part of an operand that lanes cover.  It is reached in every iteration of the loops
//! down to the last one that indexes it.  The rows that dense loops below those over the tree reach
//! form a *block*: a block that fits is fetched when a loop outside changes it, and found near by
//! until then.
//!
//! Inside these a row that comes again is found among those reached since.  With the levels
//! `l1 l2 ...` of the tree and a table over `k`, of all `nnz(l1 .. ln)` rows that are gathered
//!
//! ```text
//! nnz(l1 .. l(d+1) k) - nnz(l1 .. ld k)
//! ```
//!
//! come again below one node of level `d` and not below one of the next, and such a node reaches
//! `nnz(l1 .. ld k) / nnz(l1 .. ld)` rows, times how much fuller the slices of `l1 .. ld` are in which most
//! entries are: a table of their size is gathered from, if it fits the second-level cache.  The other rows, and
//! those that come again below different roots, are gathered from the whole table.

use decompose_formats::stats::Coverage;

use crate::cost::Machine;
use crate::cost::caches::{GatheredTable, L1_BYTES, LINE_BYTES, gather_seconds};
use crate::cost::predicted::Cost;
use crate::cost::vector_loop::row_bytes;
use crate::einsum::{Index, IndexSet};
use crate::schedule::{LoopNest, Problem};

/// What a block may take of the second-level cache that a table may count on.
const BLOCK_SHARE: f64 = 0.5;

/// A block up to this many bytes that is added to costs nothing again: it is read and written while other work goes on.
const HIDDEN_BYTES: f64 = 8.0 * LINE_BYTES;

/// The same of a block to which several nodes add together.
const HIDDEN_BYTES_TOGETHER: f64 = 16.0 * LINE_BYTES;

/// What a row that is shorter costs at least, as a part of a line.
const LEAST_LINES: f64 = 0.25;

/// What is done with what is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It is read.
    Operand,
    /// It is added to.
    Sum,
    /// It is added to, and every thread has a copy of its own.
    SumInCopies,
    /// It is added to, and every thread has a range of its own.
    SumInRanges,
    /// It is added to in storage order, whatever the loops are.
    SumInOrder,
}

/// An operand or output as a term inside loops reaches it.
pub(super) struct TermAccess<'a> {
    pub(super) problem: &'a Problem,
    pub(super) machine: &'a Machine,
    /// The loops of the schedule.
    pub(super) nest: &'a LoopNest,
    /// The term.
    pub(super) term: usize,
    /// The loops around it.
    pub(super) order: &'a [Index],
    /// The operand's indices, in storage order.
    pub(super) indices: Vec<Index>,
    /// The loop that became lanes.
    pub(super) lane: Option<Index>,
    /// How often a row is moved: 1 if it is read, 2 if it is read and written, fewer if several
    /// nodes share it.
    pub(super) touches: f64,
    /// What is done with it.
    pub(super) role: Role,
}

/// Rows that are gathered again below the same node of a level, but below another node of the next one.
struct Again {
    /// Which part of all rows that are gathered they are.
    share: f64,
    /// Which part of the table's rows a node of the level reaches: among them they are found.
    part: f64,
}

impl TermAccess<'_> {
    /// Adds what it costs.
    pub(super) fn add(&self, cost: &mut Cost) {
        let rows: IndexSet =
            self.indices.iter().copied().filter(|&i| Some(i) != self.lane).collect();
        let row_bytes = row_bytes(self.problem, self.lane.filter(|l| self.indices.contains(l)));
        let end = self.order.iter().rposition(|&i| rows.contains(i)).map_or(0, |at| at + 1);
        let outside = self.outside(rows, end, row_bytes);
        let inner = rows & self.order[outside..end].iter().copied().collect();
        let block = self.extents(inner);
        let visits = self.nest.iterations(self.term, end);
        let prefix: IndexSet = self.order[..outside].iter().copied().collect();
        let fetches = (distinct(self.problem, prefix) * block).min(visits);
        // Blocks that lie in one piece are fetched as one row.
        let piece = self.in_one_piece(inner);
        let bytes = if piece { row_bytes * block } else { row_bytes };
        let pieces = if piece { fetches / block } else { fetches };
        let each = if self.streams(rows, outside) || end > 0 && outside == 0 {
            (bytes / LINE_BYTES).max(LEAST_LINES) * self.streamed_line(rows) * self.touches
        } else {
            let read = self.gather_seconds(rows - self.fixed(), outside, row_bytes, bytes);
            cost.seconds += self.entering_blocks(rows, row_bytes, read) * self.touches;
            self.moved(read, bytes)
        };
        let near = self.again_seconds(block, self.bytes(inner, row_bytes));
        // A multiply-add loads the value that it broadcasts.
        let broadcast = self.lane.is_some_and(|lane| !self.indices.contains(&lane));
        let least = if broadcast { LEAST_LINES } else { 1.0 };
        let again = (visits - fetches) * (row_bytes / LINE_BYTES).max(least) * near;
        cost.gathered_bytes += fetches * row_bytes * self.touches;
        cost.seconds += pieces * each + again * self.touches;
        if end > 0 && self.nest.is_over_level(self.term, end - 1) {
            cost.seconds += visits * self.machine.find_row;
        }
    }

    /// Seconds to move `bytes` that lie in one piece and take `read` to gather: what is added to goes back too, which
    /// takes as long as it took to come, but no longer than caches are kept from other work.
    fn moved(&self, read: f64, bytes: f64) -> f64 {
        if self.role == Role::Operand {
            return read * self.touches;
        }
        let lines = (bytes / LINE_BYTES).max(1.0);
        let written = self.machine.write_back_line.map_or(read, |line| read.min(lines * line));
        (read + written) * self.touches / 2.0
    }

    /// Seconds to gather `bytes` that lie in one piece, of rows over `rows` that take `row_bytes` each, in
    /// every iteration of the `outside` outermost loops.
    fn gather_seconds(&self, rows: IndexSet, outside: usize, row_bytes: f64, bytes: f64) -> f64 {
        let whole = self.table(rows, row_bytes);
        let seconds = |part: f64| {
            let table = GatheredTable { bytes: whole.bytes * part, ..whole };
            gather_seconds(self.machine, &table, bytes)
        };
        let again = self.again_below(rows, outside);
        let anywhere = 1.0 - again.iter().map(|again| again.share).sum::<f64>();
        // Where they outgrow the cache too, most of them leave it meanwhile.
        let near = self.machine.l2_bytes as f64 * whole.l2;
        let fit = |part: f64| whole.bytes * part <= near;
        let part = |again: &Again| if fit(again.part) { again.part } else { 1.0 };
        let below = again.iter().map(|again| again.share * seconds(part(again)));
        anywhere * seconds(1.0) + below.sum::<f64>()
    }

    /// Returns, for each level of the tree that the `outside` outermost loops walk but the last, the rows
    /// over `rows` that come again below one of its nodes; the others come from anywhere in the table.
    fn again_below(&self, rows: IndexSet, outside: usize) -> Vec<Again> {
        let loops: IndexSet = self.order[..outside].iter().copied().collect();
        let walked = self.problem.walked(loops);
        let rows = rows & self.problem.sparse_indices();
        let Some(x) = self.problem.leader().filter(|_| rows.is_subset(walked)) else {
            return Vec::new();
        };
        let count = |set| x.pattern.count(set, &self.problem.extents).max(1) as f64;
        // The table of rows in blocks is already that of one block.
        let blocks = usize::from(x.in_blocks());
        let prefix = |depth: usize| x.levels()[..depth].iter().copied().collect::<IndexSet>();
        let rows_of = |around: IndexSet| count(around | rows) / count(around);
        // Most entries are below nodes with more of them than a node has on average, which reach more rows.
        let skew = |around: IndexSet| {
            let modes = around.iter().filter_map(|index| x.pattern.coverage(index));
            modes.map(Coverage::skew).product::<f64>()
        };
        let levels = blocks + 1..walked.len();
        let again = levels.map(|depth| {
            let (here, below) = (prefix(depth), prefix(depth + 1));
            let repeated = count(below | rows) - count(here | rows);
            Again {
                share: (repeated / count(walked)).max(0.0),
                part: (skew(here) * rows_of(here) / rows_of(prefix(blocks))).min(1.0),
            }
        });
        again.collect()
    }

    /// Tells whether rows over `rows`, which the `outside` outermost loops change, come in storage
    /// order: in that of the root, or of the level below it in each block.
    fn streams(&self, rows: IndexSet, outside: usize) -> bool {
        let blocks = self.order.first() == Some(&Index::BLOCK);
        let root = usize::from(blocks);
        let first = outside == root + 1 && rows.contains(self.order[root]);
        first || self.role == Role::SumInOrder
    }

    /// Seconds of a line of rows over `rows` that come in storage order.
    ///
    /// Threads walk ranges side by side, all by the same rows: whoever comes first has them brought from memory, the
    /// others find them in the last level.
    fn streamed_line(&self, rows: IndexSet) -> f64 {
        let Machine { stream_line, l3_line, .. } = *self.machine;
        let ranged = self.problem.leader().filter(|x| x.pattern.ranged().is_some());
        let Some(x) = ranged.filter(|_| self.role == Role::Operand) else { return stream_line };
        let count = |set| x.pattern.count(set, &self.problem.extents).max(1) as f64;
        let rows = rows & self.problem.sparse_indices();
        let first = (count(rows) / count(rows.with(Index::BLOCK))).min(1.0);
        first * stream_line + (1.0 - first) * l3_line.min(stream_line)
    }

    /// Seconds beyond `each` that the first fetches of rows over `rows` in a block of the tensor take:
    /// these come from where the whole table is.
    ///
    /// The rows of a mode whose bits stay from one block to the next are still near.
    fn entering_blocks(&self, rows: IndexSet, row_bytes: f64, each: f64) -> f64 {
        let Some(x) = self.problem.leader().filter(|x| x.in_blocks()) else { return 0.0 };
        let rows = rows & self.problem.sparse_indices();
        if rows.is_empty() {
            return 0.0;
        }
        let count = |set| x.pattern.count(set, &self.problem.extents) as f64;
        let bytes = count(rows) * row_bytes.max(LINE_BYTES);
        let parts = self.parts();
        let l2 = self.machine.l2_share;
        let whole = GatheredTable { bytes, coverage: None, slices: count(rows), l2, parts };
        let far = gather_seconds(self.machine, &whole, row_bytes);
        let changes = rows.iter().map(|index| x.pattern.changes(index)).fold(0.0, f64::max);
        changes * count(rows.with(Index::BLOCK)) * (far - each).max(0.0)
    }

    /// Seconds to reach a line again of a block of `rows` rows that take `bytes`.
    fn again_seconds(&self, rows: f64, bytes: f64) -> f64 {
        let hidden = match self.role {
            Role::Operand => 0.0,
            _ if self.touches < 2.0 => HIDDEN_BYTES_TOGETHER,
            _ => HIDDEN_BYTES,
        };
        match bytes {
            _ if rows > 1.0 && bytes <= hidden => 0.0,
            _ if rows <= 1.0 || bytes <= L1_BYTES => self.machine.l1_line,
            _ => self.machine.l2_line,
        }
    }

    /// The table whose rows are over `rows`: how skewed they are asked for is known of one mode.
    fn table(&self, rows: IndexSet, row_bytes: f64) -> GatheredTable<'_> {
        let bytes = self.bytes(rows, row_bytes);
        let mut sparse = (rows & self.problem.sparse_indices()).iter();
        let single = sparse.next().filter(|_| sparse.next().is_none());
        let x = self.problem.leader();
        let coverage = single.zip(x).and_then(|(index, x)| x.pattern.coverage(index));
        let slices = single.zip(x).map_or(1.0, |(index, x)| {
            x.pattern.count(IndexSet::EMPTY.with(index), &self.problem.extents) as f64
        });
        GatheredTable { bytes, coverage, slices, l2: self.l2_share(), parts: self.parts() }
    }

    /// Returns the part of the second-level cache that this table may count on: what the others that the same loops
    /// gather from leave of it, each of which has as much as any other, or all that it needs.
    fn l2_share(&self) -> f64 {
        let Some(together) = self.machine.l2_together else { return self.machine.l2_share };
        let all = together * self.machine.l2_bytes as f64;
        let others = self.others_bytes();
        let each = all / (others.len() + 1) as f64;
        let left = all - others.iter().map(|&bytes| bytes.min(each)).sum::<f64>();
        (left / self.machine.l2_bytes as f64).min(self.machine.l2_share)
    }

    /// Returns the bytes of each other operand and of the output, but of those over the root, whose rows pass by in
    /// their order.  In blocks those count too: they come back with every block.
    fn others_bytes(&self) -> Vec<f64> {
        let walked = self.problem.sparse_indices();
        let root = self.order.iter().copied().find(|&index| walked.contains(index));
        let own: IndexSet = self.indices.iter().copied().collect();
        let sparse = |input: &usize| self.problem.sparse.iter().any(|x| x.input == *input);
        let expr = &self.problem.expr;
        let dense = (0..expr.inputs.len()).filter(|input| !sparse(input));
        let sets = dense.map(|input| expr.inputs[input].set()).chain([expr.output.set()]);
        let gathered = sets.filter(|&set| {
            let rows = set & walked;
            set != own && !rows.is_empty() && root.is_none_or(|root| !rows.contains(root))
        });
        let bytes = gathered.map(|set| {
            let lane = self.lane.filter(|&lane| set.contains(lane));
            used_rows(self.problem, set & walked) * row_bytes(self.problem, lane)
        });
        bytes.collect()
    }

    /// Into how many parts tables like this share the last-level cache out.
    ///
    /// Ranges are as many as threads.  Copies do harm each other, but less than that: on a Zen 4 server with 32 MB,
    /// two of 6 MB took two threads no longer than their shares, two of 10 MB 1.2 to 1.7 times as long.
    fn parts(&self) -> f64 {
        let threads = self.machine.threads.max(1) as f64;
        match self.role {
            Role::SumInRanges => threads,
            Role::SumInCopies => threads.sqrt(),
            _ => 1.0,
        }
    }

    /// Returns how many loops are outside the largest block that fits: those down to the last one
    /// that changes it.
    fn outside(&self, rows: IndexSet, end: usize, row_bytes: f64) -> usize {
        let indexed = |at: &usize| rows.contains(self.order[*at]);
        let tree_loop = |at: &usize| indexed(at) && self.nest.is_over_level(self.term, *at);
        let inner = (0..end).rev().find(tree_loop).map_or(0, |at| at + 1);
        let fits = |at: &usize| {
            let block = rows & self.order[*at..end].iter().copied().collect();
            let bytes = self.bytes(block, row_bytes);
            bytes <= self.machine.l2_bytes as f64 * self.machine.l2_share * BLOCK_SHARE
        };
        let block = (inner..end).find(fits).unwrap_or(end);
        (inner..block).rev().find(indexed).map_or(inner, |at| at + 1)
    }

    /// Returns the indices of the dense loops outside those over the tree: inside them, the
    /// rows of one of their iterations are the whole table.
    fn fixed(&self) -> IndexSet {
        let first = (0..self.order.len()).find(|&at| self.nest.is_over_level(self.term, at));
        self.order[..first.unwrap_or(0)].iter().copied().collect()
    }

    /// Returns the bytes that the rows over `set` take in a cache: whole lines if they lie apart.
    fn bytes(&self, set: IndexSet, row_bytes: f64) -> f64 {
        let piece = self.in_one_piece(set);
        used_rows(self.problem, set) * if piece { row_bytes } else { row_bytes.max(LINE_BYTES) }
    }

    /// Tells whether the rows over `set` follow each other in storage.
    fn in_one_piece(&self, set: IndexSet) -> bool {
        let lane_last = self
            .lane
            .is_none_or(|lane| !self.indices.contains(&lane) || self.indices.last() == Some(&lane));
        let stored = self.indices.iter().rev().filter(|&&index| Some(index) != self.lane);
        lane_last && stored.take_while(|&&index| set.contains(index)).count() == set.len()
    }

    fn extents(&self, set: IndexSet) -> f64 {
        set.iter().map(|index| self.problem.extents.of(index) as f64).product()
    }
}

/// Iterations of loops over `loops` that differ from the one before in the tree's coordinates:
/// fused levels visit a node once for each non-zero, in order.
fn distinct(problem: &Problem, loops: IndexSet) -> f64 {
    let Some(x) = problem.leader() else { return f64::INFINITY };
    let walked = problem.walked(loops);
    let nodes = x.pattern.count(walked, &problem.extents) as f64;
    let dense = (loops - walked).iter().map(|index| problem.extents.of(index) as f64);
    dense.fold(nodes, |n, extent| n * extent)
}

/// Rows of an operand over `rows` that are ever touched; in a block on average, if there are any.
fn used_rows(problem: &Problem, rows: IndexSet) -> f64 {
    let Some(x) = problem.leader() else { return 1.0 };
    let sparse = problem.sparse_indices();
    let count = |set| x.pattern.count(set, &problem.extents) as f64;
    let block = IndexSet::EMPTY.with(Index::BLOCK);
    let used = match x.in_blocks() {
        true => count((rows & sparse) | block) / count(block).max(1.0),
        false => count(rows & sparse),
    };
    let dense = (rows - sparse).iter().map(|index| problem.extents.of(index) as f64);
    dense.fold(used, |n, extent| n * extent)
}
