//! One unfolding of the tensor, compressed: a column for each node of a level of the tree.

use std::ops::Range;

use decompose_common::CommonError;
use decompose_common::linalg::{qr_r, svd};
use decompose_formats::{Csf, Level, Value};
use ndarray::{Array2, Array3, ArrayViewMut2, Axis, s};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSliceMut,
};

use crate::spectrum::{Accuracy, EIGEN_MATRICES, of_gram, split_bytes};
use crate::svd::Vectors;

/// Groups of columns that are summed by themselves: a fixed number, so that results do not depend
/// on the number of threads.
const GROUPS: usize = 8;
/// Least columns of a group, as a multiple of the rows: a group's sums take `rows^2`.
const GROUP_COLUMNS: usize = 4;
/// Columns made dense at a time.
const BLOCK: usize = 256;
/// From this part of numbers that are not zero on, columns are multiplied as dense ones.
const DENSE_FROM: f64 = 0.2;
/// Columns of a task that projects payloads.
const TASK: usize = 1024;

/// The unfolding `Y_k`, `r_(k-1) I_k x (nodes of the level above)`, without the rows of coordinates
/// that do not occur.  Row `(i, a)`, with `a < r_(k-1)` fastest.
pub(super) struct Unfolding<'a, V: Value> {
    tree: &'a Csf<V>,
    /// The level of mode `k`; the level above has the columns.
    level: usize,
    /// `width` numbers a node of the level.
    payload: &'a [f64],
    /// `r_(k-1)`.
    width: usize,
    /// Where the rows of each coordinate begin; none for one that does not occur.
    first_row: Vec<Option<u32>>,
    used: usize,
}

impl<'a, V: Value> Unfolding<'a, V> {
    /// Unfolds at mode `k`, given `width` numbers for each node of its level.
    pub(super) fn new(tree: &'a Csf<V>, k: usize, payload: &'a [f64], width: usize) -> Self {
        let level = tree.levels().len() - 1 - k;
        let mut occurs = vec![false; tree.extents()[k] as usize];
        tree.levels()[level].coords.iter().for_each(|i| occurs[i as usize] = true);
        let mut used = 0;
        let number = |occurs: bool| {
            occurs.then(|| {
                used += 1;
                used as u32 - 1
            })
        };
        let first_row: Vec<Option<u32>> = occurs.into_iter().map(number).collect();
        Unfolding { tree, level, payload, width, first_row, used }
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.used * self.width
    }

    /// Returns the number of columns.
    pub(super) fn columns(&self) -> usize {
        self.parents().coords.len()
    }

    /// Returns the bytes of the payloads of the columns if `rank` vectors are kept, of these vectors, and of the
    /// core that is made of them.
    pub(super) fn projected_bytes(&self, rank: usize) -> u64 {
        let core = self.width.saturating_mul(self.first_row.len());
        let rows = self.columns().saturating_add(self.rows()).saturating_add(core);
        (rows as u64).saturating_mul(8 * rank as u64)
    }

    /// Computes the singular values and left singular vectors.
    pub(super) fn left_vectors(&self, accuracy: Accuracy) -> Result<Vectors, CommonError> {
        if self.rows() > self.columns() {
            let mut whole = Array2::zeros((self.columns(), self.rows()));
            self.densify(0..self.columns(), whole.view_mut());
            // Of the transpose, whose right vectors are the left ones here.
            let (_, values, vectors) = svd(whole.view())?;
            return Ok((values.to_vec(), vectors.reversed_axes()));
        }
        match accuracy {
            Accuracy::Exact => {
                let (_, values, vectors) = svd(self.triangle().view())?;
                Ok((values.to_vec(), vectors.reversed_axes()))
            }
            Accuracy::Gram => of_gram(self.gram().view()),
        }
    }

    /// Returns the payloads of the columns: `U^T` times each, `vectors` being `U`.
    pub(super) fn project(&self, vectors: &Array2<f64>) -> Vec<f64> {
        let rank = vectors.ncols();
        let mut projected = vec![0.0; self.columns() * rank];
        projected.par_chunks_mut(TASK * rank).enumerate().for_each(|(task, columns)| {
            for (at, sums) in columns.chunks_exact_mut(rank).enumerate() {
                self.each_entry(task * TASK + at, |row, x| {
                    let vector = vectors.row(row);
                    sums.iter_mut().zip(vector).for_each(|(sum, u)| *sum += x * u);
                });
            }
        });
        projected
    }

    /// Returns `vectors` as the core of mode `k`, zero where a coordinate does not occur.
    pub(super) fn core(&self, vectors: &Array2<f64>) -> Array3<f64> {
        let rank = vectors.ncols();
        let mut core = Array3::zeros((self.width, self.first_row.len(), rank));
        for (i, first) in self.first_row.iter().enumerate() {
            let Some(first) = first else { continue };
            let rows = *first as usize * self.width..(*first as usize + 1) * self.width;
            core.slice_mut(s![.., i, ..]).assign(&vectors.slice(s![rows, ..]));
        }
        core
    }

