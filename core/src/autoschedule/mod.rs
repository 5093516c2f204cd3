//! Searches for good schedules.
//!
//! Every search answers the same question through the trait [`Scheduler`] and stands in the list
//! [`SCHEDULERS`]; a new one is a file and a line there.  Searches see statistics, never
//! non-zeros.

mod exhaustive;
mod finish;
mod spttn;

use std::fmt;

use crate::cost::{Cost, Machine, estimate};
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::path::Path;
use crate::schedule::{Problem, Schedule};

pub use exhaustive::{all_forests, price};
pub use finish::finish;
pub use spttn::cheapest_forest;

/// A search for schedules.
pub trait Scheduler: Sync {
    /// Returns the name on the command line.
    fn name(&self) -> &'static str;

    /// Returns one sentence about what it searches and minimises, with its source.
    fn about(&self) -> &'static str;

    /// Returns legal schedules of `problem`, best first, judged for `machine`.
    ///
    /// # Errors
    ///
    /// [`CoreError::NoSchedule`] if nothing keeps the limits of the problem.
    fn search(&self, problem: &Problem, machine: &Machine) -> Result<Found, CoreError>;
}

/// All schedulers; the first is the default.
pub const SCHEDULERS: &[&dyn Scheduler] = &[&spttn::Spttn, &exhaustive::Exhaustive];

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
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
    /// Contraction paths there are.
    pub paths: usize,
    /// Paths left out because another has fewer loops or far fewer flops.
    pub pruned: usize,
    /// Loop nests, or subproblems of the dynamic program, that were priced.
    pub explored: usize,
    /// Seconds it took.
    pub seconds: f64,
    /// Why it stopped.
    pub stop: StopReason,
}

/// Why a search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The whole space was covered.
    Complete,
    /// Enough nests were found on the paths with the fewest flops.
    Enough,
    /// There are more contraction paths than are enumerated.
    PathLimit,
}

impl fmt::Display for SearchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stop = match self.stop {
            StopReason::Complete => "space covered",
            StopReason::Enough => "enough nests found",
            StopReason::PathLimit => "path limit reached",
        };
        write!(
            f,
            "{}: {} paths, {} pruned, {} subproblems, {:.2} ms, {stop}",
            self.scheduler,
            self.paths,
            self.pruned,
            self.explored,
            self.seconds * 1e3
        )
    }
}

/// Finds the scheduler called `name`.
pub fn scheduler(name: &str) -> Option<&'static dyn Scheduler> {
    SCHEDULERS.iter().copied().find(|scheduler| scheduler.name() == name)
}

/// Completes, judges and sorts nests: the common end of every search.
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
    if candidates.is_empty() {
        let (dims, bytes) = (problem.max_buffer_dims, problem.max_buffer_bytes);
        let why = format!("every nest needs a buffer of over {dims} indices or {bytes} bytes");
        return Err(CoreError::NoSchedule { expr: problem.expr.to_string(), why });
    }
    Ok(candidates)
}

/// Returns the paths worth a search - those of least depth that can keep the buffer bound, with at
/// most [`FLOPS_SLACK`] times the fewest flops, fewest first - the number of all, and whether
/// enumeration was complete.
fn promising_paths(problem: &Problem) -> (Vec<Path>, usize, StopReason) {
    let (paths, cut) = crate::path::enumerate(&problem.expr);
    let all = paths.len();
    let depth = paths.iter().map(Path::depth).min().unwrap_or(0);
    let flops = |path: &Path| -> u64 {
        let terms = path.terms.iter().map(|term| problem.iterations(term.indices));
        terms.fold(0, u64::saturating_add)
    };
    let mut priced: Vec<(u64, Path)> = paths
        .into_iter()
        .filter(|path| path.depth() == depth && may_keep_bound(problem, path))
        .map(|path| (flops(&path), path))
        .collect();
    // Stable, so that equal paths keep their order of enumeration.
    priced.sort_by_key(|(flops, _)| *flops);
    let least = priced.first().map_or(0, |(flops, _)| *flops);
    let worth = |(flops, _): &(u64, Path)| *flops as f64 <= least as f64 * FLOPS_SLACK;
    let kept = priced.into_iter().take_while(worth).map(|(_, path)| path);
    let stop = if cut { StopReason::PathLimit } else { StopReason::Complete };
    (kept.collect(), all, stop)
}

/// A path with more flops than this many times the fewest is not searched: no reuse of caches
/// makes up for it.
const FLOPS_SLACK: f64 = 2.0;

/// A bound from below: tells whether every intermediate of `path`, fused as far as any loop orders
/// allow, stores no more indices than the problem allows.
///
/// Producer and consumer can share a set of loops only if it holds, with a level of the sparse
/// operand, all levels above that either of them loops over.
fn may_keep_bound(problem: &Problem, path: &Path) -> bool {
    let levels = problem.sparse.first().map_or(&[][..], |x| &x.levels);
    path.terms.iter().enumerate().all(|(term, producer)| {
        let Some(consumer) = path.consumer(term) else { return true };
        let either = producer.indices | path.terms[consumer].indices;
        let both = producer.indices & path.terms[consumer].indices;
        let blocked = levels.iter().skip_while(|&&l| both.contains(l) || !either.contains(l));
        let blocked: IndexSet = blocked.copied().collect();
        problem.allows_buffer(producer.output - (both - blocked))
    })
}
