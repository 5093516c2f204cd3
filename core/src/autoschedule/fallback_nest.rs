//! Nests that need no search: every term loops over the tree outside and over its dense indices inside.
//!
//! The dense loops of all terms have one order, those that most terms have first, so that neighbours share what they
//! can.  Where a buffer is larger than the problem allows, a dense loop that all terms have moves outside the tree,
//! which is then looped over anew in each of its iterations; or the term that makes the intermediate is merged with the one
//! that reads it.  The path of one term that is left in the end has no buffer, so there always is a nest.

use crate::autoschedule::{Candidate, finish};
use crate::cost::{Machine, estimate};
use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::{Forest, buffers};
use crate::path::{Path, Source, Term, chains, unfactorised};
use crate::schedule::{Problem, Schedule};

/// Returns legal nests on `path`, or on paths in which some of its terms are merged; none only if the problem cannot be
/// lowered.
///
/// Time: `O(T^2 d)` a nest for `T` terms over `d` indices, and no more than `T + d` nests are tried.
pub(super) fn sparse_outside(
    problem: &Problem,
    path: &Path,
    machine: &Machine,
) -> Vec<(Path, Forest)> {
    let nest = |hoisting| {
        legal(problem, path.clone(), machine, hoisting).map(|found| (found.path, found.nest))
    };
    let mut nests: Vec<(Path, Forest)> =
        [Hoisting::Never, Hoisting::Common].into_iter().filter_map(nest).collect();
    nests.dedup();
    nests
}

/// Returns the schedule that follows the tree: each level multiplies by its factor on the way up, or down to the result.
///
/// It needs no search.  Time: that of a few nests as in [`sparse_outside`]; `None` only if the problem cannot be lowered.
pub(crate) fn along_tree(problem: &Problem, machine: &Machine) -> Option<Candidate> {
    let x = problem.leader()?;
    let paths = chains(&problem.expr, x.input, x.levels()).into_iter();
    let legal = paths.filter_map(|path| legal(problem, path, machine, Hoisting::Never));
    let priced = legal.map(|schedule| {
        let cost = estimate(problem, &schedule, machine);
        Candidate { schedule, cost }
    });
    priced.min_by(|a, b| a.cost.seconds.total_cmp(&b.cost.seconds))
}

/// Whether dense loops may move outside those over the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hoisting {
    /// They stay inside.
    Never,
    /// Those that all terms have may.
    Common,
}

fn legal(
    problem: &Problem,
    mut path: Path,
    machine: &Machine,
    hoisting: Hoisting,
) -> Option<Schedule> {
    let mut outside: Vec<Index> = Vec::new();
    loop {
        let nest = Forest::fused(&orders(problem, &path, &outside));
        let large = too_large(problem, &path, &nest);
        let Some((term, stored)) = large else {
            let schedule = finish(problem, path.clone(), nest, machine);
            match schedule.verify(problem) {
                Ok(()) => return Some(schedule),
                Err(CoreError::Illegal { .. }) if path.terms.len() > 1 => {
                    path = unfactorised(&problem.expr);
                    outside.clear();
                    continue;
                }
                Err(_) => return None,
            }
        };
        let common = path.terms.iter().fold(stored, |set, term| set & term.indices);
        let common = common - problem.sparse_indices() - outside.iter().copied().collect();
        match common.iter().max_by_key(|&index| problem.extents.of(index)) {
            Some(index) if hoisting == Hoisting::Common => outside.push(index),
            _ => path = merged(&path, term),
        }
    }
}

/// The loops of every term: over `outside`, over the levels of the first tree, over those of the others, over the
/// dense indices.
fn orders(problem: &Problem, path: &Path, outside: &[Index]) -> Vec<Vec<Index>> {
    let first: IndexSet = outside.iter().copied().collect();
    let mut levels: Vec<Index> = Vec::new();
    for &level in problem.sparse.iter().flat_map(|x| x.levels()) {
        if !levels.contains(&level) && !first.contains(level) {
            levels.push(level);
        }
    }
    let walked: IndexSet = levels.iter().copied().collect();
    let inside = problem.expr.all() - walked - first;
    let having = |index: Index| path.terms.iter().filter(|t| t.indices.contains(index)).count();
    let mut dense: Vec<(usize, Index)> = inside.iter().map(|i| (having(i), i)).collect();
    dense.sort_by_key(|&(terms, index)| (std::cmp::Reverse(terms), index));
    let all: Vec<Index> =
        outside.iter().chain(&levels).copied().chain(dense.into_iter().map(|(_, i)| i)).collect();
    let of = |term: &Term| all.iter().copied().filter(|&i| term.indices.contains(i)).collect();
    path.terms.iter().map(of).collect()
}

/// The first intermediate that takes a larger buffer than the problem allows: its term, and the indices that are stored.
fn too_large(problem: &Problem, path: &Path, nest: &Forest) -> Option<(usize, IndexSet)> {
    let large = |buffer: &crate::nest::Buffer| !problem.allows_buffer(buffer.stored);
    let buffers = buffers(path, nest)?;
    buffers.into_iter().find(large).map(|buffer| (buffer.term, buffer.stored))
}

/// Returns `path` with `term` and the term that reads its result as one.
fn merged(path: &Path, term: usize) -> Path {
    let mut terms = path.terms.clone();
    let Some(reader) = path.consumer(term) else { return path.clone() };
    let made = terms[term].clone();
    let read = &mut terms[reader];
    read.inputs.retain(|&source| source != Source::Term(term));
    read.inputs.extend(made.inputs);
    read.indices = read.indices | made.indices;
    terms.remove(term);
    let renumbered = terms.iter_mut().flat_map(|term| &mut term.inputs);
    renumbered.for_each(|source| {
        if let Source::Term(later) = source
            && *later > term
        {
            *later -= 1;
        }
    });
    Path { terms }
}