    fn parents(&self) -> &Level {
        &self.tree.levels()[self.level - 1]
    }

    fn children(&self, column: usize) -> Range<usize> {
        let parents = self.parents();
        parents.first_child(column) as usize..parents.first_child(column + 1) as usize
    }

    /// The first row of a node, and its numbers.
    fn block(&self, node: usize) -> (usize, &[f64]) {
        let i = self.tree.levels()[self.level].coords.get(node) as usize;
        let first = self.first_row[i].unwrap_or(0) as usize * self.width;
        (first, &self.payload[node * self.width..][..self.width])
    }

    fn each_entry(&self, column: usize, mut visit: impl FnMut(usize, f64)) {
        for node in self.children(column) {
            let (first, numbers) = self.block(node);
            numbers.iter().enumerate().for_each(|(a, &x)| visit(first + a, x));
        }
    }

    /// Writes `columns` as the rows of `dense`, which is zero.
    fn densify(&self, columns: Range<usize>, mut dense: ArrayViewMut2<'_, f64>) {
        for (mut row, column) in dense.rows_mut().into_iter().zip(columns) {
            self.each_entry(column, |at, x| row[at] = x);
        }
    }

    fn groups(&self) -> usize {
        groups(self.rows() as u64, self.columns() as u64) as usize
    }

    /// Computes `sum` of each group of columns, in parallel, in their order.
    fn by_groups<T: Send>(&self, sum: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let (columns, groups) = (self.columns(), self.groups());
        let start = |group: usize| (columns as u128 * group as u128 / groups as u128) as usize;
        (0..groups).into_par_iter().map(|group| sum(start(group)..start(group + 1))).collect()
    }

    /// The triangle `R` with `R^T R = Y Y^T`, by QR of the columns block by block: exact.
    fn triangle(&self) -> Array2<f64> {
        let triangles = self.by_groups(|columns| {
            let block = BLOCK.max(self.rows());
            let mut r = Array2::zeros((0, self.rows()));
            for first in columns.clone().step_by(block) {
                let columns = first..columns.end.min(first + block);
                let mut both = stacked(r, columns.len());
                let above = both.nrows() - columns.len();
                self.densify(columns, both.slice_mut(s![above.., ..]));
                r = qr_r(both.view());
            }
            r
        });
        let joined = triangles.into_iter().reduce(|r, other| {
            let mut both = stacked(r, other.nrows());
            let above = both.nrows() - other.nrows();
            both.slice_mut(s![above.., ..]).assign(&other);
            drop(other);
            qr_r(both.view())
        });
        joined.unwrap_or_else(|| Array2::zeros((0, self.rows())))
    }

    /// The Gram matrix `Y Y^T`.
    fn gram(&self) -> Array2<f64> {
        let m = self.rows();
        let entries = self.payload.len() as f64;
        let dense = entries >= DENSE_FROM * m as f64 * self.columns() as f64;
        let grams = self.by_groups(|columns| {
            let mut gram = Array2::zeros((m, m));
            match dense {
                true => self.add_dense(columns, &mut gram),
                false => columns.for_each(|column| self.add_column(column, &mut gram)),
            }
            gram
        });
        let mut grams = grams.into_iter();
        let first = grams.next().unwrap_or_else(|| Array2::zeros((m, m)));
        let mut gram = grams.fold(first, |sum, part| sum + part);
        for i in 0..m {
            for j in i + 1..m {
                gram[(i, j)] = gram[(j, i)];
            }
        }
        gram
    }

    fn add_dense(&self, columns: Range<usize>, gram: &mut Array2<f64>) {
        let mut block = Array2::zeros((BLOCK, self.rows()));
        for first in columns.clone().step_by(BLOCK) {
            let columns = first..columns.end.min(first + BLOCK);
            let mut block = block.slice_mut(s![..columns.len(), ..]);
            block.fill(0.0);
            self.densify(columns, block.view_mut());
            ndarray::linalg::general_mat_mul(1.0, &block.t(), &block, 1.0, gram);
        }
    }

    /// Adds the outer product of a column with itself, below the diagonal.
    ///
    /// Children ascend by coordinate, so the rows of earlier ones come first.
    fn add_column(&self, column: usize, gram: &mut Array2<f64>) {
        for later in self.children(column) {
            let (row, numbers) = self.block(later);
            for (a, &x) in numbers.iter().enumerate() {
                let mut target = gram.index_axis_mut(Axis(0), row + a);
                for earlier in self.children(column).start..=later {
                    let (first, others) = self.block(earlier);
                    let mut target = target.slice_mut(s![first..first + others.len()]);
                    target.iter_mut().zip(others).for_each(|(sum, &y)| *sum += x * y);
                }
            }
        }
    }
}

