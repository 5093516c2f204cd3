//! Passes over long factors, one row block at a time.
//!
//! A mode update of alternating least squares needs, besides the MTTKRP `M` (`I x R`), the product
//! `B = M W`, the Gram matrix `B^T B`, the largest entry of each column and the column-wise inner
//! products of `M` and `B`.  [`update_rows`] does all of it while a block of rows is in the
//! near cache, in place: `2 I R` values cross the memory bus, `3 I R^2` multiply-adds run.
//!
//! Rows are multiplied as they are read, eight at a time, so that memory is read while sums are computed, and what is
//! compiled for a kind of vectors is compiled for each that machines have.
//!
//! Blocks form groups of a size that depends on `I` and `R` only.  Each group sums by itself; the groups are halved,
//! and halved again, and the sums of two halves are added.  So a result is the same for any number of threads, and
//! few sums exist at a time.

use std::ops::Range;

use decompose_formats::dense::LINE_BYTES;
use decompose_formats::{Matrix, Value};
use ndarray::{Array1, Array2, ArrayView2};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::linalg::aligned::Lines;
use crate::linalg::backend;
use crate::linalg::nonneg::NonNegative;
use crate::linalg::prefetch::prefetch;
use crate::linalg::tiles::{self, LANES, Packed, ROWS};

/// The widest rows of which few are multiplied at a time: wider ones wait for the small matrix, which is read anew for
/// each time from beyond the second cache.
const NARROW: usize = 320;
/// Rows of a block, whose Gram matrix is summed while they are in a near cache.
const BLOCK_ROWS: usize = 64;
/// Rows of a block that is not narrow.
const WIDE_BLOCK_ROWS: usize = 256;
/// Lines that are requested at once: as many as a core of today waits for.
const LINES_AT_ONCE: usize = 16;
/// The most groups: enough for the threads of a large machine to share the work evenly.
const MOST_GROUPS: usize = 256;
/// Least rows of a group, by rank: clearing and adding its `R x R` sums is little beside summing them up.
const GROUP_ROWS_BY_RANK: usize = 4;

/// How a pass makes the new row `b` from the row `m` of the MTTKRP.
#[derive(Clone, Debug)]
pub enum RowRule<'a, V> {
    /// `b = m W` with `W` of `R x R`, row-major and contiguous.
    Multiply(ArrayView2<'a, f64>),
    /// The non-negative least-squares solution, improved from an earlier one.
    NonNegative(NonNegative<'a, V>),
}

/// What a pass sums up over the rows.
#[derive(Clone, Debug)]
pub struct RowSums {
    /// `B^T B`, of the rows as stored (after rounding to the storage type).
    pub gram: Array2<f64>,
    /// The largest absolute entry of each column of `B`.
    pub max_abs: Array1<f64>,
    /// `sum_i M(i, r) B(i, r)` for each column r.
    pub inner: Array1<f64>,
}

/// Sums over a group of rows, as wide as its scratch.
struct Sums {
    width: usize,
    gram: Lines,
    max_abs: Vec<f64>,
    inner: Vec<f64>,
}

impl Sums {
    fn zeros(width: usize) -> Sums {
        let [max_abs, inner] = [(); 2].map(|()| vec![0.0; width]);
        Sums { width, gram: Lines::zeros(width * width), max_abs, inner }
    }

    fn add(mut self, other: &Sums) -> Sums {
        let add = |to: &mut [f64], from: &[f64]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        };
        add(&mut self.gram, &other.gram);
        add(&mut self.inner, &other.inner);
        let largest = self.max_abs.iter_mut().zip(&other.max_abs);
        largest.for_each(|(a, &b)| *a = larger(*a, b));
        self
    }

    /// Returns those of the first `rank` columns.
    fn of_rank(&self, rank: usize) -> RowSums {
        let column = |sums: &[f64]| sums[..rank].iter().copied().collect();
        RowSums {
            gram: both_triangles(&self.gram, self.width, rank),
            max_abs: column(&self.max_abs),
            inner: column(&self.inner),
        }
    }
}

