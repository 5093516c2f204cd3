//! Which rows of dense arrays the nodes of a tree reach.

use decompose_core::einsum::Index;
use decompose_core::path::Source;
use decompose_core::schedule::{Problem, Schedule};
use decompose_formats::dense::padded;

/// A dense array one of whose rows is reached in every node of a level.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Touch {
    /// The array.
    pub(crate) array: String,
    /// The level of the tree, from the root.
    pub(crate) level: usize,
    /// Bytes of what belongs to one coordinate, padding included.
    pub(crate) row_bytes: u64,
    /// How often a row is moved when it is reached: 1 if it is read or written, 2 if it is added to.
    pub(crate) moves: u64,
}

/// Lists the arrays of `schedule` that have one index of the tree, walked by the loops around their
/// term.
///
/// Arrays with several such indices, or whose loop runs over the extent instead of the tree, are
/// left out: so is what they move.
///
/// # Panics
///
/// If the nest of `schedule` does not hold the terms of its path.
pub(crate) fn touches(problem: &Problem, schedule: &Schedule) -> Vec<Touch> {
    let terms = &schedule.path.terms;
    let orders = schedule.nest.orders(terms.len()).expect("a nest of all terms");
    let mut found = Vec::new();
    for (term, order) in terms.iter().zip(&orders) {
        let inputs = term.inputs.iter().filter_map(|source| match *source {
            Source::Input(input) if problem.sparse.iter().all(|x| x.input != input) => {
                Some(&problem.expr.inputs[input])
            }
            _ => None,
        });
        found.extend(inputs.filter_map(|access| {
            let stored = problem.operand_order(&access.indices, order);
            touch(problem, order, &access.tensor, &stored)
        }));
    }
    let output = &problem.expr.output;
    if let Some(order) = orders.last().filter(|_| !problem.has_pattern_output())
        && let stored = problem.output_order(&output.indices, order)
        && let Some(mut touch) = touch(problem, order, &output.tensor, &stored)
    {
        // Rows of the root are complete when they are left.
        touch.moves = if touch.level == 0 { 1 } else { 2 };
        found.push(touch);
    }
    found
}

/// The touch of an array, stored over these indices, by a term inside loops over `order`.
fn touch(problem: &Problem, order: &[Index], name: &str, stored: &[Index]) -> Option<Touch> {
    let x = problem.leader()?;
    let mut rows = stored.iter().filter(|index| x.levels().contains(index));
    let (Some(row), None) = (rows.next(), rows.next()) else { return None };
    let level = x.levels().iter().position(|index| index == row)?;
    if x.walked(order.iter().copied()) <= level {
        return None;
    }
    let elements = |&index: &Index| {
        let extent = problem.extents.of(index);
        let last = Some(&index) == stored.last();
        if last { padded(extent as usize, problem.value_bytes) as u64 } else { extent }
    };
    let block = stored.iter().filter(|&index| index != row).map(elements);
    let row_bytes = block.fold(problem.value_bytes as u64, u64::saturating_mul);
    Some(Touch { array: name.to_owned(), level, row_bytes, moves: 1 })
}
