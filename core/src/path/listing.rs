//! The paths of a space that are worth a search, without visiting the others.
//!
//! Two tables bound every choice: the fewest flops to contract a set of operands, and the fewest
//! around it to finish the expression (the inside and outside sums of parsing, with minima).  A
//! partial tree is kept only if its own flops and those around it stay below the threshold, so
//! every one of them is part of a path that is listed, unless a link between two terms is refused.

use crate::einsum::IndexSet;
use crate::path::space::{PathSpace, Set, Split};
use crate::path::{Path, Source, Term};

/// Which paths are wanted.
pub struct Wanted<'a> {
    /// The most loops around a term.
    pub max_depth: usize,
    /// Returns how often a statement inside loops over a set of indices runs.
    pub iterations: &'a dyn Fn(IndexSet) -> u64,
    /// Tells whether one term may hand its result to another.
    pub links: &'a dyn Fn(Link) -> bool,
    /// The most multiplications and additions, as a multiple of the fewest of a path that is
    /// wanted otherwise; `None`: any number.
    pub flops_factor: Option<f64>,
    /// The most paths.
    pub max_paths: usize,
}

/// A result and its two terms.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The indices of the loops of the term that makes it.
    pub producer: IndexSet,
    /// The indices of the result.
    pub result: IndexSet,
    /// The indices of the loops of the term that reads it.
    pub consumer: IndexSet,
}

/// The paths that were wanted.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The paths, those with the fewest flops first.
    pub paths: Vec<Path>,
    /// Whether there are more than [`Wanted::max_paths`].
    pub cut: bool,
}

/// More flops than any sum of sensible ones; a path has at most a dozen terms.
const MANY: u64 = 1 << 58;

/// What cannot be reached.
const NEVER: u64 = u64::MAX;

/// If the paths with the fewest flops are refused, the threshold is raised by this factor.
const WIDEN: u64 = 64;

impl PathSpace {
    /// Lists the paths that are wanted, those with the fewest flops first; of equal ones, the
    /// order is that of enumeration.
    pub fn list(&self, wanted: &Wanted) -> Listing {
        let bounds = Bounds::new(self, wanted);
        let least = bounds.inside[self.full as usize];
        if least == NEVER {
            return Listing { paths: Vec::new(), cut: false };
        }
        let Some(factor) = wanted.flops_factor else {
            return self.trees(wanted, &bounds, NEVER - 1).into_listing(self, NEVER, wanted);
        };
        let times = |flops: u64| (flops as f64 * factor) as u64;
        let mut threshold = times(least);
        loop {
            let trees = self.trees(wanted, &bounds, threshold);
            match trees.cheapest(self.full) {
                Some(flops) if times(flops) <= threshold => {
                    return trees.into_listing(self, times(flops), wanted);
                }
                Some(flops) => threshold = times(flops),
                None if threshold >= MANY => return Listing { paths: Vec::new(), cut: false },
                None => threshold = threshold.saturating_mul(WIDEN).clamp(1, NEVER - 1),
            }
        }
    }

    /// Returns the trees of every set that can be part of a path below `threshold`.
    fn trees(&self, wanted: &Wanted, bounds: &Bounds, threshold: u64) -> Trees {
        let mut trees = Trees { of_set: vec![Vec::new(); self.results.len()], cut: false };
        for operand in 0..self.full.count_ones() {
            trees.of_set[1 << operand].push(Tree { flops: 0, split: None, children: Vec::new() });
        }
        for set in self.sets() {
            let around = bounds.outside[set as usize];
            let mut found = Vec::new();
            for (number, split) in self.splits_of(set) {
                let flops = bounds.flops[number];
                if flops == NEVER || around == NEVER {
                    continue;
                }
                let room = threshold.saturating_sub(around);
                let start = Tree { flops, split: Some(number), children: Vec::new() };
                let extension = Extension { wanted, trees: &trees, split, room };
                self.extend(&extension, start, &mut found);
                if found.len() > wanted.max_paths {
                    trees.cut = true;
                    found.truncate(wanted.max_paths);
                    break;
                }
            }
            trees.of_set[set as usize] = found;
        }
        trees
    }

    /// Adds every tree that continues `tree` with subtrees for its next blocks.
    fn extend(&self, extension: &Extension<'_>, tree: Tree, found: &mut Vec<Tree>) {
        let Extension { wanted, trees, split, room } = *extension;
        if tree.flops > room || found.len() > wanted.max_paths {
            return;
        }
        let blocks = &self.blocks[split.blocks.clone()];
        let Some(&block) = blocks.get(tree.children.len()) else {
            found.push(tree);
            return;
        };
        for (position, child) in trees.of_set[block as usize].iter().enumerate() {
            let link = |producer: usize| Link {
                producer: self.splits[producer].indices,
                result: self.results[block as usize],
                consumer: split.indices,
            };
            if child.split.is_none_or(|producer| (wanted.links)(link(producer))) {
                let mut longer = tree.clone();
                longer.flops = longer.flops.saturating_add(child.flops);
                longer.children.push(position);
                self.extend(extension, longer, found);
            }
        }
    }
}

/// What trees that begin with a split are made of.
struct Extension<'a> {
    wanted: &'a Wanted<'a>,
    /// The subtrees of each smaller set.
    trees: &'a Trees,
    split: &'a Split,
    /// The most flops of a tree.
    room: u64,
}

