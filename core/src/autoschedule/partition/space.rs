//! What is cut: the indices of an expression, and the formats of its tensors' levels.

use crate::einsum::{Expr, Index, IndexSet};
use crate::schedule::Problem;

/// How a level stores its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LevelFormat {
    /// All coordinates, without a list.
    Dense,
    /// A list of those that occur.
    Compressed,
}

/// A level of a stored tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredLevel {
    /// The index whose coordinates it stores.
    pub index: Index,
    /// How it stores them.
    pub format: LevelFormat,
}

/// A tensor with its levels, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredTensor {
    /// The tensor's name.
    pub name: String,
    /// The levels.
    pub levels: Vec<StoredLevel>,
}

impl StoredTensor {
    /// Tells whether all levels are dense.
    pub fn is_dense(&self) -> bool {
        self.levels.iter().all(|level| level.format == LevelFormat::Dense)
    }

    fn place(&self, index: Index) -> Option<usize> {
        self.levels.iter().position(|level| level.index == index)
    }
}

/// The indices of an expression with the formats of all tensors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IterationSpace {
    /// The tensors: the inputs in order, then the output.
    pub tensors: Vec<StoredTensor>,
    /// Indices that are not cut and whose loops stay innermost, in this order: those around a precomputed product.
    pub pinned: Vec<Index>,
}

impl IterationSpace {
    /// Returns the space of `expr`, whose inputs of these numbers have levels of these formats; all others are dense.
    ///
    /// The levels are the modes of an input in order.
    ///
    /// ```
    /// use decompose_core::autoschedule::partition::{IterationSpace, LevelFormat::{Compressed, Dense}};
    /// use decompose_core::einsum::{Index, indices};
    ///
    /// let spmv = "y(i) = A(i,j) * x(j)".parse()?;
    /// let space = IterationSpace::new(&spmv, &[(0, &[Dense, Compressed])]);
    /// assert_eq!(space.indices(), indices("ij"));
    /// assert!(space.is_compressed(indices("j")[0]));
    /// # Ok::<(), decompose_core::error::CoreError>(())
    /// ```
    pub fn new(expr: &Expr, formats: &[(usize, &[LevelFormat])]) -> IterationSpace {
        let names = expr.operand_names();
        let inputs = expr.inputs.iter().zip(names).enumerate();
        let mut tensors: Vec<StoredTensor> = inputs
            .map(|(input, (access, name))| {
                let formats = formats.iter().find(|(own, _)| *own == input);
                let format = |at: usize| {
                    formats
                        .and_then(|(_, formats)| formats.get(at).copied())
                        .unwrap_or(LevelFormat::Dense)
                };
                let level = |(at, &index)| StoredLevel { index, format: format(at) };
                StoredTensor {
                    name,
                    levels: access.indices.iter().enumerate().map(level).collect(),
                }
            })
            .collect();
        tensors.push(dense(&expr.output.tensor, &expr.output.indices));
        IterationSpace { tensors, pinned: Vec::new() }
    }

    /// Returns the space of a problem: the first level of a tree is dense and all others are compressed.
    ///
    /// A tree lists the nodes of its first level too.  Nearly all slices have an entry, so that it counts as dense.
    pub fn of(problem: &Problem) -> IterationSpace {
        let mut space = IterationSpace::new(&problem.expr, &[]);
        for operand in &problem.sparse {
            let level = |(at, &index): (usize, &Index)| {
                let format = if at == 0 { LevelFormat::Dense } else { LevelFormat::Compressed };
                StoredLevel { index, format }
            };
            space.tensors[operand.input].levels =
                operand.levels().iter().enumerate().map(level).collect();
        }
        space
    }

    /// Returns the space with the loops over `pinned` innermost and whole, in this order.
    pub fn with_pinned(self, pinned: &[Index]) -> IterationSpace {
        IterationSpace { pinned: pinned.to_vec(), ..self }
    }

    /// Returns all indices: those of the tensors with compressed levels by level, then the others as they come first.
    pub fn indices(&self) -> Vec<Index> {
        let (dense, sparse): (Vec<_>, Vec<_>) =
            self.tensors.iter().partition(|tensor| tensor.is_dense());
        let mut indices = Vec::new();
        for level in sparse.iter().chain(&dense).flat_map(|tensor| &tensor.levels) {
            if !indices.contains(&level.index) {
                indices.push(level.index);
            }
        }
        indices
    }

    /// Returns the tensors with compressed levels.
    pub fn sparse(&self) -> impl Iterator<Item = &StoredTensor> {
        self.tensors.iter().filter(|tensor| !tensor.is_dense())
    }

