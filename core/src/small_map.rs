//! Maps from a few small integers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are a few small integers, which [`SmallHasher`] hashes.
pub(crate) type SmallMap<K, V> = HashMap<K, V, BuildHasherDefault<SmallHasher>>;

/// A hash of a few small integers: the standard one takes most of the time of a search of schedules.
#[derive(Clone, Copy, Default)]
pub(crate) struct SmallHasher(u64);

impl Hasher for SmallHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing: an odd constant near 2^64 over the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
