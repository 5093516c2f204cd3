//! Partitions of the modes into groups, and what a sweep over one computes how often.

/// The modes in groups: those of several modes first, the last to be merged foremost; then the others,
/// ascending.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModeGroups {
    groups: Vec<Vec<usize>>,
    merged: Vec<Vec<usize>>,
}

/// How often kernels run in a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    /// By group: the MTTKRP of `Y`.
    pub(super) outer: Vec<usize>,
    /// By merge: the product of its factors.
    pub(super) products: Vec<usize>,
}

/// What the matrix of a merge holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing of use.
    Nothing,
    /// `P`: valid until a factor of another group changes.
    Partial,
    /// `K`: valid until a factor of this group changes.
    Product,
}

impl Held {
    /// Returns what is left of it after the factor of `mode` changed, where `group` are its modes.
    pub(super) fn after(self, mode: usize, group: &[usize]) -> Held {
        match (self, group.contains(&mode)) {
            (Held::Partial, false) | (Held::Product, true) => Held::Nothing,
            (held, _) => held,
        }
    }
}

impl ModeGroups {
    /// Makes groups of `order` modes of which `merged` are taken together; `None` unless these are
    /// apart, each of several modes, ascending, and not of all.
    pub(super) fn given(merged: &[Vec<usize>], order: usize) -> Option<ModeGroups> {
        let sound = |group: &Vec<usize>| {
            let ascending = group.windows(2).all(|pair| pair[0] < pair[1]);
            ascending && group.len() > 1 && group.len() < order && group.iter().all(|&m| m < order)
        };
        let mut modes: Vec<usize> = merged.concat();
        modes.sort_unstable();
        let apart = modes.windows(2).all(|pair| pair[0] != pair[1]);
        (apart && merged.iter().all(sound)).then(|| ModeGroups::new(merged.to_vec(), order))
    }

    /// Makes groups of `order` modes of which `merged` are taken together; these must be as in [`ModeGroups::given`].
    pub(super) fn new(merged: Vec<Vec<usize>>, order: usize) -> ModeGroups {
        let single = (0..order).filter(|mode| !merged.iter().any(|group| group.contains(mode)));
        let single = single.map(|mode| vec![mode]);
        ModeGroups { groups: merged.iter().rev().cloned().chain(single).collect(), merged }
    }

    /// Makes groups of one mode each.
    pub(super) fn single(order: usize) -> ModeGroups {
        ModeGroups::new(Vec::new(), order)
    }

    /// The groups of several modes, in the order in which they are merged.
    pub(super) fn merged(&self) -> &[Vec<usize>] {
        &self.merged
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[usize]> {
        self.groups.iter().map(Vec::as_slice)
    }

    pub(super) fn into_vec(self) -> Vec<Vec<usize>> {
        self.groups
    }

    /// Counts the kernels of a sweep over `updates`, once it is in its stride.
    pub(super) fn runs(&self, updates: &[usize]) -> Runs {
        let mut held = vec![Held::Nothing; self.merged.len()];
        let mut runs = self.no_runs();
        for _ in 0..2 {
            runs = self.no_runs();
            for &mode in updates {
                self.count(mode, &mut held, &mut runs);
            }
        }
        runs
    }

    fn no_runs(&self) -> Runs {
        Runs { outer: vec![0; self.groups.len()], products: vec![0; self.merged.len()] }
    }

    /// Counts the kernels of the update of `mode`.
    fn count(&self, mode: usize, held: &mut [Held], runs: &mut Runs) {
        let own = self.merged.iter().position(|group| group.contains(&mode));
        let ready = own.is_some_and(|own| held[own] == Held::Partial);
        if !ready {
            for (merge, held) in held.iter_mut().enumerate() {
                if Some(merge) != own && *held != Held::Product {
                    runs.products[merge] += 1;
                    *held = Held::Product;
                }
            }
            let outer = self.groups.iter().zip(&mut runs.outer);
            outer.filter(|(group, _)| group.contains(&mode)).for_each(|(_, runs)| *runs += 1);
            if let Some(own) = own {
                held[own] = Held::Partial;
            }
        }
        for (group, held) in self.merged.iter().zip(held) {
            *held = held.after(mode, group);
        }
    }
}

/// Up to this many modes, every partition is considered.
const ALL_PARTITIONS: usize = 5;

/// Returns the partitions of `order` modes with at least one group of several modes, not all, of which
/// each pleases `worthwhile`: those first of which `work` says the least, that of all groups together.
///
/// Above five modes those with one such group, two modes or some that follow each other in a cycle.
pub(super) fn partitions(
    order: usize,
    worthwhile: impl Fn(&[usize]) -> bool,
    work: impl Fn(&ModeGroups) -> f64,
) -> Vec<ModeGroups> {
    let good = |group: &Vec<usize>| group.len() > 1 && group.len() < order && worthwhile(group);
    let sets: Vec<Vec<usize>> = match order {
        0..=ALL_PARTITIONS => {
            let set = |bits: u64| (0..order).filter(|mode| bits >> mode & 1 == 1).collect();
            (1_u64..1 << order).map(set).filter(good).collect()
        }
        _ => pairs_and_runs(order).into_iter().filter(good).collect(),
    };
    let mut found: Vec<Vec<Vec<usize>>> = sets.iter().map(|set| vec![set.clone()]).collect();
    if order <= ALL_PARTITIONS {
        // Two groups of two or three are all that five modes have room for.
        for (at, one) in sets.iter().enumerate() {
            let apart = |two: &&Vec<usize>| one.iter().all(|mode| !two.contains(mode));
            let others = sets[at + 1..].iter().filter(apart);
            found.extend(others.map(|two| vec![one.clone(), two.clone()]));
        }
    }
    let groups = found.into_iter().map(|merged| ModeGroups::new(merged, order));
    let mut rated: Vec<(f64, ModeGroups)> = groups.map(|groups| (work(&groups), groups)).collect();
    rated.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    rated.into_iter().map(|(_, groups)| groups).collect()
}

/// Every two of `order` modes, and all that follow each other in a cycle, each set once and ascending.
fn pairs_and_runs(order: usize) -> Vec<Vec<usize>> {
    let pairs = (0..order).flat_map(|one| (one + 1..order).map(move |two| vec![one, two]));
    let runs = (3..order).flat_map(|length| (0..order).map(move |first| (first, length)));
    let run = |(first, length): (usize, usize)| {
        let mut modes: Vec<usize> = (first..first + length).map(|mode| mode % order).collect();
        modes.sort_unstable();
        modes
    };
    let mut sets: Vec<Vec<usize>> = pairs.chain(runs.map(run)).collect();
    sets.sort();
    sets.dedup();
    sets
}

#[cfg(test)]
mod tests {
    use super::{ModeGroups, Runs, partitions};

