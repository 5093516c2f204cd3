//! What every tree must satisfy.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::csf::Csf;
use crate::csf::Level;
use crate::error::FormatError;
use crate::value::Value;

/// Checks the invariants that [`Csf::check`] lists.
pub(super) fn check<V: Value>(csf: &Csf<V>) -> Result<(), FormatError> {
    let order = csf.extents.len();
    if order == 0 || csf.order.modes().len() != order || csf.levels.len() != order {
        let (modes, levels) = (csf.order.modes().len(), csf.levels.len());
        return fail(format!("{order} extents, an order of {modes} modes, {levels} levels"));
    }
    let (upper, last) = csf.levels.split_at(order - csf.fused());
    for (number, level) in upper.iter().enumerate() {
        pointers(number, level, csf.levels[number + 1].coords.len())?;
    }
    for level in last {
        let (nodes, values) = (level.coords.len(), csf.values.len());
        if nodes != values || !level.pointers.is_empty() || upper.is_empty() && order > 1 {
            return fail(format!("a last level of {nodes} nodes for {values} values"));
        }
    }
    for (number, (level, &mode)) in csf.levels.iter().zip(csf.order.modes()).enumerate() {
        extent(number, level, csf.extents[mode])?;
        if number < upper.len() {
            siblings(number, std::slice::from_ref(level), above(csf, number))?;
        }
    }
    siblings(upper.len(), last, above(csf, upper.len()))
}

fn above<V: Value>(csf: &Csf<V>, number: usize) -> Option<&Level> {
    number.checked_sub(1).map(|above| &csf.levels[above])
}

fn fail(why: String) -> Result<(), FormatError> {
    Err(FormatError::NotATensor(why))
}

fn extent(number: usize, level: &Level, extent: u64) -> Result<(), FormatError> {
    match level.coords.max().filter(|&max| max >= extent) {
        Some(max) => fail(format!("index {} in level {number} of extent {extent}", max + 1)),
        None => Ok(()),
    }
}

/// Checks that pointers begin at 0, ascend strictly (no node is childless) and end at `children`.
fn pointers(number: usize, level: &Level, children: usize) -> Result<(), FormatError> {
    let (nodes, pointers) = (level.coords.len(), &level.pointers);
    if pointers.len() != nodes + 1 {
        return fail(format!("level {number} has {nodes} nodes, {} pointers", pointers.len()));
    }
    if pointers.get(0) != 0 || pointers.get(nodes) != children as u64 {
        let (first, last) = (pointers.get(0), pointers.get(nodes));
        return fail(format!("level {number} points at {first}..{last} of {children} nodes"));
    }
    let childless = |&node: &usize| pointers.get(node) >= pointers.get(node + 1);
    match (0..nodes).into_par_iter().find_first(childless) {
        Some(node) => fail(format!("node {node} of level {number} has no children")),
        None => Ok(()),
    }
}

/// Checks that the coordinates below one node, those of `fused` levels together, ascend strictly.
fn siblings(number: usize, fused: &[Level], above: Option<&Level>) -> Result<(), FormatError> {
    let before = |node: usize| {
        let coords = fused.iter().map(|level| &level.coords);
        let (left, right) = (coords.clone().map(|c| c.get(node - 1)), coords.map(|c| c.get(node)));
        left.lt(right)
    };
    let ascend = |start: u64, end: u64| (start + 1..end).all(|node| before(node as usize));
    let good = match above {
        None => ascend(0, fused.first().map_or(0, |level| level.coords.len()) as u64),
        Some(Level { coords, pointers }) => (0..coords.len())
            .into_par_iter()
            .all(|parent| ascend(pointers.get(parent), pointers.get(parent + 1))),
    };
    if good { Ok(()) } else { fail(format!("coordinates of level {number} do not ascend")) }
}
