//! The mode orders of the tensors as a directed graph of indices (Scorch, algorithm 1, lines 11 to 18).
//!
//! An edge from one index to another is there where a sparse tensor has the level of the one above that of the other.
//! A cycle means that no order of the loops suits all tensors.  The cheapest edge of the cycles is removed until none
//! is left; the tensors that had it are transposed.

use crate::einsum::{Index, IndexSet};

/// The graph of mode orders.
#[derive(Clone, Debug, Default)]
pub(super) struct ModeOrders {
    /// Above, below, and what it costs to transpose the tensors that ask for it.
    edges: Vec<(Index, Index, f64)>,
}

impl ModeOrders {
    /// Adds the levels of a tensor that costs `cost` to be transposed; equal edges add up.
    pub(super) fn add(&mut self, levels: &[Index], cost: f64) {
        for pair in levels.windows(2) {
            match self.edges.iter_mut().find(|(above, below, _)| [*above, *below] == *pair) {
                Some((_, _, total)) => *total += cost,
                None => self.edges.push((pair[0], pair[1], cost)),
            }
        }
    }

    /// Removes the cheapest edge of the cycles until there is none; returns what was removed.  Of equal edges
    /// that of the later tensor goes.
    pub(super) fn break_cycles(&mut self) -> Vec<(Index, Index)> {
        let mut removed = Vec::new();
        while let Some(at) = self.cheapest_in_a_cycle() {
            let (above, below, _) = self.edges.remove(at);
            removed.push((above, below));
        }
        removed
    }

    fn cheapest_in_a_cycle(&self) -> Option<usize> {
        let in_a_cycle = |&at: &usize| self.reached(self.edges[at].1).contains(self.edges[at].0);
        let cyclic = (0..self.edges.len()).rev().filter(in_a_cycle);
        cyclic.min_by(|&a, &b| self.edges[a].2.total_cmp(&self.edges[b].2))
    }

    /// Returns the indices that paths from `from` reach.
    fn reached(&self, from: Index) -> IndexSet {
        let mut reached = IndexSet::EMPTY.with(from);
        loop {
            let next = self.edges.iter().filter(|(above, _, _)| reached.contains(*above));
            let more = next.fold(reached, |set, (_, below, _)| set.with(*below));
            if more == reached {
                return reached;
            }
            reached = more;
        }
    }

    /// Returns `wanted` in an order that keeps every edge: each time the first index above which none is left.
    ///
    /// In a graph with cycles, indices of a cycle keep their order.
    pub(super) fn sorted(&self, wanted: &[Index]) -> Vec<Index> {
        let mut left: Vec<Index> = wanted.to_vec();
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let free = |&&index: &&Index| {
                let mut above = self.edges.iter().filter(|(_, below, _)| *below == index);
                !above.any(|(above, _, _)| left.contains(above))
            };
            let at = left.iter().find(free).and_then(|next| left.iter().position(|i| i == next));
            order.push(left.remove(at.unwrap_or(0)));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::ModeOrders;
    use crate::einsum::indices;

    fn letters(order: &[crate::einsum::Index]) -> String {
        order.iter().map(|index| index.letter()).collect()
    }

    #[test]
    fn the_cheapest_tensor_of_a_cycle_is_transposed() {
        let mut graph = ModeOrders::default();
        graph.add(&indices("ij"), 100.0);
        graph.add(&indices("jk"), 40.0);
        graph.add(&indices("ki"), 70.0);
        let removed = graph.break_cycles();
        assert_eq!(removed, [(indices("j")[0], indices("k")[0])]);
        assert_eq!(letters(&graph.sorted(&indices("jik"))), "kij");
    }

    #[test]
    fn edges_add_up_and_no_cycle_is_left_as_it_is() {
        let mut graph = ModeOrders::default();
        graph.add(&indices("ij"), 30.0);
        graph.add(&indices("ji"), 50.0);
        graph.add(&indices("ij"), 30.0);
        assert_eq!(graph.break_cycles(), [(indices("j")[0], indices("i")[0])]);
        assert!(graph.break_cycles().is_empty());
        assert_eq!(letters(&graph.sorted(&indices("kji"))), "kij");
    }
}
