//! Assignments: sums of scaled products of tensors.

use std::fmt;

use crate::einsum::{Access, Expr, Function, Index, IndexSet};

/// A tensor as a sum of scaled products of tensors; parse one from text with [`str::parse`].
///
/// ```text
/// Z(i,k) = X(i,j) * Y(j,k) + 2 * W(i,k)      a sum; each product is summed over the indices that Z lacks
/// d(i) = X(i,i)                              a repeated index: the diagonal
/// Z(row,col) = relu(X(row,k) * Y(k,col))     a function of each element; names of indices
/// ii->                                       einsum notation: one product
/// ```
///
/// # Example
///
/// ```
/// use decompose_core::einsum::Assignment;
///
/// let sum: Assignment = "Z(i,k) = X(i,j) * Y(j,k) - 2 * W(i,k)".parse()?;
/// assert_eq!(sum.summands.len(), 2);
/// assert_eq!(sum.summands[1].factor, -2.0);
/// # Ok::<(), decompose_core::error::CoreError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The result; no index stands in it twice.
    pub output: Access,
    /// What is added up; never empty.  Each has all indices of the output.
    pub summands: Vec<Summand>,
    /// The function that is applied to the sum.
    pub function: Option<Function>,
    /// Names of more than one letter.
    pub names: IndexNames,
}

/// A number times a product of tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Summand {
    /// The number.
    pub factor: f64,
    /// The tensors; never empty.  An index may stand in one of them more than once.
    pub inputs: Vec<Access>,
}

impl Assignment {
    /// Returns the product of summand `summand` with each input over the indices that are left of it when its
    /// diagonals are taken ([`Access::distinct`]).
    pub fn product(&self, summand: usize) -> Expr {
        let distinct =
            |access: &Access| Access { tensor: access.tensor.clone(), indices: access.distinct() };
        let inputs = self.summands[summand].inputs.iter().map(distinct).collect();
        Expr { output: self.output.clone(), inputs }
    }

    /// Returns the inputs of all summands, in the order of the text.
    pub fn inputs(&self) -> impl Iterator<Item = &Access> {
        self.summands.iter().flat_map(|summand| &summand.inputs)
    }

    /// Returns all indices.
    pub fn all(&self) -> IndexSet {
        self.inputs().fold(self.output.set(), |set, access| set | access.set())
    }

    /// Tells whether the result is a list: each of its indices stands, in every product, in a tensor that `is_list` says is one.
    ///
    /// This depends on nothing but the expression and its operands, whatever form a kernel gives the result.  A single
    /// number is no list.
    pub fn is_list(&self, is_list: impl Fn(&str) -> bool) -> bool {
        let listed = |summand: &Summand| {
            let lists = summand.inputs.iter().filter(|access| is_list(&access.tensor));
            lists.fold(IndexSet::EMPTY, |set, access| set | access.set())
        };
        let output = self.output.set();
        !output.is_empty() && self.summands.iter().all(|summand| output.is_subset(listed(summand)))
    }

    /// Returns the one product that it is; `None` if it has a sum, a factor, a function or a diagonal.
    pub fn into_product(self) -> Option<Expr> {
        let [Summand { factor, inputs }] = self.summands.as_slice() else { return None };
        let plain = *factor == 1.0 && self.function.is_none();
        let distinct = !inputs.iter().any(Access::is_diagonal);
        (plain && distinct).then(|| self.product(0))
    }

    /// Writes `access` with the names of its indices.
    pub fn named(&self, access: &Access) -> String {
        let names: Vec<String> = access.indices.iter().map(|&i| self.names.of(i)).collect();
        format!("{}({})", access.tensor, names.join(","))
    }
}

impl From<Expr> for Assignment {
    fn from(expr: Expr) -> Assignment {
        let Expr { output, inputs } = expr;
        let summands = vec![Summand { factor: 1.0, inputs }];
        Assignment { output, summands, function: None, names: IndexNames::default() }
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = ", self.named(&self.output))?;
        if let Some(function) = self.function {
            write!(f, "{function}(")?;
        }
        for (position, Summand { factor, inputs }) in self.summands.iter().enumerate() {
            f.write_str(match (position, *factor < 0.0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            })?;
            if factor.abs() != 1.0 {
                write!(f, "{} * ", factor.abs())?;
            }
            for (at, access) in inputs.iter().enumerate() {
                f.write_str(if at == 0 { "" } else { " * " })?;
                f.write_str(&self.named(access))?;
            }
        }
        f.write_str(if self.function.is_some() { ")" } else { "" })
    }
}

/// The names of indices that are more than one letter, each of which stands for a letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexNames(Vec<(Index, String)>);

impl IndexNames {
    /// Returns the name of `index`.
    pub fn of(&self, index: Index) -> String {
        let named = self.0.iter().find(|(own, _)| *own == index);
        named.map_or_else(|| index.to_string(), |(_, name)| name.clone())
    }

    /// Returns the index called `name`.
    pub fn find(&self, name: &str) -> Option<Index> {
        if let Some((index, _)) = self.0.iter().find(|(_, own)| own == name) {
            return Some(*index);
        }
        let mut letters = name.chars();
        letters.next().and_then(Index::named).filter(|_| letters.next().is_none())
    }

    /// Calls `index` by `name`.
    pub(super) fn add(&mut self, index: Index, name: &str) {
        self.0.push((index, name.to_owned()));
    }

    /// Returns the letters with the names for which they stand.
    pub fn iter(&self) -> impl Iterator<Item = (Index, &str)> {
        self.0.iter().map(|(index, name)| (*index, name.as_str()))
    }
}
