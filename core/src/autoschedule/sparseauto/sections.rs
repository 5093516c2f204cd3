//! Sections: what is still to be contracted inside some loops, and the ways to go on.
//!
//! A section has sources: sets of operands, each of which is an operand or the result of contracting several.  It is cut
//! into *components*: one makes the section's result, every other one makes a source of another component, which is
//! stored between them.  The cuts are the edges between a producer and a consumer that share no more loops.  A
//! component loops on over one more index, inside of which it is a section again, or is a single term inside all its loops.
//!
//! ```text
//! section(sources, loops)   = component(parts, loops) and section(part, loops) of each part of several sources
//! component(sources, loops) = the term, or a loop over x around section(sources, loops + x)
//! ```
//!
//! Every nest that splits and fusions reach comes about once.  It is given by the tree of contractions, the loops of each
//! term, and how many of the first loops that a producer and its consumer have in common they share.  Siblings that do
//! not read each other have no order.

use crate::cost::symbolic::Symbols;
use crate::einsum::{Index, IndexSet};
use crate::nest::{Forest, Node};
use crate::path::{Path, Source, live_indices};
use crate::schedule::Problem;
use crate::small_map::SmallMap;

/// A set of operands: bit `p` stands for input `p` of the expression.
pub(super) type Set = u32;

/// The most operands of which sections are tabulated: 877 lists of sources at six.
pub const MOST_OPERANDS: usize = 6;

/// The sections of a problem.
#[derive(Debug)]
pub struct Space<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The variables of its costs.
    pub symbols: Symbols,
    /// The lists of sources, by number; the last one is that of all operands.
    pub(super) lists: Vec<Sources>,
    numbers: SmallMap<Vec<Set>, usize>,
}

/// A list of sources.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub(super) sets: Vec<Set>,
    /// The indices of the loops around their product.
    pub(super) indices: IndexSet,
    /// The sparse operands whose levels its term walks in order, by place.
    ordered: Vec<usize>,
    /// The ways to cut it into components.
    pub(super) partitions: Vec<Partition>,
}

/// A way to cut a section: its own component, and those that make sources of it.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    /// The sources of the component that makes the result.
    pub(super) root: usize,
    pub(super) parts: Vec<Part>,
}

/// Sources that are contracted to one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) sources: usize,
    pub(super) result: IndexSet,
}

/// Loops around a section, and the levels that they walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Around {
    /// The indices.
    pub(super) loops: IndexSet,
    /// The levels, as [`Symbols`] number them.
    pub(super) walked: u64,
    /// How the innermost loop runs.
    pub(super) inner: Inner,
}

/// How the innermost loop around a term runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Inner {
    /// Nobody asks.
    Any,
    /// Over a level, or not at all: one iteration after the other.
    Scalar,
    /// Over a whole extent, in lanes of vectors.
    Lanes,
}

impl Around {
    /// No loops.
    pub(super) const NOTHING: Around =
        Around { loops: IndexSet::EMPTY, walked: 0, inner: Inner::Any };
}

