//! What it costs to reach memory, by where the data fits.
//!
//! A table of `T` bytes finds the share `n = min(1, s2 L2/T)` of its lines in the second-level cache,
//! `m = min(1, s3 L3/T) - n` in the last level, where `s2` and `s3` are the parts of the caches that a table may
//! count on, `f = min(1, L3/T) - m - n` in the last level or in memory, and the rest in memory.  Where the coordinates are
//! skewed, the rows that are asked for most are the ones that stay, and `n`, `m` and `f` follow from the slices of the
//! mode ([`Coverage`]).
//! Tables that the same loops gather from share the second level where `s` of it is what they may count on together
//! ([`Machine::l2_together`]): each has as much as any other, or all that it needs.
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
    beyond: f64,
}

/// Bytes of the second level, of the last level and of all of it, that a table may count on.
#[derive(Clone, Copy, Debug)]
struct Caches {
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
        Shares::within(caches(machine).among(machine.threads.max(1) as f64), |cache| cache / bytes)
    }

    /// Returns the shares of a table that all threads use, of which some rows are asked for more
    /// than others, in caches that hold so many bytes.
    fn skewed(caches: Caches, table: &Table<'_>) -> Shares {
        match table.coverage {
            None => Shares::within(caches, |cache| cache / table.bytes),
            Some(coverage) => {
                let slices = |cache: f64| cache * table.slices / table.bytes;
                Shares::within(caches, |cache| coverage.share(slices(cache)))
            }
        }
    }

    /// Of a table of which `held(bytes)` stay in a cache.
    fn within(caches: Caches, held: impl Fn(f64) -> f64) -> Shares {
        let near = held(caches.near).min(1.0);
        let mid = (held(caches.mid).min(1.0) - near).max(0.0);
        let far = (held(caches.far).min(1.0) - near - mid).max(0.0);
        Shares { near, mid, far, beyond: 1.0 - near - mid - far }
    }

    /// Returns the seconds a line with `far` for one that is not in a cache for sure.
    pub(super) fn line(self, machine: &Machine, far: f64) -> f64 {
        self.cached(machine) + (self.far + self.beyond) * far
    }

    /// Returns the seconds a line that is gathered.
    fn gathered_line(self, machine: &Machine) -> f64 {
        self.cached(machine) + self.far * machine.memory_line + self.beyond * machine.beyond_line
    }

    fn cached(self, machine: &Machine) -> f64 {
        self.near * machine.l2_line + self.mid * machine.l3_line
    }
}

impl Caches {
    /// Returns what is left of them where the last level is shared out in so many `parts`.
    fn among(self, parts: f64) -> Caches {
        Caches { mid: self.mid / parts, far: self.far / parts, ..self }
    }
}

fn caches(machine: &Machine) -> Caches {
    let (near, far) = (machine.l2_bytes as f64, machine.l3_bytes as f64);
    Caches { near: near * machine.l2_share, mid: far * machine.l3_share, far }
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
    /// The part of the second level that it may count on.
    pub(crate) near: f64,
    /// Of the last level it has one part in so many.
    pub(crate) parts: f64,
}

/// Returns the seconds to gather one row of `row_bytes` from `table`.
pub(super) fn gather_seconds(machine: &Machine, table: &Table<'_>, row_bytes: f64) -> f64 {
    let lines = (row_bytes / LINE_BYTES).max(1.0);
    let near = machine.l2_bytes as f64 * table.near;
    let caches = Caches { near, ..caches(machine) };
    let shares = Shares::skewed(caches.among(table.parts), table);
    let late = shares.far + shares.beyond;
    let wait = shares.mid * machine.l3_wait + late * machine.memory_wait;
    wait + lines * shares.gathered_line(machine)
}

/// Returns the shares of the rows gathered from `table` that come from the second-level cache and
/// that come late: from memory, or from farther in the last level than [`Machine::quick_bytes`].
pub(crate) fn near_and_late(machine: &Machine, table: &Table<'_>) -> (f64, f64) {
    let all = caches(machine);
    let quick = Caches { mid: all.mid.min(machine.quick_bytes), ..all };
    let shares = Shares::skewed(quick, table);
    (shares.near, shares.far + shares.beyond)
}