/// Returns the symmetric matrix of `rank` rows whose lower triangle is in rows of `width` values.
fn both_triangles(lower: &[f64], width: usize, rank: usize) -> Array2<f64> {
    Array2::from_shape_fn((rank, rank), |(i, j)| lower[i.max(j) * width + i.min(j)])
}

/// Replaces each row of `matrix` (`I x R`, holding an MTTKRP) by `rule`, in parallel, and sums up.
///
/// Time `O(I R^2)`; scratch memory a block a thread.
///
/// # Panics
///
/// If the parts of `rule` do not have the size of `matrix`.
pub fn update_rows<V: Value>(matrix: &mut Matrix<V>, rule: &RowRule<'_, V>) -> RowSums {
    update_panels(std::slice::from_mut(matrix), rule)
}

/// Does what [`update_rows`] does with a matrix that is stored in panels of columns, all of them with as
/// many rows.
///
/// # Panics
///
/// If the parts of `rule` do not have the size of the matrix.
pub fn update_panels<V: Value>(panels: &mut [Matrix<V>], rule: &RowRule<'_, V>) -> RowSums {
    let rank = panels.iter().map(Matrix::cols).sum();
    let rows = 0..panels.first().map_or(0, Matrix::rows);
    let group_rows = group_rows(rows.len(), rank);
    let parts = panels.iter_mut().map(|panel| {
        let (cols, stride) = (panel.cols(), panel.stride());
        PanelRows { rows: panel.as_mut_slice(), cols, stride }
    });
    let parts = parts.collect();
    let by = match rule {
        RowRule::Multiply(matrix) => Packed::new(*matrix),
        RowRule::NonNegative(rule) => Packed::new(rule.gram),
    };
    let update = |rows: Range<usize>, parts| {
        let scratch = Scratch::new(rank);
        Arch::new().dispatch(Update { rows, parts, rule, by: &by, scratch })
    };
    sum_groups(rows, parts, group_rows, &update).of_rank(rank)
}

/// Returns the most `R x R` sums that exist at a time in a pass over `rows` rows: one a thread, and one a halving
/// that waits.
pub fn most_sums(rows: u64, rank: u64, threads: usize) -> u64 {
    let group = (GROUP_ROWS_BY_RANK as u64).saturating_mul(rank).max(1);
    let groups = rows.div_ceil(group).clamp(1, MOST_GROUPS as u64);
    groups.min(u64::from(groups.ilog2()) + threads as u64)
}

/// Returns the rows of each matrix that a group is updated in.
pub fn scratch_rows(rank: u64) -> u64 {
    if rank <= NARROW as u64 { BLOCK_ROWS as u64 } else { WIDE_BLOCK_ROWS as u64 }
}

/// Returns the sums of `sum` over groups of `group_rows` rows, in an order that depends on their number alone.
fn sum_groups<P: Halves>(
    rows: Range<usize>,
    parts: P,
    group_rows: usize,
    sum: &(impl Fn(Range<usize>, P) -> Sums + Sync),
) -> Sums {
    let groups = rows.len().div_ceil(group_rows);
    if groups <= 1 {
        return sum(rows, parts);
    }
    let half = groups / 2 * group_rows;
    let (first, second) = (rows.start..rows.start + half, rows.start + half..rows.end);
    let (before, after) = parts.split_at(half);
    let (sums, others) = rayon::join(
        || sum_groups(first, before, group_rows, sum),
        || sum_groups(second, after, group_rows, sum),
    );
    sums.add(&others)
}

/// What belongs to the rows of a pass.
trait Halves: Send + Sized {
    /// Returns what belongs to the first `rows` rows, and what to the others.
    fn split_at(self, rows: usize) -> (Self, Self);
}

impl Halves for () {
    fn split_at(self, _: usize) -> ((), ()) {
        ((), ())
    }
}

