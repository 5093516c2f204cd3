//! Sets of trees for a few kernels: the best, or the best for every number of bytes.
//!
//! Every kernel runs on one tree, and a tree that is kept costs its building.  With `one(T)`, the least that the
//! kernels `T` take on a tree of their own,
//!
//! ```text
//! least(S) = min over T, a part of S with its first kernel:  one(T) + least(S \ T)
//! ```
//!
//! which is exact, since sharing a tree is one of the choices.  Where bytes are limited, `one` and `least` are fronts:
//! all pairs of seconds and bytes to which no other is better in both.
//!
//! For `K` kernels and `n` trees: `O(2^K n K + 4^K)`; above [`ALL_SETS`] kernels only neighbours share a tree, which are
//! `O(K^2)` sets.

use std::collections::BTreeMap;

use crate::cost::{LINE_BYTES, Machine};

/// Up to this many kernels, any of them may share a tree.
const ALL_SETS: usize = 8;

/// The most selections of a front that are kept, the first and the last among them: more would multiply when fronts
/// are joined.
const MOST_SELECTIONS: usize = 64;

/// The same above five kernels, of which there are many sets.
const FEW_SELECTIONS: usize = 16;

/// A set of kernels: bit `k` stands for kernel `k`.
pub(super) type KernelSet = u64;

/// What something costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Price {
    pub(super) seconds: f64,
    pub(super) bytes: u64,
}

impl Price {
    pub(super) fn and(self, other: Price) -> Price {
        Price { seconds: self.seconds + other.seconds, bytes: self.bytes + other.bytes }
    }
}

/// Seconds to sort a list or tree of `bytes` and compress it: it is moved about eight times.
pub(super) fn building_seconds(bytes: u64, machine: &Machine) -> f64 {
    bytes as f64 * 8.0 / LINE_BYTES * machine.stream_line
}

/// What a tree costs that is kept, and each kernel on it that it suits.
#[derive(Clone, Debug)]
pub(super) struct PricedTree {
    pub(super) kept: Price,
    pub(super) kernels: Vec<Option<Price>>,
}

/// Trees by number, with the kernels that run on each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Selection {
    pub(super) price: Price,
    pub(super) trees: Vec<(usize, KernelSet)>,
}

/// Returns the selections among `trees` that take at most `limit` bytes and of which none is better in seconds and bytes, the
/// fastest first; without a limit, the fastest alone.
pub(super) fn selections(
    trees: &[PricedTree],
    kernels: usize,
    limit: Option<u64>,
) -> Vec<Selection> {
    let all: KernelSet = (1 << kernels) - 1;
    let most = if kernels <= 5 { MOST_SELECTIONS } else { FEW_SELECTIONS };
    let shared = shared(kernels).into_iter();
    let of_one: BTreeMap<KernelSet, Vec<Selection>> =
        shared.map(|set| (set, alone(trees, set, limit))).collect();
    let nothing = Selection { price: Price::default(), trees: Vec::new() };
    let mut least = BTreeMap::from([(0, vec![nothing])]);
    for set in rests(kernels) {
        let firsts = of_one
            .iter()
            .filter(|(first, _)| **first & !set == 0 && **first & set & set.wrapping_neg() != 0);
        let joined = firsts.flat_map(|(first, selections)| {
            let rest: &[Selection] = least.get(&(set & !first)).map_or(&[], Vec::as_slice);
            selections.iter().flat_map(|selection| rest.iter().map(|rest| selection.and(rest)))
        });
        let front = evenly(thinned(joined, limit, |selection| selection.price), most);
        least.insert(set, front);
    }
    least[&all].clone()
}

/// Returns the selections of one of `selections` of each part, of which none is better in seconds and bytes, as [`selections`] does.
pub(super) fn together<'a>(
    parts: impl Iterator<Item = &'a [Selection]>,
    limit: Option<u64>,
) -> Vec<(Price, Vec<&'a Selection>)> {
    parts.fold(vec![(Price::default(), Vec::new())], |before, selections| {
        let joined = before.iter().flat_map(|(price, taken)| {
            selections.iter().map(|selection| {
                let taken = taken.iter().copied().chain([selection]).collect();
                (price.and(selection.price), taken)
            })
        });
        evenly(thinned(joined, limit, |(price, _)| *price), MOST_SELECTIONS)
    })
}