/// Returns the bytes of the dense matrices that a step works in, for an unfolding of `m x n`.
///
/// Of more rows than columns it is whole, and both kinds of its vectors are copied.  Of others there is a matrix
/// of `m x m` a group.  For triangles each thread holds that of the columns before above a block of columns, its
/// copy, and twice the next triangle; then groups are put together, and the last decomposed.
pub(super) fn matrix_bytes(m: u64, n: u64, accuracy: Accuracy) -> u64 {
    let square = m.saturating_mul(m);
    let (groups, block) = (groups(m, n), (BLOCK as u64).max(m));
    let threads = (rayon::current_num_threads() as u64).min(groups);
    // A matrix, and what it is decomposed in.
    let exact = |m: u64, n: u64| {
        let work = split_bytes(m, n, u64::MAX, Accuracy::Exact) / 8;
        m.saturating_mul(n).saturating_add(work)
    };
    let numbers = match accuracy {
        _ if m > n => exact(m, n),
        Accuracy::Exact => {
            let columns = n.div_ceil(groups);
            let rows = match columns <= block {
                true => columns,
                false => block.max(m + block.min(columns - block)),
            };
            let last = m.saturating_mul(2 * rows).saturating_add(square.saturating_mul(2));
            let summed = last.saturating_mul(threads);
            let summed = summed.saturating_add(square.saturating_mul(groups - threads));
            let joined = if groups > 1 { groups + 4 } else { 0 };
            summed.max(square.saturating_mul(joined)).max(exact(m, m))
        }
        Accuracy::Gram => {
            let dense = BLOCK as u64 * m * threads;
            let summed = square.saturating_mul(groups).saturating_add(dense);
            summed.max(square.saturating_mul(EIGEN_MATRICES + 1))
        }
    };
    numbers.saturating_mul(8)
}

fn groups(m: u64, n: u64) -> u64 {
    (n / (GROUP_COLUMNS as u64 * m).max(1)).clamp(1, GROUPS as u64)
}

/// A matrix with `more` rows of zeros below those of `above`.
fn stacked(above: Array2<f64>, more: usize) -> Array2<f64> {
    let mut both = Array2::zeros((above.nrows() + more, above.ncols()));
    both.slice_mut(s![..above.nrows(), ..]).assign(&above);
    both
}

#[cfg(test)]
mod tests {
    use decompose_formats::{Coo, Csf};
    use ndarray::Array2;

    use super::{BLOCK, GROUPS, Unfolding};
    use crate::spectrum::Accuracy;
    use crate::svd::tree_order;

    /// Entries at a share of the cells that a hash chooses, values in `[-0.5, 0.5)`.
    fn tree(extents: [u64; 3], share: f64) -> Csf<f64> {
        let hash = |cell: u64, salt: u64| {
            let mixed = (cell * 2 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64
                / (1_u64 << 53) as f64
        };
        let cells: Vec<u64> =
            (0..extents.iter().product()).filter(|&cell| hash(cell, 0) < share).collect();
        let column = |below: u64, extent: u64| {
            cells.iter().map(|cell| (cell / below % extent) as u32).collect::<Vec<u32>>().into()
        };
        let coords = vec![
            column(extents[1] * extents[2], extents[0]),
            column(extents[2], extents[1]),
            column(1, extents[2]),
        ];
        let values: Vec<f64> = cells.iter().map(|&cell| hash(cell, 1) - 0.5).collect();
        let coo = Coo::new(extents.to_vec(), coords, values).unwrap();
        Csf::build(coo, &tree_order(3)).unwrap()
    }

    #[test]
    fn sums_over_groups_and_blocks_of_columns_are_those_of_the_whole() {
        // Sparse and dense columns, more than a block in each of all groups, and a single group.
        for (extents, share) in [([6, 50, 60], 0.1), ([6, 50, 60], 0.9), ([40, 9, 8], 0.3)] {
            let tree = tree(extents, share);
            let unfolding = Unfolding::new(&tree, 0, tree.values(), 1);
            let (m, n) = (unfolding.rows(), unfolding.columns());
            if extents[0] == 6 {
                assert_eq!(unfolding.groups(), GROUPS);
                assert!(n > GROUPS * BLOCK / 2, "{n}");
            }
            let mut whole = Array2::zeros((n, m));
            unfolding.densify(0..n, whole.view_mut());
            let want = whole.t().dot(&whole);
            let close = |have: Array2<f64>, what: &str| {
                let apart = (&have - &want).iter().fold(0.0, |a: f64, x| a.max(x.abs()));
                // Sums of up to some thousand products below 1/4.
                assert!(apart < 1e-11, "{extents:?} {share} {what}: {apart:e}");
            };
            close(unfolding.gram(), "Gram matrix");
            let triangle = unfolding.triangle();
            close(triangle.t().dot(&triangle), "triangle");
            let (exact, _) = unfolding.left_vectors(Accuracy::Exact).unwrap();
            let (by_gram, _) = unfolding.left_vectors(Accuracy::Gram).unwrap();
            for (a, b) in exact.iter().zip(&by_gram) {
                // Squares agree to rounding of the largest.
                assert!((a * a - b * b).abs() < 1e-13 * exact[0] * exact[0] * m as f64, "{a} {b}");
            }
        }
    }
}
