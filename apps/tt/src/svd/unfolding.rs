//! One unfolding of the tensor, compressed: a column for each node of a level of the tree.

use std::ops::Range;

use decompose_common::CommonError;
use decompose_common::linalg::{qr_r, svd};
use decompose_formats::{Csf, Level, Value};
use ndarray::{Array2, Array3, ArrayView2, ArrayViewMut2, Axis, concatenate, s};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSliceMut,
};

use crate::spectrum::{Accuracy, of_gram};
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

    /// Returns the bytes of the dense matrices of this step and of the payloads around it.
    pub(super) fn bytes(&self, accuracy: Accuracy, max_rank: usize) -> u64 {
        let (m, n) = (self.rows() as u64, self.columns() as u64);
        let matrices = match accuracy {
            // Sums of the groups, one sum more, its decomposition and the vectors.
            _ if m <= n => (self.groups() as u64 + 4).saturating_mul(m.saturating_mul(m)),
            _ => m.saturating_mul(n).saturating_mul(3),
        };
        let rank = (max_rank as u64).min(m.min(n));
        let payloads = (self.payload.len() as u64).saturating_add(n.saturating_mul(rank));
        matrices.saturating_add(payloads).saturating_mul(8)
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
        (self.columns() / (GROUP_COLUMNS * self.rows()).max(1)).clamp(1, GROUPS)
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
                let mut dense = Array2::zeros((columns.len(), self.rows()));
                self.densify(columns, dense.view_mut());
                r = stacked(r.view(), dense.view());
            }
            r
        });
        triangles
            .iter()
            .skip(1)
            .fold(triangles[0].clone(), |r, other| stacked(r.view(), other.view()))
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

/// The triangle of two matrices, one above the other.
fn stacked(above: ArrayView2<'_, f64>, below: ArrayView2<'_, f64>) -> Array2<f64> {
    match concatenate(Axis(0), &[above, below]) {
        Ok(both) => qr_r(both.view()),
        // Both have as many columns as there are rows here.
        Err(_) => above.to_owned(),
    }
}
