//! The orders of modes that tensors are stored in, as a graph of indices (algorithm 1, lines 11 to 18).

use crate::einsum::{Index, IndexSet};

/// One index stands above another, as the tensor of this weight stores them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Edge {
    above: Index,
    below: Index,
    weight: f64,
}

/// Which index stands above which.
#[derive(Clone, Debug, Default)]
pub(super) struct Constraints {
    edges: Vec<Edge>,
}

impl Constraints {
    /// Adds the order of a tensor's levels; to move it costs `weight`.
    pub(super) fn add(&mut self, levels: &[Index], weight: f64) {
        let edge = |pair: &[Index]| Edge { above: pair[0], below: pair[1], weight };
        self.edges.extend(levels.windows(2).map(edge));
    }

    /// Removes the cheapest edge of each cycle: the tensors that are to be transposed.
    pub(super) fn cut_cycles(&mut self) {
        while let Some(cycle) = self.cycle() {
            let cheapest = |a: &&Edge, b: &&Edge| a.weight.total_cmp(&b.weight);
            let Some(&gone) = cycle.iter().min_by(cheapest) else { return };
            self.edges.retain(|&edge| edge != gone);
        }
    }

    /// Tells whether `order` has every index above those that it should be above.
    pub(super) fn allow(&self, order: &[Index]) -> bool {
        let place = |index: Index| order.iter().position(|&own| own == index);
        self.edges.iter().all(|edge| place(edge.above) < place(edge.below))
    }

    /// Returns the indices of `order` as the edges have them, otherwise in their order; `None` if the edges contradict each
    /// other.
    pub(super) fn sorted(&self, order: &[Index]) -> Option<Vec<Index>> {
        let mut left = order.to_vec();
        let mut sorted = Vec::with_capacity(order.len());
        while !left.is_empty() {
            let free = |index: &Index| {
                let waits = |edge: &Edge| edge.below == *index && left.contains(&edge.above);
                !self.edges.iter().any(waits)
            };
            let next = left.iter().position(free)?;
            sorted.push(left.remove(next));
        }
        Some(sorted)
    }

    /// Returns the edges of one cycle.
    fn cycle(&self) -> Option<Vec<Edge>> {
        self.edges.iter().find_map(|&first| {
            let mut path = vec![first];
            self.follow(&mut path, IndexSet::EMPTY).then_some(path)
        })
    }

    /// Extends `path` to where it begins, past the indices that led nowhere.
    fn follow(&self, path: &mut Vec<Edge>, seen: IndexSet) -> bool {
        let (Some(first), Some(last)) = (path.first().copied(), path.last().copied()) else {
            return false;
        };
        if last.below == first.above {
            return true;
        }
        if seen.contains(last.below) {
            return false;
        }
        let seen = seen.with(last.below);
        for &edge in self.edges.iter().filter(|edge| edge.above == last.below) {
            path.push(edge);
            if self.follow(path, seen) {
                return true;
            }
            path.pop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Constraints;
    use crate::einsum::indices;

    #[test]
    fn the_cheapest_edge_of_a_cycle_goes() {
        let mut constraints = Constraints::default();
        constraints.add(&indices("ij"), 10.0);
        constraints.add(&indices("jk"), 20.0);
        constraints.add(&indices("ki"), 5.0);
        assert_eq!(constraints.sorted(&indices("kji")), None);
        constraints.cut_cycles();
        assert_eq!(constraints.sorted(&indices("kji")), Some(indices("ijk")));
        assert!(constraints.allow(&indices("ijk")) && !constraints.allow(&indices("jik")));
    }

    #[test]
    fn without_edges_an_order_stays() {
        assert_eq!(Constraints::default().sorted(&indices("kji")), Some(indices("kji")));
    }
}
