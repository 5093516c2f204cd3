//! The predicted cost of a whole schedule.
//!
//! For every term the model counts how often each operand's row is fetched anew (`access`) and prices
//! a fetch by where the operand fits (`caches`).  To that it adds the arithmetic, the levels of the tree and the loops
//! over them (`levels`), and the buffers that leave the registers (`buffers`).

use crate::cost::Machine;
use crate::cost::access::{Role, TermAccess};
use crate::cost::batches::batched_nodes;
use crate::cost::buffers::{WORD_BITS, add_buffers};
use crate::cost::caches::{LINE_BYTES, Shares};
use crate::cost::levels::add_levels;
use crate::cost::predicted::Cost;
use crate::einsum::{Index, IndexSet};
use crate::nest::set_of;
use crate::path::Source;
use crate::schedule::{
    Conflict, LevelKind, LoopNest, OutputForm, Problem, Schedule, Vectors, Workspace, resolve,
    spread_pairs,
};

/// Judges `schedule`, which must be legal for `problem`, on `machine`.
///
/// # Panics
///
/// If its nest does not hold the terms of its path.
pub fn estimate(problem: &Problem, schedule: &Schedule, machine: &Machine) -> Cost {
    let mut cost = Cost::default();
    let nest = resolve(problem, schedule).expect("a nest of all terms");
    for term in 0..nest.orders.len() {
        let before = cost.seconds;
        add_term(&mut cost, problem, schedule, machine, (term, &nest));
        if !nest.is_cut(term) {
            cost.repeated_seconds += cost.seconds - before;
        }
    }
    add_buffers(&mut cost, problem, schedule, machine, &nest);
    add_levels(&mut cost, problem, (&schedule.layouts, &nest), machine);
    cost
}

/// A sum of so many products takes all of [`Machine::scalar_pair`] for each.
const LONG_SUM: f64 = 32.0;

/// The part of it that each product of short sums takes, where the same nodes come again.
const SHORT_SUM_SHARE: f64 = 0.25;

/// Returns the seconds of the products of a term that has no lanes.
///
/// Each waits for the sum before it.  But where rows have several indices, as those of TTMcs, and loops over some stand
/// around those over the tree, the same nodes come again, and sums of a few products overlap.
fn scalar_seconds(problem: &Problem, nest: &LoopNest, term: usize, machine: &Machine) -> f64 {
    let order = &nest.orders[term];
    let pairs = nest.iterations(term, order.len());
    if (problem.expr.all() - problem.sparse_indices()).len() < 2 {
        return machine.scalar_pair * pairs;
    }
    let length = pairs / nest.iterations(term, order.len().saturating_sub(1)).max(1.0);
    let again = (length / LONG_SUM).clamp(SHORT_SUM_SHARE, 1.0);
    let first = (problem.iterations(problem.walked(set_of(order))) as f64).min(pairs);
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
    nest: &LoopNest,
    term: usize,
) -> f64 {
    let (order, output) = (&nest.orders[term], schedule.path.terms[term].output);
    let length = sum_length(problem, nest, term, output).filter(|&length| length >= VECTOR_SUM);
    match (length, schedule.vectors) {
        (None, _) | (_, Vectors::All) => 1.0,
        (Some(length), Vectors::Over(own)) if order.last() == Some(&own) => {
            machine.gathered_sum.filter(|_| length >= GATHERED_SUM).unwrap_or(1.0)
        }
        (_, Vectors::None | Vectors::Over(_)) => SINGLE_SUM_SHARE,
    }
}

/// Returns how many products a sum over the nodes of a level has on average, if the innermost loop around a term, which makes
/// `output`, adds them up.
fn sum_length(problem: &Problem, nest: &LoopNest, term: usize, output: IndexSet) -> Option<f64> {
    let (innermost, outer) = nest.orders[term].split_last()?;
    let over_level = problem.sparse.len() == 1 && nest.is_over_level(term, outer.len());
    let sums = over_level && !outer.is_empty() && !output.contains(*innermost);
    let iterations = |depth: usize| nest.iterations(term, depth);
    sums.then(|| iterations(outer.len() + 1) / iterations(outer.len()).max(1.0))
}

