//! The dynamic program of SpTTN: the cheapest fully fused nest of every path.
//!
//! A subproblem is a run of neighbouring terms and the set of indices already iterated around
//! them.  Its nest begins with a tree: a root index and the number of terms that share it.  The
//! forest that follows must begin with another root, since equal neighbours would be fused; so
//! every subproblem keeps its best nest and its best nest with a different first root
//! (algorithm 1 and theorem 4.9).  A tree whose results no buffer may hold is refused before it and what
//! follows it are searched, which leaves few subproblems.  With `T` terms and `d` indices there are `O(T^2 2^d)`
//! subproblems with `O(T d)` choices each.  Where that is more than the limits of the search allow, a path gives the best
//! nest of those that were priced, and one that needs no search (`sparse_outside`).
//!
//! Source: Kanakagiri, Solomonik, "Minimum Cost Loop Nests for Contraction of a Sparse Tensor with
//! a Tensor Network", SPAA 2024, section 4.2.

use crate::autoschedule::fallback_nest::sparse_outside;
use crate::autoschedule::level_nesting::LevelNesting;
use crate::autoschedule::paths::widening;
use crate::autoschedule::work::Work;
use crate::autoschedule::{Scheduler, SearchLimits, SearchOutcome, StopReason, price, rank};
use crate::cost::Machine;
use crate::cost::tree::{DenseLoops, MaxBufferDims, Site, TreeCost};
use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::{Forest, Node};
use crate::path::{Path, Term};
use crate::schedule::Problem;
use crate::small_map::SmallMap;

/// The scheduler `spttn`: a dynamic program over fully fused nests, for the most independent dense loops
/// under the buffer bound; paths are ranked by predicted seconds.
pub(super) struct Spttn;

impl Scheduler for Spttn {
    fn name(&self) -> &'static str {
        "spttn"
    }

    fn search_within(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<SearchOutcome, CoreError> {
        widening(problem, machine, limits, self.name(), |listed, mut report| {
            let mut work = Work::new(limits.max_work);
            let (mut searched, mut cut) = (0, false);
            let (mut nests, mut plain) = (Vec::new(), Vec::new());
            for path in listed.paths {
                if nests.len() + plain.len() >= limits.max_nests {
                    report.stop = StopReason::Enough;
                    break;
                }
                if work.left() == 0 {
                    cut = true;
                    break;
                }
                searched += 1;
                let mut part = work.take_half();
                let (forests, subproblems) = cheapest_forests(problem, &path, &mut part);
                report.explored += subproblems;
                nests.extend(forests.into_iter().map(|forest| (path.clone(), forest)));
                cut |= part.is_spent();
                if part.is_spent() || problem.expr.inputs.len() > FEW_OPERANDS {
                    plain.extend(sparse_outside(problem, &path, machine));
                }
                work.give_back(part);
            }
            if cut {
                report.stop = StopReason::Work;
            }
            report.pruned = report.paths.saturating_sub(searched);
            for nest in plain {
                if !nests.contains(&nest) {
                    nests.push(nest);
                }
            }
            Ok(SearchOutcome { candidates: rank(problem, machine, nests)?, report })
        })
    }
}

/// Returns forests of `path` with the most independent dense loops, the first with buffers of as many indices as the
/// problem allows, each other one with smaller ones than the one before, down to matrices; and the number of subproblems
/// that were solved.
///
/// Larger buffers save loops that walk parts of the tree again, and take time to be moved: estimates tell which is more.
/// Where `work` ends first, the forests are the best of those that were priced.
fn cheapest_forests(problem: &Problem, path: &Path, work: &mut Work) -> (Vec<Forest>, usize) {
    let (mut forests, mut subproblems) = (Vec::new(), 0);
    if least_choices(problem, path) > work.left() {
        work.refuse();
        return (forests, subproblems);
    }
    let mut allowed = Some(usize::MAX);
    while let Some(max_buffer_dims) = allowed {
        let costs = DenseLoops { max_buffer_dims };
        let (found, solved) = cheapest_within(problem, path, &costs, work);
        subproblems += solved;
        let forest = found.map(|(forest, _)| forest);
        let dims = forest.as_ref().and_then(|one| price(problem, path, one, &MaxBufferDims));
        forests.extend(forest);
        allowed = dims.filter(|&dims| dims > MATRIX && !work.is_spent()).map(|dims| dims - 1);
    }
    (forests, subproblems)
}

