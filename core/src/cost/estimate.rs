//! The predicted cost of a whole schedule.
//!
//! For every term the model counts how often each operand's row is fetched anew (`access`) and prices
//! a fetch by where the operand fits (`caches`).  To that it adds the arithmetic, the levels of the tree and the loops
//! over them (`levels`), and the buffers that leave the registers (`buffers`).

use crate::cost::Machine;
use crate::cost::access::{Role, TermAccess};
use crate::cost::batches::batched_nodes;
use crate::cost::buffers::add_buffers;
use crate::cost::caches::{LINE_BYTES, Shares};
use crate::cost::levels::{add_levels, is_cut, loops_over_level};
use crate::cost::predicted::Cost;
use crate::cost::vector_loop::lane;
use crate::einsum::{Index, IndexSet};
use crate::path::Source;
use crate::schedule::{Conflict, OutputForm, Problem, Schedule, Vectors, Workspace};

/// Judges `schedule`, which must be legal for `problem`, on `machine`.
///
/// # Panics
///
/// If its nest does not hold the terms of its path.
pub fn estimate(problem: &Problem, schedule: &Schedule, machine: &Machine) -> Cost {
    let mut cost = Cost::default();
    let orders = schedule.nest.orders(schedule.path.terms.len()).expect("a nest of all terms");
    for (term, order) in orders.iter().enumerate() {
        let before = cost.seconds;
        add_term(&mut cost, problem, schedule, machine, term, &orders);
        if !(0..order.len()).any(|at| is_cut(problem, order, at)) {
            cost.repeated_seconds += cost.seconds - before;
        }
    }
    add_buffers(&mut cost, problem, schedule, machine, &orders);
    add_levels(&mut cost, problem, &schedule.nest, machine);
    cost
}

/// A sum of so many products takes all of [`Machine::scalar_pair`] for each.
const LONG_SUM: f64 = 32.0;

/// The part of it that each product of short sums takes, where the same nodes come again.
const SHORT_SUM_SHARE: f64 = 0.25;

/// Returns the seconds of the products in loops over `order` that have no lanes.
///
/// Each waits for the sum before it.  But where rows have several indices, as those of TTMcs, and loops over some stand
/// around those over the tree, the same nodes come again, and sums of a few products overlap.
fn scalar_seconds(problem: &Problem, order: &[Index], machine: &Machine) -> f64 {
    let all: IndexSet = order.iter().copied().collect();
    let pairs = problem.iterations(all) as f64;
    if (problem.expr.all() - problem.sparse_indices()).len() < 2 {
        return machine.scalar_pair * pairs;
    }
    let outside = order[..order.len().saturating_sub(1)].iter().copied().collect();
    let length = pairs / (problem.iterations(outside) as f64).max(1.0);
    let again = (length / LONG_SUM).clamp(SHORT_SUM_SHARE, 1.0);
    let first = problem.iterations(problem.walked(all)) as f64;
    machine.scalar_pair * (first + (pairs - first) * again)
}

/// A sum of so many products fills a vector of them.
const VECTOR_SUM: f64 = 8.0;

/// A sum of so many products takes less time in gathered vectors than in several sums side by side.
const GATHERED_SUM: f64 = 2.0 * VECTOR_SUM;

/// Returns how many times [`Machine::scalar_pair`], the time in several sums side by side, a product of a sum over the nodes
/// of a level takes.
///
/// Of long sums, the products of a single one wait for each other, and vectors of them are gathered in less time.
fn sum_share(
    problem: &Problem,
    schedule: &Schedule,
    machine: &Machine,
    (output, order): (IndexSet, &[Index]),
) -> f64 {
    let length = sum_length(problem, output, order).filter(|&length| length >= VECTOR_SUM);
    match (length, schedule.vectors) {
        (None, _) | (_, Vectors::All) => 1.0,
        (Some(length), Vectors::Over(own)) if order.last() == Some(&own) => {
            machine.gathered_sum.filter(|_| length >= GATHERED_SUM).unwrap_or(1.0)
        }
        (_, Vectors::None | Vectors::Over(_)) => SINGLE_SUM_SHARE,
    }
}

/// Returns how many products a sum over the nodes of a level has on average, if the innermost loop of `order` adds them up.
fn sum_length(problem: &Problem, output: IndexSet, order: &[Index]) -> Option<f64> {
    let (&innermost, outer) = order.split_last()?;
    let over_level = problem.sparse.len() == 1 && loops_over_level(problem, order, outer.len());
    let sums = over_level && !outer.is_empty() && !output.contains(innermost);
    let iterations = |loops: &[Index]| problem.iterations(loops.iter().copied().collect()) as f64;
    sums.then(|| iterations(order) / iterations(outer).max(1.0))
}

/// Returns which loop of a single term inside `order` best becomes vector code: the innermost one, if it adds up long sums
/// over a level, no other could, and the machine gathers them in less time.
pub(crate) fn suited_vectors(problem: &Problem, order: &[Index], machine: &Machine) -> Vectors {
    let dense = (0..order.len()).any(|at| !loops_over_level(problem, order, at));
    let length = sum_length(problem, problem.expr.output.set(), order);
    let gathered = machine.gathered_sum.is_some_and(|share| share < 1.0);
    match order.last() {
        Some(&own) if gathered && !dense && length >= Some(GATHERED_SUM) => Vectors::Over(own),
        _ => Vectors::All,
    }
}

