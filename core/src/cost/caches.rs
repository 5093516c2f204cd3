//! What it costs to reach memory, by where the data fits.
//!
//! A table of `T` bytes finds the share `n = min(1, s2 L2/T)` of its lines in the second-level cache,
//! `m = min(1, s3 L3/T) - n` in the last level, where `s2` and `s3` are the parts of the caches that a table may
//! count on, `f = min(1, L3/T) - m - n` in the last level or in memory, and the rest in memory.  Where the coordinates are
//! skewed, the rows that are asked for most are the ones that stay, and `n`, `m` and `f` follow from the slices of the
//! mode ([`Coverage`]).  Rows that share a line come and go together, whether they are asked for often or not.
//! Tables that the same loops gather from share the second level where `s` of it is what they may count on together
//! ([`Machine::l2_together`]): each has as much as any other, or all that it needs.
//! What every thread has for itself competes for the last level with the copies of the others.

use decompose_formats::dense;
use decompose_formats::stats::Coverage;

use crate::cost::Machine;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: f64 = dense::LINE_BYTES as f64;

/// Arrays of up to this many bytes are taken to stay in the first-level cache: half of one.
pub(super) const L1_BYTES: f64 = 16_384.0;

/// The shares of a table's lines by where they are found; they add up to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    l2: f64,
    l3: f64,
    l3_or_memory: f64,
    memory: f64,
}

/// Bytes of the second level, of the last level and of all of it, that a table may count on.
#[derive(Clone, Copy, Debug)]
struct Caches {
    l2: f64,
    l3: f64,
    whole_l3: f64,
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
    fn skewed(caches: Caches, table: &GatheredTable<'_>) -> Shares {
        match table.coverage {
            None => Shares::within(caches, |cache| cache / table.bytes),
            Some(coverage) => Shares::within(caches, |cache| table.near(coverage, cache)),
        }
    }

    /// Of a table of which `held(bytes)` stay in a cache.
    fn within(caches: Caches, held: impl Fn(f64) -> f64) -> Shares {
        let l2 = held(caches.l2).min(1.0);
        let l3 = (held(caches.l3).min(1.0) - l2).max(0.0);
        let l3_or_memory = (held(caches.whole_l3).min(1.0) - l2 - l3).max(0.0);
        Shares { l2, l3, l3_or_memory, memory: 1.0 - l2 - l3 - l3_or_memory }
    }

    /// Returns the seconds per line, with `uncached` for one that is not in a cache for sure.
    pub(super) fn line(self, machine: &Machine, uncached: f64) -> f64 {
        self.cached(machine) + (self.l3_or_memory + self.memory) * uncached
    }

    /// Returns the seconds per line that is gathered.
    fn gathered_line(self, machine: &Machine) -> f64 {
        self.cached(machine)
            + self.l3_or_memory * machine.memory_line
            + self.memory * machine.beyond_line
    }

    fn cached(self, machine: &Machine) -> f64 {
        self.l2 * machine.l2_line + self.l3 * machine.l3_line
    }
}

impl Caches {
    /// Returns what is left of them where the last level is shared out in so many `parts`.
    fn among(self, parts: f64) -> Caches {
        Caches { l3: self.l3 / parts, whole_l3: self.whole_l3 / parts, ..self }
    }
}

fn caches(machine: &Machine) -> Caches {
    let (l2, whole_l3) = (machine.l2_bytes as f64, machine.l3_bytes as f64);
    Caches { l2: l2 * machine.l2_share, l3: whole_l3 * machine.l3_share, whole_l3 }
}

/// A table whose rows are gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatheredTable<'a> {
    /// Bytes of the rows that are ever asked for.
    pub(crate) bytes: f64,
    /// How skewed they are asked for, if that is known: by slice of one mode.
    pub(crate) coverage: Option<&'a Coverage>,
    /// Slices of that mode that are used.
    pub(crate) slices: f64,
    /// The part of the second level that it may count on.
    pub(crate) l2: f64,
    /// Of the last level it has one part in so many.
    pub(crate) parts: f64,
}

