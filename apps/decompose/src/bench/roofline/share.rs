//! How much of its cores a machine gives that is shared with others.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::runtime::{Probe, Probes, RowList, Toolchain};
use decompose_formats::Matrix;

use crate::bench::roofline::limits::{BUDGET, filled, seconds, shuffled, unable};

/// Rounds of multiply-adds: a few milliseconds.
const ROUNDS: u64 = 1 << 20;
/// Columns of the table: rows of four lines.
const COLUMNS: usize = 32;
/// Bytes that are gathered: a few milliseconds.
const GATHERED: u64 = 1 << 28;
/// Rows ahead that are asked for.
const DISTANCE: usize = 8;

/// Tells whether the threads of a pool have their cores for themselves: others who use the same cores,
/// or a host that runs two threads on one, slow down multiply-adds in registers and gathers from the
/// second-level cache.
///
/// What others do to the last-level cache and to memory it does not see.
pub(crate) struct CoreShare {
    probes: Probes,
    /// A table for each thread, half its second-level cache.
    tables: Vec<Matrix<f64>>,
    rows: RowList,
    repeats: u64,
    /// The least seconds so far of multiply-adds and of gathers.
    best: Mutex<[f64; 2]>,
}

impl CoreShare {
    /// Measures the threads of the current pool for 60 ms, to know what they can do.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if there is no C compiler, or no memory.
    pub(crate) fn new(machine: &Machine, toolchain: &Toolchain) -> Result<CoreShare, CoreError> {
        let probes = Probes::new::<f64>(COLUMNS, toolchain).map_err(unable)?;
        let row = (COLUMNS * size_of::<f64>()) as u64;
        let rows = (machine.l2_bytes / 2 / row).max(2) as usize;
        let tables = (0..rayon::current_num_threads()).map(|_| filled::<f64>(rows, COLUMNS));
        let tables = tables.collect::<Result<_, _>>()?;
        let rows = shuffled(rows, 0);
        let repeats = (GATHERED / (rows.len() as u64 * row)).max(1);
        let best = Mutex::new([f64::INFINITY; 2]);
        let share = CoreShare { probes, tables, rows, repeats, best };
        let begun = Instant::now();
        while begun.elapsed() < BUDGET {
            share.now()?;
        }
        Ok(share)
    }

    /// Returns the speed that the threads of the current pool have now as a part, at most 1, of
    /// the greatest that they have had so far; the slowest thread counts, and of arithmetic and gathers
    /// what is slower.
    ///
    /// # Errors
    ///
    /// None, if the pool has not more threads than when this was made.
    pub(crate) fn now(&self) -> Result<f64, CoreError> {
        let adds = seconds(|_| self.probes.run::<f64>(Probe::MultiplyAdd(ROUNDS)))?;
        let gathers = seconds(|thread| {
            let (table, rows) = (&self.tables[thread % self.tables.len()], &self.rows);
            let gather = || Probe::Gather { table, rows, distance: DISTANCE };
            (0..self.repeats).map(|_| self.probes.run(gather())).sum()
        })?;
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        let mut share = 1.0_f64;
        for (best, now) in best.iter_mut().zip([adds, gathers]) {
            *best = best.min(now);
            share = share.min(*best / now);
        }
        Ok(share)
    }
}

#[cfg(test)]
mod tests {
    use super::CoreShare;
    use decompose_core::cost::Machine;
    use decompose_core::runtime::Toolchain;

    #[test]
    fn a_share_is_a_part_of_the_best() {
        let Ok(share) = CoreShare::new(Machine::here(), &Toolchain::detect()) else {
            eprintln!("skipped: no C compiler");
            return;
        };
        for _ in 0..3 {
            let now = share.now().unwrap();
            assert!(now > 0.0 && now <= 1.0, "{now}");
        }
    }
}