impl Selection {
    fn and(&self, other: &Selection) -> Selection {
        let trees = self.trees.iter().chain(&other.trees).copied().collect();
        Selection { price: self.price.and(other.price), trees }
    }
}

/// The selections of one tree for the kernels `set`.
fn alone(trees: &[PricedTree], set: KernelSet, limit: Option<u64>) -> Vec<Selection> {
    let priced = trees.iter().enumerate().filter_map(|(tree, candidate)| {
        let mut kernels = candidate.kernels.iter().enumerate();
        let price = kernels.try_fold(candidate.kept, |price, (kernel, own)| {
            if set >> kernel & 1 == 0 { Some(price) } else { own.map(|own| price.and(own)) }
        });
        Some((price?, tree))
    });
    let selections = thinned(priced, limit, |(price, _)| *price).into_iter();
    selections.map(|(price, tree)| Selection { price, trees: vec![(tree, set)] }).collect()
}

/// Returns those of `all` within `limit` of which none is better in seconds and bytes, the fastest first; without a
/// limit, the fastest alone.
fn thinned<T>(
    all: impl Iterator<Item = T>,
    limit: Option<u64>,
    price: impl Fn(&T) -> Price,
) -> Vec<T> {
    let order = |a: &T, b: &T| {
        let (a, b) = (price(a), price(b));
        a.seconds.total_cmp(&b.seconds).then(a.bytes.cmp(&b.bytes))
    };
    let Some(limit) = limit else { return all.min_by(order).into_iter().collect() };
    let mut all: Vec<T> = all.collect();
    all.sort_by(order);
    let mut least = limit.saturating_add(1);
    all.retain(|one| {
        let better = price(one).bytes < least;
        least = least.min(price(one).bytes);
        better
    });
    all
}

/// Returns `most` of `all`, the first and the last among them, or all if they are not more.
fn evenly<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let (last, steps) = (all.len().saturating_sub(1), most - 1);
    if last <= steps {
        return all;
    }
    let mut taken = 0;
    let mut all = all.into_iter().enumerate().filter(|&(at, _)| {
        let wanted = at == taken * last / steps;
        taken += usize::from(wanted);
        wanted
    });
    all.by_ref().map(|(_, one)| one).collect()
}

/// The sets of kernels that may share a tree.
fn shared(kernels: usize) -> Vec<KernelSet> {
    if kernels <= ALL_SETS {
        return (1..1 << kernels).collect();
    }
    let runs = |first: usize| (first..kernels).map(move |last| run(first, last));
    (0..kernels).flat_map(runs).collect()
}

/// The sets of kernels that are left when others have their trees, parts before wholes.
fn rests(kernels: usize) -> Vec<KernelSet> {
    if kernels <= ALL_SETS {
        return (1..1 << kernels).collect();
    }
    (0..kernels).rev().map(|first| run(first, kernels - 1)).collect()
}

/// The kernels `first..=last`.
fn run(first: usize, last: usize) -> KernelSet {
    (1 << (last + 1)) - (1 << first)
}

#[cfg(test)]
mod tests {
    use decompose_formats::mix::mix;

    use super::*;

    /// Up to six trees for `kernels`, some of which suit only some.
    fn random_trees(seed: u64, kernels: usize) -> Vec<PricedTree> {
        let draw = |salt: u64| mix(seed * 10_000 + salt);
        let price = |salt: u64| Price {
            seconds: (draw(salt) % 1000) as f64 / 1000.0,
            bytes: draw(salt + 1) % 100,
        };
        let tree = |tree: u64| {
            let kernel = |kernel: usize| {
                let salt = tree * 100 + 4 * kernel as u64;
                (!draw(salt + 2).is_multiple_of(5)).then(|| price(salt))
            };
            PricedTree { kept: price(tree * 100 + 90), kernels: (0..kernels).map(kernel).collect() }
        };
        (0..1 + draw(0) % 6).map(tree).collect()
    }

