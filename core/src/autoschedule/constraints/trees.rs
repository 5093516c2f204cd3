//! The contraction trees whose systems are solved.

use std::collections::BTreeSet;

use crate::autoschedule::constraints::sizes::Sizes;
use crate::autoschedule::paths::PathList;
use crate::autoschedule::{SearchLimits, StopReason};
use crate::path::{Arity, Path, PathSpace, Source, Wanted, greedy, unfactorised};
use crate::schedule::Problem;

/// Returns the trees of `problem` whatever the layouts, those with the fewest flops first; among them that of one
/// contraction of all operands.
pub(super) fn trees(problem: &Problem, sizes: &Sizes<'_>, limits: &SearchLimits) -> PathList {
    let expr = &problem.expr;
    let iterations = |loops| sizes.iterations(loops).min(u64::MAX as f64) as u64;
    let (mut paths, mut all, mut stop) = (Vec::new(), 1, StopReason::Complete);
    if let Some(space) = PathSpace::new(expr, Arity::Binary) {
        let listing = space.list(&Wanted {
            max_depth: usize::MAX,
            iterations: &iterations,
            links: &|_| true,
            flops_factor: limits.flops_factor,
            max_paths: limits.max_paths,
        });
        (paths, all) =
            (distinct(listing.paths), usize::try_from(space.count()).unwrap_or(usize::MAX));
        stop = if listing.cut { StopReason::PathLimit } else { StopReason::Complete };
    } else if expr.inputs.len() > 1 {
        let fewest = |result, loops| (iterations(loops), iterations(result));
        let smallest = |result, loops| (iterations(result), iterations(loops));
        paths = distinct(vec![greedy(expr, &fewest), greedy(expr, &smallest)]);
        (all, stop) = (paths.len(), StopReason::OperandLimit);
    }
    let whole = unfactorised(expr);
    let flops = |path: &Path| {
        let of = path.terms.iter().map(|t| sizes.iterations(t.indices) * t.inputs.len() as f64);
        of.sum::<f64>()
    };
    let at = paths.iter().position(|path| flops(path) > flops(&whole)).unwrap_or(paths.len());
    if !paths.contains(&whole) {
        paths.insert(at, whole);
    }
    PathList { paths, all, stop }
}

/// Returns one path of each tree: the order of its contractions is up to the system.
pub(super) fn distinct(paths: Vec<Path>) -> Vec<Path> {
    let mut seen: BTreeSet<Vec<Vec<usize>>> = BTreeSet::new();
    paths.into_iter().filter(|path| seen.insert(blocks(path))).collect()
}

/// The operands below each contraction.
fn blocks(path: &Path) -> Vec<Vec<usize>> {
    let mut below: Vec<Vec<usize>> = Vec::with_capacity(path.terms.len());
    for term in &path.terms {
        let operands = |source: &Source| match *source {
            Source::Input(input) => vec![input],
            Source::Term(earlier) => below[earlier].clone(),
        };
        let mut all: Vec<usize> = term.inputs.iter().flat_map(operands).collect();
        all.sort_unstable();
        below.push(all);
    }
    below.sort();
    below
}