impl<V: Value> Halves for Vec<PanelRows<'_, V>> {
    fn split_at(self, rows: usize) -> (Self, Self) {
        let halves = self.into_iter().map(|part| {
            let PanelRows { rows: all, cols, stride } = part;
            let (before, after) = all.split_at_mut(rows * stride);
            (PanelRows { rows: before, cols, stride }, PanelRows { rows: after, cols, stride })
        });
        halves.unzip()
    }
}

/// Rows of a panel.
struct PanelRows<'a, V> {
    rows: &'a mut [V],
    cols: usize,
    stride: usize,
}

impl<V: Value> PanelRows<'_, V> {
    /// Returns the cache lines of `count` rows from `first` on, as far as there are any.
    #[inline(always)]
    fn lines(&self, first: usize, count: usize) -> impl Iterator<Item = &[V]> {
        let [start, end] =
            [first, first + count].map(|row| (row * self.stride).min(self.rows.len()));
        self.rows[start..end].chunks(LINE_BYTES / V::BYTES)
    }
}

/// What a group is updated in: rows that are [`tiles::width_of`] the rank apart, columns beyond it zero.
struct Scratch {
    rank: usize,
    width: usize,
    /// Rows that are multiplied at a time.
    batch: usize,
    /// Rows whose Gram matrix is summed at a time.
    block: usize,
    /// A batch of old rows.
    old: Lines,
    /// Their gradients.
    gradient: Lines,
    /// A block of new rows.
    new: Lines,
}

impl Scratch {
    fn new(rank: usize) -> Scratch {
        let width = tiles::width_of(rank);
        let block = block_rows(width);
        let batch = if width <= NARROW { ROWS } else { block };
        let [old, gradient] = [(); 2].map(|()| Lines::zeros(batch * width));
        let new = Lines::zeros(block * width);
        Scratch { rank, width, batch, block, old, gradient, new }
    }
}

/// The update of one group of rows, which lies in several panels.
struct Update<'a, 'b, V> {
    rows: Range<usize>,
    parts: Vec<PanelRows<'a, V>>,
    rule: &'a RowRule<'b, V>,
    /// What rows are multiplied by.
    by: &'a Packed,
    scratch: Scratch,
}

impl<V: Value> WithSimd for Update<'_, '_, V> {
    type Output = Sums;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Sums {
        let Scratch { rank, width, batch, block, .. } = self.scratch;
        let mut sums = Sums::zeros(width);
        let rows = self.rows.len();
        for start in (0..rows).step_by(block) {
            let count = block.min(rows - start);
            for at in (0..count).step_by(batch) {
                self.update(simd, start + at, at, batch.min(count - at), &mut sums);
            }
            let new = &self.scratch.new[..count * width];
            tiles::add_gram(simd, new, rank, width, &mut sums.gram);
        }
        sums
    }
}

impl<V: Value> Update<'_, '_, V> {
    /// Updates `count` rows from row `row` of the group on, which become those from `at` on of the scratch.
    #[inline(always)]
    fn update<S: Simd>(&mut self, simd: S, row: usize, at: usize, count: usize, sums: &mut Sums) {
        let Scratch { width, batch, ref mut old, ref mut gradient, ref mut new, .. } = self.scratch;
        let new = &mut new[at * width..][..batch * width];
        let mut first = 0;
        for PanelRows { rows, cols, stride } in &self.parts {
            load(&rows[row * stride..][..count * stride], *stride, first..first + cols, old, width);
            first += cols;
        }
        match self.rule {
            RowRule::Multiply(_) => {
                let parts = self.parts.iter();
                let mut ahead = parts.flat_map(|part| part.lines(row + batch + ROWS, count));
                let some = || ahead.by_ref().take(LINES_AT_ONCE).for_each(prefetch);
                self.by.multiply(simd, old, new, some);
            }
            RowRule::NonNegative(rule) => {
                let panels = self.parts.iter().map(|part| (part.cols, part.stride));
                rule.start(self.rows.start + row, panels, &mut new[..count * width], width);
                self.by.multiply(simd, new, gradient, || ());
                rule.improve(old, gradient, &mut new[..count * width], width);
            }
        }
        let (old, new) = (&old[..count * width], &mut new[..count * width]);
        round::<V>(new);
        first = 0;
        for PanelRows { rows, cols, stride } in &mut self.parts {
            let rows = &mut rows[row * *stride..][..count * *stride];
            store(new, width, first..first + *cols, rows, *stride);
            first += *cols;
        }
        add_columns(sums, old, new);
    }
}

