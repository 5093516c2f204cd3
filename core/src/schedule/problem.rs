//! What a search is asked.

use crate::einsum::{Access, Expr, Extents, Index, IndexSet};
use crate::optimisation::Optimisations;
use crate::schedule::{Format, LevelKind, MOST_WORKSPACE_CELLS, Pattern, SplitIndex, infer};

/// An expression with the facts that a search may use.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The expression.
    pub expr: Expr,
    /// The extent of every index.
    pub extents: Extents,
    /// The sparse operands, the leader first ([`Problem::leader`]); all others are dense.
    pub sparse: Vec<SparseOperand>,
    /// The indices that are cut into pieces: the expression and the extents have both parts of each.
    pub splits: Vec<SplitIndex>,
    /// How the output is stored.
    pub output: OutputForm,
    /// Who decides how dense operands are stored.
    pub packing: Packing,
    /// Buffers of intermediates must not have more stored indices than this.
    pub max_buffer_dims: usize,
    /// Buffers of intermediates must not be larger than this, in bytes.
    pub max_buffer_bytes: u64,
    /// Size of a value in bytes: 8 or 4.
    pub value_bytes: usize,
    /// What generated code may make use of; no search looks at it.
    pub optimisations: Optimisations,
    /// What the join of the sparse operands has, if it was counted.
    pub join: Option<JoinCounts>,
    /// Which trees there are, where the time to build the others counts; `None`: it does not, since the kernel runs often.
    pub storing: Option<Storing>,
}

/// What is stored already when a kernel runs once, for which the trees of its sparse operands are built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storing {
    /// The trees that are there; lists are there too, sorted by their modes.
    pub trees: Vec<StoredTree>,
}

/// A sparse operand as a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTree {
    /// Which input of the expression it is.
    pub input: usize,
    /// Its levels.
    pub format: Format,
}

/// What was counted of a join of sparse operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinCounts {
    /// The products of non-zeros whose coordinates agree: of two operands exactly.
    pub products: u64,
    /// About how many different coordinates they have in the indices of the output.
    pub elements: u64,
}

/// Tells whether the output of `expr` is stored at the positions of its input `first`, where the inputs `sparse` are
/// sparse: it has all indices of that input, and no others of a sparse one, of which a dense block would be mostly
/// empty.
pub fn has_pattern_of(expr: &Expr, first: usize, sparse: &[usize]) -> bool {
    let (own, output) = (expr.inputs[first].set(), expr.output.set());
    let walked = sparse.iter().fold(IndexSet::EMPTY, |set, &input| set | expr.inputs[input].set());
    own.is_subset(output) && ((output - own) & walked).is_empty()
}

/// How an output is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputForm {
    /// As a dense array.
    Dense,
    /// As the coordinates that are met, assembled while the kernel runs.
    Assembled,
    /// As values at the positions of the leader, of which it must have all indices; its
    /// other indices are a dense block at each position.
    Pattern,
}

impl OutputForm {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            OutputForm::Dense => "array",
            OutputForm::Assembled => "list",
            OutputForm::Pattern => "pattern",
        }
    }
}

/// A sparse operand of a problem.
#[derive(Clone, Debug)]
pub struct SparseOperand {
    /// Which input of the expression it is.
    pub input: usize,
    /// Its levels.
    pub format: Format,
    /// What is known of its pattern.
    pub pattern: Pattern,
}

impl SparseOperand {
    /// Returns the indices of the levels, outermost first.
    pub fn levels(&self) -> &[Index] {
        self.format.levels()
    }

    /// Returns how many of the last levels share their positions; 1 is plain CSF.
    pub fn fused(&self) -> usize {
        self.format.fused()
    }

    /// Tells whether the operand is stored block by block.
    pub fn in_blocks(&self) -> bool {
        self.levels().first() == Some(&Index::BLOCK)
    }

    /// Tells whether a level, stored in `format`, is known to have a node for every coordinate below each node above.
    ///
    /// Counts of pieces and blocks may be estimates, so that nothing is known of them.
    pub fn is_full(&self, format: &Format, level: usize, problem: &Problem) -> bool {
        if !problem.splits.is_empty() || self.in_blocks() || self.is_fused(level) {
            return false;
        }
        let counted = |depth: usize| match depth {
            0 => Some(1),
            _ => self.pattern.counted(self.levels()[..depth].iter().copied().collect()),
        };
        // Dense levels above have places for more nodes than there are, unless they are full.
        let dense = format.kinds()[..level].iter().rev().take_while(|k| **k == LevelKind::Dense);
        let first = level - dense.count();
        let places = self.levels()[first..=level].iter().map(|&index| problem.extents.of(index));
        let places = counted(first).map(|above| places.fold(above, u64::saturating_mul));
        places.is_some() && counted(level + 1) == places
    }