impl GatheredTable<'_> {
    /// Returns the share of what is asked for that a cache of so many bytes holds.
    ///
    /// A row shorter than a line brings others, which are asked for as often as the rows beside those that stay are on
    /// average.
    fn near(&self, coverage: &Coverage, cache: f64) -> f64 {
        let slices = cache * self.slices / self.bytes;
        let in_a_line = LINE_BYTES * self.slices / self.bytes;
        if in_a_line <= 1.0 || slices >= self.slices {
            return coverage.share(slices);
        }
        let lines = slices / in_a_line;
        let asked = coverage.share(lines);
        asked + (1.0 - asked) * (slices - lines) / (self.slices - lines)
    }
}

/// Returns the seconds to gather one row of `row_bytes` from `table`.
pub(super) fn gather_seconds(machine: &Machine, table: &GatheredTable<'_>, row_bytes: f64) -> f64 {
    let lines = (row_bytes / LINE_BYTES).max(1.0);
    let l2 = machine.l2_bytes as f64 * table.l2;
    let caches = Caches { l2, ..caches(machine) };
    let shares = Shares::skewed(caches.among(table.parts), table);
    let late = shares.l3_or_memory + shares.memory;
    let wait = shares.l3 * machine.l3_wait + late * machine.memory_wait;
    wait + lines * shares.gathered_line(machine)
}

/// Returns the shares of the rows gathered from `table` that come from the second-level cache and
/// that come late: from memory, or from farther in the last level than [`Machine::quick_bytes`].
pub(crate) fn l2_and_late(machine: &Machine, table: &GatheredTable<'_>) -> (f64, f64) {
    let all = caches(machine);
    let quick = machine.quick_bytes.map_or(all, |quick| Caches { l3: all.l3.min(quick), ..all });
    let shares = Shares::skewed(quick, table);
    (shares.l2, shares.l3_or_memory + shares.memory)
}

#[cfg(test)]
mod tests {
    use decompose_formats::Coo;
    use decompose_formats::stats::{Coverage, PatternCounts};

    use super::GatheredTable;

    /// 4,096 slices, of which every eighth has `full` entries and the others have one.
    fn matrix(full: u32) -> PatternCounts {
        let entries = |row: u32| if row.is_multiple_of(8) { full } else { 1 };
        let coords: Vec<[u32; 2]> =
            (0..4096).flat_map(|row| (0..entries(row)).map(move |column| [row, column])).collect();
        let mode = |mode: usize| coords.iter().map(|at| at[mode]).collect::<Vec<_>>().into();
        let values = vec![1.0; coords.len()];
        PatternCounts::of(&Coo::new(vec![4096, 512], vec![mode(0), mode(1)], values).unwrap())
    }

    /// The share that an eighth of the bytes of a table holds whose rows take `row` bytes.
    fn near(coverage: &Coverage, row: f64) -> f64 {
        let bytes = 4096.0 * row;
        let table =
            GatheredTable { bytes, coverage: Some(coverage), slices: 4096.0, l2: 1.0, parts: 1.0 };
        table.near(coverage, bytes / 8.0)
    }

    #[test]
    fn short_rows_are_held_with_others_of_their_line() {
        let skewed = matrix(256);
        let skewed = skewed.coverage(0);
        let (lines, values) = (near(skewed, 64.0), near(skewed, 8.0));
        assert!(lines > 0.8, "full rows fit one by one: {lines}");
        assert!(values > 0.125 && values < lines / 2.0, "of their lines an eighth fits: {values}");
        let halves = near(skewed, 32.0);
        assert!(values < halves && halves < lines, "{values} {halves} {lines}");
        let even = Coverage::even(4096);
        for row in [8.0, 64.0, 512.0] {
            assert!((near(&even, row) - 0.125).abs() < 0.01, "rows of {row} bytes");
        }
    }
}