/// Adds a block's share to the sums by column.
#[inline(always)]
fn add_columns(sums: &mut Sums, m: &[f64], b: &[f64]) {
    let Sums { max_abs, inner, .. } = sums;
    let first = add_wide::<{ 2 * LANES }>(max_abs, inner, 0, m, b);
    add_wide::<LANES>(max_abs, inner, first, m, b);
}

/// Adds columns of `m` and `b` from `first` on, `WIDE` at a time while there are so many, to the sums, which stay in
/// registers while the rows of the block pass.  Returns the first column that is left.
#[inline(always)]
fn add_wide<const WIDE: usize>(
    max_abs: &mut [f64],
    inner: &mut [f64],
    mut first: usize,
    m: &[f64],
    b: &[f64],
) -> usize {
    let cols = inner.len();
    while let (Some(max_abs), Some(inner)) =
        (max_abs[first..].first_chunk_mut::<WIDE>(), inner[first..].first_chunk_mut::<WIDE>())
    {
        let (mut largest, mut sums) = (*max_abs, *inner);
        for (m, b) in m.chunks_exact(cols).zip(b.chunks_exact(cols)) {
            for lane in 0..WIDE {
                let (m, b) = (m[first..][lane], b[first..][lane]);
                largest[lane] = larger(largest[lane], b.abs());
                sums[lane] += m * b;
            }
        }
        (*max_abs, *inner) = (largest, sums);
        first += WIDE;
    }
    first
}

/// Returns the Gram matrix `A^T A` (`R x R`) of `matrix`.  Time `O(I R^2)`, in parallel.
pub fn gram<V: Value>(matrix: &Matrix<V>) -> Array2<f64> {
    gram_of_panels(std::slice::from_ref(matrix))
}

/// Returns the Gram matrix of a matrix that is stored in panels of columns, all of them with as many rows.
pub fn gram_of_panels<V: Value>(panels: &[Matrix<V>]) -> Array2<f64> {
    let rank = panels.iter().map(Matrix::cols).sum();
    let rows = 0..panels.first().map_or(0, Matrix::rows);
    let group_rows = group_rows(rows.len(), rank);
    let sum = |rows, ()| Arch::new().dispatch(GroupGram { panels, rows, rank });
    sum_groups(rows, (), group_rows, &sum).of_rank(rank).gram
}

/// The Gram matrix of a group of rows.
struct GroupGram<'a, V> {
    panels: &'a [Matrix<V>],
    rows: Range<usize>,
    rank: usize,
}

impl<V: Value> WithSimd for GroupGram<'_, V> {
    type Output = Sums;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Sums {
        let GroupGram { panels, rows, rank } = self;
        let width = tiles::width_of(rank);
        let mut sums = Sums::zeros(width);
        let block_rows = block_rows(width);
        let mut scratch = Lines::zeros(block_rows * width);
        for start in rows.clone().step_by(block_rows) {
            let end = rows.end.min(start + block_rows);
            let block = &mut scratch[..(end - start) * width];
            let mut first = 0;
            for panel in panels {
                let (cols, stride) = (panel.cols(), panel.stride());
                let rows = &panel.as_slice()[start * stride..end * stride];
                load(rows, stride, first..first + cols, block, width);
                first += cols;
            }
            tiles::add_gram(simd, block, rank, width, &mut sums.gram);
        }
        sums
    }
}

