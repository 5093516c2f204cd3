//! Values with few decimals as integers of few bits.
//!
//! Files list counts, ratings and rounded measurements: each value is an integer divided by a power of ten
//! and rounded once, as its text says.  These integers, less the least of them, often fit into the bits
//! that the coordinates leave of a key, so that a sort moves one word an entry instead of two.

use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;

use crate::simd;
use crate::value::Value;

/// The powers of ten that values are tried as multiples of one over, least first.
const SCALES: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// Values of a list, evenly spaced, that tell which scale to try on all.
const SAMPLE: usize = 1 << 10;
/// Values that a task checks.
const PART: usize = 1 << 14;
/// A number whose sum with one of at most [`MOST`] is rounded to an integer, which its lowest bits then
/// hold: 1.5 * 2^52.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// The greatest integers that are told apart.
const MOST: f64 = (1_u64 << 50) as f64;

/// How a list of values becomes codes: value `v` is `(least + code) / scale`, rounded once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decimals {
    scale: f64,
    least: f64,
    bits: u32,
}

impl Decimals {
    /// Returns the codes of `values` by the least scale that serves all; `None` if none does, as for those
    /// with an infinity or a negative zero, and of no values.
    ///
    /// Time `O(values)`, less if a sample tells; parallel.
    pub(crate) fn of<V: Value>(values: &[V]) -> Option<Decimals> {
        let sample: Vec<V> =
            values.iter().step_by(values.len().div_ceil(SAMPLE).max(1)).copied().collect();
        let mut scales = SCALES.into_iter().filter(|&scale| range(&sample, scale).is_some());
        scales.find_map(|scale| {
            let parts = values.par_chunks(PART).map(|part| range(part, scale));
            let join =
                |(low, high): (f64, f64), (l, h): (f64, f64)| Some((low.min(l), high.max(h)));
            let (least, most) = parts.try_reduce_with(join)??;
            Some(Decimals { scale, least, bits: width(most - least) })
        })
    }

    /// Returns the bits of a code.
    pub(crate) fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the code of a value.
    #[inline(always)]
    pub(super) fn code<V: Value>(self, value: V) -> u64 {
        (value.to_f64() * self.scale + ROUND).to_bits().wrapping_sub(self.zero())
    }

    /// Returns the value of a code, which are the lowest bits of `key`.
    #[inline(always)]
    pub(super) fn value<V: Value>(self, key: u64) -> V {
        let code = key & !(u64::MAX.unbounded_shl(self.bits));
        V::from_f64((f64::from_bits(self.zero().wrapping_add(code)) - ROUND) / self.scale)
    }

    /// The bits of the rounded value whose code is 0.
    #[inline(always)]
    fn zero(self) -> u64 {
        (self.least + ROUND).to_bits()
    }
}

/// Returns the bits of a code of up to `most`.
fn width(most: f64) -> u32 {
    u64::BITS - (most as u64).leading_zeros()
}

/// Returns the least and the greatest of the integers that `values` are by `scale`; `None` unless all are.
fn range<V: Value>(values: &[V], scale: f64) -> Option<(f64, f64)> {
    // The bits of positive sums are ordered as they are; those of negative ones and of NaN, which are refused
    // below, come last.
    let (mut low, mut high, mut other) = (u64::MAX, 0, 0);
    simd::run(|| {
        for &value in values {
            let rounded = value.to_f64() * scale + ROUND;
            let back = V::from_f64((rounded - ROUND) / scale);
            other |= back.to_f64().to_bits() ^ value.to_f64().to_bits();
            low = rounded.to_bits().min(low);
            high = rounded.to_bits().max(high);
        }
    });
    let (low, high) = (f64::from_bits(low) - ROUND, f64::from_bits(high) - ROUND);
    (other == 0 && low.abs() <= MOST && high.abs() <= MOST).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::Decimals;
    use crate::value::Value;

    /// Codes `values` and returns the bits of a code, after all came back as they were.
    fn coded<V: Value>(values: &[V]) -> Option<u32> {
        let decimals = Decimals::of(values)?;
        for &value in values {
            let code = decimals.code(value);
            assert_eq!(code >> decimals.bits(), 0, "{value}");
            let back: V = decimals.value(code | u64::MAX.unbounded_shl(decimals.bits()));
            assert_eq!(back.to_f64().to_bits(), value.to_f64().to_bits());
        }
        Some(decimals.bits())
    }

    #[test]
    fn decimals_come_back_bit_by_bit() {
        assert_eq!(coded(&[1.0, 1.0]), Some(0));
        assert_eq!(coded(&[3.0, 1.0, 200.0]), Some(8));
        assert_eq!(coded(&[-2.0, 5.0, 0.0]), Some(3));
        // 0 to 15 in steps of a tenth thousandth.
        let steps: Vec<f64> = (0..150_000).map(|step| f64::from(step) / 1e4).collect();
        assert_eq!(coded(&steps), Some(18));
        assert_eq!(coded(&[0.1_f32, 0.25, -7.125]), Some(13));
        // Eight digits tell numbers of this precision and size apart.
        assert_eq!(coded(&[0.0, 1.0_f32 / 3.0]), Some(25));
        let billionths: Vec<f64> = (0..99_999).map(|n| f64::from(n * 7 + 1) / 1e9).collect();
        assert!(coded(&billionths).is_some());
        assert_eq!(coded(&[1.0, 1_125_899_906_842_624.0]), Some(50));
    }

    #[test]
    fn other_values_have_no_codes() {
        for odd in [1.0 / 3.0, -0.0, f64::NAN, f64::INFINITY, 1e300, 1e-300, 2e15, 1e-10] {
            assert_eq!(coded(&[1.0, odd]), None, "{odd}");
            let mut values = vec![1.0; 100_000];
            values[77_777] = odd;
            assert_eq!(coded(&values), None, "{odd} beside the sample");
        }
        assert_eq!(coded::<f64>(&[]), None);
    }
}