impl<'a> Space<'a> {
    /// Tabulates the sections of `problem`; `None` if it has more than [`MOST_OPERANDS`] operands, or its sparse ones more
    /// than 64 levels.
    pub fn new(problem: &'a Problem) -> Option<Space<'a>> {
        let operands = problem.expr.inputs.len();
        let symbols = Symbols::of(problem).filter(|_| operands <= MOST_OPERANDS)?;
        let mut space = Space { problem, symbols, lists: Vec::new(), numbers: SmallMap::default() };
        space.number((0..operands).map(|input| 1 << input).collect());
        Some(space)
    }

    /// Returns the number of the list of all operands.
    pub(super) fn all(&self) -> usize {
        self.lists.len() - 1
    }

    /// Returns the indices that a contracted set hands on.
    fn result(&self, set: Set) -> IndexSet {
        let expr = &self.problem.expr;
        let of = |inside: bool| {
            let inputs = (0..expr.inputs.len()).filter(|input| (set >> input & 1 == 1) == inside);
            inputs.fold(IndexSet::EMPTY, |all, input| all | expr.looped(input))
        };
        match set.count_ones() {
            1 => of(true),
            _ => live_indices(of(true), of(false) | expr.output.set()),
        }
    }

    /// Returns the number of a list of sources, which is tabulated behind all lists that come of it.
    fn number(&mut self, sets: Vec<Set>) -> usize {
        if let Some(&number) = self.numbers.get(&sets) {
            return number;
        }
        let indices = sets.iter().fold(IndexSet::EMPTY, |all, &set| all | self.result(set));
        let all = sets.iter().fold(0, |all, set| all | set);
        let last = all.count_ones() as usize == self.problem.expr.inputs.len();
        let pattern = last && self.problem.has_pattern_output();
        let reads = |(place, x): (usize, &crate::schedule::SparseOperand)| {
            (sets.contains(&(1 << x.input)) || pattern && place == 0).then_some(place)
        };
        let ordered = self.problem.sparse.iter().enumerate().filter_map(reads).collect();
        let mut partitions = Vec::new();
        for blocks in cuts(&sets) {
            let mut parts = Vec::new();
            let mut root = Vec::new();
            for block in blocks {
                let set = block.iter().fold(0, |all, set| all | set);
                root.push(set);
                if block.len() > 1 {
                    parts.push(Part { sources: self.number(block), result: self.result(set) });
                }
            }
            root.sort_unstable();
            let root = if parts.is_empty() { usize::MAX } else { self.number(root) };
            partitions.push(Partition { root, parts });
        }
        // Fewer sources of the last term first.
        let sources =
            |one: &Partition| self.lists.get(one.root).map_or(sets.len(), |list| list.sets.len());
        partitions.sort_by_key(sources);
        let number = self.lists.len();
        let own = partitions.iter_mut().filter(|one| one.root == usize::MAX);
        own.for_each(|one| one.root = number);
        self.lists.push(Sources { sets: sets.clone(), indices, ordered, partitions });
        self.numbers.insert(sets, number);
        number
    }

    /// Returns the loops inside one more, over `index`, that a component of `sources` may be put in; `None` if a term
    /// of it walks another level before that.
    pub(super) fn inside(&self, sources: usize, around: Around, index: Index) -> Option<Around> {
        let list = &self.lists[sources];
        let walks = |&place: &usize| {
            let level = self.problem.sparse[place].levels().contains(&index);
            !level || self.symbols.next_level(place, around.walked) == Some(index)
        };
        list.ordered.iter().all(walks).then(|| {
            let walked = self.symbols.walk(around.walked, index);
            let inner = match around.inner {
                Inner::Any => Inner::Any,
                _ if walked == around.walked => Inner::Lanes,
                _ => Inner::Scalar,
            };
            Around { loops: around.loops.with(index), walked, inner }
        })
    }

    /// Writes a plan as a path and a nest.
    pub(super) fn nest(&self, plan: &SectionPlan) -> (Path, Forest) {
        let mut products = Products { space: self, made: Vec::new(), products: Vec::new() };
        let roots = products.section(self.all(), plan);
        (Path::of_products(&products.products, &self.problem.expr), Forest { roots })
    }
}

/// Returns the ways to put `sets` into blocks, but not into a single one of several; the lists are sorted.
fn cuts(sets: &[Set]) -> Vec<Vec<Vec<Set>>> {
    let mut all: Vec<Vec<Vec<Set>>> = vec![Vec::new()];
    for &set in sets {
        let grow = |blocks: &Vec<Vec<Set>>| {
            let own = blocks.iter().cloned().chain([vec![set]]).collect::<Vec<_>>();
            let joined = (0..blocks.len()).map(|at| {
                let mut more = blocks.clone();
                more[at].push(set);
                more
            });
            joined.chain([own]).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(grow).collect();
    }
    all.retain(|blocks| blocks.len() > 1 || blocks.iter().all(|block| block.len() == 1));
    all
}

/// How a section is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SectionPlan {
    /// The partition, by number.
    pub(super) partition: usize,
    pub(super) parts: Vec<SectionPlan>,
    pub(super) root: Box<ComponentPlan>,
}

/// How a component is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ComponentPlan {
    /// As one term.
    Term,
    /// Inside one more loop.
    Loop(Index, SectionPlan),
}

/// The products of a plan, in order.
struct Products<'s> {
    space: &'s Space<'s>,
    /// The sets that products contract.
    made: Vec<Set>,
    products: Vec<Vec<Source>>,
}

impl Products<'_> {
    fn section(&mut self, sources: usize, plan: &SectionPlan) -> Vec<Node> {
        let partition = &self.space.lists[sources].partitions[plan.partition];
        let mut nodes = Vec::new();
        for (part, plan) in partition.parts.iter().zip(&plan.parts) {
            nodes.extend(self.section(part.sources, plan));
        }
        nodes.push(match &*plan.root {
            ComponentPlan::Term => Node::Term(self.term(partition.root)),
            ComponentPlan::Loop(index, inner) => {
                Node::Loop { index: *index, body: self.section(partition.root, inner) }
            }
        });
        nodes
    }

    fn term(&mut self, sources: usize) -> usize {
        let sets = &self.space.lists[sources].sets;
        let source = |&set: &Set| match self.made.iter().position(|&made| made == set) {
            Some(term) => Source::Term(term),
            None => Source::Input(set.trailing_zeros() as usize),
        };
        self.products.push(sets.iter().map(source).collect());
        self.made.push(sets.iter().fold(0, |all, set| all | set));
        self.products.len() - 1
    }
}
