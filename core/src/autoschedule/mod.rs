//! Searches for good schedules.
//!
//! Every search answers the same question through the trait [`Scheduler`] and stands in the list
//! [`SCHEDULERS`]; a new one is a file and a line there.  Searches see statistics, never
//! non-zeros.

pub mod constraints;
mod exhaustive;
mod fallback_nest;
mod finish;
mod level_nesting;
mod level_orders;
mod limits;
mod measured;
pub mod partition;
mod paths;
mod prefetch;
mod scorch;
pub mod smt;
pub mod sparseauto;
mod spttn;
mod tiling;
mod work;

use decompose_formats::counted;
use std::fmt;

use crate::cost::{Cost, Machine, estimate};
use crate::error::CoreError;
use crate::path::Path;
use crate::schedule::{Problem, Schedule};

pub use constraints::Solved;
pub use exhaustive::{all_forests, price};
pub(crate) use fallback_nest::along_tree;
pub use finish::finish;
use level_orders::search_each;
pub use level_orders::{
    OrderedCandidate, OrdersFound, Storage, level_orders, storage_orders, storages,
};
pub use limits::{Breadth, SearchLimits};
pub use measured::{
    HalvingConfig, HalvingReport, HalvingStop, Timing, successive_halving, successive_halving_until,
};
pub use spttn::cheapest_forest;
pub(crate) use tiling::{LEAST_TILE_BYTES, WORTH_TILES};

/// A search for schedules.
pub trait Scheduler: Sync {
    /// Returns the name on the command line.
    fn name(&self) -> &'static str;

    /// Returns legal schedules of `problem` within `limits`, best first, judged for `machine`.
    ///
    /// If no path within the limits keeps the buffer bounds of the problem, the search is widened
    /// as [`Breadth`] says.
    ///
    /// # Errors
    ///
    /// [`CoreError::NoSchedule`] if nothing keeps the limits of the problem.
    fn search_within(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<SearchOutcome, CoreError>;

    /// Searches for the best way to store the sparse operands, one of `storages`, and a schedule on it.
    ///
    /// Unless a scheduler chooses by itself, each way is a problem of its own; they share the work that `limits` allow.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::search_within`].
    fn search_storages(
        &self,
        problem: &Problem,
        storages: &[Storage],
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<OrdersFound, CoreError> {
        search_each(self, problem, storages, machine, limits)
    }

    /// Searches for the best way to store the sparse operands, and a schedule on it.
    ///
    /// Unless a scheduler chooses by itself, the ways are those worth a search ([`storages`]).
    ///
    /// # Errors
    ///
    /// As [`Scheduler::search_within`].
    fn search_any_storage(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<OrdersFound, CoreError> {
        self.search_storages(problem, &storages(problem), machine, limits)
    }

    /// Searches within the default limits.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::search_within`].
    fn search(&self, problem: &Problem, machine: &Machine) -> Result<SearchOutcome, CoreError> {
        self.search_within(problem, machine, &SearchLimits::default())
    }
}

/// All schedulers; the first is the [`default_scheduler`].
pub const SCHEDULERS: &[&dyn Scheduler] = &[
    &spttn::Spttn,
    &exhaustive::Exhaustive,
    &scorch::Scorch,
    &constraints::OWN,
    &sparseauto::SparseAuto,
    &partition::Partition,
];

/// Those that ask another program, which may be absent: found by their names only.
const ASKING: &[&dyn Scheduler] = &[&constraints::ASKING];

/// What a search found.
#[derive(Clone, Debug)]
pub struct SearchOutcome {
    /// Legal schedules, best first; never empty.
    pub candidates: Vec<Candidate>,
    /// What the search saw.
    pub report: SearchReport,
}

/// A schedule with its predicted cost.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The schedule.
    pub schedule: Schedule,
    /// Its predicted cost.
    pub cost: Cost,
}

/// What a search saw and why it stopped.
#[derive(Clone, Debug)]
pub struct SearchReport {
    /// The scheduler's name.
    pub scheduler: &'static str,
    /// The paths among which it chose: those asked for, or more if none of them would do.
    pub breadth: Breadth,
    /// Contraction paths there are.
    pub paths: usize,
    /// Paths left out: another has fewer loops or far fewer flops, or buffers exceed their bounds.
    pub pruned: usize,
    /// Loop nests, or subproblems of the dynamic program, that were priced.
    pub explored: usize,
    /// Seconds it took.
    pub seconds: f64,
    /// Why it stopped.
    pub stop: StopReason,
    /// What a solver of constraints found, if there was one.
    pub solved: Option<Solved>,
}

/// Why a search stopped, from what leaves out nothing to what leaves out most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopReason {
    /// The whole space was covered.
    Complete,
    /// Enough nests were found on the paths with the fewest flops.
    Enough,
    /// There are more contraction paths than are listed.
    PathLimit,
    /// There are more operands than paths are listed for: only those of greedy choices were searched.
    OperandLimit,
    /// There are more loop nests than may be priced.
    Work,
}

impl fmt::Display for SearchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stop = match self.stop {
            StopReason::Complete => "space covered",
            StopReason::Enough => "enough nests found",
            StopReason::PathLimit => "path limit reached",
            StopReason::OperandLimit => "too many operands for more than greedy paths",
            StopReason::Work => "work limit reached",
        };
        write!(
            f,
            "{}: {} ({}), {} pruned, {}, {:.2} ms, {stop}",
            self.scheduler,
            counted(self.paths, "path", "paths"),
            self.breadth,
            self.pruned,
            counted(self.explored, "subproblem", "subproblems"),
            self.seconds * 1e3
        )?;
        self.solved.map_or(Ok(()), |solved| write!(f, "; {solved}"))
    }
}

/// Returns the scheduler that is used unless another is asked for.
pub fn default_scheduler() -> &'static dyn Scheduler {
    SCHEDULERS[0]
}

/// Finds the scheduler called `name`, be it one that asks another program.
pub fn scheduler(name: &str) -> Option<&'static dyn Scheduler> {
    named().find(|scheduler| scheduler.name() == name)
}

/// Returns the names of all schedulers, those that ask another program last.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    named().map(Scheduler::name)
}

fn named() -> impl Iterator<Item = &'static dyn Scheduler> + Clone {
    SCHEDULERS.iter().chain(ASKING).copied()
}

/// Completes, judges and sorts nests, leaving out those that break a rule: the common end of every
/// search.
fn rank(
    problem: &Problem,
    machine: &Machine,
    nests: Vec<(Path, crate::nest::Forest)>,
) -> Result<Vec<Candidate>, CoreError> {
    let mut candidates = Vec::new();
    for (path, nest) in nests {
        let schedule = finish(problem, path, nest, machine);
        match schedule.verify(problem) {
            Ok(()) => {
                let cost = estimate(problem, &schedule, machine);
                candidates.push(Candidate { schedule, cost });
            }
            Err(CoreError::Illegal { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    candidates.sort_by(|a, b| a.cost.seconds.total_cmp(&b.cost.seconds));
    Ok(candidates)
}
