//! What it costs to reach memory, by where the data fits.
//!
//! A table of `T` bytes finds the share `n = min(1, s2 L2/T)` of its lines in the second-level cache,
//! `m = min(1, s3 L3/T) - n` in the last level, the rest in memory, where `s2` and `s3` are the parts of
//! the caches that a table may count on.  Where the coordinates are skewed, the rows that are asked for
//! most are the ones that stay, and `n` and `m` follow from the slices of the mode ([`Coverage`]).
//! What every thread has for itself competes for the last level with the copies of the others.

use decompose_formats::stats::Coverage;

use crate::cost::Machine;

/// A cache line.
pub(crate) const LINE_BYTES: f64 = 64.0;

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
        Shares::within(caches(machine), |cache| cache / bytes)
    }

    /// Returns the shares of a table of `bytes` of which every thread has its own.
    pub(super) fn private(machine: &Machine, bytes: f64) -> Shares {
        let (near, mid) = caches(machine);
        Shares::within((near, mid / machine.threads.max(1) as f64), |cache| cache / bytes)
    }

    /// Returns the shares of a table that all threads use, of which some rows are asked for more
    /// than others, in caches that hold so many bytes.
    fn skewed(caches: (f64, f64), table: &Table<'_>) -> Shares {
        match table.coverage {
            None => Shares::within(caches, |cache| cache / table.bytes),
            Some(coverage) => {
                let slices = |cache: f64| cache * table.slices / table.bytes;
                Shares::within(caches, |cache| coverage.share(slices(cache)))
            }
        }
    }

    /// Of a table of which `held(bytes)` stay in a cache.
    fn within((near, mid): (f64, f64), held: impl Fn(f64) -> f64) -> Shares {
        let near = held(near).min(1.0);
        let mid = (held(mid).min(1.0) - near).max(0.0);
        Shares { near, mid, far: 1.0 - near - mid }
    }

    /// Returns the seconds a line with `far` for one from memory.
    pub(super) fn line(self, machine: &Machine, far: f64) -> f64 {
        self.near * machine.l2_line + self.mid * machine.l3_line + self.far * far
    }
}

/// Returns the bytes of the second and of the last level that a table may count on.
fn caches(machine: &Machine) -> (f64, f64) {
    let near = machine.l2_bytes as f64 * machine.l2_share;
    (near, machine.l3_bytes as f64 * machine.l3_share)
}

/// A table whose rows are gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    /// Bytes of the rows that are ever asked for.
    pub(crate) bytes: f64,
    /// How skewed they are asked for, if that is known: by slice of one mode.
    pub(crate) coverage: Option<&'a Coverage>,
    /// Slices of that mode that are used.
    pub(crate) slices: f64,
}

/// Returns the seconds to gather one row of `row_bytes` from `table`.
pub(super) fn gather_seconds(machine: &Machine, table: &Table<'_>, row_bytes: f64) -> f64 {
    let lines = (row_bytes / LINE_BYTES).max(1.0);
    let shares = Shares::skewed(caches(machine), table);
    let wait = shares.mid * machine.l3_wait + shares.far * machine.memory_wait;
    wait + lines * shares.line(machine, machine.memory_line)
}

/// Returns the shares of the rows gathered from `table` that come from the second-level cache and
/// that come late: from memory, or from farther in the last level than [`Machine::quick_bytes`].
pub(crate) fn near_and_late(machine: &Machine, table: &Table<'_>) -> (f64, f64) {
    let (near, mid) = caches(machine);
    let shares = Shares::skewed((near, mid.min(machine.quick_bytes)), table);
    (shares.near, shares.far)
}
