//! What the bonds of a train can hold, and the order of the modes that asks least of them.
//!
//! The rank of the bond between the modes `S` before it and the others is that of the unfolding
//! with a row for each tuple of coordinates in `S`.  It is at most the number of rows, or columns,
//! with a non-zero:
//!
//! ```text
//! b(S) = min(nnz(X_S), nnz(X_others), the most that is asked for)
//! ```
//!
//! which the pattern tells without looking at a value.

use decompose_formats::{ModeOrder, ModeSet, PatternCounts};

/// Up to this order every order of the modes is weighed.
const ALL_ORDERS: usize = 16;

/// Returns the largest ranks, at most `asked`, that a train of `extents` can have without excess:
/// `r_k <= r_(k-1) n_k` and `r_(k-1) <= n_k r_k`, with 1 at the ends.
///
/// # Panics
///
/// If `asked` has not one rank a bond.
pub fn possible(asked: &[usize], extents: &[u64]) -> Vec<usize> {
    assert_eq!(asked.len() + 1, extents.len(), "one rank a bond");
    let times = |rank: usize, extent: u64| {
        usize::try_from(extent).unwrap_or(usize::MAX).saturating_mul(rank)
    };
    let mut ranks = asked.to_vec();
    let mut left = 1;
    for (rank, &extent) in ranks.iter_mut().zip(extents) {
        *rank = (*rank).min(times(left, extent));
        left = *rank;
    }
    let mut right = 1;
    for (rank, &extent) in ranks.iter_mut().zip(&extents[1..]).rev() {
        *rank = (*rank).min(times(right, extent));
        right = *rank;
    }
    ranks
}

/// An order of the modes with what is predicted of its train.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    /// The mode of each core.
    pub order: ModeOrder,
    /// The most that each bond can need.
    pub ranks: Vec<u64>,
    /// The numbers in a train of these ranks.
    pub parameters: f64,
}

/// Predicts the train of modes in `order`, whose bonds hold at most `cap`.
pub fn predict(counts: &PatternCounts, order: &ModeOrder, cap: Option<usize>) -> Ordering {
    let table = RankTable { counts, cap };
    let modes = order.modes();
    let ends: Vec<u64> = (0..=modes.len()).map(|k| table.rank(ModeSet::of(&modes[..k]))).collect();
    let cores = modes.iter().zip(ends.windows(2));
    let sizes = cores.map(|(&mode, bonds)| table.size(bonds[0], mode, bonds[1]));
    let parameters = sizes.sum();
    let ranks = ends[1..modes.len()].to_vec();
    Ordering { order: order.clone(), ranks, parameters }
}

/// Finds the order of the modes whose train is predicted to have the fewest numbers; of equal
/// ones the first in the order of the mode numbers.
///
/// Exact by dynamic programming over the sets of modes, `O(2^N N)`; above order 16 the natural
/// order is returned.
pub fn choose(counts: &PatternCounts, cap: Option<usize>) -> Ordering {
    let order = counts.extents().len();
    if order > ALL_ORDERS {
        return predict(counts, &ModeOrder::natural(order), cap);
    }
    let table = RankTable { counts, cap };
    let all = (1_usize << order) - 1;
    let set = |bits: usize| ModeSet::from_bits(bits as u64);
    let ranks: Vec<u64> = (0..=all).map(|bits| table.rank(set(bits))).collect();
    let core = |bits: usize, mode: usize| table.size(ranks[bits], mode, ranks[bits | 1 << mode]);
    let others = |bits: usize| (0..order).filter(move |mode| bits >> mode & 1 == 0);
    // The fewest numbers in the cores behind those of each set.
    let mut behind = vec![0.0; all + 1];
    for bits in (0..all).rev() {
        let with = |mode: usize| core(bits, mode) + behind[bits | 1 << mode];
        behind[bits] = others(bits).map(with).fold(f64::INFINITY, f64::min);
    }
    let placed =
        walk(all, |bits, mode| core(bits, mode) + behind[bits | 1 << mode] <= behind[bits]);
    predict(counts, &placed, cap)
}