/// Returns `A^T B` (`R x S`) of two matrices with the same number of rows.
///
/// Time `O(I R S)`, in parallel.
///
/// # Panics
///
/// If the numbers of rows differ.
pub fn cross_gram<V: Value>(a: &Matrix<V>, b: &Matrix<V>) -> Array2<f64> {
    assert_eq!(a.rows(), b.rows(), "matrices of different heights");
    let group_rows = group_rows(a.rows(), a.cols().max(b.cols()));
    let groups: Vec<Array2<f64>> = (0..a.rows().div_ceil(group_rows))
        .into_par_iter()
        .map(|group| {
            let end = a.rows().min((group + 1) * group_rows);
            let mut cross = Array2::zeros((a.cols(), b.cols()));
            let mut left = Array2::zeros((WIDE_BLOCK_ROWS, a.cols()));
            let mut right = Array2::zeros((WIDE_BLOCK_ROWS, b.cols()));
            for start in (group * group_rows..end).step_by(WIDE_BLOCK_ROWS) {
                let count = WIDE_BLOCK_ROWS.min(end - start);
                let mut left = left.slice_mut(ndarray::s![..count, ..]);
                let mut right = right.slice_mut(ndarray::s![..count, ..]);
                for (to, from) in [(&mut left, a), (&mut right, b)] {
                    let from = from.view();
                    to.zip_mut_with(
                        &from.slice(ndarray::s![start..start + count, ..]),
                        |to, from| {
                            *to = from.to_f64();
                        },
                    );
                }
                backend::add_cross_gram(left.view(), right.view(), cross.view_mut());
            }
            cross
        })
        .collect();
    groups.iter().fold(Array2::zeros((a.cols(), b.cols())), |total, part| total + part)
}

/// Returns the rows of a block of rows of `width` values.
fn block_rows(width: usize) -> usize {
    if width <= NARROW { BLOCK_ROWS } else { WIDE_BLOCK_ROWS }
}

/// Returns the rows of a group: a whole number of blocks of any kind, chosen from the shape alone.
fn group_rows(rows: usize, rank: usize) -> usize {
    rows.div_ceil(MOST_GROUPS).max(GROUP_ROWS_BY_RANK * rank).next_multiple_of(WIDE_BLOCK_ROWS)
}

/// Widens padded rows into `columns` of rows of `width` values.
///
/// Padding comes along, so that whole vectors are written: reading what was just written in parts takes long.
#[inline(always)]
fn load<V: Value>(
    rows: &[V],
    stride: usize,
    columns: Range<usize>,
    block: &mut [f64],
    width: usize,
) {
    let first = columns.start;
    let cols = columns.len().next_multiple_of(LANES).min(stride).min(width - first);
    for (to, from) in block.chunks_exact_mut(width).zip(rows.chunks_exact(stride)) {
        let (to, to_rest) = to[first..][..cols].as_chunks_mut::<LANES>();
        let (from, from_rest) = from[..cols].as_chunks::<LANES>();
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.map(V::to_f64));
        to_rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to = from.to_f64());
    }
}

/// Rounds `block` to the storage type.
#[inline(always)]
fn round<V: Value>(block: &mut [f64]) {
    if V::BYTES < size_of::<f64>() {
        block.iter_mut().for_each(|x| *x = V::from_f64(*x).to_f64());
    }
}

/// Copies `columns` of rows of `width` values into padded rows.
#[inline(always)]
fn store<V: Value>(
    block: &[f64],
    width: usize,
    columns: Range<usize>,
    rows: &mut [V],
    stride: usize,
) {
    let (first, cols) = (columns.start, columns.len());
    for (from, to) in block.chunks_exact(width).zip(rows.chunks_exact_mut(stride)) {
        let (from, from_rest) = from[first..][..cols].as_chunks::<LANES>();
        let (to, to_rest) = to[..cols].as_chunks_mut::<LANES>();
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.map(V::from_f64));
        to_rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to = V::from_f64(*from));
    }
}

