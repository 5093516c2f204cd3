//! The space of contraction paths, as tables over sets of operands.
//!
//! What a contracted set of operands hands on does not depend on how it was contracted: it keeps
//! the indices that an operand outside or the output needs.  So the terms that can stand anywhere
//! in a path are the *splits* of the `2^T` sets into blocks, and counting paths, finding the least
//! depth and the fewest flops are sums and minima over them; no path is written down.
//!
//! ```text
//! count(S) = sum over splits of S:  blocks of two operands or more, factorial * prod count(block)
//! depth(S) = min over splits of S:  max(loops of the split, depth(block), ...)
//! ```
//!
//! There are `O(3^T)` splits in two and `Bell(T+1)` in any number of blocks.

use std::ops::Range;

use crate::einsum::{Expr, IndexSet};
use crate::path::live_indices;

/// How many inputs a term may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Two, as in SpTTN and CoNST.
    Binary,
    /// Two or more, up to all operands at once, as TACO's unfactorised kernels.
    Any,
}

impl Arity {
    /// Returns the most operands of which a space is tabulated: about 3,000 splits at 8
    /// operands, or 4,000 at 7 in any number of blocks.
    pub fn max_operands(self) -> usize {
        match self {
            Arity::Binary => 8,
            Arity::Any => 7,
        }
    }
}

/// A set of operands: bit `p` stands for input `p` of the expression.
pub(super) type Set = u32;

/// A term over a set of operands: how the set is split into what is multiplied.
#[derive(Clone, Debug)]
pub(super) struct Split {
    /// The blocks, as a range of `PathSpace::blocks`, by their lowest operands.
    pub(super) blocks: Range<usize>,
    /// The indices of the loops.
    pub(super) indices: IndexSet,
}

/// Every contraction path of an expression.
#[derive(Clone, Debug)]
pub struct PathSpace {
    pub(super) full: Set,
    /// What each set hands on, by set.
    pub(super) results: Vec<IndexSet>,
    pub(super) splits: Vec<Split>,
    pub(super) blocks: Vec<Set>,
    /// The splits of each set, by set.
    of_set: Vec<Range<usize>>,
}

impl PathSpace {
    /// Tabulates the paths of `expr`; `None` unless it has between two and
    /// [`Arity::max_operands`] inputs.
    pub fn new(expr: &Expr, arity: Arity) -> Option<PathSpace> {
        let operands = expr.inputs.len();
        if !(2..=arity.max_operands()).contains(&operands) {
            return None;
        }
        let full: Set = (1 << operands) - 1;
        let results = results(expr, full);
        let mut space =
            PathSpace { full, results, splits: Vec::new(), blocks: Vec::new(), of_set: Vec::new() };
        for set in 0..=full {
            let first = space.splits.len();
            let mut blocks = Vec::new();
            space.add_splits(set, arity, &mut blocks);
            space.of_set.push(first..space.splits.len());
        }
        Some(space)
    }

    /// Adds every split of `rest` into `blocks` and more; each once, since the block that holds
    /// the lowest member comes first.
    fn add_splits(&mut self, rest: Set, arity: Arity, blocks: &mut Vec<Set>) {
        let others = rest & rest.wrapping_sub(1);
        let mut right = others;
        while right != 0 {
            blocks.push(rest & !right);
            blocks.push(right);
            self.add_split(blocks);
            blocks.pop();
            if arity == Arity::Any {
                self.add_splits(right, arity, blocks);
            }
            blocks.pop();
            right = (right - 1) & others;
        }
    }

    fn add_split(&mut self, blocks: &[Set]) {
        let first = self.blocks.len();
        self.blocks.extend(blocks);
        let sets = blocks.iter().map(|&block| self.results[block as usize]);
        let indices = sets.fold(IndexSet::EMPTY, |all, set| all | set);
        self.splits.push(Split { blocks: first..self.blocks.len(), indices });
    }

    /// Returns the number of paths, saturating: trees of contractions, each in every depth-first
    /// postorder.
    pub fn count(&self) -> u64 {
        let mut counts = vec![1u64; self.results.len()];
        for set in self.sets() {
            let of_split = |split: &Split| {
                let blocks = self.blocks[split.blocks.clone()].iter();
                let large = blocks.clone().filter(|block| block.count_ones() > 1).count() as u64;
                let below = blocks.map(|&block| counts[block as usize]);
                below.chain(1..=large).fold(1, u64::saturating_mul)
            };
            let all = self.splits_of(set).map(|(_, split)| of_split(split));
            counts[set as usize] = all.fold(0, u64::saturating_add);
        }
        counts[self.full as usize]
    }

    /// Returns the least depth of a path.
    pub fn least_depth(&self) -> usize {
        let mut depths = vec![0; self.results.len()];
        for set in self.sets() {
            let depth = |split: &Split| {
                let blocks = self.blocks[split.blocks.clone()].iter();
                blocks.map(|&block| depths[block as usize]).fold(split.indices.len(), usize::max)
            };
            depths[set as usize] =
                self.splits_of(set).map(|(_, split)| depth(split)).min().unwrap_or(0);
        }
        depths[self.full as usize]
    }

    /// Returns the sets of two operands or more, subsets first.
    pub(super) fn sets(&self) -> impl DoubleEndedIterator<Item = Set> + use<> {
        (1..=self.full).filter(|set| set.count_ones() > 1)
    }

    /// Returns the splits of `set` with their numbers.
    pub(super) fn splits_of(&self, set: Set) -> impl Iterator<Item = (usize, &Split)> {
        let range = self.of_set[set as usize].clone();
        range.clone().zip(&self.splits[range])
    }
}

/// What each set of operands hands on; one operand hands on all its indices.
fn results(expr: &Expr, full: Set) -> Vec<IndexSet> {
    let mut all = vec![IndexSet::EMPTY; full as usize + 1];
    for set in 1..=full {
        let lowest = expr.looped(set.trailing_zeros() as usize);
        all[set as usize] = all[(set & (set - 1)) as usize] | lowest;
    }
    let kept = |set: Set| {
        let needed = all[(full & !set) as usize] | expr.output.set();
        let own = all[set as usize];
        match set.count_ones() {
            1 => own,
            _ if set == full => own & needed,
            _ => live_indices(own, needed),
        }
    };
    (0..=full).map(kept).collect()
}