/// Returns how many choices the dynamic program has at least: any of the dense indices of a term may have been looped
/// over before the others.
fn least_choices(problem: &Problem, path: &Path) -> u64 {
    let dense = |term: &Term| (term.indices - problem.sparse_indices()).len() as u32;
    let most = path.terms.iter().map(dense).max();
    most.map_or(0, |dense| 1_u64.checked_shl(dense).unwrap_or(u64::MAX))
}

/// Of more operands than these a path gives its nest that needs no search too: there the most independent dense loops
/// were predicted up to four times the seconds of it, and more paths than can be searched have as few flops.
const FEW_OPERANDS: usize = 6;

/// The stored indices of a matrix.
const MATRIX: usize = 2;

/// Returns the cheapest fully fused forest of `path` under `costs` with its cost, and the number
/// of subproblems that were solved; no forest if the loop orders contradict the tree's levels.
pub fn cheapest_forest<C: TreeCost>(
    problem: &Problem,
    path: &Path,
    costs: &C,
) -> (Option<(Forest, C::Cost)>, usize) {
    cheapest_within(problem, path, costs, &mut Work::new(u64::MAX))
}

/// Returns the cheapest of the fully fused forests that can be priced with `work`, as [`cheapest_forest`] does.
fn cheapest_within<C: TreeCost>(
    problem: &Problem,
    path: &Path,
    costs: &C,
    work: &mut Work,
) -> (Option<(Forest, C::Cost)>, usize) {
    let mut search = Search::new(problem, path, costs, work);
    let whole = Key { first: 0, end: path.terms.len(), done: IndexSet::EMPTY };
    let solved = search.solve(whole);
    let best = search.solved[solved].best.as_ref().map(|choice| choice.cost.clone());
    let found = best.map(|cost| {
        let mut roots = Vec::new();
        search.build(whole, None, &mut roots);
        (Forest { roots }, cost)
    });
    (found, search.memo.len())
}

/// A subproblem: the terms `first..end` inside loops over `done`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    first: usize,
    end: usize,
    done: IndexSet,
}

/// Room for subproblems from the start: about as many as a path of three terms over five indices has.
const SUBPROBLEMS: usize = 64;

/// The place of the solution for no terms.
const NOTHING: usize = 0;

/// How a nest begins: a loop over `root` around the terms up to `split`, or a bare term.
#[derive(Clone)]
struct FirstTree<C> {
    root: Option<Index>,
    split: usize,
    cost: C,
}

/// The best nest, and the best one whose first root differs from that.
struct Solved<C> {
    best: Option<FirstTree<C>>,
    other: Option<FirstTree<C>>,
}

impl<C: Clone + Ord> Solved<C> {
    /// The best nest that does not begin with `avoid`.
    fn avoiding(&self, avoid: Option<Index>) -> Option<&FirstTree<C>> {
        let clash = |choice: &&FirstTree<C>| avoid.is_none() || choice.root != avoid;
        self.best.as_ref().filter(clash).or(self.other.as_ref().filter(clash))
    }

    fn offer(&mut self, choice: FirstTree<C>) {
        match &self.best {
            Some(best) if best.cost <= choice.cost => {
                let better = self.other.as_ref().is_none_or(|other| choice.cost < other.cost);
                if best.root != choice.root && better {
                    self.other = Some(choice);
                }
            }
            _ => {
                let old = self.best.replace(choice);
                let root = self.best.as_ref().and_then(|best| best.root);
                if old.as_ref().is_some_and(|old| old.root != root) {
                    self.other = old;
                }
            }
        }
    }
}

struct Search<'a, C: TreeCost> {
    problem: &'a Problem,
    path: &'a Path,
    consumers: Vec<Option<usize>>,
    nesting: LevelNesting,
    costs: &'a C,
    work: &'a mut Work,
    /// The places of the solutions.
    memo: SmallMap<Key, usize>,
    solved: Vec<Solved<C::Cost>>,
}