    /// What each way to place kernels on trees costs.
    fn placements(trees: &[PricedTree], kernels: usize) -> Vec<Price> {
        let ways = trees.len().pow(kernels as u32);
        let placed = |way: usize| {
            let on = |kernel: usize| way / trees.len().pow(kernel as u32) % trees.len();
            let kept =
                (0..trees.len()).filter(|&tree| (0..kernels).any(|kernel| on(kernel) == tree));
            let kept = kept.map(|tree| trees[tree].kept).fold(Price::default(), Price::and);
            (0..kernels).try_fold(kept, |price, k| Some(price.and(trees[on(k)].kernels[k]?)))
        };
        (0..ways).filter_map(placed).collect()
    }

    #[test]
    fn picks_are_the_best_placements() {
        for seed in 0..300 {
            let kernels = 1 + seed as usize % 5;
            let trees = random_trees(seed, kernels);
            let all = placements(&trees, kernels);
            let limits = [None, Some(40 * kernels as u64), Some(100 * kernels as u64)];
            for limit in limits {
                let within = |price: &&Price| limit.is_none_or(|limit| price.bytes <= limit);
                let least = all.iter().filter(within).map(|price| price.seconds);
                let least = least.min_by(f64::total_cmp);
                let found = selections(&trees, kernels, limit);
                let first = found.first().map(|selection| selection.price.seconds);
                let near = match (first, least) {
                    (Some(found), Some(least)) => (found - least).abs() < 1e-9,
                    (found, least) => found == least,
                };
                assert!(near, "{seed}, {limit:?}: {first:?} {least:?}");
                let better = |selection: &Selection| {
                    let Price { seconds, bytes } = selection.price;
                    all.iter().any(|o| o.seconds < seconds - 1e-9 && o.bytes <= bytes)
                };
                assert!(limit.is_none() || !found.iter().any(better), "{seed}, {limit:?}");
            }
        }
    }

    #[test]
    fn of_many_kernels_neighbours_share_a_tree() {
        let price = |seconds: f64| Price { seconds, bytes: 1 };
        let tree = |best: std::ops::Range<usize>| PricedTree {
            kept: price(1.5),
            kernels: (0..12)
                .map(|k| Some(price(if best.contains(&k) { 1.0 } else { 3.0 })))
                .collect(),
        };
        let trees = [tree(0..7), tree(7..12), tree(5..6)];
        let found = selections(&trees, 12, None);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].trees, [(0, run(0, 6)), (1, run(7, 11))]);
        assert_eq!(found[0].price, Price { seconds: 15.0, bytes: 14 });
    }

    #[test]
    fn fronts_are_short() {
        let of = |count: usize| evenly((0..count).collect(), 4);
        assert_eq!(of(4), [0, 1, 2, 3]);
        assert_eq!(of(11), [0, 3, 6, 10]);
        assert_eq!((of(0).len(), of(1).len(), of(1000).len()), (0, 1, 4));
        // Each kernel has a hundred trees, ever smaller and slower.
        let tree = |at: u64| PricedTree {
            kept: Price { seconds: 0.0, bytes: 100 - at },
            kernels: (0..7)
                .map(|k| Some(Price { seconds: (at * (k + 7)) as f64, bytes: 0 }))
                .collect(),
        };
        let found = selections(&(0..100).map(tree).collect::<Vec<_>>(), 7, Some(1_000));
        assert!(found.len() <= FEW_SELECTIONS);
        assert_eq!(found[0].price, Price { seconds: 0.0, bytes: 100 });
    }

    #[test]
    fn parts_share_a_limit() {
        let selection = |seconds: f64, bytes: u64| Selection {
            price: Price { seconds, bytes },
            trees: Vec::new(),
        };
        let (one, two) =
            ([selection(1.0, 9), selection(2.0, 4)], [selection(1.0, 8), selection(5.0, 1)]);
        let seconds = |limit| -> Vec<f64> {
            let joined = together([&one[..], &two[..]].into_iter(), limit);
            joined.iter().map(|(price, _)| price.seconds).collect()
        };
        assert_eq!(seconds(None), [2.0]);
        assert_eq!(seconds(Some(17)), [2.0, 3.0, 6.0, 7.0]);
        assert_eq!(seconds(Some(12)), [3.0, 6.0, 7.0]);
        assert_eq!(seconds(Some(4)), [0.0; 0]);
    }
}
