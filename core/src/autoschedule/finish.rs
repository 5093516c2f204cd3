//! From a nest to a whole schedule: the decisions that follow from the nest.

use crate::autoschedule::prefetch::prefetches;
use crate::cost::{Machine, estimate, suited_kinds, suited_vectors};
use crate::einsum::{Index, IndexSet};
use crate::nest::{Forest, buffers};
use crate::path::Path;
use crate::schedule::{
    BufferKind, Conflict, Layout, LevelKind, MOST_WORKSPACE_CELLS, Marks, OutputForm, Parallel,
    Problem, Schedule, Space, Vectors, Workspace, resolve,
};

/// Completes a nest: trees as the problem gives them, with dense roots where others are joined with them, workspace and
/// buffers of the kind that is predicted to take less time, the root loop parallel over equal numbers of non-zeros,
/// prefetches for gathered operands that leave the second-level cache, gathered vectors for long sums of a single term.
///
/// # Panics
///
/// If `nest` does not hold the terms of `path`.
pub fn finish(problem: &Problem, path: Path, nest: Forest, machine: &Machine) -> Schedule {
    let layouts: Vec<Layout> =
        (0..problem.sparse.len()).map(|tree| layout(problem, tree)).collect();
    let places = nest.places(path.terms.len()).expect("a nest of all terms");
    let last: Vec<Index> = places.last().into_iter().flatten().map(|place| place.1).collect();
    let parallel = parallel(problem, &last);
    let leader = layouts.first().map(|leader| prefetches(problem, &leader.format, &path, machine));
    let prefetches = leader.unwrap_or_default();
    let workspace = (problem.output == OutputForm::Assembled).then_some(Workspace::Dense);
    let splits = problem.splits.iter().map(|cut| cut.split).collect();
    let vectors = Vectors::All;
    let buffers = vec![BufferKind::Dense; path.terms.len() - 1];
    let mut schedule =
        Schedule { splits, path, nest, layouts, buffers, workspace, parallel, vectors, prefetches };
    if workspace.is_some() {
        schedule.workspace = Some(suited_workspace(problem, &schedule, &last, machine));
    }
    choose_buffers(problem, &mut schedule, machine);
    choose_kinds(problem, &mut schedule, machine);
    schedule.vectors = suited_vectors(problem, &schedule, machine);
    schedule
}

/// Lays out a sparse operand.
///
/// A level that is full is dense.  A root is dense also where coordinates of other operands are located in it, levels follow
/// it, and at least one coordinate in [`PLACES_A_NODE`] occurs.
fn layout(problem: &Problem, tree: usize) -> Layout {
    let x = &problem.sparse[tree];
    let mut format = x.format.clone();
    for level in usize::from(tree == 0)..x.levels().len() {
        if x.is_full(&format, level, problem) {
            format.set_kind(level, LevelKind::Dense);
        }
    }
    let input = (problem.sparse.len() > 1).then_some(x.input);
    let Some(&root) = x.levels().first().filter(|_| tree > 0) else {
        return Layout { input, format };
    };
    let others = problem.sparse.iter().filter(|other| other.input != x.input);
    let is_joined = others.flat_map(|other| other.levels()).any(|&level| level == root);
    let nodes = x.nodes(IndexSet::EMPTY.with(root), &problem.extents);
    let few = problem.extents.of(root) <= nodes.saturating_mul(PLACES_A_NODE);
    // Values of dense levels at the end stand where the places of a full root would be.
    let last = format.kinds()[1..].iter().all(|kind| *kind == LevelKind::Dense);
    if is_joined && few && !last {
        format.set_kind(0, LevelKind::Dense);
    }
    Layout { input, format }
}

/// The most places of a dense root for each coordinate that occurs: an empty place takes a pointer and a coordinate, and
/// the search in a compressed root some steps for each coordinate that is located.
const PLACES_A_NODE: u64 = 4;

