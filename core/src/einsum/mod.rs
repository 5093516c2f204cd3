//! Tensor expressions.
//!
//! ```text
//! A(i,r) = X(i,j,k) * B(j,r) * C(k,r)        TACO's notation
//! ijk,jr,kr->ir                              einsum notation, the same expression
//! ```
//!
//! An [`Expr`] is one product of tensors, summed over the indices that the output lacks: what one kernel
//! computes.  An [`Assignment`] is a sum of such products with factors, diagonals and a function: what a user
//! writes.  An *index* is a letter, or a name that stands for one, so at most 52 are in an assignment.
//! [`oracle`] evaluates both naively on dense arrays: the definition that every faster executor is
//! tested against.

mod assignment;
mod function;
mod index;
pub mod oracle;
mod parse;
mod tokens;

use std::fmt;

pub use assignment::{Assignment, IndexNames, Summand};
pub use function::Function;
pub use index::{Extents, Index, IndexSet, indices};

/// One tensor of an expression with its indices, one a mode, in storage order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// The tensor's name.
    pub tensor: String,
    /// The index of each mode.
    pub indices: Vec<Index>,
}

impl Access {
    /// Returns the set of its indices.
    pub fn set(&self) -> IndexSet {
        self.indices.iter().copied().collect()
    }

    /// Returns its indices, each once, as they come first.
    pub fn distinct(&self) -> Vec<Index> {
        let mut distinct = Vec::with_capacity(self.indices.len());
        for &index in &self.indices {
            if !distinct.contains(&index) {
                distinct.push(index);
            }
        }
        distinct
    }

    /// Returns for each mode where its index stands among the [`Access::distinct`] ones: modes of the same number
    /// are read along their diagonal.
    pub fn diagonal(&self) -> Vec<usize> {
        let distinct = self.distinct();
        let place = |index| distinct.iter().position(|own| own == index);
        self.indices.iter().filter_map(place).collect()
    }

    /// Tells whether an index stands in it more than once.
    pub fn is_diagonal(&self) -> bool {
        self.set().len() < self.indices.len()
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.tensor)?;
        for (position, index) in self.indices.iter().enumerate() {
            let sep = if position == 0 { "" } else { "," };
            write!(f, "{sep}{index}")?;
        }
        f.write_str(")")
    }
}

/// A product of tensors; parse one from text with [`str::parse`].
///
/// # Example
///
/// ```
/// use decompose_core::einsum::Expr;
///
/// let mttkrp: Expr = "A(i,r) = X(i,j,k) * B(j,r) * C(k,r)".parse()?;
/// assert_eq!(mttkrp.inputs.len(), 3);
/// assert_eq!(mttkrp.all().to_string(), "ijkr");
/// # Ok::<(), decompose_core::error::CoreError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    /// The result.
    pub output: Access,
    /// The factors, in the order of the text; never empty.
    pub inputs: Vec<Access>,
}

impl Expr {
    /// Returns all indices.
    pub fn all(&self) -> IndexSet {
        self.inputs.iter().fold(self.output.set(), |set, access| set | access.set())
    }

    /// Returns the indices of the loops around a term that reads `input`: its own, and that of the blocks if an
    /// operand is stored in blocks.  What does not depend on the block is computed anew in each, near where it is
    /// read.
    pub fn looped(&self, input: usize) -> IndexSet {
        self.inputs[input].set() | (self.all() & IndexSet::EMPTY.with(Index::BLOCK))
    }

    /// Returns a name for each input that names no other input and no intermediate (`T1`, `T2`,
    /// ...): the tensor's own, or with the input's number, `A#2`, where that is taken.
    pub fn operand_names(&self) -> Vec<String> {
        let taken = |position: usize, name: &str| {
            let number = name.strip_prefix('T').unwrap_or_default();
            let term = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
            term || self.inputs[..position].iter().any(|before| before.tensor == name)
        };
        let name = |(position, access): (usize, &Access)| match taken(position, &access.tensor) {
            true => format!("{}#{}", access.tensor, position + 1),
            false => access.tensor.clone(),
        };
        self.inputs.iter().enumerate().map(name).collect()
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = ", self.output)?;
        for (position, access) in self.inputs.iter().enumerate() {
            let sep = if position == 0 { "" } else { " * " };
            write!(f, "{sep}{access}")?;
        }
        Ok(())
    }
}
