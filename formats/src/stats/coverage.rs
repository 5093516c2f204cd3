//! How often rows are found near where some slices are fuller than others.

/// The slices that are counted one by one by how full they are; fuller ones are sorted.
const TABLE: usize = 1 << 16;

/// How often a row of a table is found near, if a cache keeps the rows that were asked for last and the
/// entries ask for those of their slices, one a slice of a mode, in random order.
///
/// A row that a share `p` of the entries ask for is there with the probability `1 - exp(-p t)`, where
/// `t`, the time that a row stays, is such that as many rows are expected to be there as fit: Che,
/// Tung, Wang, "Hierarchical Web Caching Systems", IEEE JSAC 20(7), 2002, equations 4 and 5.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    /// Share of the entries that find their row among the `2^k` that fit, for every `k` up to the
    /// first for which all rows fit.
    hits: Vec<f64>,
    /// Entries of the slice of an entry, on average, over those of a slice.
    skew: f64,
}

/// Slices of about the same size.
#[derive(Clone, Copy, Debug)]
struct Band {
    slices: f64,
    /// Share of the entries in all of them.
    share: f64,
}

impl Coverage {
    /// Counts from the entries of each slice, in any order; time `O(slices)`.
    pub(super) fn of(counts: impl Iterator<Item = u64>) -> Coverage {
        let mut slices = vec![0_u64; TABLE];
        let mut full = Vec::new();
        for count in counts.filter(|&count| count > 0) {
            match slices.get_mut(count as usize) {
                Some(slices) => *slices += 1,
                None => full.push(count),
            }
        }
        full.sort_unstable_by(|a, b| b.cmp(a));
        let full = full.into_iter().map(|count| (count, 1));
        let others = slices.iter().enumerate().rev().filter(|(_, slices)| **slices > 0);
        let steps = full.chain(others.map(|(count, &slices)| (count as u64, slices)));
        Coverage::descending(&steps.collect::<Vec<_>>())
    }

    /// Returns that of `used` slices that all hold the same.
    pub fn even(used: u64) -> Coverage {
        Coverage::descending(&[(1, used)])
    }

    /// From pairs of entries a slice and slices with as many, fullest first.
    fn descending(steps: &[(u64, u64)]) -> Coverage {
        let bands = bands(steps);
        let used: u64 = steps.iter().map(|(_, slices)| slices).sum();
        let powers = (0..64).map(|k| 1_u64 << k).take_while(|&fit| fit < used);
        let hits = powers.map(|fit| hits(&bands, fit as f64)).chain([1.0]);
        Coverage { hits: hits.collect(), skew: skew(steps) }
    }

    /// Returns how many times as many entries the slice of an entry has, on average, as a slice: 1 if all
    /// hold the same.
    pub fn skew(&self) -> f64 {
        self.skew
    }

    /// Returns the share of the entries that find their row near if `slices` rows fit: between powers
    /// of two, on a line.
    pub fn share(&self, slices: f64) -> f64 {
        let Some(&first) = self.hits.first() else { return 1.0 };
        if slices <= 1.0 {
            return first * slices.max(0.0);
        }
        let below = slices.log2().floor();
        let at = |k: usize| self.hits.get(k).copied().unwrap_or(1.0);
        let (low, high) = (at(below as usize), at(below as usize + 1));
        low + (high - low) * (slices / below.exp2() - 1.0)
    }
}

/// The mean of the slices' entries weighted by them, over the plain mean.
fn skew(steps: &[(u64, u64)]) -> f64 {
    let sum = |power: i32| -> f64 {
        steps.iter().map(|&(count, slices)| (count as f64).powi(power) * slices as f64).sum()
    };
    let all = sum(1);
    if all > 0.0 { sum(2) * sum(0) / (all * all) } else { 1.0 }
}

/// The slices from the `2^k`-th to the one before the `2^(k+1)`-th fullest, for every `k`.
fn bands(steps: &[(u64, u64)]) -> Vec<Band> {
    let all: u64 = steps.iter().map(|(count, slices)| count * slices).sum();
    let mut bands: Vec<Band> = Vec::new();
    let mut before = 0;
    for &(count, mut slices) in steps {
        while slices > 0 {
            let end = (1 << bands.len()) - 1;
            if before == end {
                bands.push(Band { slices: 0.0, share: 0.0 });
                continue;
            }
            let taken = slices.min(end - before);
            if let Some(band) = bands.last_mut() {
                band.slices += taken as f64;
                band.share += (taken * count) as f64 / all as f64;
            }
            before += taken;
            slices -= taken;
        }
    }
    bands
}

/// The share of hits if `fit` rows fit, fewer than there are.
fn hits(bands: &[Band], fit: f64) -> f64 {
    const HALVINGS: usize = 50;
    let there = |band: &Band, t: f64| -(-band.share / band.slices * t).exp_m1();
    let rows = |t: f64| bands.iter().map(|band| band.slices * there(band, t)).sum::<f64>();
    let mut high = fit;
    while rows(high) < fit && high < 1e30 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if rows(middle) < fit { low = middle } else { high = middle }
    }
    bands.iter().map(|band| band.share * there(band, high)).sum()
}

#[cfg(test)]
mod tests {
    use super::Coverage;
    use crate::mix::mix;

    /// Entries that find their slice among the last `fit` different ones.
    fn simulated(counts: &[u64], fit: usize) -> f64 {
        let each = counts.iter().enumerate();
        let mut entries: Vec<usize> =
            each.flat_map(|(at, &count)| (0..count).map(move |_| at)).collect();
        for at in (1..entries.len()).rev() {
            entries.swap(at, (mix(at as u64) % (at as u64 + 1)) as usize);
        }
        let mut last: Vec<usize> = Vec::new();
        let mut found = 0;
        for &entry in &entries {
            let place = last.iter().position(|&other| other == entry);
            found += usize::from(place.is_some());
            if let Some(place) = place {
                last.remove(place);
            }
            last.insert(0, entry);
            last.truncate(fit);
        }
        found as f64 / entries.len() as f64
    }

    #[test]
    fn shares_are_those_of_a_cache_of_the_last_rows() {
        let skewed: Vec<u64> = (1..400_u64).map(|rank| 8_000 / rank).collect();
        let even = vec![100; 300];
        for counts in [skewed, even] {
            let coverage = Coverage::of(counts.iter().copied());
            for fit in [4, 16, 50, 200] {
                let (share, truth) = (coverage.share(fit as f64), simulated(&counts, fit));
                // Bands of slices and lines between powers of two, within 3 % of all entries.
                assert!((share - truth).abs() < 0.03, "{fit}: {share} for {truth}");
            }
        }
    }

    #[test]
    fn skew_weighs_slices_by_their_entries() {
        assert!((Coverage::even(100).skew() - 1.0).abs() < 1e-12);
        // Nine of twelve entries are in a slice of nine, three in slices of one.
        let skewed = Coverage::of([9, 1, 1, 1].into_iter());
        assert!((skewed.skew() - (9.0 * 9.0 + 3.0) / 12.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn all_rows_that_fit_are_near() {
        let coverage = Coverage::of([3, 0, 100_000, 7, 7].into_iter());
        assert_eq!(coverage.share(4.0), 1.0);
        assert_eq!(coverage.share(1e9), 1.0);
        assert!(coverage.share(1.0) > 0.99 && coverage.share(0.5) < 0.5);
        assert_eq!(Coverage::of([].into_iter()).share(3.0), 1.0);
        let even = Coverage::even(1 << 20);
        assert!((even.share(1024.0) - 1.0 / 1024.0).abs() < 1e-4);
    }
}
