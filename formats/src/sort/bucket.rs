//! Sorting the entries of one bucket inside the cache.

use std::ops::Range;

use crate::sort::key::Word;

/// Buckets up to this size are sorted by comparison: counting digits would cost more.
const SMALL: usize = 192;
/// Widest digit: its 2048 counters fill a quarter of the first-level cache.
const DIGIT: u32 = 11;
/// The counters of a digit.
const SLOTS: usize = 1 << DIGIT;

/// Sorts `entries` stably by `bits` of their keys; those above are equal.
///
/// Returns the slice that holds the result: `entries`, or `scratch` after an odd number of passes.
pub(crate) fn sort<'a, W: Word>(
    entries: &'a mut [W::Entry],
    scratch: &'a mut Vec<W::Entry>,
    bits: Range<u32>,
) -> &'a [W::Entry] {
    let Range { start: floor, end: top } = bits;
    if floor >= top || entries.len() < 2 {
        return entries;
    }
    if entries.len() <= SMALL {
        entries.sort_by_key(|&entry| W::of(entry).above(floor));
        return entries;
    }
    if scratch.len() < entries.len() {
        scratch.resize(entries.len(), bytemuck::Zeroable::zeroed());
    }
    let scratch = &mut scratch[..entries.len()];
    let (mut from, mut to) = (entries, scratch);
    let passes = (top - floor).div_ceil(DIGIT);
    let mut shift = floor;
    for pass in 0..passes {
        let bits = (top - shift).div_ceil(passes - pass);
        if scatter::<W>(from, to, shift, bits) {
            (from, to) = (to, from);
        }
        shift += bits;
    }
    from
}

/// Sorts `from` into `to` by the digit of `bits` bits from `shift` on.
///
/// Does nothing and returns `false` if all agree in it.
fn scatter<W: Word>(from: &[W::Entry], to: &mut [W::Entry], shift: u32, bits: u32) -> bool {
    let mask = (1usize << bits) - 1;
    let digit = |entry: W::Entry| W::of(entry).bits_from(shift) as usize & mask & (SLOTS - 1);
    let mut ends = [0usize; SLOTS];
    from.iter().for_each(|&entry| ends[digit(entry)] += 1);
    let mut sum = 0;
    for end in &mut ends[..=mask] {
        if *end == from.len() {
            return false;
        }
        sum += std::mem::replace(end, sum);
    }
    for &entry in from {
        let slot = &mut ends[digit(entry)];
        to[*slot] = entry;
        *slot += 1;
    }
    true
}
