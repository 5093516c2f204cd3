//! Counting distinct items in a few kilobytes.
//!
//! HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, 2007): the first bits of an item's hash choose a
//! register, which keeps the longest run of zeros seen in the other bits.  The estimator is that of
//! Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017, which needs no
//! tables and no correction for small or large counts.

use crate::simd;

/// Hash bits, the lowest, that choose a register.
const INDEX_BITS: u32 = 13;
/// Registers; the standard error is `1.04 / sqrt(8192)`, 1.15 %.
const REGISTERS: usize = 1 << INDEX_BITS;
/// Hash bits whose leading zeros are counted.
const RUN_BITS: u32 = u64::BITS - INDEX_BITS;
/// Hashes between two looks at the least register.
const LOOK: usize = 2 * REGISTERS;
/// The least register from which on it pays to sift hashes.
const SIFT: u8 = 2;
/// Hashes sifted at a time: a bit each of a word.
const SIFTED: usize = u64::BITS as usize;

/// A set of hashes, of which only the size can be asked.
pub(super) struct Sketch {
    registers: Box<[u8; REGISTERS]>,
    /// What all registers had reached at the last look.
    least: u8,
    /// Hashes added since then.
    since: usize,
}

impl Sketch {
    /// Returns the empty set.
    pub(super) fn new() -> Sketch {
        Sketch { registers: Box::new([0; REGISTERS]), least: 0, since: 0 }
    }

    /// Adds a hash, all 64 bits of which must be well mixed.
    #[inline(always)]
    pub(super) fn add(&mut self, hash: u64) {
        let register = &mut self.registers[hash as usize & (REGISTERS - 1)];
        // The bit set below stops the count at the end of the run bits.
        let run = (hash | 1 << (INDEX_BITS - 1)).leading_zeros() as u8 + 1;
        // Mostly the run is not longer; to store it all the same would delay the next.
        if run > *register {
            *register = run;
        }
    }

    /// Adds hashes as [`Sketch::add`] does: of each place the sum of what `terms`, of equal lengths, have there.
    ///
    /// Once all registers have reached some run, only hashes with a longer one are looked at.
    pub(super) fn add_sums<const N: usize>(&mut self, terms: [&[u64]; N]) {
        let count = terms.first().map_or(0, |term| term.len());
        self.since += count;
        if self.since >= LOOK {
            self.since = 0;
            self.least = simd::run(|| self.registers.iter().fold(u8::MAX, |a, &b| a.min(b)));
        }
        if self.least < SIFT {
            return simd::run(|| (0..count).for_each(|at| self.add(sum(&terms, at))));
        }
        let bound = 1 << (u64::BITS - u32::from(self.least));
        for start in (0..count).step_by(SIFTED) {
            let terms = terms.map(|term| &term[start..count.min(start + SIFTED)]);
            let mut longer = simd::run(|| sums_below(&terms, bound));
            while longer != 0 {
                self.add(sum(&terms, longer.trailing_zeros() as usize));
                longer &= longer - 1;
            }
        }
    }

    /// Adds all hashes of `other`.
    pub(super) fn merge(&mut self, other: &Sketch) {
        let both = self.registers.iter_mut().zip(other.registers.iter());
        both.for_each(|(mine, &theirs)| *mine = theirs.max(*mine));
    }

    /// Estimates how many distinct hashes were added.
    pub(super) fn count(&self) -> f64 {
        let mut registers = [0u32; RUN_BITS as usize + 2];
        self.registers.iter().for_each(|&run| registers[usize::from(run)] += 1);
        let all = REGISTERS as f64;
        let last = RUN_BITS as usize + 1;
        let mut sum = all * tau(1.0 - f64::from(registers[last]) / all);
        for &count in registers[1..last].iter().rev() {
            sum = 0.5 * (sum + f64::from(count));
        }
        sum += all * sigma(f64::from(registers[0]) / all);
        all * all / (2.0 * std::f64::consts::LN_2 * sum)
    }
}

/// Returns the sum of what `terms` have at a place.
#[inline(always)]
fn sum<const N: usize>(terms: &[&[u64]; N], at: usize) -> u64 {
    terms.iter().fold(0, |sum, term| sum.wrapping_add(term[at]))
}

/// Returns in bits at which of up to 64 places the sum of `terms` is below `bound`.
#[inline(always)]
fn sums_below<const N: usize>(terms: &[&[u64]; N], bound: u64) -> u64 {
    let count = terms.first().map_or(0, |term| term.len());
    let terms = terms.map(|term| &term[..count]);
    (0..count).fold(0, |bits, at| bits | u64::from(sum(&terms, at) < bound) << at)
}

/// `x + sum over k >= 1 of x^(2^k) 2^(k-1)`: the part of registers never hit.
fn sigma(x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (x, 1.0, x);
    loop {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// `(1 - x - sum over k >= 1 of (1 - x^(2^-k))^2 2^-k) / 3`: the part of registers at their limit.
fn tau(x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (x, 1.0, 1.0 - x);
    loop {
        root = root.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - root) * (1.0 - root) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SIFT, Sketch};
    use crate::mix::mix;

    #[test]
    fn counts_from_none_to_millions_within_four_percent() {
        for wanted in [0u64, 1, 10, 1000, 8192, 20_000, 40_000, 100_000, 3_000_000] {
            let mut sketch = Sketch::new();
            (0..2 * wanted).for_each(|i| sketch.add(mix(i % wanted.max(1) + (1 << 40))));
            let error = (sketch.count() - wanted as f64).abs();
            assert!(error <= 0.04 * wanted as f64, "{wanted}: {}", sketch.count());
        }
    }

    #[test]
    fn hashes_added_at_once_are_added_one_by_one() {
        let hashes: Vec<u64> = (0..1_000_000).map(|i| mix(i % 700_000)).collect();
        let (mut once, mut each) = (Sketch::new(), Sketch::new());
        hashes.chunks(1000).for_each(|hashes| once.add_sums([hashes]));
        hashes.iter().for_each(|&hash| each.add(hash));
        assert!(once.least >= SIFT && once.registers == each.registers);
    }

    #[test]
    fn a_merge_counts_the_union() {
        let (mut a, mut b, mut both) = (Sketch::new(), Sketch::new(), Sketch::new());
        for i in 0..50_000 {
            a.add(mix(i));
            b.add(mix(i + 25_000));
            both.add(mix(i));
            both.add(mix(i + 25_000));
        }
        a.merge(&b);
        assert_eq!(a.count(), both.count());
    }
}