/// Returns the workspace that is predicted to take the least time; a dense one if its cells are few.
fn suited_workspace(
    problem: &Problem,
    schedule: &Schedule,
    last: &[Index],
    machine: &Machine,
) -> Workspace {
    let cells = problem.workspace_cells(last);
    if cells <= FEW_WORKSPACE_CELLS {
        return Workspace::Dense;
    }
    let seconds = |kind: Workspace| {
        let other = Schedule { workspace: Some(kind), ..schedule.clone() };
        estimate(problem, &other, machine).seconds
    };
    let dense = (cells <= MOST_WORKSPACE_CELLS).then_some(Workspace::Dense);
    let kinds = dense.into_iter().chain([Workspace::Hashed, Workspace::List]);
    let timed = kinds.map(|kind| (kind, seconds(kind)));
    timed.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(Workspace::Hashed, |(kind, _)| kind)
}

/// The cells of an array that fits a second-level cache and whose bitmap takes few words.
const FEW_WORKSPACE_CELLS: u64 = 1 << 16;

/// Stores those buffers sparsely that are predicted to take far less time then, or may not be dense.
///
/// Only buffers between several sparse operands are considered, of which at most [`FEW_CELLS`] are expected to be met.  Next
/// to a single one, where nests along its tree compete, predictions were not compared with measurements.
fn choose_buffers(problem: &Problem, schedule: &mut Schedule, machine: &Machine) {
    if problem.sparse.len() < 2 {
        return;
    }
    let walked = problem.sparse.iter().flat_map(|x| x.levels()).copied().collect();
    let Some(stored) = buffers(&schedule.path, &schedule.nest) else { return };
    if stored.iter().all(|buffer| (buffer.stored & walked).is_empty()) {
        return;
    }
    let sparse = vec![BufferKind::Sparse; stored.len()];
    let Ok(nest) = resolve(problem, &Schedule { buffers: sparse, ..schedule.clone() }) else {
        return;
    };
    let predicted = |schedule: &Schedule| estimate(problem, schedule, machine).seconds;
    let mut seconds = None;
    for (term, made) in nest.buffers.iter().enumerate() {
        let few = |marks: &Marks| marks.cells <= FEW_CELLS * problem.extents.of(marks.index) as f64;
        let allowed = problem.allows_sparse_buffer(made.buffer.stored);
        if !allowed || !made.marks.as_ref().is_some_and(few) {
            continue;
        }
        let mut other = schedule.clone();
        other.buffers[term] = BufferKind::Sparse;
        if !problem.allows_buffer(made.buffer.stored) {
            (*schedule, seconds) = (other, None);
        } else if other.verify(problem).is_ok() {
            let (now, then) =
                (*seconds.get_or_insert_with(|| predicted(schedule)), predicted(&other));
            if then < WORTH * now {
                (*schedule, seconds) = (other, Some(then));
            }
        }
    }
}

/// The share of the time of a dense buffer below which a sparse one is taken: predictions of both are not that exact.
const WORTH: f64 = 0.7;

/// The share of the cells of a sparse buffer that are met at most: of more, a loop over all takes no longer.
const FEW_CELLS: f64 = 0.5;

/// Gives levels in which coordinates are located a bitmap or a table where that is predicted to pay.
fn choose_kinds(problem: &Problem, schedule: &mut Schedule, machine: &Machine) {
    if problem.sparse.len() == 1 {
        return;
    }
    let Ok(nest) = resolve(problem, schedule) else { return };
    for (at, kind) in suited_kinds(problem, (&schedule.layouts, &nest), machine) {
        schedule.layouts[at.tree].format.set_kind(at.level, kind);
    }
}

/// Cuts the root loop into tasks; the last term stands in the loops `last`.
fn parallel(problem: &Problem, last: &[Index]) -> Option<Parallel> {
    let first = *problem.leader()?.levels().first()?;
    let output = problem.expr.output.set();
    let conflict = if problem.output == OutputForm::Assembled {
        Conflict::Assemble
    } else if problem.has_pattern_output() {
        Conflict::Positions
    } else if problem.owns_ranges(last) {
        Conflict::Owner
    } else if !output.contains(first) {
        Conflict::Privatise
    } else if (output & problem.sparse_indices()).len() == 1 {
        Conflict::Boundary
    } else {
        Conflict::Owner
    };
    Some(Parallel { index: first, space: Space::Position, conflict, tasks: None })
}
