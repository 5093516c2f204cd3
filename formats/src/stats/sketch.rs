//! Counting distinct items in a few kilobytes.
//!
//! HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, 2007): the first bits of an item's hash choose a
//! register, which keeps the longest run of zeros seen in the other bits.  The estimator is that of
//! Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017, which needs no
//! tables and no correction for small or large counts.

use crate::wide;

/// Hash bits that choose a register.
const INDEX_BITS: u32 = 13;
/// Registers; the standard error is `1.04 / sqrt(8192)`, 1.15 %.
const REGISTERS: usize = 1 << INDEX_BITS;
/// Hash bits whose leading zeros are counted.
const RUN_BITS: u32 = u64::BITS - INDEX_BITS;
/// Hashes between two looks at the least register.
const LOOK: usize = 2 * REGISTERS;
/// The least register from which on it pays to sift hashes.
const SIFT: u8 = 2;

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
        let register = &mut self.registers[(hash >> RUN_BITS) as usize & (REGISTERS - 1)];
        // The bit set below stops the count at the end of the run bits.
        let run = (hash << INDEX_BITS | 1 << (INDEX_BITS - 1)).leading_zeros() as u8 + 1;
        // Mostly the run is not longer; to store it all the same would delay the next.
        if run > *register {
            *register = run;
        }
    }

    /// Adds hashes as [`Sketch::add`] does.
    ///
    /// Once all registers have reached some run, only hashes with a longer one are looked at.
    pub(super) fn add_all(&mut self, hashes: &[u64]) {
        self.since += hashes.len();
        if self.since >= LOOK {
            self.since = 0;
            self.least = wide::run(|| self.registers.iter().fold(u8::MAX, |a, &b| a.min(b)));
        }
        if self.least < SIFT {
            return wide::run(|| hashes.iter().for_each(|&hash| self.add(hash)));
        }
        let bound = 1 << (u64::BITS - u32::from(self.least));
        for hashes in hashes.chunks(64) {
            let mut longer = wide::run(|| runs_below(hashes, bound));
            while longer != 0 {
                self.add(hashes[longer.trailing_zeros() as usize]);
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

/// Returns in bits which of up to 64 hashes have run bits that, as the highest of a number, make one below `bound`.
#[inline(always)]
fn runs_below(hashes: &[u64], bound: u64) -> u64 {
    let bit = |(at, &hash): (usize, &u64)| u64::from(hash << INDEX_BITS < bound) << at;
    hashes.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
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
        hashes.chunks(1000).for_each(|hashes| once.add_all(hashes));
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
