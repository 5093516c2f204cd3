//! What a kernel costs on all threads.

use decompose_formats::dense::padded;

use crate::cost::caches::LINE_BYTES;
use crate::cost::{Cost, Machine};
use crate::einsum::Index;
use crate::schedule::{Conflict, Problem, Schedule, Space, TaskCut};

/// A kernel on several threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadedCost {
    /// Seconds, private copies of the output included.
    pub seconds: f64,
    /// Bytes of private copies.
    pub side_bytes: u64,
}

/// Predicts `schedule`, which costs `cost` on one core, on `threads` threads.
///
/// Tasks share the non-zeros.  Terms in dense loops only are computed by every task anew.  If tasks
/// cannot own what they write, each thread but the first has a copy of the output: it is cleared
/// and added once; of slices that tasks share, each task but the first has one.  Of an operand in ranges
/// of the output's rows every range is one task.
pub fn on_threads(
    problem: &Problem,
    schedule: &Schedule,
    cost: &Cost,
    machine: &Machine,
    threads: usize,
) -> ThreadedCost {
    let conflict = schedule.parallel.map(|parallel| parallel.conflict);
    let Some(conflict) = conflict else {
        return ThreadedCost { seconds: cost.seconds, side_bytes: 0 };
    };
    let threads = match ranges(problem).filter(|_| conflict == Conflict::Owner) {
        Some(ranges) => threads.max(1).min(ranges as usize) as f64,
        None => threads.max(1) as f64,
    };
    let private = conflict == Conflict::Privatise;
    let tasks = if threads == 1.0 { 1.0 } else { schedule.tasks_per_thread(problem) as f64 };
    let shared = (cost.seconds - cost.repeated_seconds) / threads;
    let cut = schedule.parallel.and_then(|parallel| Some((parallel.space, parallel.tasks?)));
    let handed = cut.map_or(0.0, |(space, cut)| handed_over(problem, space, cut));
    let mut seconds = shared + cost.repeated_seconds * tasks + TASK_SECONDS * handed / threads;
    let mut side_bytes = 0;
    if private {
        let output = output_bytes(problem);
        seconds += copying_seconds(output, machine, threads);
        side_bytes = ((threads - 1.0) * output) as u64;
    }
    if let Some(parallel) = schedule.parallel.filter(|p| p.conflict == Conflict::Boundary) {
        let shared = (threads * tasks - 1.0) * problem.slice_bytes(parallel.index) as f64;
        seconds += PASSES * shared / threads / LINE_BYTES * machine.stream_line;
    }
    ThreadedCost { seconds, side_bytes }
}

/// Seconds to hand a task of a given size over to a thread.
const TASK_SECONDS: f64 = 1e-6;

/// Returns how many tasks a cut makes.
fn handed_over(problem: &Problem, space: Space, cut: TaskCut) -> f64 {
    let Some(x) = problem.leader() else { return 1.0 };
    let units = match space {
        Space::Position => x.nodes(x.levels().iter().copied().collect(), &problem.extents),
        Space::Coordinate => x.levels().first().map_or(1, |&root| problem.extents.of(root)),
    };
    units.div_ceil(cut.size(units)) as f64
}

/// Seconds to clear and add private copies of an output of `output` bytes.
pub(super) fn copying_seconds(output: f64, machine: &Machine, threads: f64) -> f64 {
    let passes = 1.0 + COPY_PASSES * (threads - 1.0) / threads;
    passes * output / LINE_BYTES * machine.stream_line
}

/// Returns how many ranges a problem's sparse operand is stored in, if it is: where tasks own them, each is one task.
fn ranges(problem: &Problem) -> Option<u64> {
    let ranged = problem.leader()?.pattern.ranged();
    ranged.map(|_| problem.extents.of(Index::BLOCK))
}

/// How often the output could be written in the time that a private copy of it takes: it is cleared, and
/// added by threads to which half of its lines come from the cache of another.
const COPY_PASSES: f64 = 6.0;

/// How often a shared slice is written or read: it is cleared, filled, read and added.
const PASSES: f64 = 4.0;

/// Bytes of a dense output, its rows padded.
pub(super) fn output_bytes(problem: &Problem) -> f64 {
    let indices = &problem.expr.output.indices;
    let Some((last, rows)) = indices.split_last() else { return problem.value_bytes as f64 };
    let rows = rows.iter().map(|&index| problem.extents.of(index) as f64).product::<f64>();
    let width = padded(problem.extents.of(*last) as usize, problem.value_bytes);
    rows * (width * problem.value_bytes) as f64
}
