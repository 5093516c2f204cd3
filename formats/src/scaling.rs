//! A power of two that very large or very small values are divided by.
//!
//! Sums of squares of values near `1e200` overflow, and of values near `1e-200` vanish.  Divided by a power of two
//! such values are of order one, to the same digits; ordinary values keep their unit, one, and thereby their bits.

use std::fmt;

use crate::value::Value;

/// Exponents up to which values are ordinary: the fourth powers of such sums stay in the range of doubles ...
const ORDINARY: i32 = 200;
/// ... and products of single precision in its range.
const ORDINARY_SINGLE: i32 = 60;

/// A power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    exponent: i32,
}

impl Unit {
    /// One.
    pub const ONE: Unit = Unit { exponent: 0 };

    /// Returns the unit of values in the precision `V` of which `largest` is the largest in magnitude: one, unless
    /// that is far from one.
    ///
    /// # Example
    ///
    /// ```
    /// use decompose_formats::Unit;
    ///
    /// assert_eq!(Unit::of::<f64>(1e9), Unit::ONE);
    /// let unit = Unit::of::<f64>(-3e-200);
    /// assert!((1.0..2.0).contains(&unit.divide(3e-200)));
    /// assert_eq!(unit.multiply(unit.divide(3e-200)), 3e-200);
    /// ```
    pub fn of<V: Value>(largest: f64) -> Unit {
        let size = largest.abs();
        if size == 0.0 || !size.is_finite() {
            return Unit::ONE;
        }
        let exponent = size.log2().floor() as i32;
        let ordinary = if V::BYTES == 4 { ORDINARY_SINGLE } else { ORDINARY };
        if exponent.abs() <= ordinary { Unit::ONE } else { Unit { exponent } }
    }

    /// Returns the largest power of two that is not above `size`, also where that is ordinary; one for a size that
    /// is zero or no number.
    pub fn below(size: f64) -> Unit {
        let size = size.abs();
        if size == 0.0 || !size.is_finite() {
            return Unit::ONE;
        }
        Unit { exponent: size.log2().floor() as i32 }
    }

    /// Returns the product of both units, which may be beyond the range of doubles.
    pub fn times(self, other: Unit) -> Unit {
        Unit { exponent: self.exponent.saturating_add(other.exponent) }
    }

    /// Returns one by this unit.
    pub fn inverse(self) -> Unit {
        Unit { exponent: -self.exponent }
    }

    /// Returns `value` in this unit.
    pub fn divide(self, value: f64) -> f64 {
        scaled(value, -self.exponent)
    }

    /// Returns what `value` of this unit is.
    pub fn multiply(self, value: f64) -> f64 {
        scaled(value, self.exponent)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "2^{}", self.exponent)
    }
}

/// Returns `value * 2^exponent`, in two steps: either power may be out of range where the result is not.
fn scaled(value: f64, exponent: i32) -> f64 {
    if value == 0.0 {
        // Times a power that is out of range it would be no number.
        return value;
    }
    let half = exponent / 2;
    value * f64::from(half).exp2() * f64::from(exponent - half).exp2()
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn only_extremes_have_a_unit_and_it_keeps_their_digits() {
        for ordinary in [0.0, 1.0, -1e60, 1e-60, f64::INFINITY, f64::NAN] {
            assert_eq!(Unit::of::<f64>(ordinary), Unit::ONE, "{ordinary}");
            assert_eq!(Unit::ONE.divide(1.1), 1.1);
        }
        for extreme in [1.7e308, 3e200, -1e61, 1.1e-61, 7e-200, 2.3e-308] {
            let unit = Unit::of::<f64>(extreme);
            let inside = unit.divide(extreme);
            assert!((1.0..2.0).contains(&inside.abs()), "{extreme}: {inside}");
            assert_eq!(unit.multiply(inside), extreme);
        }
        assert_eq!(Unit::of::<f32>(1e18), Unit::ONE);
        assert_ne!(Unit::of::<f32>(1e30), Unit::ONE);
        // Numbers with fewer digits than others have them all.
        assert_eq!(Unit::of::<f64>(5e-324).divide(5e-324), 1.0);
        assert_eq!(Unit::of::<f64>(1e200).to_string(), "2^664");
        assert_eq!(
            [5.0, -4.0, 0.3, 0.0].map(|size| Unit::below(size).multiply(1.0)),
            [4.0, 4.0, 0.25, 1.0]
        );
        let far = Unit::below(1e300).times(Unit::below(1e300));
        assert_eq!([far.multiply(0.0), far.multiply(1.0)], [0.0, f64::INFINITY]);
        assert_eq!(far.times(Unit::below(1e300).inverse()), Unit::below(1e300));
    }
}
