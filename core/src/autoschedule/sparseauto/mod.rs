//! The scheduler of SparseAuto: all nests that splitting, fusing and reordering reach, and the frontier of their time and memory.
//!
//! - `sections` says what nests there are, `program` is the dynamic program over them.
//! - `count` counts them, and finds each by its number.
//! - `costs` finds the costs of all, or those that no other one beats; `terms` holds the polynomials.
//! - `rows` compares the costs on all trees; `stages` are the five stages of the paper, the last of which uses `accesses`.
//! - `asked` puts the comparisons of stage 3 to a solver.
//!
//! The scheduler prices with the costs that no other one of the same depths beats for any sizes, and with the buffer bounds
//! of the problem.  It ranks their nests by predicted seconds.  Its time counts lanes: an iteration of an innermost loop over
//! a level counts as eight.  Else a scalar buffer beats every row, and nothing runs in vectors.
//!
//! Where the paper leaves something open, or its rule does not fit here:
//!
//! - A term walks the levels of a tree wherever its loops are nested as these are, fused with the term that reads the
//!   operand or not.  In the paper a consumer apart from its producer runs over whole extents.
//! - A producer and its consumer share any number of the first loops that they have in common, none to all.
//! - No operand is copied to a buffer alone.
//! - A pair of costs beats another one if it is at most as large for all sizes.  The rule of the paper also removes a
//!   pair that is never better in both, although it may be better in one.
//! - The best of the frontier is the one predicted to be the fastest; the choice of the paper's stages 4 and 5 is
//!   reported beside it.
//!
//! Source: Dias et al., "SparseAuto: An Auto-scheduler for Sparse Tensor Computations using Recursive Loop Nest
//! Restructuring", OOPSLA 2024, sections 4 and 5.

mod accesses;
mod asked;
mod costs;
mod count;
mod program;
mod rows;
mod sections;
mod stages;
mod terms;

use std::time::Instant;

use crate::autoschedule::level_orders::search_each;
use crate::autoschedule::paths::{no_schedule, with_sparse_outside};
use crate::autoschedule::work::Work;
use crate::autoschedule::{
    Breadth, OrdersFound, Scheduler, SearchLimits, SearchOutcome, SearchReport, StopReason,
    Storage, rank,
};
use crate::cost::Machine;
use crate::cost::symbolic::Domain;
use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::Forest;
use crate::path::{Arity, Path, PathSpace};
use crate::schedule::Problem;

pub use accesses::{Accesses, accesses};
pub use asked::Asked;
pub use count::Nests;
pub use rows::{AskedNest, FrontierPoint, Origin, Standing};
pub use sections::{MOST_OPERANDS, Space};
pub use stages::{DepthReport, Method, StageReport, Staged, Stages, buffer_bytes, staged};

use costs::{Costs, Kept};
use program::Solver;
use terms::Terms;

/// The scheduler `sparseauto`: the nests whose time and memory no other one beats for any sizes, ranked by predicted seconds.
pub(super) struct SparseAuto;

/// Nests of one cost that are ranked.
const NESTS_OF_A_COST: usize = 24;

impl Scheduler for SparseAuto {
    fn name(&self) -> &'static str {
        "sparseauto"
    }

    fn search_within(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<SearchOutcome, CoreError> {
        let start = Instant::now();
        let found = undominated(problem, limits);
        let stop = found.as_ref().map_or(StopReason::OperandLimit, |found| match found.cut {
            true => StopReason::Work,
            false => StopReason::Complete,
        });
        let explored = found.as_ref().map_or(0, |found| found.solved);
        let nests = found.map(|found| found.nests).unwrap_or_default();
        let mut candidates = rank(problem, machine, nests)?;
        if stop != StopReason::Complete || candidates.is_empty() {
            candidates = with_sparse_outside(problem, machine, candidates)?;
        }
        if candidates.is_empty() {
            return Err(no_schedule(problem));
        }
        let paths = PathSpace::new(&problem.expr, Arity::Any).map_or(1, |space| space.count());
        let report = SearchReport {
            scheduler: self.name(),
            breadth: Breadth::All,
            paths: usize::try_from(paths).unwrap_or(usize::MAX),
            pruned: 0,
            explored,
            seconds: start.elapsed().as_secs_f64(),
            stop,
            solved: None,
        };
        Ok(SearchOutcome { candidates, report })
    }

    /// Nests are compared by the sizes of whole indices: none is cut into tiles.
    fn search_storages(
        &self,
        problem: &Problem,
        storages: &[Storage],
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<OrdersFound, CoreError> {
        let whole = SearchLimits { tiles: false, ..*limits };
        search_each(self, problem, storages, machine, &whole)
    }
}

/// Nests worth a closer look.
struct Undominated {
    nests: Vec<(Path, Forest)>,
    /// Sections and components that were solved.
    solved: usize,
    cut: bool,
}

/// Returns nests of the costs that no other one of the same depths beats, those with the fewest iterations first; `None` for
/// more operands than are tabulated.
///
/// Within limits that leave out no path these are all nests, unless they are more than `limits` allow.
fn undominated(problem: &Problem, limits: &SearchLimits) -> Option<Undominated> {
    let space = Space::new(problem)?;
    if limits.flops_factor.is_none() {
        let nests = Nests::of(&space);
        if nests.total() <= limits.max_nests as u128 {
            let nests: Vec<(Path, Forest)> = nests.collect();
            return Some(Undominated { solved: nests.len(), nests, cut: false });
        }
    }
    let domain = Domain::all(&space.symbols)?;
    let may_store = |stored: IndexSet| problem.allows_buffer(stored);
    let question = Costs {
        terms: Terms::new(domain, limits.max_work),
        kept: Kept::UndominatedLanes,
        may_store: &may_store,
    };
    let mut solver = Solver::new(&space, question, Work::new(limits.max_work));
    let costs = solver.solve();
    let mut timed: Vec<(f64, costs::NestCost)> = costs
        .iter()
        .map(|(cost, _)| {
            (space.symbols.value(solver.question.terms.get(cost.time), problem), *cost)
        })
        .collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let fewest = timed.first().map_or(0.0, |(time, _)| *time);
    let most = limits.flops_factor.map_or(f64::INFINITY, |factor| factor * fewest);
    let enough = (limits.max_work / SearchLimits::NEST_CHOICES).max(1) as usize;
    let mut nests = Vec::new();
    for (_, cost) in timed.iter().filter(|(time, _)| *time <= most) {
        let wanted = NESTS_OF_A_COST.min(enough.saturating_sub(nests.len()));
        let plans = solver.plans(cost, wanted);
        nests.extend(plans.iter().map(|plan| space.nest(plan)));
    }
    if nests.iter().any(|(path, nest)| walks_all(problem, path, nest)) {
        nests.retain(|(path, nest)| walks_all(problem, path, nest));
    }
    Some(Undominated { nests, solved: solver.solved(), cut: solver.work.is_spent() })
}

/// Tells whether every term walks all levels that its indices allow, as predictions take for granted.
fn walks_all(problem: &Problem, path: &Path, nest: &Forest) -> bool {
    let orders = nest.orders(path.terms.len()).unwrap_or_default();
    let walks = |order: &Vec<Index>| {
        let set: IndexSet = order.iter().copied().collect();
        problem.sparse.iter().all(|x| x.walked(order.iter().copied()) == x.prefix(set).len())
    };
    orders.iter().all(walks)
}
