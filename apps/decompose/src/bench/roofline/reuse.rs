//! The fewest rows that a cache must take in, whatever it replaces.
//!
//! In a stretch of accesses with `d` different rows at most `k` of them, as many as fit, can be there
//! at its beginning: at least `d - k` come in.  Stretches follow each other, each as long as it takes
//! to meet a multiple of `k` different rows; several multiples are tried, and the most is taken.

/// Rows that come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Misses {
    /// Rows that lie near behind the one before.
    pub(super) near: u64,
    /// The others.
    pub(super) far: u64,
}

impl Misses {
    pub(super) fn total(self) -> u64 {
        self.near + self.far
    }

    /// Adds those of another stretch.
    pub(super) fn and(self, other: Misses) -> Misses {
        Misses { near: self.near + other.near, far: self.far + other.far }
    }
}

/// How many times what fits a stretch meets.
pub(super) const STRETCHES: [f64; 4] = [1.25, 2.0, 4.0, 8.0];

/// Returns the fewest rows of `extent` that `accesses` bring into a cache of `fits` rows; those up to
/// `reach` rows behind the one before count as near.
///
/// Time: four passes over the accesses; memory: 4 bytes a row.
pub(super) fn least_misses<I: Iterator<Item = u64>>(
    accesses: impl Fn() -> I,
    extent: u64,
    fits: u64,
    reach: u64,
) -> Misses {
    if fits >= extent {
        return Misses::default();
    }
    let tried = STRETCHES.iter().map(|times| {
        let stretch = Stretch { fits, reach, most: (fits as f64 * times).ceil() as u64 };
        stretch.misses(accesses(), extent)
    });
    tried.max_by_key(|misses| misses.total()).unwrap_or_default()
}

struct Stretch {
    fits: u64,
    reach: u64,
    /// Different rows that end it.
    most: u64,
}

impl Stretch {
    fn misses(&self, accesses: impl Iterator<Item = u64>, extent: u64) -> Misses {
        let mut met = vec![0_u32; extent as usize];
        let (mut number, mut before) = (1, None::<u64>);
        let (mut met_now, mut all) = (Misses::default(), Misses::default());
        for row in accesses {
            let last = before.replace(row);
            let stamp = &mut met[row as usize];
            if *stamp == number {
                continue;
            }
            *stamp = number;
            let near = last.is_some_and(|last| row > last && row - last <= self.reach);
            if near {
                met_now.near += 1
            } else {
                met_now.far += 1
            }
            if met_now.total() >= self.most {
                all = all.and(self.coming(met_now));
                met_now = Misses::default();
                number += 1;
            }
        }
        all.and(self.coming(met_now))
    }

    /// Those that were not there; the ones that were are taken to be the dearest.
    fn coming(&self, met: Misses) -> Misses {
        let far = met.far.saturating_sub(self.fits);
        Misses { far, near: met.total().saturating_sub(self.fits) - far }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use decompose_formats::mix::mix;

    use super::{Misses, least_misses};

    /// Misses of the best replacement there is (Belady 1966), from an empty cache.
    pub(in crate::bench::roofline) fn belady(accesses: &[u64], fits: usize) -> u64 {
        let next = |row: u64, after: usize| {
            accesses[after..].iter().position(|&other| other == row).unwrap_or(usize::MAX)
        };
        let (mut kept, mut misses) = (Vec::<u64>::new(), 0);
        for (at, &row) in accesses.iter().enumerate() {
            if kept.contains(&row) {
                continue;
            }
            misses += 1;
            if kept.len() == fits {
                let farthest = (0..fits).max_by_key(|&slot| next(kept[slot], at + 1)).unwrap();
                kept.swap_remove(farthest);
            }
            kept.push(row);
        }
        misses
    }

    #[test]
    fn no_replacement_has_fewer_misses() {
        for (seed, extent, skew) in [(1, 40, 1), (2, 40, 2), (3, 100, 3), (4, 25, 1)] {
            let draw = |at: u64| {
                let unit = (mix(seed * 7919 + at) >> 11) as f64 / (1_u64 << 53) as f64;
                (unit.powi(skew) * extent as f64) as u64
            };
            let accesses: Vec<u64> = (0..600).map(draw).collect();
            for fits in [3, 8, 20] {
                let bound = least_misses(|| accesses.iter().copied(), extent, fits, 2).total();
                let least = belady(&accesses, fits as usize);
                // The bound lets the cache begin full.
                assert!(bound <= least, "{seed} {fits}: {bound} > {least}");
                assert!(fits + 8 > extent || bound * 5 >= least, "{seed} {fits}: {bound} {least}");
            }
        }
    }

    #[test]
    fn sweeps_are_near_and_what_fits_is_free() {
        let rows = || (0..3).flat_map(|_| 0..100_u64);
        // Every pass of 100 rows brings in all but the 10 that may be there already.
        let misses = least_misses(rows, 100, 10, 4);
        assert!(misses.total() >= 250 && misses.total() <= 290, "{misses:?}");
        assert!(misses.near > 0 && misses.far == 0, "{misses:?}");
        assert_eq!(least_misses(rows, 100, 100, 4), Misses::default());
        let strided = || (0..100_u64).map(|at| at * 37 % 100);
        assert_eq!(least_misses(strided, 100, 10, 4).near, 0);
    }
}
