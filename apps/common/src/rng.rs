//! Random numbers addressed by position instead of drawn in a row.
//!
//! A draw is a hash of `(seed, stream, row, column)`: it does not depend on the number of threads,
//! on the padding of a matrix, or on how many columns it has, and any part can be made again.
//! The hash chains the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom
//! Number Generators", OOPSLA 2014) with Weyl increments.

use decompose_formats::mix::mix;

/// 2^64 divided by the golden ratio: the increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A source of random numbers for one matrix.
#[derive(Clone, Copy, Debug)]
pub struct MatrixRng {
    key: u64,
}

impl MatrixRng {
    /// Makes the source for matrix number `stream` of a run with `seed`.
    pub fn new(seed: u64, stream: u64) -> MatrixRng {
        MatrixRng { key: mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(weyl(stream))) }
    }

    /// Returns the number at `(row, column)`, uniform in `[0, 1)` with 53 random bits.
    pub fn uniform(self, row: u64, column: u64) -> f64 {
        let bits = mix(mix(self.key.wrapping_add(weyl(row))).wrapping_add(weyl(column)));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn weyl(count: u64) -> u64 {
    count.wrapping_add(1).wrapping_mul(GOLDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_uniform_distribution() {
        for (seed, stream) in [(0, 0), (0, 1), (1, 0), (u64::MAX, 7)] {
            let rng = MatrixRng::new(seed, stream);
            let draws: Vec<f64> =
                (0..400).flat_map(|i| (0..50).map(move |j| rng.uniform(i, j))).collect();
            let mean = draws.iter().sum::<f64>() / 2e4;
            let square = draws.iter().map(|x| x * x).sum::<f64>() / 2e4;
            assert!((mean - 0.5).abs() < 0.01, "{seed} {stream}: mean {mean}");
            assert!((square - 1.0 / 3.0).abs() < 0.01, "{seed} {stream}: square {square}");
            let lag: f64 = draws.windows(2).map(|w| (w[0] - 0.5) * (w[1] - 0.5)).sum();
            assert!((lag / 2e4).abs() < 0.003, "{seed} {stream}: lag {lag}");
        }
    }

    #[test]
    fn streams_and_seeds_differ_and_repeat() {
        let draw = |seed, stream| MatrixRng::new(seed, stream).uniform(3, 4);
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(2, 1));
        assert_ne!(draw(0, 1), draw(1, 0));
    }
}
