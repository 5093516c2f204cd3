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
            if !self.look_up(wanted.into_iter())? || self.budget.is_spent() {
                self.pick();
                self.end_searches();
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
        let share = self.budget.share(self.kernels.problems.len());
        less.into_iter().take(AT_ONCE.min(share)).map(|(tree, _)| tree).collect()
    }
}

#[cfg(test)]
mod tests {
    use decompose_formats::mix::mix;

    use super::*;
    use crate::cost::{Family, Machine};
    use crate::einsum::{Expr, Extents, Index, indices};
    use crate::kernels::{mode_index, mode_rank_index, ttmc};
    use crate::schedule::Pattern;
    use crate::sweep::table::Kernels;
    use crate::sweep::table::tests::{
        median, random_counts, search_all, share_searched, tightness,
    };
    use crate::sweep::trees::{Merging, PlanOptions, Trees, posed, unblocked_trees};

    /// The TTMc of `mode` whose last factor has the columns `more` too: those of merged modes have several.
    fn kernel(order: usize, mode: usize, more: &[Index]) -> Expr {
        let mut expr = ttmc(order, Some(mode));
        if let Some(last) = expr.inputs[1..].last_mut() {
            last.indices.extend(more);
            expr.output.indices.extend(more);
        }
        expr
    }

    /// Runs `test` with tables of TTMcs of random tensors, ranks, threads and machines.
    fn on_random_tables(mut test: impl FnMut(Table<'_>, String)) {
        for seed in 0..30 {
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
            all.set(indices("z")[0], 1 + draw(20, 6));
            let more = indices(if order < 5 && draw(21, 2) == 1 { "z" } else { "" });
            let pose =
                |mode| posed(kernel(order, mode, &more), all.clone(), pattern.clone(), value_bytes);
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
        on_random_tables(|mut table, what| {
            let bounds = table.weak_bounds().expect("bounds");
            search_all(&mut table);
            tight.extend(tightness(&table, &bounds, &what));
        });
        let median = median(tight);
        assert!(median > 0.1, "{median}");
    }

    #[test]
    fn what_is_chosen_by_bounds_is_the_best_of_all() {
        let (mut searched, mut limited) = (Vec::new(), 0);
        on_random_tables(|table, what| {
            let limit = table.options.memory.is_some();
            let share = share_searched(table, &what);
            limited += usize::from(limit && share.is_some());
            searched.extend(share);
        });
        assert!(limited > 5, "{limited}");
        let mean = searched.iter().sum::<f64>() / searched.len() as f64;
        assert!(mean < 0.9, "{mean}");
    }
}
