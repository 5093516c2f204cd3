//! Indices cut into pieces: `split` and `divide` of the scheduling language.
//!
//! ```text
//! split  k K 32             for K in 0..|k|/32   for k in 0..32      pieces of 32
//! divide k K 8              for K in 0..8        for k in 0..|k|/8   8 pieces
//! split  j J 8 of X         for J in pieces of 8 nodes of the level of j    for j in the nodes of piece J
//! ```
//!
//! A coordinate of the index is `K * size + k`.  The outer part is an index like every other: it has loops of its own, and
//! every tensor that has the index has both parts.  `A(i,k) = X(i,j) * C(j,k)` becomes `A(i,K,k) = X(i,j) * C(j,K,k)`.  A
//! loop over `K` outside all others makes tiles; `C` is then stored piece by piece.  The two parts of an index of a sparse
//! operand are two levels of its tree.
//!
//! Where the size does not divide the extent, the last piece is longer than the tensor.  Dense operands are zero there.
//!
//! Positions of a level are cut where a tree is not to be stored in another way.  Only the leader then has the outer part,
//! whose extent is 1: its coordinate is always 0, and what numbers the pieces is their place below a node.
//!
//! Source: Senanayake et al., "A Sparse Iteration Space Transformation Framework for Sparse Tensor Algebra", OOPSLA 2020,
//! section 3.

use std::fmt;

use crate::einsum::{Access, Expr, Index, IndexSet};
use crate::error::CoreError;
use crate::schedule::{Format, Problem, SparseOperand, Storing};

/// A command that cuts a loop in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Command {
    /// The inner loop has a fixed number of iterations.
    Split,
    /// The outer loop has a fixed number of iterations.
    Divide,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Command::Split => "split",
            Command::Divide => "divide",
        })
    }
}

/// What the elements of a chunk are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chunks {
    /// Neighbours.
    Contiguous,
    /// As far apart as there are chunks.
    Strided,
}

/// What is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cut {
    /// The range of the index: both parts are indices of each tensor that has it.
    Coordinates,
    /// The nodes of the index's level below each node of the level above, in the tree of an input that leads: the outer
    /// part is a level of that tree that is not stored.
    Positions {
        /// The input.
        input: usize,
        /// Which nodes a piece has.  Of strided ones the outer part numbers the first nodes.
        chunks: Chunks,
    },
}

/// An index cut into pieces of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Split {
    /// The index, which counts inside a piece from now on.
    pub index: Index,
    /// The index that numbers the pieces.
    pub outer: Index,
    /// Whether the size of pieces is given or their number.
    pub command: Command,
    /// That number.
    pub factor: u64,
    /// What is cut.
    pub cut: Cut,
}

impl Split {
    /// Returns the size of a piece of an index of this extent.
    pub fn size(&self, extent: u64) -> u64 {
        match self.command {
            Command::Split => self.factor,
            Command::Divide => extent.div_ceil(self.factor.max(1)),
        }
        .max(1)
    }

    /// Returns how many pieces an index of this extent has.
    pub fn pieces(&self, extent: u64) -> u64 {
        extent.div_ceil(self.size(extent))
    }

    /// Returns the expression with both parts in the place of the index; of a cut of positions only the input that leads
    /// has them, and the output if it has all indices of that input.
    pub(super) fn cut_all(&self, expr: &Expr) -> Expr {
        let (everywhere, leader) = match self.cut {
            Cut::Coordinates => (true, None),
            Cut::Positions { input, .. } => (false, Some(input)),
        };
        let own = leader.and_then(|input| expr.inputs.get(input)).map(Access::set);
        let own = own.unwrap_or_default();
        let cut = |access: &Access, is_cut: bool| {
            if is_cut { self.cut(access) } else { access.clone() }
        };
        let inputs = expr.inputs.iter().enumerate();
        let inputs = inputs.map(|(at, access)| cut(access, everywhere || Some(at) == leader));
        let pattern = own.is_subset(expr.output.set());
        Expr { inputs: inputs.collect(), output: cut(&expr.output, everywhere || pattern) }
    }