    /// Tells whether one position loop walks level `level` together with others.
    pub fn is_fused(&self, level: usize) -> bool {
        self.fused() > 1 && level + self.fused() >= self.levels().len()
    }

    /// Returns how many levels loops over `around`, outermost first, walk: a loop over the next
    /// level walks it, every other one runs over its extent.
    pub fn walked(&self, around: impl IntoIterator<Item = Index>) -> usize {
        let next =
            |walked: usize, index| walked + usize::from(self.levels().get(walked) == Some(&index));
        around.into_iter().fold(0, next)
    }

    /// Returns the levels inside `loops` that loops over these indices can walk: a prefix.
    pub fn prefix(&self, loops: IndexSet) -> IndexSet {
        self.levels().iter().copied().take_while(|&index| loops.contains(index)).collect()
    }

    /// Returns the share of the coordinate tuples in the levels `walked`, a prefix, that occur, of those whose coordinates in
    /// `met` do.
    fn density(&self, walked: IndexSet, met: IndexSet, extents: &Extents) -> f64 {
        if walked.is_subset(met) {
            return 1.0;
        }
        let free = (walked - met).iter().map(|index| extents.of(index) as f64).product::<f64>();
        let nodes = if met.is_empty() { 1 } else { self.pattern.count(met, extents) };
        self.nodes(walked, extents) as f64 / (free * nodes as f64).max(1.0)
    }

    /// Returns the number of nodes that loops over the levels `walked`, a prefix, visit.
    ///
    /// Fused levels have a node for each non-zero.
    pub fn nodes(&self, walked: IndexSet, extents: &Extents) -> u64 {
        let fused = walked.len() > self.levels().len() - self.fused();
        let all: IndexSet = self.levels().iter().copied().collect();
        self.pattern.count(if fused { all } else { walked }, extents)
    }

    /// Returns the mean number of children of a node above `level`, or the nodes of the root level.
    pub fn children(&self, level: usize, extents: &Extents) -> f64 {
        let nodes = |depth: usize| {
            self.nodes(self.levels()[..depth].iter().copied().collect(), extents) as f64
        };
        let above = if level == 0 { 1.0 } else { nodes(level).max(1.0) };
        nodes(level + 1) / above
    }
}

/// The default bound on the stored indices of a buffer, as in the evaluation of SpTTN, where rows of the result do not
/// ask for more.
const MAX_BUFFER_DIMS: usize = 2;

/// The default bound on the bytes of a buffer: a quarter of a second-level cache leaves room for the
/// operands.
const MAX_BUFFER_BYTES: u64 = 256 << 10;

/// Bytes of a value, unless the caller says otherwise.
const VALUE_BYTES: usize = 8;

/// Who decides the order in which dense operands store their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The schedule: they are packed as its loops read them.
    Suited,
    /// The expression: they are stored as it names them.
    Named,
}

impl Problem {
    /// Poses `expr` with one sparse operand; an output that has all its indices has its pattern.
    pub fn new(expr: Expr, extents: Extents, sparse: SparseOperand) -> Problem {
        Problem::joining(expr, extents, vec![sparse])
    }

    /// Poses `expr` with several sparse operands; an output has the pattern of the first as [`has_pattern_of`]
    /// says.
    pub fn joining(expr: Expr, extents: Extents, sparse: Vec<SparseOperand>) -> Problem {
        let inputs: Vec<usize> = sparse.iter().map(|x| x.input).collect();
        let leader = inputs.first().copied();
        let tensor = leader.map(|input| expr.inputs[input].set()).unwrap_or_default();
        let pattern = leader.is_some_and(|input| has_pattern_of(&expr, input, &inputs));
        // The last of the intermediates that the levels of the tree make one of the other, as those of a TTMc, has all
        // indices of a row of the result but one.
        let row = (expr.output.set() - tensor).len();
        // An operand that no level of the tree picks a row of, as the core of a Tucker model, shrinks by one index a term.
        let whole = expr.inputs.iter().map(Access::set).filter(|set| (*set & tensor).is_empty());
        let (most, bytes) = whole.fold((row, MAX_BUFFER_BYTES), |(most, bytes), set| {
            let extents = set.iter().map(|index| extents.of(index));
            let size = extents.fold(VALUE_BYTES as u64, u64::saturating_mul);
            (most.max(set.len()), bytes.max(size))
        });
        Problem {
            output: if pattern { OutputForm::Pattern } else { OutputForm::Dense },
            expr,
            extents,
            sparse,
            splits: Vec::new(),
            packing: Packing::Suited,
            max_buffer_dims: MAX_BUFFER_DIMS.max(most.saturating_sub(1)),
            max_buffer_bytes: bytes,
            value_bytes: VALUE_BYTES,
            optimisations: Optimisations::default(),
            join: None,
            storing: None,
        }
    }

