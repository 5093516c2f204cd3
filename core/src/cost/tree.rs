//! Tree-separable costs of fully fused nests.
//!
//! A cost is tree-separable if the cost of a tree follows from that of its body, its root index
//! and the terms below, and the cost of a forest joins those of its trees; both monotone
//! (SpTTN, definition 4.6).  Then `crate::autoschedule` finds the cheapest nest by dynamic
//! programming.  Costs are integers that saturate, so they compare exactly.

use crate::einsum::{Index, IndexSet};
use crate::path::{Path, Source};
use crate::schedule::Problem;

/// Neighbouring terms `first..end` of a path inside loops over `done`.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The path.
    pub path: &'a Path,
    /// For each of its terms, the term that reads the result: [`Path::consumers`].
    pub consumers: &'a [Option<usize>],
    /// The first term.
    pub first: usize,
    /// One past the last term.
    pub end: usize,
    /// The indices of the loops around them.
    pub done: IndexSet,
}

impl Site<'_> {
    /// Returns what the terms `first..end` hand to the terms `end..until` in buffers, each as its
    /// stored indices.
    fn live_indices(&self, until: usize) -> impl Iterator<Item = IndexSet> + '_ {
        let read = move |&term: &usize| {
            self.consumers[term].is_some_and(|reader| (self.end..until).contains(&reader))
        };
        (self.first..self.end).filter(read).map(|term| self.path.terms[term].output - self.done)
    }

    /// Returns the number of elements of a buffer over `stored`.
    fn elements(&self, stored: IndexSet) -> u64 {
        stored.iter().fold(1, |n, index| self.problem.extents.of(index).saturating_mul(n))
    }
}

/// A tree-separable cost; smaller is better.
pub trait TreeCost {
    /// The cost of a nest.
    type Cost: Clone + Ord;

    /// Returns the cost of no loops and no terms: neutral in [`TreeCost::join`].
    fn nothing(&self) -> Self::Cost;

    /// Returns the cost of the term `site.first` inside its loops `site.done`.
    fn leaf(&self, site: Site) -> Self::Cost;

    /// Returns the cost of a loop over `root` around the terms of `site`, from that of its body.
    fn tree(&self, site: Site, root: Index, body: Self::Cost) -> Self::Cost;

    /// Tells whether a tree over the terms of `site` may be followed by a forest over the terms `site.end..until`,
    /// whatever either looks like: whether what the one hands to the other may be stored.
    fn may_hand_on(&self, site: Site, until: usize) -> bool {
        let _ = (site, until);
        true
    }

    /// Returns the cost of the tree over the terms of `site` followed by a forest over the terms
    /// `site.end..until`.
    fn join(&self, site: Site, until: usize, first: Self::Cost, rest: Self::Cost) -> Self::Cost;
}

/// The largest number of stored indices of a buffer (definition 4.7).
#[derive(Clone, Copy, Debug)]
pub struct MaxBufferDims;

impl TreeCost for MaxBufferDims {
    type Cost = usize;

    fn nothing(&self) -> usize {
        0
    }

    fn leaf(&self, _: Site) -> usize {
        0
    }

    fn tree(&self, _: Site, _: Index, body: usize) -> usize {
        body
    }

    fn join(&self, site: Site, until: usize, first: usize, rest: usize) -> usize {
        site.live_indices(until).map(IndexSet::len).fold(first.max(rest), usize::max)
    }
}

/// The number of elements of the largest buffer (definition 4.7 with extents).
#[derive(Clone, Copy, Debug)]
pub struct MaxBufferSize;

impl TreeCost for MaxBufferSize {
    type Cost = u64;

    fn nothing(&self) -> u64 {
        0
    }

    fn leaf(&self, _: Site) -> u64 {
        0
    }

    fn tree(&self, _: Site, _: Index, body: u64) -> u64 {
        body
    }

    fn join(&self, site: Site, until: usize, first: u64, rest: u64) -> u64 {
        site.live_indices(until).map(|stored| site.elements(stored)).fold(first.max(rest), u64::max)
    }
}

/// The number of multiplications and additions.
#[derive(Clone, Copy, Debug)]
pub struct Flops;

impl TreeCost for Flops {
    type Cost = u64;

    fn nothing(&self) -> u64 {
        0
    }

    fn leaf(&self, site: Site) -> u64 {
        let inputs = site.path.terms[site.first].inputs.len() as u64;
        site.problem.iterations(site.done).saturating_mul(inputs)
    }

