//! The sets of trees next to the chosen one, to say what it was preferred to.

use crate::error::CoreError;
use crate::sweep::choice::Price;
use crate::sweep::rejected::{MOST, Rejected};
use crate::sweep::table::Table;

impl Table<'_> {
    /// What `trees` cost, each kernel on the one on which it takes least; `None` over the memory limit, or if one of the
    /// kernels suits none of them.
    pub(super) fn price(&self, trees: &[usize]) -> Option<Price> {
        let kept = trees.iter().map(|&tree| self.prices[tree].kept);
        let kernels = self.best_on(trees).map(|(_, price)| price);
        let price = kept.chain(kernels).fold(Price::default(), Price::and);
        let over = self.memory.is_some_and(|limit| price.bytes > limit);
        let placed = self.best_on(trees).count();
        (!over && placed == self.kernels.problems.len()).then_some(price)
    }

    /// The place in `trees` of the best tree of each kernel that suits one of them, with its price there.
    pub(super) fn best_on<'b>(
        &'b self,
        trees: &'b [usize],
    ) -> impl Iterator<Item = (usize, Price)> + 'b {
        (0..self.kernels.problems.len()).filter_map(|kernel| {
            let on = trees.iter().enumerate();
            let on = on.filter_map(|(at, &tree)| Some((at, self.prices[tree].kernels[kernel]?)));
            on.min_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds))
        })
    }

    /// Returns the choices next to `chosen`, all of whose trees are of use: with one tree more, fewer, or exchanged.
    pub(super) fn nearest(&mut self, chosen: &[usize]) -> Result<Vec<Rejected>, CoreError> {
        loop {
            let mut others: Vec<(Price, Vec<usize>)> = self
                .neighbours(chosen)
                .into_iter()
                .filter_map(|trees| {
                    let used = |at: usize| self.best_on(&trees).any(|(tree, _)| tree == at);
                    let price = self.price(&trees)?;
                    (0..trees.len()).all(used).then_some((price, trees))
                })
                .collect();
            others.sort_by(|a, b| a.0.seconds.total_cmp(&b.0.seconds).then_with(|| a.1.cmp(&b.1)));
            others.truncate(MOST);
            let on = |trees: &Vec<usize>| {
                let best: Vec<usize> = self.best_on(trees).map(|(at, _)| trees[at]).collect();
                best.into_iter().enumerate().map(|(kernel, tree)| (tree, kernel))
            };
            let wanted: Vec<(usize, usize)> =
                others.iter().flat_map(|(_, trees)| on(trees)).collect();
            if !self.search(wanted.into_iter())? {
                let rejected = others.iter().map(|(price, trees)| self.rejected(*price, trees));
                return Ok(rejected.collect());
            }
        }
    }

    fn rejected(&self, price: Price, trees: &[usize]) -> Rejected {
        let names: Vec<String> = trees.iter().map(|&tree| self.trees[tree].to_string()).collect();
        let bytes = trees.iter().map(|&tree| self.prices[tree].kept.bytes).sum();
        Rejected { what: names.join(", "), seconds: price.seconds, bytes: Some(bytes) }
    }

    /// Returns the sets of trees next to `chosen`.
    fn neighbours(&self, chosen: &[usize]) -> Vec<Vec<usize>> {
        let without = |at: usize| [&chosen[..at], &chosen[at + 1..]].concat();
        let fewer = (0..chosen.len()).map(without).filter(|trees| !trees.is_empty());
        let others = (0..self.trees.len()).filter(|tree| !chosen.contains(tree));
        let with = others.flat_map(|tree| {
            let exchanged = (0..chosen.len()).map(move |at| {
                let mut trees = chosen.to_vec();
                trees[at] = tree;
                trees
            });
            [[chosen, &[tree]].concat()].into_iter().chain(exchanged)
        });
        with.chain(fewer).collect()
    }
}
