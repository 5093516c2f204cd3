//! On which trees a kernel is searched before any are chosen, if no near bound of it is known.

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::cost::LeastWork;
use crate::error::CoreError;
use crate::schedule::Problem;
use crate::sweep::table::Table;

/// On so many trees a kernel is searched at once.
const AT_ONCE: usize = 8;

impl Table<'_> {
    /// Bounds from below for each tree and kernel, whatever the kernels are.
    pub(super) fn weak_bounds(&self) -> Result<Vec<Vec<f64>>, CoreError> {
        let problems = &self.kernels.problems;
        let of = problems.iter().map(|problem| (problem, LeastWork::new(&problem.expr)));
        let of: Vec<_> = of.collect();
        let trees = self.trees.par_iter().map(|tree| {
            let bound = |(problem, least): &(&Problem, LeastWork)| {
                Ok(least.seconds(&self.stored(tree, problem)?, &self.machine))
            };
            of.iter().map(bound).collect()
        });
        trees.collect()
    }

    /// Searches each kernel on ever more trees, those with the least bounds first, until on any other it takes no less than
    /// on the best of these, building that included.
    pub(super) fn search_promising(&mut self) -> Result<(), CoreError> {
        loop {
            let kernels = 0..self.kernels.problems.len();
            let of = |kernel| self.promising(kernel).into_iter().map(move |tree| (tree, kernel));
            let wanted: Vec<(usize, usize)> = kernels.flat_map(of).collect();
            if !self.look_up(wanted.into_iter())? {
                self.pick();
                return Ok(());
            }
        }
    }

    /// The seconds of a kernel on each tree that suits it, as far as they are known.
    fn known(&self, kernel: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let trees = self.prices.iter().enumerate();
        trees.filter_map(move |(tree, price)| Some((tree, price.kernels[kernel]?.seconds)))
    }

    /// The trees on which a kernel is searched next.
    fn promising(&self, kernel: usize) -> Vec<usize> {
        let (searched, open): (Vec<_>, Vec<_>) =
            self.known(kernel).partition(|&(tree, _)| self.is_searched(tree, kernel));
        let with_tree =
            searched.into_iter().map(|(tree, seconds)| seconds + self.prices[tree].kept.seconds);
        let most = with_tree.fold(f64::INFINITY, f64::min);
        let mut less: Vec<_> = open.into_iter().filter(|&(_, bound)| bound < most).collect();
        less.sort_by(|a, b| a.1.total_cmp(&b.1));
        less.into_iter().take(AT_ONCE).map(|(tree, _)| tree).collect()
    }
}

#[cfg(test)]
mod tests {
    use decompose_formats::mix::mix;

    use super::*;
    use crate::cost::{Family, Machine};
    use crate::einsum::{Extents, Index};
    use crate::kernels::{mode_index, mode_rank_index, ttmc};
    use crate::schedule::Pattern;
    use crate::sweep::table::tests::{random_counts, search_all};
    use crate::sweep::table::{Entry, Kernels};
    use crate::sweep::trees::{Merging, PlanOptions, Trees, posed, unblocked_trees};

    /// Runs `test` with tables of the TTMcs of random tensors of up to four modes, ranks, threads and machines.
    fn on_random_tables(cases: u64, mut test: impl FnMut(Table<'_>, String)) {
        for seed in
            (0..).filter(|&seed| random_counts(seed).extents().len() < 5).take(cases as usize)
        {
            let counts = random_counts(seed);
            let (extents, order) = (counts.extents(), counts.extents().len());
            let draw = |salt: u64, below: u64| mix(seed * 91 + salt) % below;
            let family = [Family::Zen, Family::Xeon][draw(1, 2) as usize];
            let machine = Machine { threads: 1 + draw(2, 4) as usize, ..family.machine() };
            let value_bytes = [8, 4][draw(3, 2) as usize];
            let modes: Vec<Index> = (0..order).map(mode_index).collect();
            let pattern = Pattern::of(&counts, &modes);
            let mut all: Extents = modes.iter().copied().zip(extents.iter().copied()).collect();
            for mode in 0..order {
                // A buffer of the longest rows holds two of them.
                let rank = [1, 2, 3, 8, 17, 300][draw(4 + mode as u64, 6) as usize];
                all.set(mode_rank_index(order, mode), rank);
            }
            let pose =
                |mode| posed(ttmc(order, Some(mode)), all.clone(), pattern.clone(), value_bytes);
            let problems: Vec<Problem> = (0..order).map(pose).collect();
            let tree_bytes = counts.nnz() * (4 * order + value_bytes) as u64;
            let options = PlanOptions {
                rank: 1,
                value_bytes,
                panels: None,
                threads: machine.threads,
                memory: [None, Some(2 * tree_bytes)][draw(10, 2) as usize],
                sweeps: 50,
                trees: Trees::Choose,
                merging: Merging::Never,
                updates: (0..order).collect(),
            };
            let kernels = Kernels::new(problems, &vec![1; order]);
            let trees = unblocked_trees(extents, &pattern).collect();
            let table = Table::new(extents, kernels, trees, &options, &machine).expect("a table");
            test(table, format!("{all:?}, {machine:?}"));
        }
    }

    #[test]
    fn no_search_finds_less_than_the_bound() {
        let mut tight = Vec::new();
        on_random_tables(60, |mut table, what| {
            let bounds = table.weak_bounds().expect("bounds");
            search_all(&mut table);
            for ((tree, entries), bounds) in table.trees.iter().zip(&table.entries).zip(bounds) {
                for (entry, bound) in entries.iter().zip(bounds) {
                    let Entry::Searched(step) = entry else { continue };
                    let found = step.seconds;
                    let schedule = step.candidate.schedule.text(&step.problem.expr);
                    assert!(bound <= found, "{tree}: {bound} {found}\n{schedule}\n{what}");
                    tight.push(bound / found);
                }
            }
        });
        tight.sort_by(f64::total_cmp);
        assert!(tight[tight.len() / 2] > 0.1, "{}", tight[tight.len() / 2]);
    }

    #[test]
    fn what_is_chosen_by_bounds_is_the_best_of_all() {
        let (mut searched, mut limited) = (Vec::new(), 0);
        on_random_tables(60, |mut table, what| {
            let lazy = table.settle_best();
            let few = table.searched() as f64;
            search_all(&mut table);
            let (lazy, best) = match (lazy, table.settle_best()) {
                (Ok(lazy), Ok(best)) => (lazy, best),
                (Err(CoreError::Memory { .. }), Err(CoreError::Memory { .. })) => return,
                (lazy, best) => panic!("{what}: {lazy:?} {best:?}"),
            };
            assert!(table.is_settled(&lazy));
            assert_eq!(lazy.price.seconds, best.price.seconds, "{what}");
            limited += usize::from(table.options.memory.is_some());
            searched.push(few / table.searched() as f64);
        });
        assert!(limited > 10, "{limited}");
        let mean = searched.iter().sum::<f64>() / searched.len() as f64;
        assert!(mean < 0.9, "{mean}");
    }
}
