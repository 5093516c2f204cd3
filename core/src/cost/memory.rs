//! What it costs to reach memory, by where the data fits.
//!
//! A table of `T` bytes finds the share `n = min(1, s2 L2/T)` of its lines in the second-level cache,
//! `m = min(1, s3 L3/T) - n` in the last level, the rest in memory, where `s2` and `s3` are the parts of
//! the caches that a table may count on.  What every thread has for itself competes for the last level
//! with the copies of the others.

use crate::cost::Machine;

/// A cache line.
pub(super) const LINE_BYTES: f64 = 64.0;

/// Arrays of up to this many bytes are taken to stay in the first-level cache: half of one.
pub(super) const NEAR_BYTES: f64 = 16_384.0;

/// The shares of a table's lines by where they are found; they add up to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    near: f64,
    mid: f64,
    far: f64,
}

impl Shares {
    /// Returns the shares of a table of `bytes` that all threads use.
    pub(super) fn shared(machine: &Machine, bytes: f64) -> Shares {
        Shares::of(machine, bytes, bytes)
    }

    /// Returns the shares of a table of `bytes` of which every thread has its own.
    pub(super) fn private(machine: &Machine, bytes: f64) -> Shares {
        Shares::of(machine, bytes, bytes * machine.threads.max(1) as f64)
    }

    fn of(machine: &Machine, in_l2: f64, in_l3: f64) -> Shares {
        let near = (machine.l2_bytes as f64 * machine.l2_share / in_l2).min(1.0);
        let mid = ((machine.l3_bytes as f64 * machine.l3_share / in_l3).min(1.0) - near).max(0.0);
        Shares { near, mid, far: 1.0 - near - mid }
    }

    /// Returns the seconds a line with `far` for one from memory.
    pub(super) fn line(self, machine: &Machine, far: f64) -> f64 {
        self.near * machine.l2_line + self.mid * machine.l3_line + self.far * far
    }
}

/// Returns the seconds to gather one row of `row_bytes` from a table of `table_bytes`.
pub fn gather_seconds(machine: &Machine, table_bytes: f64, row_bytes: f64) -> f64 {
    let lines = (row_bytes / LINE_BYTES).max(1.0);
    lines * Shares::shared(machine, table_bytes).line(machine, machine.memory_line)
}