    #[test]
    fn neighbours_in_the_order_of_updates_share_one_pass() {
        let runs = |merged: &[&[usize]], order| {
            let merged = merged.iter().map(|group| group.to_vec()).collect();
            ModeGroups::new(merged, order).runs(&(0..order).collect::<Vec<_>>())
        };
        let counted = |outer: &[usize], products: &[usize]| Runs {
            outer: outer.to_vec(),
            products: products.to_vec(),
        };
        assert_eq!(runs(&[&[0, 1]], 3), counted(&[1, 1], &[1]));
        // 4, 1, 2 follow each other in the cycle.
        assert_eq!(runs(&[&[0, 1, 3]], 4), counted(&[1, 1], &[1]));
        // 1 and 3 do not: each needs a pass of its own, and so do 2 and 4.
        assert_eq!(runs(&[&[0, 2]], 4), counted(&[2, 1, 1], &[2]));
        assert_eq!(runs(&[&[0, 1], &[2, 3]], 4), counted(&[1, 1], &[1, 1]));
        assert_eq!(runs(&[], 3), counted(&[1, 1, 1], &[]));
        let groups = ModeGroups::new(vec![vec![0, 2]], 4);
        assert_eq!(groups.runs(&[1, 3, 0, 2]), counted(&[1, 1, 1], &[1]));
    }

    #[test]
    fn partitions_are_those_of_the_bell_numbers() {
        // Less the partition into single modes and that of one group.
        for (order, bell) in [(2, 2), (3, 5), (4, 15), (5, 52)] {
            assert_eq!(partitions(order, |_| true, |_| 0.0).len(), bell - 2, "{order} modes");
        }
        assert_eq!(partitions(4, |group| group == [1, 2], |_| 0.0).len(), 1);
    }

    #[test]
    fn partitions_with_the_least_work_come_first() {
        let modes = |groups: &ModeGroups| groups.merged().concat().len() as f64;
        let found = partitions(4, |_| true, modes);
        assert_eq!(found.iter().position(|groups| groups.merged().len() == 2), Some(10));
        assert!(found.iter().is_sorted_by_key(|groups| groups.merged().concat().len()));
        for order in [6, 9, 25, 60] {
            let found = partitions(order, |_| true, |groups| -modes(groups));
            assert_eq!(found[0].merged()[0].len(), order - 1, "{order} modes");
            assert!(found.iter().all(|groups| groups.merged().len() == 1), "{order} modes");
        }
        let last = partitions(25, |group| group == [23, 24], modes);
        assert_eq!(last[0].merged(), [[23, 24]]);
        // Those that follow each other in the cycle are not all neighbours.
        assert_eq!(partitions(7, |group| group == [0, 1, 5, 6], modes).len(), 1);
    }
}