/// Bounds on flops, from below.
struct Bounds {
    /// Flops of each split; `NEVER` if it is too deep.
    flops: Vec<u64>,
    /// The fewest to contract each set.
    inside: Vec<u64>,
    /// The fewest of all other terms of a path in which each set is contracted.
    outside: Vec<u64>,
}

impl Bounds {
    fn new(space: &PathSpace, wanted: &Wanted) -> Bounds {
        let of_split = |split: &Split| {
            let inputs = split.blocks.len() as u64;
            let deep = split.indices.len() > wanted.max_depth;
            let flops = || (wanted.iterations)(split.indices).saturating_mul(inputs).min(MANY);
            if deep { NEVER } else { flops() }
        };
        let flops: Vec<u64> = space.splits.iter().map(of_split).collect();
        let mut inside = vec![NEVER; space.results.len()];
        (0..space.full.count_ones()).for_each(|operand| inside[1 << operand] = 0);
        for set in space.sets() {
            let all = space.splits_of(set).map(|(number, split)| {
                let blocks = space.blocks[split.blocks.clone()].iter();
                let inside = blocks.map(|&block| inside[block as usize]);
                inside.fold(flops[number], u64::saturating_add)
            });
            inside[set as usize] = all.min().unwrap_or(NEVER);
        }
        let mut outside = vec![NEVER; space.results.len()];
        outside[space.full as usize] = 0;
        for set in space.sets().rev() {
            for (number, split) in space.splits_of(set) {
                let around = outside[set as usize].saturating_add(flops[number]);
                let blocks = &space.blocks[split.blocks.clone()];
                for &block in blocks {
                    let others = blocks.iter().filter(|&&other| other != block);
                    let others = others.map(|&other| inside[other as usize]);
                    let all = others.fold(around, u64::saturating_add);
                    outside[block as usize] = outside[block as usize].min(all);
                }
            }
        }
        Bounds { flops, inside, outside }
    }
}

/// A tree of contractions of one set.
#[derive(Clone, Debug)]
struct Tree {
    flops: u64,
    /// The number of the split at its root; `None` for an operand.
    split: Option<usize>,
    /// For each block of the split, which of its trees.
    children: Vec<usize>,
}

/// Trees of contractions, by set.
struct Trees {
    of_set: Vec<Vec<Tree>>,
    cut: bool,
}

impl Trees {
    fn cheapest(&self, set: Set) -> Option<u64> {
        self.of_set[set as usize].iter().map(|tree| tree.flops).min()
    }

    fn into_listing(mut self, space: &PathSpace, most: u64, wanted: &Wanted) -> Listing {
        let mut whole = std::mem::take(&mut self.of_set[space.full as usize]);
        whole.retain(|tree| tree.flops <= most);
        // Stable, so that equal paths keep their order of enumeration.
        whole.sort_by_key(|tree| tree.flops);
        let mut paths = Vec::new();
        for tree in &whole {
            for order in self.postorders(space, tree, space.full) {
                if paths.len() == wanted.max_paths {
                    return Listing { paths, cut: true };
                }
                paths.push(path_of(space, &order));
            }
        }
        Listing { paths, cut: self.cut }
    }

    /// Returns every order of the contractions in which each subtree's are contiguous, as sets
    /// with their splits.
    fn postorders(&self, space: &PathSpace, tree: &Tree, set: Set) -> Vec<Vec<(Set, usize)>> {
        let Some(split) = tree.split else { return vec![Vec::new()] };
        let blocks = &space.blocks[space.splits[split].blocks.clone()];
        let below = blocks.iter().zip(&tree.children).filter(|(block, _)| block.count_ones() > 1);
        let below: Vec<Vec<Vec<(Set, usize)>>> = below
            .map(|(&block, &child)| {
                self.postorders(space, &self.of_set[block as usize][child], block)
            })
            .collect();
        let mut orders = vec![(Vec::new(), Vec::new())];
        for _ in 0..below.len() {
            let next = |(used, before): &(Vec<usize>, Vec<(Set, usize)>)| {
                let free = (0..below.len()).filter(|block| !used.contains(block));
                let longer = free.flat_map(|block| below[block].iter().map(move |o| (block, o)));
                longer
                    .map(|(block, o)| {
                        ([used.as_slice(), &[block]].concat(), [before.as_slice(), o].concat())
                    })
                    .collect::<Vec<_>>()
            };
            orders = orders.iter().flat_map(next).collect();
        }
        orders.into_iter().map(|(_, order)| [order.as_slice(), &[(set, split)]].concat()).collect()
    }
}

fn path_of(space: &PathSpace, order: &[(Set, usize)]) -> Path {
    let source = |&block: &Set| match order.iter().position(|&(set, _)| set == block) {
        Some(term) => Source::Term(term),
        None => Source::Input(block.trailing_zeros() as usize),
    };
    let term = |&(set, split): &(Set, usize)| {
        let Split { blocks, indices } = &space.splits[split];
        let inputs = space.blocks[blocks.clone()].iter().map(source).collect();
        Term { inputs, output: space.results[set as usize], indices: *indices }
    };
    Path { terms: order.iter().map(term).collect() }
}