/// Places one mode after the other, until the set of those before is `all`: the first that is `best` behind a set,
/// else, where numbers are beyond the range of doubles, the first.
fn walk(all: usize, best: impl Fn(usize, usize) -> bool) -> ModeOrder {
    let (mut modes, mut bits) = (Vec::new(), 0);
    while bits != all {
        let has = |set: usize, mode: usize| set >> mode & 1 == 1;
        let mut others = (0..).take_while(|&mode| has(all, mode)).filter(|&mode| !has(bits, mode));
        let mode = others.clone().find(|&mode| best(bits, mode)).or_else(|| others.next());
        let mode = mode.expect("a set that is not all lacks a mode");
        modes.push(mode);
        bits |= 1 << mode;
    }
    ModeOrder::new(modes).expect("each mode once")
}

/// The predicted ranks.
struct RankTable<'a> {
    counts: &'a PatternCounts,
    cap: Option<usize>,
}

impl RankTable<'_> {
    /// `b(S)`.
    fn rank(&self, before: ModeSet) -> u64 {
        let order = self.counts.extents().len();
        let behind = ModeSet::from_bits(ModeSet::all(order).bits() & !before.bits());
        if before.is_empty() || behind.is_empty() {
            return 1;
        }
        let pattern = self.counts.count(before).value.min(self.counts.count(behind).value);
        pattern.min(self.cap.map_or(u64::MAX, |cap| cap as u64)).max(1)
    }

    /// The numbers in a core.
    fn size(&self, left: u64, mode: usize, right: u64) -> f64 {
        left as f64 * self.counts.extents()[mode] as f64 * right as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_cut_to_what_neighbours_allow() {
        assert_eq!(possible(&[8, 8], &[5, 201, 61]), [5, 8]);
        assert_eq!(possible(&[99, 99, 99], &[2, 3, 4, 5]), [2, 6, 5]);
        assert_eq!(possible(&[8, 1], &[9, 4, 9]), [4, 1]);
        assert_eq!(possible(&[usize::MAX; 2], &[1 << 40, 1 << 40, 1 << 40]), [1 << 40; 2]);
    }

    #[test]
    fn the_choice_is_the_best_of_all_orders() {
        let extents = [30, 4, 50, 7, 3];
        for (nnz, cap) in [(200, None), (900, Some(6)), (50_000, None)] {
            let counts = PatternCounts::uniform(&extents, nnz);
            let chosen = choose(&counts, cap);
            let mut orders = vec![Vec::new()];
            for _ in &extents {
                let longer = |order: Vec<usize>| {
                    let rest = (0..extents.len()).filter(move |m| !order.contains(m));
                    rest.collect::<Vec<_>>()
                };
                orders = orders
                    .into_iter()
                    .flat_map(|order: Vec<usize>| {
                        let next = longer(order.clone());
                        next.into_iter().map(move |m| [order.as_slice(), &[m]].concat())
                    })
                    .collect();
            }
            assert_eq!(orders.len(), 120);
            let all = orders.into_iter().filter_map(ModeOrder::new);
            let predicted = all.map(|order| predict(&counts, &order, cap).parameters);
            let least = predicted.fold(f64::INFINITY, f64::min);
            assert!(chosen.parameters <= least * (1.0 + 1e-12), "{chosen:?} {least}");
        }
    }

    #[test]
    fn every_order_that_tensors_have_is_weighed_or_kept() {
        for order in [1, 2, 15, 16, 17, 25] {
            let extents: Vec<u64> = (0..order as u64).map(|mode| 1 << (mode % 5)).collect();
            let counts = PatternCounts::uniform(&extents, 1000);
            let chosen = choose(&counts, Some(1));
            // Bonds of rank one: a core has as many numbers as its mode indices, in any order.
            assert_eq!(chosen.parameters, extents.iter().sum::<u64>() as f64);
            assert_eq!(chosen.ranks, vec![1; order - 1]);
            let natural = predict(&counts, &ModeOrder::natural(order), None);
            let chosen = choose(&counts, None);
            assert!(chosen.parameters <= natural.parameters, "{order}");
            assert!(order <= ALL_ORDERS || chosen == natural, "{order}");
        }
    }

    #[test]
    fn at_equal_ranks_the_long_modes_go_to_the_ends() {
        let counts = PatternCounts::uniform(&[100, 12_000, 300, 9_000], 10_000_000);
        let chosen = choose(&counts, Some(8));
        assert_eq!(chosen.order.modes(), [1, 0, 2, 3]);
        assert_eq!(chosen.ranks, [8, 8, 8]);
    }
}