    /// Writes the split with these names of the inputs, as a schedule has it.
    pub fn text(&self, names: &[String]) -> String {
        let Split { index, outer, command, factor, cut } = self;
        let cut = match cut {
            Cut::Coordinates => String::new(),
            Cut::Positions { input, chunks } => {
                let strided = if *chunks == Chunks::Strided { " strided" } else { "" };
                let name = names.get(*input).map_or("?", String::as_str);
                format!(" of {name}{strided}")
            }
        };
        format!("{command} {index} {outer} {factor}{cut}")
    }

    /// Tells whether positions of the leader's tree are cut.
    pub fn cuts_positions(&self) -> bool {
        self.cut != Cut::Coordinates
    }

    /// Returns the access with both parts in the place of the index.
    fn cut(&self, access: &Access) -> Access {
        let parts = access.indices.iter().flat_map(|&index| {
            let outer = (index == self.index).then_some(self.outer);
            outer.into_iter().chain([index])
        });
        Access { tensor: access.tensor.clone(), indices: parts.collect() }
    }
}

/// A split of a problem, with the extent that the index had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SplitIndex {
    /// The split.
    pub split: Split,
    /// The extent of the whole index.
    pub extent: u64,
}

impl SplitIndex {
    /// Returns the size of a piece.
    pub fn size(&self) -> u64 {
        self.split.size(self.extent)
    }
}

impl Problem {
    /// Returns the letters that are taken: those of indices, and those that name a tensor.
    pub fn letters(&self) -> IndexSet {
        let accesses = self.expr.inputs.iter().chain([&self.expr.output]);
        let letter = |access: &Access| {
            let mut letters = access.tensor.chars();
            letters.next().and_then(Index::named).filter(|_| letters.next().is_none())
        };
        self.expr.all() | accesses.filter_map(letter).collect()
    }
}

/// Returns a letter that `taken` lacks: the other case of `index`, or else the first that is free.
pub fn free_letter(index: Index, taken: IndexSet) -> Option<Index> {
    let letter = index.letter();
    let other = match letter.is_ascii_lowercase() {
        true => letter.to_ascii_uppercase(),
        false => letter.to_ascii_lowercase(),
    };
    let letters = std::iter::once(other).chain('A'..='Z').chain('a'..='z');
    letters.filter_map(Index::named).find(|&index| !taken.contains(index))
}

impl Problem {
    /// Returns the problem with indices cut into pieces.
    ///
    /// # Errors
    ///
    /// [`CoreError::Split`] if an index is none of the expression, its extent is not cut into several pieces of several
    /// coordinates, or the outer letter is taken.
    pub fn split(&self, splits: &[Split]) -> Result<Problem, CoreError> {
        splits.iter().try_fold(self.clone(), |problem, split| problem.split_one(split))
    }

    fn split_one(mut self, split: &Split) -> Result<Problem, CoreError> {
        let (size, pieces) = self.check_split(split)?;
        let extent = self.extents.of(split.index);
        let expr = split.cut_all(&self.expr);
        let parts = |x: &SparseOperand| {
            let whole = Access { tensor: String::new(), indices: x.levels().to_vec() };
            Format::csf(split.cut(&whole).indices)
        };
        if split.cuts_positions() {
            self.extents.set(split.outer, 1);
            if let [x, ..] = self.sparse.as_mut_slice() {
                x.pattern = x.pattern.split_positions(split, x.levels(), &self.extents);
                x.format = parts(x);
            }
        } else {
            for x in self.sparse.iter_mut().filter(|x| x.levels().contains(&split.index)) {
                x.format = parts(x);
                x.pattern = x.pattern.split(split, (size, pieces), &self.extents);
            }
            self.extents.set(split.outer, pieces);
            self.extents.set(split.index, size);
        }
        // A tree with the whole index is none with both parts.
        let sparse = &self.sparse;
        let whole = |input: usize| {
            !sparse.iter().any(|x| x.input == input && x.levels().contains(&split.index))
        };
        self.storing = self.storing.map(|storing| Storing {
            trees: storing.trees.into_iter().filter(|tree| whole(tree.input)).collect(),
        });
        self.expr = expr;
        self.max_buffer_dims = self.max_buffer_dims.saturating_add(1);
        self.splits.push(SplitIndex { split: *split, extent });
        Ok(self)
    }

