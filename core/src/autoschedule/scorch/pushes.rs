//! The greedy pushes (Scorch, algorithm 1, lines 6 to 10).

use crate::autoschedule::scorch::costs::{Judge, Price};
use crate::einsum::Index;
use crate::path::Path;

/// An order of the loops around the terms of a path.
pub(super) struct Pushed {
    /// The order of all indices.
    pub(super) order: Vec<Index>,
    /// The loops of each term.
    pub(super) loops: Vec<Vec<Index>>,
    /// What they cost.
    pub(super) price: Price,
    /// How many orders were priced.
    pub(super) priced: usize,
    /// Whether there were more.
    pub(super) cut: bool,
}

/// Pushes each index of `order`, those of `ranked` one after the other, to each later position where the cost to push is
/// negative, until `most` orders were priced; `None` if the operands cannot be stored for loops ordered as `order`.
pub(super) fn push(
    judge: &Judge,
    path: &Path,
    order: Vec<Index>,
    ranked: &[Index],
    most: usize,
) -> Option<Pushed> {
    let (loops, price) = judge.price(path, &order)?;
    let mut best = Pushed { order, loops, price, priced: 1, cut: false };
    for &index in ranked {
        let first = best.order.iter().position(|&one| one == index).unwrap_or(best.order.len());
        for position in first + 1..best.order.len() {
            if best.priced >= most {
                best.cut = true;
                return Some(best);
            }
            let mut order = best.order.clone();
            order.retain(|&one| one != index);
            order.insert(position, index);
            best.priced += 1;
            match judge.price(path, &order) {
                Some((loops, price)) if price.is_less(&best.price) => {
                    best = Pushed { order, loops, price, ..best };
                }
                _ => {}
            }
        }
    }
    Some(best)
}
