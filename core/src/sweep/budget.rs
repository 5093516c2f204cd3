//! How much is searched for a plan.
//!
//! Searches and partitions are counted and not timed, so that the same input, ranks and threads give the same plan on any
//! machine.  How many there are follows from the seconds that all sweeps are predicted to take: a plan that takes longer
//! than it can save is none.

/// Up to so many modes a price takes some microseconds and a search a few tenths of a millisecond.
const FEW_MODES: usize = 5;

/// At most so many trees are kept of each of these three kinds, and up to [`FEW_MODES`] no fewer: see [`trees_worth`].
const MOST_TREES: usize = 12;

/// Seconds that a price takes above [`FEW_MODES`], at most about.
const PRICE_SECONDS: f64 = 1e-3;

/// Up to [`FEW_MODES`] a kernel is searched on at least so many trees, however short the run.
const LEAST_EACH: usize = 8;

/// Above, on at least so many.
const LEAST_EACH_OF_MANY_MODES: usize = 2;

/// A kernel is searched on at most so many trees, however long the run.
const MOST_EACH: usize = 16;

/// At most so many partitions of the modes are considered beside that of single modes.
const MOST_PARTITIONS: usize = 40;

/// Seconds that a search takes.
const SEARCH_SECONDS: f64 = 1e-3;

/// Seconds that a plan of the kernels of a partition takes above [`FEW_MODES`].
const PLAN_SECONDS: f64 = 2e-2;

/// Seconds that a coarse estimate of a kernel on a tree takes; there are `4 N` trees for each of `N` kernels.
const ESTIMATE_SECONDS: f64 = 1e-6;

/// The share of a run's seconds that searches may take.
const SHARE: f64 = 0.25;

/// What is done with a partition of the modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Its kernels are estimated coarsely.
    Coarse,
    /// Its kernels are planned.
    Planned,
}

/// Returns how many partitions of `order` modes are worth a look, where a run takes `seconds` without them.
pub(super) fn partitions_worth(order: usize, look: Look, seconds: f64) -> usize {
    if order <= FEW_MODES {
        return MOST_PARTITIONS;
    }
    let each = match look {
        Look::Coarse => ESTIMATE_SECONDS * (4 * order * order) as f64,
        Look::Planned => PLAN_SECONDS,
    };
    ((seconds * SHARE / each) as usize).min(MOST_PARTITIONS)
}

/// Returns how many trees of a tensor of `order` modes are worth a price of those that suit one of `kernels` best, of those
/// that suit all best and of the smallest, where a run takes about `seconds`.
pub(super) fn trees_worth(order: usize, kernels: usize, seconds: f64) -> usize {
    let least = if order <= FEW_MODES { MOST_TREES } else { 1 };
    let prices = seconds * SHARE / PRICE_SECONDS;
    ((prices / (3 * kernels.max(1)) as f64) as usize).clamp(least, MOST_TREES)
}

/// Returns how many searches are worth while for `kernels` of a tensor of `order` modes that take `seconds` in all sweeps.
pub(super) fn searches_worth(order: usize, kernels: usize, seconds: f64) -> usize {
    let least = if order <= FEW_MODES { LEAST_EACH } else { LEAST_EACH_OF_MANY_MODES };
    ((seconds * SHARE / SEARCH_SECONDS) as usize).clamp(least * kernels, MOST_EACH * kernels)
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

    /// Checks that no table of `plan` searched more than it may.
    fn check(plan: &SweepPlan, order: usize) {
        for part in plan.parts() {
            let most = MOST_EACH * part.steps.len();
            assert!(part.searched <= most, "order {order}: {} of {most}", part.searched);
            assert!(part.steps.iter().all(|step| step.seconds > 0.0));
        }
    }

    #[test]
    fn sweeps_of_many_modes_keep_the_budget() {
        for (order, entries) in [(6, 6), (7, 900), (9, 6), (25, 6)] {
            for sweeps in [50, 100_000] {
                let plan = plan_of(order, entries, sweeps, None);
                check(&plan, order);
                assert_eq!(plan.groups.concat().len(), order);
                assert!(plan.considered <= 1 + MOST_PARTITIONS, "{} partitions", plan.considered);
            }
        }
    }

    #[test]
    fn a_limit_on_memory_keeps_the_budget() {
        let free = plan_of(7, 900, 100_000, None);
        let limit = free.tree_bytes() / 2 + free.side_bytes();
        let lean = plan_of(7, 900, 100_000, Some(limit));
        assert!(lean.tree_bytes() + lean.side_bytes() <= limit);
        check(&lean, 7);
    }

    #[test]
    fn short_runs_are_searched_little() {
        assert_eq!((trees_worth(5, 5, 0.0), trees_worth(5, 5, 1e9)), (MOST_TREES, MOST_TREES));
        assert_eq!((trees_worth(9, 9, 0.0), trees_worth(9, 9, 0.54)), (1, 5));
        assert_eq!(trees_worth(9, 9, 1e9), MOST_TREES);
        assert_eq!(searches_worth(7, 7, 1e-4), 7 * LEAST_EACH_OF_MANY_MODES);
        assert_eq!(searches_worth(7, 7, 0.4), 100);
        assert_eq!(searches_worth(7, 7, 1e9), 7 * MOST_EACH);
        assert_eq!(searches_worth(3, 3, 0.0), 3 * LEAST_EACH);
        let coarse = |order, seconds| partitions_worth(order, Look::Coarse, seconds);
        assert_eq!((coarse(10, 1e-9), coarse(10, 1.6e-2), coarse(10, 1e9)), (0, 10, 40));
        assert_eq!(coarse(5, 0.0), MOST_PARTITIONS);
        let planned = |seconds| partitions_worth(10, Look::Planned, seconds);
        assert_eq!((planned(1e-3), planned(0.8), planned(1e9)), (0, 10, 40));
    }
}
