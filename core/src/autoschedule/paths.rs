//! The contraction paths worth a search.

use crate::autoschedule::{Breadth, Found, SearchLimits, SearchReport, StopReason};
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::path::{Arity, Link, Path, PathSpace, Wanted, greedy, unfactorised};
use crate::schedule::Problem;

/// Paths to search, those with the fewest flops first.
pub(super) struct Promising {
    pub(super) paths: Vec<Path>,
    /// How many there are, promising or not; saturating.
    pub(super) all: usize,
    pub(super) stop: StopReason,
}

/// Searches with `search` among the paths of `limits`, then among wider sets of paths until
/// something is found.
pub(super) fn widening(
    problem: &Problem,
    limits: &SearchLimits,
    scheduler: &'static str,
    search: impl Fn(Promising, SearchReport) -> Result<Found, CoreError>,
) -> Result<Found, CoreError> {
    let start = std::time::Instant::now();
    let mut breadth = Some(limits.breadth.max(least_breadth(problem)));
    while let Some(now) = breadth {
        let promising = promising_paths(problem, &SearchLimits { breadth: now, ..*limits });
        let report = SearchReport {
            scheduler,
            breadth: now,
            paths: promising.all,
            pruned: promising.all.saturating_sub(promising.paths.len()),
            explored: 0,
            seconds: 0.0,
            stop: promising.stop,
        };
        let mut found = search(promising, report)?;
        if !found.candidates.is_empty() {
            found.report.seconds = start.elapsed().as_secs_f64();
            return Ok(found);
        }
        breadth = now.wider();
    }
    let (dims, bytes) = (problem.max_buffer_dims, problem.max_buffer_bytes);
    let why = format!("no nest is legal with buffers of {dims} indices and {bytes} bytes");
    Err(CoreError::NoSchedule { expr: problem.expr.to_string(), why })
}

/// Returns the least set of paths that holds a good one.
///
/// Where more than two levels are fused, rows may be added to at a level between them: a term of two
/// inputs would have to wait for loops that are none, and one term of all inputs does not.
fn least_breadth(problem: &Problem) -> Breadth {
    let fused = problem.sparse.iter().any(|x| x.tail > 2);
    if fused { Breadth::All } else { Breadth::LeastDepth }
}

/// Returns the paths of a breadth that can keep the buffer bounds.
fn promising_paths(problem: &Problem, limits: &SearchLimits) -> Promising {
    let arity = if limits.breadth == Breadth::All { Arity::Any } else { Arity::Binary };
    let Some(space) = PathSpace::new(&problem.expr, arity) else {
        return without_space(problem, arity);
    };
    let deepest = limits.breadth > Breadth::LeastDepth;
    let listing = space.list(&Wanted {
        max_depth: if deepest { usize::MAX } else { space.least_depth() },
        iterations: &|loops| problem.iterations(loops),
        links: &|link| may_keep_bound(problem, link),
        flops_factor: limits.flops_factor,
        max_paths: limits.max_paths,
    });
    let all = usize::try_from(space.count()).unwrap_or(usize::MAX);
    let stop = if listing.cut { StopReason::PathLimit } else { StopReason::Complete };
    Promising { paths: listing.paths, all, stop }
}

/// The paths of an expression with one operand, or with too many to tabulate: a greedy one, and
/// the unfactorised one if terms may have any number of inputs.
fn without_space(problem: &Problem, arity: Arity) -> Promising {
    let greedy = greedy(&problem.expr, &|result, loops| {
        // Loops over a prefix of the tree can be fused; whatever else is stored must fit.
        let fits = problem.allows_buffer(result - problem.walked(result));
        (!fits, problem.iterations(result), problem.iterations(loops))
    });
    let stop = match problem.expr.inputs.len() {
        1 => StopReason::Complete,
        _ => StopReason::PathLimit,
    };
    let mut paths = vec![greedy];
    if arity == Arity::Any && stop == StopReason::PathLimit {
        paths.push(unfactorised(&problem.expr));
    }
    Promising { all: paths.len(), paths, stop }
}

/// A bound from below: tells whether an intermediate, fused as far as any loop orders allow,
/// stores no more than the problem allows.
///
/// Producer and consumer can share a set of loops only if it holds, with a level of the sparse
/// operand, all levels above that either of them loops over.
fn may_keep_bound(problem: &Problem, link: Link) -> bool {
    let levels = problem.sparse.first().map_or(&[][..], |x| &x.levels);
    let either = link.producer | link.consumer;
    let both = link.producer & link.consumer;
    let blocked = levels.iter().skip_while(|&&l| both.contains(l) || !either.contains(l));
    let blocked: IndexSet = blocked.copied().collect();
    problem.allows_buffer(link.result - (both - blocked))
}
