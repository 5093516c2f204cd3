//! Which loop of a term becomes lanes, and the rows that lanes cover.

use decompose_formats::dense::padded;

use crate::cost::levels::loops_over_level;
use crate::einsum::Index;
use crate::nest::Node;
use crate::path::Source;
use crate::schedule::{Problem, Schedule, Workspace};

/// Returns the bytes of a row over `lane`, padded as dense operands are; of a single value without.
pub(super) fn row_bytes(problem: &Problem, lane: Option<Index>) -> f64 {
    let width = lane.map_or(1, |lane| problem.extents.of(lane) as usize);
    (padded(width, problem.value_bytes) * problem.value_bytes) as f64
}

/// Returns the loop of a term that becomes lanes: the innermost one, if it is not over a level of the tree,
/// is around this term only, and every array that it indexes stores it contiguously.
pub(super) fn lane(
    problem: &Problem,
    schedule: &Schedule,
    orders: &[Vec<Index>],
    position: usize,
) -> Option<Index> {
    let (order, terms) = (&orders[position], &schedule.path.terms);
    let at = order.len().checked_sub(1)?;
    let vector = schedule.vectors.allow(order[at]);
    let lane = Some(order[at]).filter(|_| vector && !loops_over_level(problem, order, at))?;
    // A loop around several terms runs them one after the other, each on one value.
    if !stands_alone(&schedule.nest.roots, position) {
        return None;
    }
    let ends = |stored: Vec<Index>| !stored.contains(&lane) || stored.last() == Some(&lane);
    // A buffer is stored in the order of the loops that make it.
    let ends_buffer = |term: usize| {
        let made = orders[term].iter().rfind(|&&index| terms[term].output.contains(index));
        !terms[term].output.contains(lane) || made == Some(&lane)
    };
    let inputs = terms[position].inputs.iter().all(|source| match *source {
        Source::Input(input) => {
            ends(problem.operand_order(&problem.expr.inputs[input].indices, order))
        }
        Source::Term(term) => ends_buffer(term),
    });
    let last = position + 1 == terms.len();
    // A list of cells has no rows.
    if last && schedule.workspace == Some(Workspace::List) {
        return None;
    }
    let output = match last {
        true => ends(problem.output_order(&problem.expr.output.indices, order)),
        false => ends_buffer(position),
    };
    (inputs && output).then_some(lane)
}

/// Tells whether the innermost loop around `term` is around no other.
fn stands_alone(nodes: &[Node], term: usize) -> bool {
    nodes.iter().any(|node| match node {
        Node::Loop { body, .. } => match body.as_slice() {
            [Node::Term(only)] => *only == term,
            body => stands_alone(body, term),
        },
        Node::Term(_) => false,
    })
}