/// Returns which loop of `schedule` best becomes vector code: the innermost one around a single term, if it adds up long
/// sums over a level, no other could, and the machine gathers them in less time or the level is dense, so that nothing is
/// gathered.
pub(crate) fn suited_vectors(problem: &Problem, schedule: &Schedule, machine: &Machine) -> Vectors {
    let gathered = machine.gathered_sum.is_some_and(|share| share < 1.0);
    let last = schedule.layouts.first().and_then(|leader| leader.format.kinds().last());
    let pays = gathered || last == Some(&LevelKind::Dense);
    let ([_], true) = (schedule.path.terms.as_slice(), pays) else { return Vectors::All };
    let Ok(nest) = resolve(problem, schedule) else { return Vectors::All };
    let order = &nest.orders[0];
    let dense = (0..order.len()).any(|at| !nest.is_over_level(0, at));
    let length = sum_length(problem, &nest, 0, problem.expr.output.set());
    match order.last() {
        Some(&own) if !dense && length >= Some(GATHERED_SUM) => Vectors::Over(own),
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
    (position, nest): (usize, &LoopNest),
) {
    let order = &nest.orders[position];
    let term = &schedule.path.terms[position];
    let lane = nest.lanes(position);
    let pairs = nest.iterations(position, order.len());
    cost.flops += pairs * term.inputs.len() as f64;
    // Without a vector loop every product is a loop iteration of its own.
    cost.seconds += match lane {
        Some(_) => pairs * machine.flop_pair,
        None => {
            let share = sum_share(problem, schedule, machine, nest, position);
            share * scalar_seconds(problem, nest, position, machine)
        }
    };
    if let Some(lane) = lane.filter(|&lane| !term.output.contains(lane)) {
        let sums = pairs / problem.extents.of(lane) as f64;
        cost.seconds += sums * machine.lane_sum;
    }
    let last = position + 1 == schedule.path.terms.len();
    let inputs = term.inputs.iter().filter_map(|source| match *source {
        Source::Input(input) if problem.sparse.iter().all(|x| x.input != input) => {
            Some((nest.inputs[input].clone(), 1.0, Role::Operand))
        }
        _ => None,
    });
    let assembled = problem.output == OutputForm::Assembled;
    if last && assembled {
        add_assembly(cost, problem, schedule, nest, machine);
    }
    let outputs = (last && !assembled).then_some(&problem.expr.output.indices);
    let conflict = schedule.parallel.map(|parallel| parallel.conflict);
    let ranged = problem.leader().is_some_and(|x| x.pattern.ranged().is_some());
    let role = match conflict {
        _ if problem.has_pattern_output() => Role::SumInOrder,
        Some(Conflict::Privatise) => Role::SumInCopies,
        Some(Conflict::Owner) if ranged => Role::SumInRanges,
        _ => Role::Sum,
    };
    let outputs = outputs.map(|indices| {
        let touches = 2.0 / batched_nodes(problem, schedule, nest, position);
        (problem.output_order(indices, order), touches, role)
    });
    for (indices, touches, role) in inputs.chain(outputs) {
        let term = position;
        TermAccess { problem, machine, nest, term, order, indices, lane, touches, role }.add(cost);
    }
}

/// Adds what it takes to add the products of the last term to the workspace of an assembled output, and to
/// append what was met.
///
/// Each sum looks up whether its cell, or the row of lanes, was met.  A product that is added to the cell of the one before
/// waits for it in memory.  Each element is written once.  Elements of a hash table and products of a list are sorted before,
/// which takes a comparison for each doubling of their number, or of the number of long runs in order.  Elements of a dense
/// workspace are found in a bitmap, of which a word is read for each 64 words of cells.
fn add_assembly(
    cost: &mut Cost,
    problem: &Problem,
    schedule: &Schedule,
    nest: &LoopNest,
    machine: &Machine,
) {
    let order = nest.last();
    let cells = problem.workspace_cells(order) as f64;
    let value = problem.value_bytes as f64;
    let last = nest.buffers.len();
    let parts = nest.iterations(last, nest.outside).max(1.0);
    let workspace = schedule.workspace.unwrap_or(Workspace::Dense);
    let rows = nest.lanes(last).is_some_and(|lanes| nest.output.contains(&lanes));
    let sums = nest.accumulator.as_ref().map(|sum| sum.depth);
    let added = &order[..sums.unwrap_or(order.len() - usize::from(rows))];
    let additions = nest.iterations(last, added.len());
    let again = added.last().is_some_and(|&index| !problem.expr.output.set().contains(index));
    let waits = if again { additions * IN_MEMORY * machine.scalar_pair } else { 0.0 };
    let elements = appended_elements(problem, schedule, machine, (nest, additions));
    let met = (elements / parts).min(cells);
    let line = |bytes: f64| Shares::shared(machine, bytes).line(machine, machine.l2_line);
    let compare = COMPARE * machine.loop_overhead;
    let sort = |many: f64| many * (many / parts).max(2.0).log2() * compare;
    let added = match workspace {
        Workspace::Dense => {
            let scanned = parts * (cells / (WORD_BITS * WORD_BITS)) + elements;
            additions * line(cells * (value + 0.125)) + waits + scanned * machine.loop_overhead
        }
        Workspace::Hashed => {
            let look_up = line(met * (3.0 * value + SLOT_BYTES)) + PROBE * machine.loop_overhead;
            additions * look_up + waits + sort(elements)
        }
        Workspace::List => {
            let summed = |index: &Index| !problem.expr.output.set().contains(*index);
            let innermost = order.iter().rposition(summed);
            let runs = innermost.map_or(parts, |at| nest.iterations(last, at + 1)).max(1.0);
            match additions / runs < LONG_RUN {
                true => sort(additions),
                false => additions * (1.0 + (runs / parts).max(1.0).log2()) * compare,
            }
        }
    };
    let written = 2.0 * (value + COORDINATE_BYTES) / LINE_BYTES * machine.stream_line;
    let sorted = if problem.is_assembled_in_order(order) { 0.0 } else { SORT_PASSES * written };
    cost.seconds += added + parts * machine.loop_end + elements * (written + sorted);
    cost.appended_elements = elements.ceil() as u64;
}

/// Returns about how many elements the tasks append, which add `additions` products or rows.
///
/// Tasks that are cut at an index which the output lacks append the same elements: products are taken to fall to tasks at
/// random.
/// Rows of lanes are appended whole, over a level of a sparse operand too.
fn appended_elements(
    problem: &Problem,
    schedule: &Schedule,
    machine: &Machine,
    (nest, additions): (&LoopNest, f64),
) -> f64 {
    let elements = problem.assembled_elements() as f64;
    let output = problem.expr.output.set();
    let lanes = nest.lanes(nest.buffers.len()).filter(|lanes| output.contains(*lanes));
    let walked = |index: &Index| problem.sparse.iter().any(|x| x.levels().contains(index));
    let whole = lanes.filter(walked).map_or(elements, |lanes| {
        let others = output.iter().filter(|&index| index != lanes);
        let rows: f64 = others.map(|index| problem.extents.of(index) as f64).product();
        rows.min(additions).min(elements) * problem.extents.of(lanes) as f64
    });
    let shared = schedule.parallel.is_some_and(|cut| !output.contains(cut.index));
    let tasks = if shared { machine.threads * schedule.tasks_per_thread(problem) } else { 1 };
    let appended = whole.max(elements);
    if tasks > 1 && appended > 0.0 {
        let products = additions * lanes.map_or(1.0, |lanes| problem.extents.of(lanes) as f64);
        return spread_pairs(appended, products.max(appended), tasks as f64);
    }
    appended
}

/// Products that come in the order of their cells, so many one after the other, are merged, not sorted: about as long are the
/// runs that the sort of the standard library takes as they are.
const LONG_RUN: f64 = 64.0;

/// How many times as long as [`Machine::loop_overhead`] a comparison of a sort takes, which ends in a branch that no
/// processor foresees.
///
/// This and [`PROBE`] are of `data/records/current/workspaces/xeon`.
const COMPARE: f64 = 1.5;

/// The same of a look-up in a hash table.
const PROBE: f64 = 2.0;

/// Bytes of a cell in a hash table of twice as many slots, beside values.
const SLOT_BYTES: f64 = 24.0;

/// How many times as long as in a register an addition takes in memory: what was stored is read again.
const IN_MEMORY: f64 = 2.0;

/// How often a list is written and read when it is sorted, beside the time in which it is appended.
const SORT_PASSES: f64 = 4.0;

/// Bytes of the coordinates of an element that is appended.
const COORDINATE_BYTES: f64 = 8.0;
