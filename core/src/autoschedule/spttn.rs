//! The dynamic program of SpTTN: the cheapest fully fused nest of every path.
//!
//! A subproblem is a run of neighbouring terms and the set of indices already iterated around
//! them.  Its nest begins with a tree: a root index and the number of terms that share it.  The
//! forest that follows must begin with another root, since equal neighbours would be fused; so
//! every subproblem keeps its best nest and its best nest with a different first root
//! (algorithm 1 and theorem 4.9).  A tree whose results no buffer may hold is refused before it and what
//! follows it are searched, which leaves few subproblems.  With `T` terms and `d` indices there are `O(T^2 2^d)`
//! subproblems with `O(T d)` choices each.
//!
//! Source: Kanakagiri, Solomonik, "Minimum Cost Loop Nests for Contraction of a Sparse Tensor with
//! a Tensor Network", SPAA 2024, section 4.2.

use crate::autoschedule::paths::widening;
use crate::autoschedule::{Found, Scheduler, SearchLimits, StopReason, rank};
use crate::cost::Machine;
use crate::cost::tree::{DenseLoops, Site, TreeCost};
use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::{Forest, Node};
use crate::path::Path;
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
    ) -> Result<Found, CoreError> {
        widening(problem, limits, self.name(), |promising, mut report| {
            let mut searched = 0;
            let mut nests = Vec::new();
            for path in promising.paths {
                if nests.len() == limits.max_nests {
                    report.stop = StopReason::Enough;
                    break;
                }
                searched += 1;
                let (found, subproblems) = cheapest_forest(problem, &path, &DenseLoops);
                report.explored += subproblems;
                if let Some((forest, _)) = found {
                    nests.push((path, forest));
                }
            }
            report.pruned = report.paths.saturating_sub(searched);
            Ok(Found { candidates: rank(problem, machine, nests)?, report })
        })
    }
}

/// Returns the cheapest fully fused forest of `path` under `costs` with its cost, and the number
/// of subproblems that were solved; no forest if the loop orders contradict the tree's levels.
pub fn cheapest_forest<C: TreeCost>(
    problem: &Problem,
    path: &Path,
    costs: &C,
) -> (Option<(Forest, C::Cost)>, usize) {
    let memo = Memo::with_capacity_and_hasher(SUBPROBLEMS, Default::default());
    let mut search = Search { problem, path, walk: WalkOrder::new(problem), costs, memo };
    let whole = Key { first: 0, end: path.terms.len(), done: IndexSet::EMPTY };
    search.solve(whole);
    let best = search.memo[&whole].best.as_ref().map(|choice| choice.cost.clone());
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

type Memo<C> = SmallMap<Key, Solved<C>>;

/// How a nest begins: a loop over `root` around the terms up to `split`, or a bare term.
#[derive(Clone)]
struct Choice<C> {
    root: Option<Index>,
    split: usize,
    cost: C,
}

/// The best nest, and the best one whose first root differs from that.
struct Solved<C> {
    best: Option<Choice<C>>,
    other: Option<Choice<C>>,
}

impl<C: Clone + Ord> Solved<C> {
    /// The best nest that does not begin with `avoid`.
    fn avoiding(&self, avoid: Option<Index>) -> Option<&Choice<C>> {
        let clash = |choice: &&Choice<C>| avoid.is_none() || choice.root != avoid;
        self.best.as_ref().filter(clash).or(self.other.as_ref().filter(clash))
    }

    fn offer(&mut self, choice: Choice<C>) {
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
    walk: WalkOrder,
    costs: &'a C,
    memo: Memo<C::Cost>,
}

impl<C: TreeCost> Search<'_, C> {
    fn solve(&mut self, key: Key) {
        if key.first == key.end || self.memo.contains_key(&key) {
            return;
        }
        let mut solved = Solved { best: None, other: None };
        let open = self.path.terms[key.first].indices - key.done;
        if open.is_empty() && self.rest_has_nest(key, key.first + 1) {
            let site = self.site(Key { end: key.first + 1, ..key });
            let leaf = self.costs.leaf(site);
            self.offer(key, None, (key.first + 1, leaf), &mut solved);
        }
        for root in open.iter() {
            for split in key.first + 1..=key.end {
                let indices = self.path.terms[split - 1].indices;
                if !self.walk.may_loop(indices, root, key.done) {
                    break;
                }
                if !self.rest_has_nest(key, split) {
                    continue;
                }
                let body = Key { end: split, done: key.done.with(root), ..key };
                self.solve(body);
                let Some(inner) = self.memo[&body].best.as_ref() else { continue };
                let site = self.site(Key { end: split, ..key });
                let tree = self.costs.tree(site, root, inner.cost.clone());
                self.offer(key, Some(root), (split, tree), &mut solved);
            }
        }
        self.memo.insert(key, solved);
    }

    /// Tells whether there is a nest of the terms behind those of a first tree, which end at `split`, that may
    /// follow it.
    fn rest_has_nest(&mut self, key: Key, split: usize) -> bool {
        if split == key.end {
            return true;
        }
        if !self.costs.may_hand_on(self.site(Key { end: split, ..key }), key.end) {
            return false;
        }
        let rest = Key { first: split, ..key };
        self.solve(rest);
        self.memo[&rest].best.is_some()
    }

    /// Joins a first tree with the best forest for the rest, which is solved, and offers the whole.
    fn offer(
        &self,
        key: Key,
        root: Option<Index>,
        (split, tree): (usize, C::Cost),
        solved: &mut Solved<C::Cost>,
    ) {
        let rest = Key { first: split, ..key };
        let rest_cost = if split == key.end {
            Some(self.costs.nothing())
        } else {
            self.memo[&rest].avoiding(root).map(|choice| choice.cost.clone())
        };
        if let Some(rest_cost) = rest_cost {
            let site = self.site(Key { end: split, ..key });
            let cost = self.costs.join(site, key.end, tree, rest_cost);
            solved.offer(Choice { root, split, cost });
        }
    }

    fn site(&self, key: Key) -> Site<'_> {
        let Key { first, end, done } = key;
        Site { problem: self.problem, path: self.path, first, end, done }
    }

    fn build(&self, key: Key, avoid: Option<Index>, nodes: &mut Vec<Node>) {
        if key.first == key.end {
            return;
        }
        let Some(choice) = self.memo[&key].avoiding(avoid) else { return };
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

/// The order in which loops must walk the levels of a problem's sparse operand.
pub(super) struct WalkOrder {
    /// The levels above that of each index, by its number; none where it is no level.
    above: [IndexSet; Index::COUNT],
}

impl WalkOrder {
    pub(super) fn new(problem: &Problem) -> WalkOrder {
        let mut above = [IndexSet::EMPTY; Index::COUNT];
        let levels = problem.sparse.first().map_or(&[][..], |x| &x.levels);
        levels.iter().fold(IndexSet::EMPTY, |walked, &level| {
            above[level.number()] = walked;
            walked.with(level)
        });
        WalkOrder { above }
    }

    /// Tells whether a term over `indices` inside loops over `done` may loop over `index` next: a level of the
    /// tree comes after those above it.
    pub(super) fn may_loop(&self, indices: IndexSet, index: Index, done: IndexSet) -> bool {
        let open = indices - done;
        open.contains(index) && (open & self.above[index.number()]).is_empty()
    }
}