    /// Returns the sparse operand that leads: its non-zeros are cut into tasks, and its levels give the order of rows.
    pub fn leader(&self) -> Option<&SparseOperand> {
        match self.sparse.as_slice() {
            [leader, ..] => Some(leader),
            [] => None,
        }
    }

    /// Returns the leader, to be changed.
    pub fn leader_mut(&mut self) -> Option<&mut SparseOperand> {
        match self.sparse.as_mut_slice() {
            [leader, ..] => Some(leader),
            [] => None,
        }
    }

    /// Tells whether the output is stored at the positions of the leader.
    pub fn has_pattern_output(&self) -> bool {
        self.output == OutputForm::Pattern
    }

    /// Returns about how many elements an assembled output has: of a single sparse operand as its counts say, of a join
    /// as was counted.  Otherwise as [`infer`] estimates, but no more than coordinates of the operands go together.
    pub fn assembled_elements(&self) -> u64 {
        let output = self.expr.output.set();
        let extents = |set: IndexSet| -> f64 {
            set.iter().map(|index| self.extents.of(index) as f64).product()
        };
        let levels = |x: &SparseOperand| x.levels().iter().copied().collect::<IndexSet>();
        let walked = self.joined_indices();
        let own = |x: &SparseOperand| x.pattern.count(levels(x) & output, &self.extents) as f64;
        let different =
            self.sparse.iter().enumerate().filter(|(at, x)| {
                !self.sparse[..*at].iter().any(|earlier| self.is_again(x, earlier))
            });
        let different: Vec<&SparseOperand> = different.map(|(_, x)| x).collect();
        let most = different.iter().map(|x| own(x)).product::<f64>() * extents(output - walked);
        if different.len() == 1 {
            return most.ceil() as u64;
        }
        if let Some(join) = self.join {
            return (join.elements as f64 * extents(output - walked)) as u64;
        }
        infer(self).elements.min(most).ceil() as u64
    }

    /// Tells whether rows of the output are added to in another order than that of the root.
    pub fn scatters(&self) -> bool {
        let root = self.leader().and_then(|x| x.levels().first().copied());
        let rows = self.expr.output.set() & self.sparse_indices();
        self.output == OutputForm::Dense
            && !rows.is_empty()
            && root.is_none_or(|root| !rows.contains(root))
    }

    /// Tells whether the sparse operand's blocks are ranges of the rows of the output, whose last term stands in
    /// the loops `last` and writes only the rows that a block meets: then tasks that walk whole
    /// blocks own rows.
    pub fn owns_ranges(&self, last: &[Index]) -> bool {
        let Some((x, ranged)) = self.leader().and_then(|x| Some((x, x.pattern.ranged()?))) else {
            return false;
        };
        let rows = self.expr.output.set() & self.sparse_indices();
        let level = x.levels().iter().position(|&index| index == ranged);
        let walked = x.walked(last.iter().copied());
        x.in_blocks()
            && rows == IndexSet::EMPTY.with(ranged)
            && self.expr.output.indices.len() > 1
            && level.is_some_and(|level| level < walked)
    }

    /// Tells whether a buffer over `stored` keeps both bounds.
    pub fn allows_buffer(&self, stored: IndexSet) -> bool {
        stored.len() <= self.max_buffer_dims && self.buffer_bytes(stored) <= self.max_buffer_bytes
    }

    /// Tells whether a sparse buffer may be over `stored`: as only what is met is read and cleared, it has as much room as
    /// the workspace of an assembled output.
    pub fn allows_sparse_buffer(&self, stored: IndexSet) -> bool {
        let most = MOST_WORKSPACE_CELLS * self.value_bytes as u64;
        stored.len() <= self.max_buffer_dims && self.buffer_bytes(stored) <= most
    }

    /// Returns the bytes of a buffer over `stored`.
    pub fn buffer_bytes(&self, stored: IndexSet) -> u64 {
        let extents = stored.iter().map(|index| self.extents.of(index));
        extents.fold(self.value_bytes as u64, u64::saturating_mul)
    }

    /// Returns the bytes of the slice of a dense output that belongs to one value of `index`.
    pub fn slice_bytes(&self, index: Index) -> u64 {
        self.buffer_bytes(self.expr.output.set() - IndexSet::EMPTY.with(index))
    }

