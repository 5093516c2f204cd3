//! How much is searched for a plan.
//!
//! Searches are counted and not timed, so that the same input, ranks and threads give the same plan on any machine.  Up to
//! five modes there is no limit: the bounds leave out most of the few hundred kernels on trees.  Above, a search takes
//! about a millisecond, there are `4 N` trees for each of `N` kernels, and every partition of the modes has tables of its
//! own.  How many searches and partitions there are then follows from the seconds that all sweeps are predicted to take: a
//! plan that takes longer than it can save is none.

/// Up to so many modes all that may be worth a search is searched.
const ALL_ORDERS: usize = 5;

/// Above that, so many kernels on trees are searched at most, or [`EACH`] a kernel where that is more.
const SEARCHES: usize = 160;

/// So many are searched a kernel, however short the run.
const EACH: usize = 2;

/// Seconds that a search takes.
const SEARCH_SECONDS: f64 = 1e-3;

/// Seconds that the tables of a partition take.
const PARTITION_SECONDS: f64 = 2e-2;

/// The share of a run's seconds that searches may take.
const SHARE: f64 = 0.25;

/// How often as many are searched once more where nothing of what was searched keeps the limit on memory.
const ONCE_MORE: usize = 2;

/// Returns how many partitions of `order` modes are worth tables, where a run takes `seconds` without them.
pub(super) fn partitions_worth(order: usize, seconds: f64) -> usize {
    if order <= ALL_ORDERS { usize::MAX } else { (seconds * SHARE / PARTITION_SECONDS) as usize }
}

/// The searches that a table has left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Budget {
    /// How many there are at a time; `None`: any number.
    searches: Option<usize>,
    left: usize,
    /// How often there are as many once more.
    more: usize,
}

impl Budget {
    /// The searches for `kernels` of a tensor of `order` modes, which take at least `seconds` in all sweeps.
    pub(super) fn new(order: usize, kernels: usize, seconds: f64) -> Budget {
        let least = EACH * kernels;
        let worth = ((seconds * SHARE / SEARCH_SECONDS) as usize).clamp(least, least.max(SEARCHES));
        let searches = (order > ALL_ORDERS).then_some(worth);
        Budget { searches, left: searches.unwrap_or(usize::MAX), more: ONCE_MORE }
    }

    /// Tells whether no search is left.
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Returns how many searches each of `kernels` has, at least one.
    pub(super) fn share(&self, kernels: usize) -> usize {
        (self.left / kernels.max(1)).max(1)
    }

    /// Takes off `searches`, or all that are left.
    pub(super) fn spend(&mut self, searches: usize) {
        self.left = self.left.saturating_sub(searches);
    }

    /// Allows as many searches once more, if that is not used up; tells whether it did.
    pub(super) fn refill(&mut self) -> bool {
        let Some(searches) = self.searches.filter(|_| self.more > 0) else { return false };
        (self.left, self.more) = (searches, self.more - 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use decompose_formats::mix::mix;
    use decompose_formats::{Coo, Ints, PatternCounts};

    use super::*;
    use crate::cost::Family;
    use crate::kernels::mode_index;
    use crate::schedule::Pattern;
    use crate::sweep::{Merging, PlanOptions, SweepPlan, Trees, plan};

    /// A plan for a tensor of a few entries, and so many sweeps.
    fn plan_of(order: usize, entries: u64, sweeps: usize, memory: Option<u64>) -> SweepPlan {
        let coordinate =
            |mode: usize, entry: u64| mix(entry * 100 + mode as u64) % (3 + mode as u64);
        let coords = (0..order)
            .map(|mode| (0..entries).map(|entry| coordinate(mode, entry)).collect::<Vec<u64>>());
        let coords: Vec<Ints> = coords.map(Ints::from).collect();
        let extents: Vec<u64> = (0..order as u64).map(|mode| 3 + mode).collect();
        let values: Vec<f64> = vec![1.0; entries as usize];
        let mut coo = Coo::new(extents.clone(), coords, values).expect("a tensor");
        coo.sum_duplicates().expect("a sorted tensor");
        let modes: Vec<_> = (0..order).map(mode_index).collect();
        let pattern = Pattern::of(&PatternCounts::of(&coo), &modes);
        let options = PlanOptions {
            rank: 4,
            value_bytes: 8,
            panels: None,
            threads: 2,
            memory,
            sweeps,
            trees: Trees::Choose,
            merging: Merging::Choose,
            updates: (0..order).collect(),
        };
        plan(&extents, &pattern, &options, &Family::Zen.machine()).expect("a plan")
    }

    /// Checks that no table of `plan` searched more than it may, once more where memory is short.
    fn check(plan: &SweepPlan, times: usize, order: usize) {
        for part in plan.parts() {
            let kernels = part.steps.len();
            // The searches that end a budget may be one a kernel more, and so may those of each alternative.
            let most = times * (SEARCHES.max(EACH * kernels) + 4 * kernels);
            assert!(part.searched <= most, "order {order}: {} of {most}", part.searched);
            assert!(part.steps.iter().all(|step| step.seconds > 0.0));
        }
    }

    #[test]
    fn sweeps_of_many_modes_keep_the_budget() {
        for (order, entries) in [(6, 6), (7, 900), (9, 6), (25, 6)] {
            for sweeps in [50, 100_000] {
                let plan = plan_of(order, entries, sweeps, None);
                check(&plan, 1, order);
                assert_eq!(plan.blocks.concat().len(), order);
                assert!(plan.considered <= 13, "{} partitions", plan.considered);
            }
        }
    }

    #[test]
    fn a_limit_on_memory_keeps_the_budget() {
        let free = plan_of(7, 900, 100_000, None);
        let limit = free.tree_bytes() / 2 + free.side_bytes();
        let lean = plan_of(7, 900, 100_000, Some(limit));
        assert!(lean.tree_bytes() + lean.side_bytes() <= limit);
        check(&lean, 1 + ONCE_MORE, 7);
    }

    #[test]
    fn up_to_five_modes_all_may_be_searched() {
        let mut budget = Budget::new(5, 5, 0.0);
        budget.spend(1_000_000);
        assert!(!budget.is_spent() && !budget.refill());
        let mut budget = Budget::new(6, 6, 100.0);
        assert_eq!(budget.share(6), SEARCHES / 6);
        budget.spend(SEARCHES);
        assert!(budget.is_spent());
        assert_eq!((0..9).filter(|_| budget.refill()).count(), ONCE_MORE);
        assert_eq!(Budget::new(90, 90, 100.0).left, 90 * EACH);
    }

    #[test]
    fn short_runs_are_searched_little() {
        assert_eq!(Budget::new(7, 7, 1e-4).left, 7 * EACH);
        assert_eq!(Budget::new(7, 7, 0.4).left, 100);
        assert_eq!((partitions_worth(7, 1e-3), partitions_worth(7, 1.0)), (0, 12));
        assert_eq!(partitions_worth(5, 1e-9), usize::MAX);
    }
}
