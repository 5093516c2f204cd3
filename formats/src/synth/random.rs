//! Random numbers by counter.

use crate::mix::mix;

/// The odd number nearest to 2^64 over the golden ratio: counters times it are well spread.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of random numbers, any of which can be asked for at once.
///
/// Number `n` is the one that splitmix64 yields after `n` steps from a state made of the seed and
/// the purpose of the sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    state: u64,
}

impl Stream {
    /// Returns the sequence of `seed` for one purpose.
    pub(super) fn new(seed: u64, purpose: &str) -> Stream {
        let absorb = |state, byte| mix(state ^ u64::from(byte)).wrapping_add(GOLDEN);
        Stream { state: purpose.bytes().fold(mix(seed.wrapping_add(GOLDEN)), absorb) }
    }

    /// Returns the sequence for part `part` of the purpose.
    pub(super) fn part(self, part: u64) -> Stream {
        Stream { state: mix(self.state ^ mix(part.wrapping_add(GOLDEN))) }
    }

    /// Returns 64 random bits.
    pub(super) fn bits(&self, counter: u64) -> u64 {
        mix(self.state.wrapping_add(counter.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Returns a number in `0.0..1.0`.
    pub(super) fn unit(&self, counter: u64) -> f64 {
        (self.bits(counter) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an integer in `0..bound`, 0 for a bound of 0.
    pub(super) fn below(&self, counter: u64, bound: u64) -> u64 {
        ((u128::from(self.bits(counter)) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number of the standard normal distribution (Box, Muller).
    pub(super) fn normal(&self, counter: u64) -> f64 {
        let (radius, angle) = (self.part(1).unit(counter), self.part(2).unit(counter));
        (-2.0 * (-radius).ln_1p()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::Stream;

    #[test]
    fn moments_are_right() {
        let stream = Stream::new(1, "test");
        let n = 200_000;
        let mean = |of: &dyn Fn(u64) -> f64| (0..n).map(of).sum::<f64>() / n as f64;
        assert!((mean(&|i| stream.unit(i)) - 0.5).abs() < 0.005);
        assert!((mean(&|i| stream.below(i, 7) as f64) - 3.0).abs() < 0.02);
        assert!(mean(&|i| stream.normal(i)).abs() < 0.01);
        assert!((mean(&|i| stream.normal(i).powi(2)) - 1.0).abs() < 0.02);
        assert_eq!(stream.below(3, 0), 0);
    }

    #[test]
    fn streams_differ() {
        let bits = [
            Stream::new(1, "a").bits(0),
            Stream::new(2, "a").bits(0),
            Stream::new(1, "b").bits(0),
            Stream::new(1, "a").part(0).bits(0),
            Stream::new(1, "a").bits(1),
        ];
        let distinct: std::collections::HashSet<u64> = bits.into_iter().collect();
        assert_eq!(distinct.len(), bits.len());
    }
}