impl<'a, C: TreeCost> Search<'a, C> {
    fn new(
        problem: &'a Problem,
        path: &'a Path,
        costs: &'a C,
        work: &'a mut Work,
    ) -> Search<'a, C> {
        let nothing = FirstTree { root: None, split: path.terms.len(), cost: costs.nothing() };
        let mut solved = Vec::with_capacity(SUBPROBLEMS);
        solved.push(Solved { best: Some(nothing), other: None });
        Search {
            problem,
            path,
            consumers: path.consumers(),
            nesting: LevelNesting::new(problem),
            costs,
            work,
            memo: SmallMap::with_capacity_and_hasher(SUBPROBLEMS, Default::default()),
            solved,
        }
    }

    /// Solves a subproblem of one term or more, as far as there is work left; returns the place of the solution.
    fn solve(&mut self, key: Key) -> usize {
        if let Some(&place) = self.memo.get(&key) {
            return place;
        }
        let mut solved = Solved { best: None, other: None };
        let open = self.path.terms[key.first].indices - key.done;
        if open.is_empty()
            && let Some(rest) = self.rest(key, key.first + 1)
        {
            let site = self.site(Key { end: key.first + 1, ..key });
            let leaf = self.costs.leaf(site);
            let first = FirstTree { root: None, split: key.first + 1, cost: leaf };
            self.offer(key, first, rest, &mut solved);
        }
        for root in open.iter() {
            for split in key.first + 1..=key.end {
                let term = &self.path.terms[split - 1];
                if !self.nesting.may_loop(term, root, key.done) || !self.work.spend() {
                    break;
                }
                let Some(rest) = self.rest(key, split) else { continue };
                let body = Key { end: split, done: key.done.with(root), ..key };
                let body = self.solve(body);
                let Some(inner) = self.solved[body].best.as_ref() else { continue };
                let site = self.site(Key { end: split, ..key });
                let tree = self.costs.tree(site, root, inner.cost.clone());
                let first = FirstTree { root: Some(root), split, cost: tree };
                self.offer(key, first, rest, &mut solved);
            }
        }
        let place = self.solved.len();
        self.solved.push(solved);
        self.memo.insert(key, place);
        place
    }

    /// Returns the place of the solution for the terms behind those of a first tree, which end at `split`, if there is a
    /// nest of them that may follow it.
    fn rest(&mut self, key: Key, split: usize) -> Option<usize> {
        if split == key.end {
            return Some(NOTHING);
        }
        if !self.costs.may_hand_on(self.site(Key { end: split, ..key }), key.end) {
            return None;
        }
        let rest = self.solve(Key { first: split, ..key });
        self.solved[rest].best.is_some().then_some(rest)
    }

    /// Joins a first tree with the best forest for the rest, and offers the whole.
    fn offer(
        &self,
        key: Key,
        first: FirstTree<C::Cost>,
        rest: usize,
        solved: &mut Solved<C::Cost>,
    ) {
        let FirstTree { root, split, cost: tree } = first;
        if let Some(rest) = self.solved[rest].avoiding(root) {
            let site = self.site(Key { end: split, ..key });
            let cost = self.costs.join(site, key.end, tree, rest.cost.clone());
            solved.offer(FirstTree { root, split, cost });
        }
    }

    fn site(&self, key: Key) -> Site<'_> {
        let Key { first, end, done } = key;
        let Search { problem, path, ref consumers, .. } = *self;
        Site { problem, path, consumers, first, end, done }
    }

    fn build(&self, key: Key, avoid: Option<Index>, nodes: &mut Vec<Node>) {
        if key.first == key.end {
            return;
        }
        let Some(choice) = self.solved[self.memo[&key]].avoiding(avoid) else { return };
        match choice.root {
            None => nodes.push(Node::Term(key.first)),
            Some(index) => {
                let mut body = Vec::new();
                let inner = Key { end: choice.split, done: key.done.with(index), ..key };
                self.build(inner, None, &mut body);
                nodes.push(Node::Loop { index, body });
            }
        }
        self.build(Key { first: choice.split, ..key }, choice.root, nodes);
    }
}
