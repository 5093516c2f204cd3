//! The contraction paths worth a search.

use crate::autoschedule::fallback_nest::sparse_outside;
use crate::autoschedule::{
    Breadth, Candidate, SearchLimits, SearchOutcome, SearchReport, StopReason, rank,
};
use crate::cost::Machine;
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::path::{Arity, Link, Path, PathSpace, Wanted, chains, greedy, unfactorised};
use crate::schedule::Problem;

/// Paths to search, those with the fewest flops first.
pub(super) struct PathList {
    pub(super) paths: Vec<Path>,
    /// How many there are, listed or not; saturating.
    pub(super) all: usize,
    pub(super) stop: StopReason,
}

/// Searches with `search` among the paths of `limits`, then among wider sets of paths until
/// something is found.
pub(super) fn widening(
    problem: &Problem,
    machine: &Machine,
    limits: &SearchLimits,
    scheduler: &'static str,
    search: impl Fn(PathList, SearchReport) -> Result<SearchOutcome, CoreError>,
) -> Result<SearchOutcome, CoreError> {
    let start = std::time::Instant::now();
    let mut breadth = Some(limits.breadth.max(least_breadth(problem)));
    while let Some(now) = breadth {
        let listed = listed_paths(problem, &SearchLimits { breadth: now, ..*limits });
        let report = SearchReport {
            scheduler,
            breadth: now,
            paths: listed.all,
            pruned: listed.all.saturating_sub(listed.paths.len()),
            explored: 0,
            seconds: 0.0,
            stop: listed.stop,
            solved: None,
        };
        let mut found = search(listed, report)?;
        let cut = !matches!(found.report.stop, StopReason::Complete | StopReason::Enough);
        if cut || (now == Breadth::All && found.candidates.is_empty()) {
            found.candidates = with_sparse_outside(problem, machine, found.candidates)?;
        }
        if !found.candidates.is_empty() {
            found.report.seconds = start.elapsed().as_secs_f64();
            return Ok(found);
        }
        breadth = now.wider();
    }
    Err(no_schedule(problem))
}

/// Says that no nest keeps the limits of `problem`.
pub(super) fn no_schedule(problem: &Problem) -> CoreError {
    let (dims, bytes) = (problem.max_buffer_dims, problem.max_buffer_bytes);
    let why = format!("no nest is legal with buffers of {dims} indices and {bytes} bytes");
    CoreError::NoSchedule { expr: problem.expr.to_string(), why }
}

/// Returns `candidates`, and those that need no search on greedy paths, best first.
pub(super) fn with_sparse_outside(
    problem: &Problem,
    machine: &Machine,
    mut candidates: Vec<Candidate>,
) -> Result<Vec<Candidate>, CoreError> {
    let nests =
        greedy_paths(problem).into_iter().flat_map(|p| sparse_outside(problem, &p, machine));
    for one in rank(problem, machine, nests.collect())? {
        if candidates.iter().all(|other| other.schedule != one.schedule) {
            candidates.push(one);
        }
    }
    candidates.sort_by(|a, b| a.cost.seconds.total_cmp(&b.cost.seconds));
    Ok(candidates)
}

/// Returns the least set of paths that holds a good one.
///
/// Where more than two levels are fused, rows may be added to at a level between them: a term of two
/// inputs would have to wait for loops that are none, and one term of all inputs does not.
fn least_breadth(problem: &Problem) -> Breadth {
    let fused = problem.sparse.iter().any(|x| x.fused() > 2);
    if fused { Breadth::All } else { Breadth::LeastDepth }
}

/// Returns the paths of a breadth that can keep the buffer bounds; with any number of inputs a term, that of one term too,
/// which has no buffer.
fn listed_paths(problem: &Problem, limits: &SearchLimits) -> PathList {
    let any = limits.breadth == Breadth::All;
    let wide = any.then(|| PathSpace::new(&problem.expr, Arity::Any)).flatten();
    let space = wide.or_else(|| PathSpace::new(&problem.expr, Arity::Binary));
    let mut listed = match space {
        Some(space) => listed(problem, limits, &space),
        None => without_space(problem),
    };
    let whole = unfactorised(&problem.expr);
    if any && !listed.paths.contains(&whole) {
        listed.paths.push(whole);
    }
    listed
}

/// Returns those paths of `space` that can keep the buffer bounds.
///
/// Behind sparse buffers a term visits no more than what all sparse operands leave.  Paths with few flops then follow
/// those that have few without.
fn listed(problem: &Problem, limits: &SearchLimits, space: &PathSpace) -> PathList {
    let deepest = limits.breadth > Breadth::LeastDepth;
    let list = |iterations: &dyn Fn(IndexSet) -> u64| {
        space.list(&Wanted {
            max_depth: if deepest { usize::MAX } else { space.least_depth() },
            iterations,
            links: &|link| may_keep_bound(problem, link),
            flops_factor: limits.flops_factor,
            max_paths: limits.max_paths,
        })
    };
    let mut listing = list(&|loops| problem.iterations(loops));
    if problem.sparse.len() > 1 && problem.expr.inputs.len() > 2 {
        let met: IndexSet = problem.sparse.iter().flat_map(|x| x.levels()).copied().collect();
        let few = list(&|loops| problem.iterations(loops).min(problem.iterations(loops | met)));
        let new = |path: &Path| !listing.paths.contains(path);
        let new: Vec<Path> = few.paths.into_iter().filter(new).collect();
        listing.paths.extend(new);
    }
    let all = usize::try_from(space.count()).unwrap_or(usize::MAX);
    let stop = if listing.cut { StopReason::PathLimit } else { StopReason::Complete };
    PathList { paths: listing.paths, all, stop }
}

/// The paths of an expression with one operand, or with too many to tabulate.
fn without_space(problem: &Problem) -> PathList {
    let paths = greedy_paths(problem);
    let stop = match problem.expr.inputs.len() {
        1 => StopReason::Complete,
        _ => StopReason::OperandLimit,
    };
    PathList { all: paths.len(), paths, stop }
}

/// Returns paths that take what looks best at each step: along the levels of the tree, the smallest results, and the fewest
/// products, both of those whose results may be stored.
fn greedy_paths(problem: &Problem) -> Vec<Path> {
    // Loops over a prefix of the tree can be fused; whatever else is stored must fit.
    let fits = |result: IndexSet| problem.allows_buffer(result - problem.walked(result));
    let count = |loops| problem.iterations(loops);
    let smallest =
        greedy(&problem.expr, &|result, loops| (!fits(result), count(result), count(loops)));
    let fewest =
        greedy(&problem.expr, &|result, loops| (!fits(result), count(loops), count(result)));
    let along = problem.leader().map(|x| chains(&problem.expr, x.input, x.levels()));
    let mut paths: Vec<Path> = Vec::new();
    for path in along.into_iter().flatten().chain([smallest, fewest]) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// A bound from below: tells whether an intermediate, fused as far as any loop orders allow,
/// stores no more than the problem allows.
///
/// Producer and consumer can share a set of loops only if it holds, with a level of the sparse
/// operand, all levels above that either of them loops over.
fn may_keep_bound(problem: &Problem, link: Link) -> bool {
    let levels = problem.leader().map_or(&[][..], |x| x.levels());
    let either = link.producer | link.consumer;
    let both = link.producer & link.consumer;
    let blocked = levels.iter().skip_while(|&&l| both.contains(l) || !either.contains(l));
    let blocked: IndexSet = blocked.copied().collect();
    problem.allows_buffer(link.result - (both - blocked))
}
