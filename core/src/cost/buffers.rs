//! What intermediates cost that leave the registers.
//!
//! A buffer is cleared in every iteration of its fused loops; its producer adds to a row and its consumer
//! reads one in every iteration of the loops down to the last one that indexes it, its lanes apart: below,
//! the row stays in registers.  A small buffer of one index stays there altogether, unless its consumer has
//! lanes over another: then each of its values is broadcast to them.  Lanes that follow each other in
//! the buffer share lines; any other access touches a line of its own: a buffer over two levels of
//! the tree that is built by walking it is updated at random places.

use crate::cost::Machine;
use crate::cost::batches::batched_nodes;
use crate::cost::caches::{L1_BYTES, LINE_BYTES, Shares};
use crate::cost::predicted::Cost;
use crate::cost::vector_loop::row_bytes;
use crate::einsum::Index;
use crate::lower::{REGISTER_BUDGET, VECTOR_BYTES};
use crate::nest::Buffer;
use crate::schedule::{LoopNest, Marks, Problem, Schedule};

/// Buffers of one index and up to this many bytes stay in registers.
const REGISTER_BYTES: f64 = (REGISTER_BUDGET * VECTOR_BYTES) as f64;

/// What a value of such a buffer costs that is broadcast to lanes over another index, as a part of a line: half
/// of one that is loaded.
const BROADCAST_LINES: f64 = 0.125;

/// The cells of a word of a bitmap.
pub(super) const WORD_BITS: f64 = 64.0;

/// Adds the buffers of `schedule`, whose loops are `nest`.
pub(super) fn add_buffers(
    cost: &mut Cost,
    problem: &Problem,
    schedule: &Schedule,
    machine: &Machine,
    nest: &LoopNest,
) {
    for made in &nest.buffers {
        let buffer = &made.buffer;
        let Some(consumer) = schedule.path.consumer(buffer.term) else { continue };
        let elements = buffer.stored.iter().map(|index| problem.extents.of(index));
        let elements = elements.fold(1, u64::saturating_mul);
        cost.buffer_elements = cost.buffer_elements.saturating_add(elements);
        cost.buffer_dims = cost.buffer_dims.max(buffer.stored.len());
        let bytes = elements as f64 * problem.value_bytes as f64;
        if buffer.stored.is_empty() {
            continue;
        }
        if buffer.stored.len() < 2 && bytes <= REGISTER_BYTES && made.marks.is_none() {
            let spread = nest.lanes(consumer).is_some_and(|lane| !buffer.stored.contains(lane));
            if spread {
                let last = nest.orders[consumer].iter().rposition(|&i| buffer.stored.contains(i));
                let reads = nest.iterations(consumer, last.map_or(0, |at| at + 1));
                cost.seconds += reads * BROADCAST_LINES * machine.l1_line;
            }
            continue;
        }
        let touches = 2.0 / batched_nodes(problem, schedule, nest, buffer.term);
        // The producer's loops give the storage order, so its last stored index is contiguous.
        let contiguous = made.order.last().copied();
        let here = BufferAccess { problem, machine, nest, buffer, bytes, contiguous };
        let times = nest.iterations(buffer.term, buffer.fused.len());
        cost.seconds += match &made.marks {
            Some(marks) => here.marking_seconds(marks, times),
            None if made.summed => times * here.clear(),
            None => 0.0,
        };
        here.add(cost, buffer.term, machine.scatter_line, touches);
        here.add(cost, consumer, machine.memory_line, 1.0);
    }
}

/// A buffer as its accesses see it.
struct BufferAccess<'a> {
    problem: &'a Problem,
    machine: &'a Machine,
    nest: &'a LoopNest,
    buffer: &'a Buffer,
    bytes: f64,
    contiguous: Option<Index>,
}

impl BufferAccess<'_> {
    fn shares(&self) -> Shares {
        Shares::private(self.machine, self.bytes)
    }

    /// Seconds to clear it: it is written in order.
    fn clear(&self) -> f64 {
        self.bytes / LINE_BYTES * self.shares().line(self.machine, self.machine.stream_line)
    }

    /// Seconds to mark the cells of a sparse buffer, in each of `times` iterations of its fused loops.
    ///
    /// Each product looks up whether its cell was marked.  The first one that was not comes unforeseen, and empties a row.
    fn marking_seconds(&self, marks: &Marks, times: f64) -> f64 {
        let Machine { loop_overhead, loop_end, .. } = *self.machine;
        let extent = self.problem.extents.of(marks.index).max(1) as f64;
        let marked = times * marks.cells;
        let row = self.bytes / extent / LINE_BYTES;
        let emptied = row * self.shares().line(self.machine, self.machine.l2_line);
        let upper = times * (extent / (WORD_BITS * WORD_BITS)).ceil();
        let marking = self.nest.iterations(self.buffer.term, marks.depth) + upper;
        marking * loop_overhead + marked * (loop_end + emptied)
    }

    /// Adds `touches` accesses by a term, with `far` seconds for a single value in memory.
    fn add(&self, cost: &mut Cost, term: usize, far: f64, touches: f64) {
        let (machine, order) = (self.machine, &self.nest.orders[term]);
        let over_level = |at: usize| self.nest.is_over_level(term, at);
        let last = order.len().checked_sub(1).filter(|&at| !over_level(at));
        let lane = last.map(|at| order[at]).filter(|&index| Some(index) == self.contiguous);
        let moves = |&index: &Index| self.buffer.stored.contains(index) && Some(index) != lane;
        let end = order.iter().rposition(moves).map_or(0, |at| at + 1);
        let end = end.max(self.buffer.fused.len());
        let rows = self.nest.iterations(term, end);
        let row = row_bytes(self.problem, lane);
        let lines = (row / LINE_BYTES).max(1.0);
        let line = match lane {
            // A value in the first-level cache is part of what a scalar multiply-add takes.
            None if self.bytes <= L1_BYTES => 0.0,
            Some(_) if self.bytes <= L1_BYTES => machine.buffer_line,
            Some(_) => self.shares().line(machine, machine.memory_line),
            None => self.shares().line(machine, far / touches),
        };
        cost.gathered_bytes += rows * row * touches;
        cost.seconds += rows * lines * line * touches;
        if end > 0 && over_level(end - 1) {
            cost.seconds += rows * machine.find_row;
        }
    }
}
