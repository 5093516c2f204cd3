//! A hash table of the cells that were met, with linear probing and multiplicative hashing: Knuth, "The Art of Computer
//! Programming", volume 3, section 6.4.
//!
//! A slot holds the number of a cell, from 1 on; 0 is free.  There are two slots for each cell that may be met, and a power of
//! two of them.  The value of a free slot is zero.  Tables of levels (`locator`) are made once, of coordinates of 32 bits.

/// Slots for each cell that may be met.
pub(crate) const SLOTS: usize = 2;

/// The fewest cells that may be met.
pub(super) const LEAST: usize = 16;

/// A slot of no cell.
pub(super) const FREE: u64 = 0;

/// 2^64 over the golden ratio.
pub(crate) const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The bits of a product that are cut off: the upper ones are the better mixed.
pub(crate) const SHIFT: u32 = 32;

/// Returns the slot of `cell`, or the free one where it belongs.
pub(super) fn slot_of(cell: u64, slots: &[u64]) -> usize {
    let mask = slots.len() - 1;
    let mut slot = (cell.wrapping_mul(MULTIPLIER) >> SHIFT) as usize & mask;
    while slots[slot] != FREE && slots[slot] != cell + 1 {
        slot = (slot + 1) & mask;
    }
    slot
}