/// The time of long sums of SpMV one by one beside four sums side by side, as measured on an Intel server: the geometric
/// mean of five matrices.
const SINGLE_SUM_SHARE: f64 = 1.2;

fn add_term(
    cost: &mut Cost,
    problem: &Problem,
    schedule: &Schedule,
    machine: &Machine,
    position: usize,
    orders: &[Vec<Index>],
) {
    let order = &orders[position];
    let term = &schedule.path.terms[position];
    let lane = lane(problem, schedule, orders, position);
    let pairs = problem.iterations(term.indices) as f64;
    cost.flops += pairs * term.inputs.len() as f64;
    // Without a vector loop every product is a loop iteration of its own.
    cost.seconds += match lane {
        Some(_) => pairs * machine.flop_pair,
        None => {
            let share = sum_share(problem, schedule, machine, (term.output, order));
            share * scalar_seconds(problem, order, machine)
        }
    };
    if let Some(lane) = lane.filter(|&lane| !term.output.contains(lane)) {
        let sums = pairs / problem.extents.of(lane) as f64;
        cost.seconds += sums * machine.lane_sum;
    }
    let last = position + 1 == schedule.path.terms.len();
    let inputs = term.inputs.iter().filter_map(|source| match *source {
        Source::Input(input) if problem.sparse.iter().all(|x| x.input != input) => {
            Some(&problem.expr.inputs[input].indices)
        }
        _ => None,
    });
    let assembled = problem.output == OutputForm::Assembled;
    if last && assembled {
        cost.seconds += assembly_seconds(problem, schedule, order, machine);
    }
    let outputs = (last && !assembled).then_some(&problem.expr.output.indices);
    let inputs = inputs.map(|indices| (problem.operand_order(indices, order), 1.0, Role::Operand));
    let conflict = schedule.parallel.map(|parallel| parallel.conflict);
    let ranged = problem.leader().is_some_and(|x| x.pattern.ranged().is_some());
    let role = match conflict {
        _ if problem.has_pattern_output() => Role::SumInOrder,
        Some(Conflict::Privatise) => Role::SumInCopies,
        Some(Conflict::Owner) if ranged => Role::SumInRanges,
        _ => Role::Sum,
    };
    let outputs = outputs.map(|indices| {
        let touches = 2.0 / batched_nodes(problem, schedule, orders, position);
        (problem.output_order(indices, order), touches, role)
    });
    for (indices, touches, role) in inputs.chain(outputs) {
        TermAccess { problem, machine, order, indices, lane, touches, role }.add(cost);
    }
}

/// Seconds to add the products of the last term, in loops over `order`, to the workspace of an assembled output, and to
/// append what was met.
///
/// Each sum looks up whether its cell, or the row of lanes, was met.  A product that is added to the cell of the one before
/// waits for it in memory.  Each element is written once.  Those of a list are put in order before, which takes a comparison
/// for each doubling of their number; those of a dense workspace are found in a bitmap.
fn assembly_seconds(
    problem: &Problem,
    schedule: &Schedule,
    order: &[Index],
    machine: &Machine,
) -> f64 {
    let cells = problem.workspace_cells(order) as f64;
    let value = problem.value_bytes as f64;
    let outside = order[..problem.assembled_outside(order)].iter().copied().collect();
    let parts = problem.iterations(outside).max(1) as f64;
    let workspace = schedule.workspace.unwrap_or(Workspace::Dense);
    let lanes = problem.workspace_lanes(order, workspace);
    let looped = order.len() - usize::from(lanes.is_some());
    let sums = problem.workspace_sums(order, workspace);
    let added = &order[..sums.unwrap_or(looped)];
    let additions = problem.iterations(added.iter().copied().collect()) as f64;
    let again = added.last().is_some_and(|&index| !problem.expr.output.set().contains(index));
    let waits = if again { additions * IN_MEMORY * machine.scalar_pair } else { 0.0 };
    let elements = problem.assembled_elements() as f64;
    let met = (elements / parts).min(cells);
    let line = Shares::shared(machine, cells * (value + 0.125)).line(machine, machine.l2_line);
    let found = match workspace {
        Workspace::Dense => machine.loop_overhead,
        Workspace::List => met.max(2.0).log2() * machine.loop_overhead,
    };
    let written = 2.0 * (value + COORDINATE_BYTES) / LINE_BYTES * machine.stream_line;
    let sorted = if problem.is_assembled_in_order(order) { 0.0 } else { SORT_PASSES * written };
    additions * line + waits + parts * machine.loop_end + elements * (found + written + sorted)
}

/// How many times as long as in a register an addition takes in memory: what was stored is read again.
const IN_MEMORY: f64 = 2.0;

/// How often a list is written and read when it is sorted, beside the time in which it is appended.
const SORT_PASSES: f64 = 4.0;

/// Bytes of the coordinates of an element that is appended.
const COORDINATE_BYTES: f64 = 8.0;