    /// Returns the size of a piece and how many there are; of positions, of as many as there are coordinates.
    fn check_split(&self, split: &Split) -> Result<(u64, u64), CoreError> {
        let all = self.expr.all();
        let names = self.expr.operand_names();
        let bad = |why: String| Err(CoreError::Split { split: split.text(&names), why });
        if !all.contains(split.index) || split.index == Index::BLOCK {
            return bad(format!("{} is no index of {}", split.index, self.expr));
        }
        if all.contains(split.outer) || split.outer == Index::BLOCK {
            return bad(format!("{} is an index already; take another letter", split.outer));
        }
        let extent = self.extents.of(split.index);
        let (size, pieces) = (split.size(extent), split.pieces(extent));
        if let Cut::Positions { input, .. } = split.cut {
            let leads = self.leader().is_some_and(|x| x.input == input);
            let inner = self.leader().map_or(&[][..], |x| x.levels().get(1..).unwrap_or_default());
            if !leads
                || !inner.contains(&split.index)
                || self.leader().is_some_and(|x| x.fused() > 1)
            {
                return bad(format!(
                    "{} is no level below the root of the leader, whose non-zeros are cut into tasks",
                    split.index
                ));
            }
            if split.factor < 2 {
                return bad("a factor from 2 cuts it".into());
            }
            return Ok((size, pieces));
        }
        if size < 2 || pieces < 2 {
            let (index, most) = (split.index, extent.saturating_sub(1));
            return match extent {
                0..3 => bad(format!("{index} runs to {extent} and is too short to be cut")),
                _ => bad(format!("{index} runs to {extent}; a factor from 2 to {most} cuts it")),
            };
        }
        // What lies beyond a piece belongs to the next one.
        let inner = self.splits.iter().any(|own| own.split.index == split.index);
        if inner && !extent.is_multiple_of(size) {
            let index = split.index;
            return bad(format!(
                "{index} counts inside pieces of {extent}, which {size} must divide"
            ));
        }
        let blocked = |x: &SparseOperand| x.in_blocks() && x.levels().contains(&split.index);
        if self.sparse.iter().any(blocked) {
            return bad(format!("{} is cut into bit slices already", split.index));
        }
        Ok((size, pieces))
    }

    /// Returns the cut of positions whose pieces `index` numbers.
    pub fn position_cut(&self, index: Index) -> Option<&Split> {
        let own = |split: &&Split| split.outer == index && split.cuts_positions();
        self.splits.iter().map(|own| &own.split).find(own)
    }

    /// Returns the expression as its tensors are stored: pieces of positions are not.
    pub fn stored_expr(&self) -> Expr {
        let stored = |access: &Access| Access {
            tensor: access.tensor.clone(),
            indices: self.stored(&access.indices).collect(),
        };
        let inputs = self.expr.inputs.iter().map(stored).collect();
        Expr { output: stored(&self.expr.output), inputs }
    }

    /// Returns those of `indices` that are stored.
    pub fn stored<'a>(&'a self, indices: &'a [Index]) -> impl Iterator<Item = Index> + 'a {
        indices.iter().copied().filter(|&index| self.position_cut(index).is_none())
    }

    /// Returns the splits that change how tensors are stored: those of coordinates.
    pub fn stored_splits(&self) -> Vec<SplitIndex> {
        self.splits.iter().copied().filter(|own| !own.split.cuts_positions()).collect()
    }
}