    /// Returns how often the innermost statement runs inside loops over the indices `loops`.
    ///
    /// The longest prefix of each sparse operand's levels inside `loops` is walked as a tree; every other index runs over its
    /// extent.  A coordinate of the first operand is taken to occur in another one as often as any: the densities of prefixes
    /// multiply (Scorch, section III-C).  A tensor that is multiplied with itself has its own coordinates where both have the
    /// same indices.  Products of all operands are as many as were counted.  Saturates.
    pub fn iterations(&self, loops: IndexSet) -> u64 {
        let joined = self.join.map(|join| (join, self.joined_indices()));
        if let Some((join, all)) = joined.filter(|(_, all)| all.is_subset(loops)) {
            let dense = (loops - all).iter().map(|index| self.extents.of(index));
            return dense.fold(join.products, u64::saturating_mul);
        }
        let walked = self.walked(loops);
        let tree = self.leader().map_or(1, |x| x.nodes(walked, &self.extents));
        let dense = (loops - walked).iter().map(|index| self.extents.of(index));
        let cells = dense.fold(tree, u64::saturating_mul);
        let others = self.sparse.iter().enumerate().skip(1).map(|(at, x)| {
            let walked = x.prefix(loops);
            x.density(walked, self.met_before(at, walked, loops), &self.extents)
        });
        match others.product::<f64>() {
            1.0 => cells,
            density => (cells as f64 * density).ceil() as u64,
        }
    }

    /// Returns which indices of the levels `walked` of sparse operand number `at` an operand before it walks inside `loops`
    /// too, that is the same tensor with the same indices there: all of their coordinates occur.
    fn met_before(&self, at: usize, walked: IndexSet, loops: IndexSet) -> IndexSet {
        let own = &self.expr.inputs[self.sparse[at].input];
        let earlier = self.sparse[..at].iter().filter_map(|earlier| {
            let other = &self.expr.inputs[earlier.input];
            // The modes of operands whose indices are cut need not be those of the tensor.
            if own.tensor != other.tensor || !self.splits.is_empty() && own != other {
                return None;
            }
            let modes = own.indices.iter().zip(&other.indices);
            let same: IndexSet = modes.filter(|(a, b)| a == b).map(|(&a, _)| a).collect();
            Some(same & walked & earlier.prefix(loops))
        });
        earlier.max_by_key(|met| met.len()).unwrap_or_default()
    }

    /// Tells whether sparse operand `x` is the same tensor with the same indices as `earlier`: its coordinates are the same.
    pub fn is_again(&self, x: &SparseOperand, earlier: &SparseOperand) -> bool {
        self.expr.inputs[x.input] == self.expr.inputs[earlier.input]
    }

    /// Returns the inputs that are dense, by position.
    pub fn dense_inputs(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.expr.inputs.len()).filter(|&input| self.sparse_place(input).is_none())
    }

    /// Returns where input `input` stands in the list of sparse operands; `None` if it is dense.
    pub fn sparse_place(&self, input: usize) -> Option<usize> {
        self.sparse.iter().position(|x| x.input == input)
    }

    /// Returns the part of `loops` that is walked as a prefix of the sparse operand's tree.
    pub fn walked(&self, loops: IndexSet) -> IndexSet {
        self.leader().map(|x| x.prefix(loops)).unwrap_or_default()
    }

    /// Returns the order in which a dense operand's `indices` are stored for a term inside `loops`.
    ///
    /// Dense loops around those over the tree come first: while they stand still, what is read lies
    /// together.  The others follow as in [`Problem::output_order`].
    pub fn operand_order(&self, indices: &[Index], loops: &[Index]) -> Vec<Index> {
        if self.packing == Packing::Named {
            return indices.to_vec();
        }
        let root = self.leader().and_then(|x| x.levels().first());
        let first = loops.iter().position(|index| Some(index) == root).unwrap_or(0);
        let mut order = Vec::with_capacity(indices.len());
        order.extend(loops[..first].iter().copied().filter(|index| indices.contains(index)));
        let inner = self.stored_inside(indices, loops);
        order.extend(inner.filter(|index| !loops[..first].contains(index)));
        order
    }

    /// Returns the order in which the output's `indices` are stored for a last term inside `loops`:
    /// those of the tree first, by level, so that tasks own rows; then the others as they are looped.
    pub fn output_order(&self, indices: &[Index], loops: &[Index]) -> Vec<Index> {
        self.stored_inside(indices, loops).collect()
    }

    /// Iterates over `indices`: those of the tree, by level, and then the others as `loops` have them.
    fn stored_inside<'a>(
        &'a self,
        indices: &'a [Index],
        loops: &'a [Index],
    ) -> impl Iterator<Item = Index> + 'a {
        let levels = self.leader().map_or(&[][..], |x| x.levels());
        let looped = loops.iter().filter(|index| !levels.contains(index));
        levels.iter().chain(looped).copied().filter(|index| indices.contains(index))
    }

    /// Returns the indices of the leader.
    pub fn sparse_indices(&self) -> IndexSet {
        self.leader().map(|x| x.levels().iter().copied().collect()).unwrap_or_default()
    }

    /// Returns the indices of the levels of all sparse operands.
    pub fn joined_indices(&self) -> IndexSet {
        self.sparse.iter().flat_map(|x| x.levels()).copied().collect()
    }
}