    fn tree(&self, _: Site, _: Index, body: u64) -> u64 {
        body
    }

    fn join(&self, _: Site, _: usize, first: u64, rest: u64) -> u64 {
        first.saturating_add(rest)
    }
}

/// Cache misses when whole subtensors of `cached_dims` indices stay in cache (definition 4.8,
/// with the iterations counted from the pattern instead of uniform extents).
///
/// Every iteration of a loop misses once for each tensor that the loop indexes and of which
/// more than `cached_dims` indices, this one included, are still to be iterated.
#[derive(Clone, Copy, Debug)]
pub struct CacheMisses {
    /// How many indices a subtensor has that fits the cache.
    pub cached_dims: usize,
}

impl TreeCost for CacheMisses {
    type Cost = u64;

    fn nothing(&self) -> u64 {
        0
    }

    fn leaf(&self, _: Site) -> u64 {
        0
    }

    fn tree(&self, site: Site, root: Index, body: u64) -> u64 {
        let terms = &site.path.terms[site.first..site.end];
        let sets = terms.iter().flat_map(|term| {
            let input = |source: &Source| match *source {
                Source::Input(input) => site.problem.expr.inputs[input].set(),
                Source::Term(t) => site.path.terms[t].output,
            };
            term.inputs.iter().map(input).chain([term.output])
        });
        let missing =
            |set: &IndexSet| set.contains(root) && (*set - site.done).len() > self.cached_dims;
        let tensors = sets.filter(missing).count() as u64;
        let iterations = site.problem.iterations(site.done.with(root));
        body.saturating_add(iterations.saturating_mul(tensors))
    }

    fn join(&self, _: Site, _: usize, first: u64, rest: u64) -> u64 {
        first.saturating_add(rest)
    }
}

/// The paper's own choice: the most independent dense loops with buffers of at most so many
/// indices, or what else the problem allows; then the fewest flops, then the least buffer space, then the
/// fewest sums over lanes.
///
/// A dense loop is *independent* if it and all loops below are dense and surround one term: it can
/// be a vector kernel.  Its lanes are the innermost loop; if the term's result lacks that index, the
/// lanes are added up, which costs extra.
#[derive(Clone, Copy, Debug)]
pub struct DenseLoops {
    /// The most stored indices of a buffer, where the problem allows more.
    pub max_buffer_dims: usize,
}

/// The cost of [`DenseLoops`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DenseLoopsCost {
    /// The number of independent dense loops, negated: more are better.
    pub dense_loops: i64,
    /// Multiplications and additions.
    pub flops: u64,
    /// Elements of all buffers together.
    pub buffers: u64,
    /// Terms whose innermost loop is dense and not in their result.
    pub lane_sums: u64,
}

impl TreeCost for DenseLoops {
    type Cost = DenseLoopsCost;

    fn nothing(&self) -> DenseLoopsCost {
        DenseLoopsCost::default()
    }

    fn leaf(&self, site: Site) -> DenseLoopsCost {
        DenseLoopsCost { flops: Flops.leaf(site), ..self.nothing() }
    }

    fn tree(&self, site: Site, root: Index, body: DenseLoopsCost) -> DenseLoopsCost {
        let term = &site.path.terms[site.first];
        let open = term.indices - site.done;
        let dense = (open & site.problem.sparse_indices()).is_empty();
        if site.end - site.first > 1 || !dense {
            return body;
        }
        let sums = open.len() == 1 && !term.output.contains(root);
        DenseLoopsCost {
            dense_loops: body.dense_loops - 1,
            lane_sums: body.lane_sums + u64::from(sums),
            ..body
        }
    }

    fn may_hand_on(&self, site: Site, until: usize) -> bool {
        let may = |stored: IndexSet| stored.len() <= self.max_buffer_dims;
        site.live_indices(until).all(|stored| may(stored) && site.problem.allows_buffer(stored))
    }

    fn join(
        &self,
        site: Site,
        until: usize,
        first: DenseLoopsCost,
        rest: DenseLoopsCost,
    ) -> DenseLoopsCost {
        let stored = site.live_indices(until).map(|stored| site.elements(stored));
        DenseLoopsCost {
            dense_loops: first.dense_loops + rest.dense_loops,
            flops: first.flops.saturating_add(rest.flops),
            buffers: stored.fold(first.buffers.saturating_add(rest.buffers), u64::saturating_add),
            lane_sums: first.lane_sums + rest.lane_sums,
        }
    }
}
