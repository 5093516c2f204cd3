//! Indices cut into pieces: `split` and `divide` of the scheduling language.
//!
//! ```text
//! split  k K 32     for K in 0..|k|/32   for k in 0..32         pieces of 32
//! divide k K 8      for K in 0..8        for k in 0..|k|/8      8 pieces
//! ```
//!
//! A coordinate of the index is `K * size + k`.  The outer part is an index like every other: it has loops of its own, and
//! every tensor that has the index has both parts.  `A(i,k) = X(i,j) * C(j,k)` becomes `A(i,K,k) = X(i,j) * C(j,K,k)`.  A
//! loop over `K` outside all others makes tiles; `C` is then stored piece by piece.  The two parts of an index of a sparse
//! operand are two levels of its tree.
//!
//! Where the size does not divide the extent, the last piece is longer than the tensor.  Dense operands are zero there.
//!
//! Source: Senanayake et al., "A Sparse Iteration Space Transformation Framework for Sparse Tensor Algebra", OOPSLA 2020,
//! section 3.

use std::fmt;

use crate::einsum::{Access, Expr, Index, IndexSet};
use crate::error::CoreError;
use crate::schedule::{Problem, SparseOperand, Storing};

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

    /// Returns the expression with both parts in the place of the index.
    pub(super) fn cut_all(&self, expr: &Expr) -> Expr {
        let inputs = expr.inputs.iter().map(|access| self.cut(access)).collect();
        Expr { output: self.cut(&expr.output), inputs }
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

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8} {} {} {}", self.command.to_string(), self.index, self.outer, self.factor)
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
        let all = self.expr.all();
        let bad = |why: String| Err(CoreError::Split { split: split.to_string(), why });
        if !all.contains(split.index) || split.index == Index::BLOCK {
            return bad(format!("{} is no index of {}", split.index, self.expr));
        }
        if all.contains(split.outer) || split.outer == Index::BLOCK {
            return bad(format!("{} is an index already; take another letter", split.outer));
        }
        let extent = self.extents.of(split.index);
        let (size, pieces) = (split.size(extent), split.pieces(extent));
        if size < 2 || pieces < 2 {
            return bad(format!(
                "{} runs to {extent}; a factor from 2 to {} cuts it",
                split.index,
                extent / 2
            ));
        }
        let blocked = |x: &SparseOperand| x.in_blocks() && x.levels.contains(&split.index);
        if self.sparse.iter().any(blocked) {
            return bad(format!("{} is cut into bit slices already", split.index));
        }
        let expr = split.cut_all(&self.expr);
        for x in self.sparse.iter_mut().filter(|x| x.levels.contains(&split.index)) {
            let levels = Access { tensor: String::new(), indices: x.levels.clone() };
            x.levels = split.cut(&levels).indices;
            x.fused = 1;
            x.pattern = x.pattern.split(split, (size, pieces), &self.extents);
        }
        // A tree with the whole index is none with both parts.
        let sparse = &self.sparse;
        let whole = |input: usize| {
            !sparse.iter().any(|x| x.input == input && x.levels.contains(&split.index))
        };
        self.storing = self.storing.map(|storing| Storing {
            trees: storing.trees.into_iter().filter(|tree| whole(tree.input)).collect(),
        });
        self.expr = expr;
        self.extents.set(split.outer, pieces);
        self.extents.set(split.index, size);
        self.max_buffer_dims = self.max_buffer_dims.saturating_add(1);
        self.splits.push(SplitIndex { split: *split, extent });
        Ok(self)
    }

    /// Returns the expression without splits.
    pub fn whole_expr(&self) -> Expr {
        let outer: IndexSet = self.splits.iter().map(|cut| cut.split.outer).collect();
        let whole = |access: &Access| Access {
            tensor: access.tensor.clone(),
            indices: access.indices.iter().copied().filter(|&i| !outer.contains(i)).collect(),
        };
        Expr {
            output: whole(&self.expr.output),
            inputs: self.expr.inputs.iter().map(whole).collect(),
        }
    }
}
