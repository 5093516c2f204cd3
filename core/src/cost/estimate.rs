//! The predicted cost of a whole schedule.
//!
//! For every term the model counts how often each operand's row is fetched anew - once for each
//! iteration of the loops down to the last one that indexes it - and prices a fetch by where the
//! operand fits: a table of `T` bytes finds the share `min(1, L2/T)` of its lines in the second
//! level, the rest up to `L3/T` in the last level, the others in memory.  To that it adds the
//! arithmetic, the tree that is streamed, and the loops that are opened.

use std::fmt;

use decompose_formats::dense::padded;

use crate::cost::Machine;
use crate::einsum::{Index, IndexSet};
use crate::nest::buffers;
use crate::path::Source;
use crate::schedule::{Problem, Schedule};

/// What a schedule is predicted to cost; the same columns whoever made it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Seconds on one core.
    pub seconds: f64,
    /// Multiplications and additions.
    pub flops: f64,
    /// Bytes of operands and output fetched anew, from whatever cache.
    pub gathered_bytes: f64,
    /// Bytes of the sparse operand streamed.
    pub streamed_bytes: f64,
    /// Elements of all buffers together.
    pub buffer_elements: u64,
    /// Stored indices of the largest buffer.
    pub buffer_dims: usize,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.3e} s on one core, {:.3e} flops, {:.3e} B gathered, {:.3e} B streamed, \
             buffers of {} elements in up to {} dimensions",
            self.seconds,
            self.flops,
            self.gathered_bytes,
            self.streamed_bytes,
            self.buffer_elements,
            self.buffer_dims
        )
    }
}

/// Returns the seconds to gather one row of `row_bytes` from a table of `table_bytes`.
pub fn gather_seconds(machine: &Machine, table_bytes: f64, row_bytes: f64) -> f64 {
    let lines = (row_bytes / 64.0).max(1.0);
    let near = (machine.l2_bytes as f64 * 0.8 / table_bytes).min(1.0);
    let mid = (machine.l3_bytes as f64 * 0.8 / table_bytes).min(1.0) - near;
    let far = 1.0 - near - mid;
    let line = near * machine.l2_line + mid * machine.l3_line + far * machine.memory_line;
    lines * line
}

/// Judges `schedule`, which must be legal for `problem`, on `machine`.
pub fn estimate(problem: &Problem, schedule: &Schedule, machine: &Machine) -> Cost {
    let mut cost = Cost {
        seconds: 0.0,
        flops: 0.0,
        gathered_bytes: 0.0,
        streamed_bytes: 0.0,
        buffer_elements: 0,
        buffer_dims: 0,
    };
    for buffer in buffers(&schedule.path, &schedule.nest).unwrap_or_default() {
        let extents = buffer.stored.iter().map(|index| problem.extents.of(index));
        let elements = extents.fold(1, u64::saturating_mul);
        cost.buffer_elements = cost.buffer_elements.saturating_add(elements);
        cost.buffer_dims = cost.buffer_dims.max(buffer.stored.len());
    }
    let orders = schedule.nest.orders(schedule.path.terms.len()).unwrap_or_default();
    for (term, order) in orders.iter().enumerate() {
        add_term(&mut cost, problem, schedule, machine, (term, order));
    }
    add_buffers(&mut cost, problem, schedule, machine, &orders);
    add_tree(&mut cost, problem, machine);
    cost
}

/// Buffers of one index and up to this many bytes are taken to stay in registers.
const NEAR_BUFFER_BYTES: f64 = 4096.0;

/// Adds what other buffers cost: to clear them in every iteration of their fused loops, to add
/// to their rows in the producer, to read them in the consumer.
fn add_buffers(
    cost: &mut Cost,
    problem: &Problem,
    schedule: &Schedule,
    machine: &Machine,
    orders: &[Vec<Index>],
) {
    for buffer in buffers(&schedule.path, &schedule.nest).unwrap_or_default() {
        let Some(consumer) = schedule.path.consumer(buffer.term) else { continue };
        let elements = buffer.stored.iter().map(|index| problem.extents.of(index) as f64);
        let bytes = elements.product::<f64>() * problem.value_bytes as f64;
        if buffer.stored.len() < 2 && bytes <= NEAR_BUFFER_BYTES {
            continue;
        }
        let fused = problem.iterations(buffer.fused.iter().copied().collect()) as f64;
        cost.seconds += fused * bytes / 64.0 * machine.l2_line;
        for (term, touches) in [(buffer.term, 2.0), (consumer, 1.0)] {
            let lane = orders[term].last().copied().filter(|index| buffer.stored.contains(*index));
            let loops = orders[term].iter().copied().filter(|&index| Some(index) != lane);
            let rows = problem.iterations(loops.collect()) as f64;
            let width = lane.map_or(1, |lane| problem.extents.of(lane) as usize);
            let row = (padded(width, problem.value_bytes) * problem.value_bytes) as f64;
            cost.gathered_bytes += rows * row * touches;
            cost.seconds += rows * gather_seconds(machine, bytes, row) * touches;
        }
    }
}

