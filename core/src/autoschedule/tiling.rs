//! Dense loops in tiles.
//!
//! ```text
//! i{ j{ k{ T1 } } }   ->   split k K 64   K{ i{ j{ k{ T1 } } } }
//! ```
//!
//! A loop over pieces of a dense index moves outside all others.  A pass over the tree then reads a part of each row, and
//! more rows stay in a cache.  Which indices may be cut follows algorithm 2 of Scorch: those of a tensor that another index
//! reuses, but no index of a sparse operand and no loop directly around one over a sparse level.
//!
//! Where the paper leaves something open:
//!
//! - The size of a tile is tried: 256 bytes of a row, and twice that up to half of the index.  Predicted seconds decide.
//! - The paper tiles all indices that may be cut.  Here each is tried, the best is cut, and the rest are tried again.
//! - What a second-level cache holds is not cut.
//! - A tile must be predicted to take less than 83 % of the seconds without it.  Predictions that are closer say nothing.
//! - Every term has to have the index, so that no term is computed again for each tile.
//!
//! Source: Yan et al., "Fast Autoscheduling for Sparse ML Frameworks" (Scorch), section IV.

use crate::autoschedule::{Candidate, finish};
use crate::cost::{Machine, estimate};
use crate::einsum::{Access, Index, IndexSet};
use crate::nest::{Forest, Node};
use crate::path::{Path, Source};
use crate::schedule::{Command, Cut, Problem, Schedule, Split, free_letter};

/// Bytes of the part of a row in the smallest tile: what a gather brings in little more time than a single line, and what
/// fills the registers of a kernel.
pub(crate) const LEAST_TILE_BYTES: u64 = 256;

/// A tile must be predicted to take less than this share of the seconds without it: predictions that are closer say
/// nothing.
pub(crate) const WORTH_TILES: f64 = 0.83;

/// The most indices that are cut.
const MOST_TILES: usize = 2;

/// A candidate with its problem, whose indices are cut as the schedule says.
pub(super) struct Tiled {
    /// The problem.
    pub(super) problem: Problem,
    /// The candidate.
    pub(super) candidate: Candidate,
}

/// Returns `candidate` with its dense loops in tiles, if that is predicted to be worth it.
pub(super) fn tiled(problem: &Problem, candidate: &Candidate, machine: &Machine) -> Option<Tiled> {
    let mut best: Option<Tiled> = None;
    for _ in 0..MOST_TILES {
        let (posed, before) = match &best {
            Some(tiled) => (&tiled.problem, &tiled.candidate),
            None => (problem, candidate),
        };
        let offers = offers(posed, &before.schedule, machine);
        let offers =
            offers.filter(|one| one.candidate.cost.seconds < WORTH_TILES * before.cost.seconds);
        let seconds = |one: &Tiled| one.candidate.cost.seconds;
        let Some(next) = offers.min_by(|a, b| seconds(a).total_cmp(&seconds(b))) else { break };
        best = Some(next);
    }
    best
}

/// Returns the schedule with one index cut, each index and size that may be worth it.
fn offers<'a>(
    problem: &'a Problem,
    schedule: &'a Schedule,
    machine: &'a Machine,
) -> impl Iterator<Item = Tiled> + 'a {
    let whole = tileable(problem, schedule).into_iter();
    let whole = whole.filter(|&index| leaves_cache(problem, index, machine));
    whole.flat_map(move |index| {
        let least = LEAST_TILE_BYTES / problem.value_bytes as u64;
        let most = problem.extents.of(index) / 2;
        let sizes = std::iter::successors(Some(least), |size| Some(2 * size));
        let sizes = sizes.take_while(move |&size| size <= most);
        sizes.filter_map(move |size| in_tiles(problem, schedule, (index, size), machine))
    })
}

/// Returns the indices that may be cut (lines 3 to 13 of algorithm 2).
fn tileable(problem: &Problem, schedule: &Schedule) -> Vec<Index> {
    let expr = &problem.expr;
    let all = expr.all();
    let accesses = expr.inputs.iter().chain([&expr.output]).map(Access::set);
    let reused = accesses.filter(|set| *set != all).fold(IndexSet::EMPTY, |whole, set| whole | set);
    let walked = |set: IndexSet, input: usize| set | expr.inputs[input].set();
    let sparse = problem.sparse.iter().map(|x| x.input).fold(IndexSet::EMPTY, walked);
    let mut parents = IndexSet::EMPTY;
    schedule.nest.roots.iter().for_each(|node| add_parents(node, sparse, &mut parents));
    let everywhere = |index: Index| schedule.path.terms.iter().all(|t| t.indices.contains(index));
    let cut = problem.splits.iter().flat_map(|own| [own.split.index, own.split.outer]);
    let left = reused - sparse - parents - cut.collect();
    left.iter().filter(|&index| everywhere(index)).collect()
}

/// Tells whether an array with `index` whose rows are met in any order exceeds the second-level cache.
fn leaves_cache(problem: &Problem, index: Index, machine: &Machine) -> bool {
    let inputs = problem.dense_inputs().map(|input| problem.expr.inputs[input].set());
    let output = problem.scatters().then(|| problem.expr.output.set());
    let mut met = inputs.chain(output).filter(|set| set.contains(index));
    met.any(|set| problem.buffer_bytes(set) > machine.l2_bytes)
}

/// Adds the loops directly around one over a sparse index.
fn add_parents(node: &Node, sparse: IndexSet, parents: &mut IndexSet) {
    let Node::Loop { index, body } = node else { return };
    let inner = |node: &Node| matches!(node, Node::Loop { index, .. } if sparse.contains(*index));
    if body.iter().any(inner) {
        *parents = parents.with(*index);
    }
    body.iter().for_each(|node| add_parents(node, sparse, parents));
}

/// Returns the schedule with a loop over pieces of an index outside all others (lines 15 and 16 of algorithm 2).
fn in_tiles(
    problem: &Problem,
    schedule: &Schedule,
    (index, size): (Index, u64),
    machine: &Machine,
) -> Option<Tiled> {
    let outer = free_letter(index, problem.letters())?;
    let (command, cut) = (Command::Split, Cut::Coordinates);
    let split = Split { index, outer, command, factor: size, cut };
    let problem = problem.split(&[split]).ok()?;
    let products: Vec<Vec<Source>> =
        schedule.path.terms.iter().map(|term| term.inputs.clone()).collect();
    let path = Path::of_products(&products, &problem.expr);
    let roots = vec![Node::Loop { index: outer, body: schedule.nest.roots.clone() }];
    let schedule = finish(&problem, path, Forest { roots }, machine);
    schedule.verify(&problem).ok()?;
    let cost = estimate(&problem, &schedule, machine);
    Some(Tiled { problem, candidate: Candidate { schedule, cost } })
}