    /// Tells whether a tensor stores `index` in a compressed level.
    pub fn is_compressed(&self, index: Index) -> bool {
        let compressed = StoredLevel { index, format: LevelFormat::Compressed };
        self.tensors.iter().any(|tensor| tensor.levels.contains(&compressed))
    }

    /// Returns the indices above `index` in the tensors that store it in a compressed level.
    pub fn parents(&self, index: Index) -> IndexSet {
        let mut parents = IndexSet::EMPTY;
        for tensor in &self.tensors {
            let Some(place) = tensor.place(index) else { continue };
            if tensor.levels[place].format == LevelFormat::Compressed {
                parents = tensor.levels[..place].iter().fold(parents, |set, up| set.with(up.index));
            }
        }
        parents
    }

    /// Returns the pairs of indices of which a dense tensor stores the first one further outside.
    ///
    /// Each tensor counts: a pair stands as often as tensors prefer it (section 2.5.2).
    pub fn preferences(&self) -> Vec<(Index, Index)> {
        let mut pairs = Vec::new();
        for tensor in self.tensors.iter().filter(|tensor| tensor.is_dense()) {
            for (place, outer) in tensor.levels.iter().enumerate() {
                let inner = tensor.levels[place + 1..].iter();
                pairs.extend(inner.map(|inner| (outer.index, inner.index)));
            }
        }
        pairs
    }

    /// SpMV `y(i) = A(i,j) * x(j)` with `A` in rows (section 3.1).
    pub fn spmv() -> IterationSpace {
        kernel("y(i) = A(i,j) * x(j)", 1)
    }

    /// SpMM `C(i,k) = A(i,j) * B(j,k)` with `A` in rows, as it is run on processors (section 3.2).
    pub fn spmm() -> IterationSpace {
        kernel("C(i,k) = A(i,j) * B(j,k)", 1)
    }

    /// SpMM `C(k,i) = A(i,j) * B(j,k)` with `A` in rows, as it is run on GPUs (section 3.2).
    pub fn spmm_by_columns() -> IterationSpace {
        kernel("C(k,i) = A(i,j) * B(j,k)", 1)
    }

    /// MTTKRP `A(i,j) = B(i,k,l) * C(k,j) * D(l,j)` with `B` in trees with a dense first level (section 3.3).
    pub fn mttkrp() -> IterationSpace {
        kernel("A(i,j) = B(i,k,l) * C(k,j) * D(l,j)", 2)
    }

    /// [`IterationSpace::mttkrp`] with the loops over `l` and `j` pinned: `B * D` is precomputed inside `i` and `k`.
    pub fn mttkrp_precomputed() -> IterationSpace {
        let space = IterationSpace::mttkrp();
        let pinned = space.indices().split_off(2);
        space.with_pinned(&pinned)
    }
}

/// The space of a kernel whose first input has a dense level and then compressed ones.
fn kernel(text: &str, compressed: usize) -> IterationSpace {
    let expr: Expr = text.parse().expect("the text of a kernel is an expression");
    let mut formats = vec![LevelFormat::Dense];
    formats.resize(1 + compressed, LevelFormat::Compressed);
    IterationSpace::new(&expr, &[(0, &formats)])
}

fn dense(name: &str, indices: &[Index]) -> StoredTensor {
    let level = |&index: &Index| StoredLevel { index, format: LevelFormat::Dense };
    StoredTensor { name: name.to_owned(), levels: indices.iter().map(level).collect() }
}

#[cfg(test)]
mod tests {
    use super::IterationSpace;
    use crate::einsum::indices;

    #[test]
    fn the_kernels_have_the_levels_of_the_source() {
        let mttkrp = IterationSpace::mttkrp();
        assert_eq!(mttkrp.indices(), indices("iklj"));
        let [i, k, l, j] = mttkrp.indices()[..] else { panic!("four indices") };
        assert_eq!([i, k, l, j].map(|x| mttkrp.is_compressed(x)), [false, true, true, false]);
        assert_eq!(mttkrp.parents(l).to_string(), "ik");
        assert!(mttkrp.parents(i).is_empty() && mttkrp.parents(j).is_empty());
        assert_eq!(mttkrp.preferences(), [(k, j), (l, j), (i, j)]);
        assert_eq!(IterationSpace::mttkrp_precomputed().pinned, [l, j]);
        assert_eq!(IterationSpace::spmv().preferences(), []);
        assert_eq!(IterationSpace::spmm().preferences().len(), 2);
    }
}