fn add_term(
    cost: &mut Cost,
    problem: &Problem,
    schedule: &Schedule,
    machine: &Machine,
    (position, order): (usize, &[Index]),
) {
    let term = &schedule.path.terms[position];
    let sparse = problem.sparse_indices();
    let lane = order.last().copied().filter(|&index| !sparse.contains(index));
    let pairs = problem.iterations(term.indices) as f64;
    cost.flops += pairs * term.inputs.len() as f64;
    // Without a vector loop every product is a loop iteration of its own.
    let slow = if lane.is_some() { 1.0 } else { 8.0 };
    cost.seconds += pairs * machine.flop_pair * slow;
    let last = position + 1 == schedule.path.terms.len();
    let inputs = term.inputs.iter().filter_map(|source| match *source {
        Source::Input(input) if problem.sparse.iter().all(|x| x.input != input) => {
            Some(&problem.expr.inputs[input].indices)
        }
        _ => None,
    });
    let outputs = last.then_some(&problem.expr.output.indices);
    for (indices, touches) in inputs.map(|i| (i, 1.0)).chain(outputs.map(|o| (o, 2.0))) {
        let rows: IndexSet = indices.iter().copied().filter(|&i| Some(i) != lane).collect();
        let width = lane.filter(|lane| indices.contains(lane));
        let width = width.map_or(1, |lane| problem.extents.of(lane) as usize);
        let row_bytes = (padded(width, problem.value_bytes) * problem.value_bytes) as f64;
        let fetched = order.iter().rposition(|&index| rows.contains(index));
        let around: IndexSet = order[..fetched.map_or(0, |at| at + 1)].iter().copied().collect();
        let visits = problem.iterations(around) as f64;
        let fetches = distinct(problem, around).min(visits);
        let table_bytes = used_rows(problem, rows) * row_bytes;
        // Rows that come in the order of the root are streamed, not gathered.
        let each = if fetched == Some(0) {
            (row_bytes / 64.0).max(0.25) * machine.stream_line
        } else {
            gather_seconds(machine, table_bytes, row_bytes)
        };
        cost.gathered_bytes += fetches * row_bytes * touches;
        let again = (visits - fetches) * (row_bytes / 64.0).max(1.0) * machine.l1_line;
        cost.seconds += (fetches * each + again) * touches;
    }
}

/// Iterations of loops over `loops` that differ from the one before in the tree's coordinates:
/// fused levels visit a node once for each non-zero, in order.
fn distinct(problem: &Problem, loops: IndexSet) -> f64 {
    let Some(x) = problem.sparse.first() else { return f64::INFINITY };
    let walked = problem.walked(loops);
    let nodes = x.pattern.count(walked, &problem.extents) as f64;
    let dense = (loops - walked).iter().map(|index| problem.extents.of(index) as f64);
    dense.fold(nodes, |n, extent| n * extent)
}

/// Rows of an operand over `rows` that are ever touched.
fn used_rows(problem: &Problem, rows: IndexSet) -> f64 {
    let Some(x) = problem.sparse.first() else { return 1.0 };
    let sparse = problem.sparse_indices();
    let used = x.pattern.count(rows & sparse, &problem.extents) as f64;
    let dense = (rows - sparse).iter().map(|index| problem.extents.of(index) as f64);
    dense.fold(used, |n, extent| n * extent)
}

fn add_tree(cost: &mut Cost, problem: &Problem, machine: &Machine) {
    let Some(x) = problem.sparse.first() else { return };
    let mut prefix = IndexSet::EMPTY;
    let last = x.levels.len() - 1;
    for (level, &index) in x.levels.iter().enumerate() {
        prefix = prefix.with(index);
        let nodes = x.nodes(prefix, &problem.extents) as f64;
        // Only nodes above the tail open loops and have pointers.
        let opens = level + x.tail < x.levels.len();
        let value = if level == last { problem.value_bytes as f64 } else { 0.0 };
        let bytes = nodes * (4.0 + value + if opens { 4.0 } else { 0.0 });
        cost.streamed_bytes += bytes;
        cost.seconds += bytes / 64.0 * machine.stream_line;
        if opens {
            cost.seconds += nodes * machine.loop_overhead;
        }
    }
}
