//! The two kinds of numbers a tensor can hold.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};

use bytemuck::Pod;

/// A value of a tensor or factor: `f64` or `f32`.
///
/// Reductions are carried out in `f64` whatever the storage.
pub trait Value:
    Pod
    + Default
    + PartialOrd
    + Debug
    + Display
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MulAssign
    + Sum
    + 'static
{
    /// Size in bytes: 8 or 4.
    const BYTES: usize;
    /// The name on the command line: `f64` or `f32`.
    const NAME: &'static str;
    /// The relative distance of neighbouring numbers: 2.2e-16 or 1.2e-7.
    const EPSILON: f64;

    /// Rounds a double to this type.
    fn from_f64(value: f64) -> Self;

    /// Widens to a double, exactly.
    fn to_f64(self) -> f64;
}

impl Value for f64 {
    const BYTES: usize = 8;
    const NAME: &'static str = "f64";
    const EPSILON: f64 = f64::EPSILON;

    fn from_f64(value: f64) -> f64 {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }
}

impl Value for f32 {
    const BYTES: usize = 4;
    const NAME: &'static str = "f32";
    const EPSILON: f64 = f32::EPSILON as f64;

    fn from_f64(value: f64) -> f32 {
        value as f32
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}