/// Returns the larger of two numbers; unlike `f64::max` it compiles to one vector instruction.
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;
    use crate::init;

    fn factor<V: Value>(rows: usize, rank: usize, seed: u64) -> Matrix<V> {
        init::random(&[rows as u64], rank, seed).unwrap().remove(0)
    }

    fn widened<V: Value>(matrix: &Matrix<V>) -> Array2<f64> {
        matrix.view().mapv(V::to_f64)
    }

    fn check_update<V: Value>(rows: usize, rank: usize, tol: f64) {
        let mut matrix = factor::<V>(rows, rank, 1);
        let m = widened(&matrix);
        let w = widened(&factor::<f64>(rank, rank, 2)) - 0.5;
        let sums = update_rows(&mut matrix, &RowRule::Multiply(w.view()));
        let b = widened(&matrix);
        let close = |have: f64, want: f64| (have - want).abs() <= tol * (1.0 + want.abs());
        let product = m.dot(&w);
        assert!(b.iter().zip(&product).all(|(&x, &y)| close(x, y)), "{rows} x {rank}");
        let exact = b.t().dot(&b);
        assert!(
            sums.gram.iter().zip(&exact).all(|(&x, &y)| (x - y).abs() <= 1e-11 * (1.0 + y.abs()))
        );
        for r in 0..rank {
            let largest = b.column(r).iter().fold(0.0, |a: f64, x| a.max(x.abs()));
            assert_eq!(sums.max_abs[r], largest);
            assert!(close(sums.inner[r], m.column(r).dot(&b.column(r))));
        }
        assert_eq!(gram(&matrix), sums.gram, "the same blocks give the same bits");
        assert!(cross_gram(&matrix, &matrix).iter().zip(&exact).all(|(&x, &y)| close(x, y)));
        let stride = matrix.stride();
        assert!(
            matrix
                .as_slice()
                .chunks(stride)
                .all(|row| { row[rank..].iter().all(|&x| x.to_f64() == 0.0) })
        );
    }

    #[test]
    fn a_pass_agrees_with_plain_products_in_both_precisions() {
        for (rows, rank) in
            [(1, 1), (3, 7), (255, 8), (256, 9), (257, 50), (1000, 3), (40, 200), (270, 330)]
        {
            check_update::<f64>(rows, rank, 1e-12);
            check_update::<f32>(rows, rank, 1e-4);
        }
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let w = widened(&factor::<f64>(9, 9, 2));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut matrix = factor::<f64>(70_000, 9, 1);
            let sums = pool.install(|| update_rows(&mut matrix, &RowRule::Multiply(w.view())));
            (sums.gram, sums.inner, sums.max_abs, widened(&matrix))
        };
        assert_eq!(run(1), run(3));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// The objective `b^T Q b - 2 c^T b` of no row rises, and no entry is negative.
        #[test]
        fn non_negative_rows_only_improve(rows in 1_usize..300, rank in 1_usize..12, seed: u64) {
            let basis = widened(&factor::<f64>(rank + 3, rank, seed)) - 0.4;
            let q = basis.t().dot(&basis);
            let start = factor::<f64>(rows, rank, seed ^ 1);
            let mut matrix = factor::<f64>(rows, rank, seed ^ 2);
            matrix.view_mut().mapv_inplace(|x| x - 0.5);
            let c = widened(&matrix);
            let ones = vec![1.0; rank];
            let rule = RowRule::NonNegative(NonNegative {
                gram: q.view(),
                rhs_scale: &ones,
                start: vec![start.as_slice()],
                start_scale: &ones,
            });
            update_rows(&mut matrix, &rule);
            for i in 0..rows {
                let objective = |b: &[f64]| {
                    let b = Array1::from(b.to_vec());
                    b.dot(&q.dot(&b)) - 2.0 * c.row(i).dot(&b)
                };
                prop_assert!(matrix.row(i).iter().all(|&x| x >= 0.0));
                let (before, after) = (objective(start.row(i)), objective(matrix.row(i)));
                prop_assert!(after <= before + 1e-12 * (1.0 + before.abs()), "{before} {after}");
            }
        }
    }
}
