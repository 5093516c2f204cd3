//! What processors of one family do, as far as kernels tell them apart.
//!
//! A family is told by the vendor that the processor names.  Its times and the shares of its caches are
//! fitted to measured candidates of generated kernels (MTTKRP, TTMc, TTTP, TTTc), so that the fastest of
//! a few ranks first: `data/records` has the runs of both.

use crate::cost::Machine;

/// The environment variable that names the family to judge schedules for, whatever the processor: what tests that depend
/// on it are run for on any machine.
pub const MACHINE_VARIABLE: &str = "DECOMPOSE_MACHINE";

/// Processors with about the same caches and speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// AMD's servers, and every processor that is not known: a fast last-level cache of some ten MB.
    Zen,
    /// Intel's servers: a large second-level cache, and a last level behind a mesh whose lines take
    /// more than twice as long.
    Xeon,
}

impl Family {
    /// Returns the family of the processors that name this vendor (`GenuineIntel`, `AuthenticAMD`, ...).
    pub fn of_vendor(vendor: &str) -> Family {
        match vendor {
            "GenuineIntel" => Family::Xeon,
            _ => Family::Zen,
        }
    }

    /// Returns the family that the environment variable [`MACHINE_VARIABLE`] names, in whose place no processor is asked;
    /// `None` where it is not set.
    ///
    /// # Errors
    ///
    /// What it says, if that is no family.
    pub fn of_environment() -> Result<Option<Family>, String> {
        let Some(word) = std::env::var_os(MACHINE_VARIABLE).filter(|word| !word.is_empty()) else {
            return Ok(None);
        };
        match word.to_str() {
            Some("Zen") => Ok(Some(Family::Zen)),
            Some("Xeon") => Ok(Some(Family::Xeon)),
            _ => {
                let word = word.to_string_lossy();
                Err(format!("{MACHINE_VARIABLE}={word} names no family; there are Zen and Xeon"))
            }
        }
    }

    /// Returns a machine of the family with two threads, the same wherever this runs: what tests of
    /// rankings are judged for, and what stands for sizes that a processor does not tell.
    ///
    /// ```
    /// use decompose_core::cost::{Family, Machine};
    ///
    /// let machine = Machine { threads: 8, ..Family::Xeon.machine() };
    /// assert!(machine.l3_line > Family::Zen.machine().l3_line);
    /// ```
    pub fn machine(self) -> Machine {
        match self {
            Family::Zen => zen(),
            Family::Xeon => xeon(),
        }
    }
}

/// Fitted to 1,419 candidates on six tensors at ranks 8 to 64, each the median of up to seven rounds, on
/// two cores of a Zen 5 server with 32 MB of last-level cache.  The time of a line of a small buffer was set
/// by hand, with TTTc of order 4 and 255 kernels on a Zen 4 server in view; those of a scalar multiply-add and of
/// a scattered one are fitted to loops in C that build a matrix of 3 and of 13 MB from a tensor of 11 million
/// non-zeros.  The 5.2 ns of a loop were shared out between it and its end afterwards, by the same candidates.
/// The time of a line from far beyond the last level is what a probe took on a Zen 4 server, less a part of the
/// wait: rows of 2 and of 7 lines at random places of a table of 256 MB, 7.4 to 7.7 ns a line.
/// The time of a line that goes back was set on a Zen 4 server: of 4 million rows of 2 to 8 lines, to be found in tables
/// of 3 to 12 MB, adding to each took 0 to 0.5 ns a line longer than gathering it.
fn zen() -> Machine {
    Machine {
        name: "Zen".to_owned(),
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: 32 << 20,
        l2_share: 0.842,
        l3_share: 0.305,
        l2_together: f64::INFINITY,
        // All of the last level is quick.
        quick_bytes: f64::INFINITY,
        underway_bytes: 16_384.0,
        threads: 2,
        find_row: 0.0,
        l1_line: 0.213e-9,
        buffer_line: 0.13e-9,
        l2_line: 0.305e-9,
        l3_line: 0.958e-9,
        memory_line: 2.85e-9,
        beyond_line: 7.0e-9,
        write_back_line: 0.45e-9,
        l3_wait: 0.193e-9,
        memory_wait: 3.44e-9,
        stream_line: 4.21e-9,
        flop_pair: 0.00675e-9,
        scalar_pair: 1.0e-9,
        lane_sum: 1.91e-9,
        scatter_line: 13.0e-9,
        loop_overhead: 3.0e-9,
        loop_end: 2.2e-9,
    }
}

/// Fitted as those of [`zen`] to 889 candidates of 165 kernels on eight tensors at ranks 16 and 64, on two
/// cores of a virtual machine on a Granite Rapids server that reports 480 MB of last-level cache.  Loops
/// that gather random rows there take 2.2 to 3 ns a line from tables of 16 to 64 MB and 6 ns from tables of 512 MB,
/// rows of one line 4 to 6 and 13 ns.  Rows of one line slow down most between tables of 8 and of
/// 16 MB, and rows of 256 bytes and more gain nothing from more than 8 KiB underway.  The times of a scalar and of a
/// scattered multiply-add are not fitted: few candidates have any.
/// The times of a loop and of its end were set afterwards, by the same candidates and by 247 kernels at ranks 8 to 64
/// on six tensors: with 2.2 ns for both, TTMc of rank 8 over fibres of 2.5 non-zeros was predicted 0.6 of its seconds.
/// That two tables share the second level was added afterwards: without, half of two tables of 2.4 and 3.1 MB was
/// taken to be in its 2 MB, and kernels over them took 1.5 times the predicted seconds
/// (nell2s at rank 50, `data/records/2026-11-23-cp-als-xeon`).
fn xeon() -> Machine {
    Machine {
        name: "Xeon".to_owned(),
        l1_bytes: 48 << 10,
        l2_bytes: 2 << 20,
        l3_bytes: 480 << 20,
        l2_share: 0.7,
        l3_share: 0.1,
        l2_together: 1.0,
        quick_bytes: f64::from(8 << 20),
        underway_bytes: 8192.0,
        threads: 2,
        find_row: 0.2e-9,
        l1_line: 0.222e-9,
        buffer_line: 0.213e-9,
        l2_line: 0.288e-9,
        l3_line: 1.84e-9,
        memory_line: 4.27e-9,
        beyond_line: 6.0e-9,
        write_back_line: f64::INFINITY,
        l3_wait: 5.66e-9,
        memory_wait: 12.8e-9,
        stream_line: 2.0e-9,
        flop_pair: 0.0122e-9,
        scalar_pair: 1.0e-9,
        lane_sum: 0.8e-9,
        scatter_line: 14.0e-9,
        loop_overhead: 1.5e-9,
        loop_end: 2.5e-9,
    }
}
