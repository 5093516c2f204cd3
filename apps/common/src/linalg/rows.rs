//! Passes over long factors, one row block at a time.
//!
//! A mode update of alternating least squares needs, besides the MTTKRP `M` (`I x R`), the product
//! `B = M W`, the Gram matrix `B^T B`, the largest entry of each column and the column-wise inner
//! products of `M` and `B`.  [`update_rows`] does all of it while a block of rows is in the
//! near cache, in place: `2 I R` values cross the memory bus, `3 I R^2` multiply-adds run.
//!
//! The loops over rows are compiled twice: for AVX2, which is taken where the machine has it, and without.
//!
//! Blocks form groups of a size that depends on `I` and `R` only; each group sums by itself and
//! the sums are added in the order of the groups.  So a result is the same for any number of
//! threads.

use decompose_formats::{Matrix, Value};
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};
use pulp::Arch;
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSlice,
};

use crate::linalg::backend;
use crate::linalg::nonneg::NonNegative;

/// Rows of a block: at rank 50, 100 kB a scratch buffer, so that two stay in the second cache.
const BLOCK_ROWS: usize = 256;
/// The most groups: enough for the threads of a large machine to share the work evenly.
const MOST_GROUPS: usize = 256;
/// Least rows of a group, by rank: keeps the `R x R` sums of all groups at a quarter of the factor.
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

impl RowSums {
    fn zeros(rank: usize) -> RowSums {
        RowSums {
            gram: Array2::zeros((rank, rank)),
            max_abs: Array1::zeros(rank),
            inner: Array1::zeros(rank),
        }
    }

    fn add(&mut self, other: &RowSums) {
        self.gram += &other.gram;
        self.inner += &other.inner;
        self.max_abs.zip_mut_with(&other.max_abs, |a, &b| *a = larger(*a, b));
    }
}

/// Replaces each row of `matrix` (`I x R`, holding an MTTKRP) by `rule`, in parallel, and sums up.
///
/// Time `O(I R^2)`; scratch memory two blocks a thread.
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
    let count = panels.first().map_or(0, Matrix::rows);
    let group_rows = group_rows(count, rank);
    let mut groups: Vec<Vec<PanelRows<'_, V>>> = Vec::new();
    groups.resize_with(count.div_ceil(group_rows), || Vec::with_capacity(panels.len()));
    for panel in panels {
        let (cols, stride) = (panel.cols(), panel.stride());
        let rows = panel.as_mut_slice().chunks_mut(group_rows * stride);
        let parts = groups.iter_mut().zip(rows);
        parts.for_each(|(group, rows)| group.push(PanelRows { rows, cols, stride }));
    }
    let scratch = || [(); 2].map(|()| Array2::zeros((BLOCK_ROWS, rank)));
    let groups: Vec<RowSums> = groups
        .into_par_iter()
        .enumerate()
        .map_init(scratch, |scratch, (group, mut rows)| {
            update_group(&mut rows, scratch, (group * group_rows, rule))
        })
        .collect();
    let mut sums = fold(groups, rank);
    mirror(&mut sums.gram);
    sums
}

/// Rows of a panel.
struct PanelRows<'a, V> {
    rows: &'a mut [V],
    cols: usize,
    stride: usize,
}

/// Updates one group of rows, which lies in several panels; `at_rule` is the number of its first row and
/// the rule.
fn update_group<V: Value>(
    group: &mut [PanelRows<'_, V>],
    [old, new]: &mut [Array2<f64>; 2],
    at_rule: (usize, &RowRule<'_, V>),
) -> RowSums {
    let (first_row, rule) = at_rule;
    let mut sums = RowSums::zeros(old.ncols());
    let rows = group.first().map_or(0, |part| part.rows.len() / part.stride);
    for start in (0..rows).step_by(BLOCK_ROWS) {
        let count = BLOCK_ROWS.min(rows - start);
        let mut m = old.slice_mut(ndarray::s![..count, ..]);
        let mut b = new.slice_mut(ndarray::s![..count, ..]);
        let mut first = 0;
        for PanelRows { rows, cols, stride } in group.iter() {
            let rows = &rows[start * stride..(start + count) * stride];
            load(rows, *stride, (first, *cols), m.view_mut());
            first += cols;
        }
        match rule {
            RowRule::Multiply(w) => backend::multiply(m.view(), *w, b.view_mut()),
            RowRule::NonNegative(rule) => {
                let shape = group.iter().map(|part| (part.cols, part.stride));
                rule.solve(m.view(), (first_row + start, shape), b.view_mut());
            }
        }
        first = 0;
        for PanelRows { rows, cols, stride } in group.iter_mut() {
            let rows = &mut rows[start * *stride..(start + count) * *stride];
            store(b.view_mut(), (first, *cols), rows, *stride);
            first += *cols;
        }
        add_columns(&mut sums, m.view(), b.view());
        backend::add_gram(b.view(), sums.gram.view_mut());
    }
    sums
}

/// Adds a block's share to the sums by column.
fn add_columns(sums: &mut RowSums, m: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) {
    let max_abs = sums.max_abs.as_slice_mut().expect("contiguous");
    let inner = sums.inner.as_slice_mut().expect("contiguous");
    let block = (m.to_slice().expect("contiguous"), b.to_slice().expect("contiguous"));
    Arch::new().dispatch(|| {
        let first = add_wide::<16>(max_abs, inner, 0, block);
        let first = add_wide::<8>(max_abs, inner, first, block);
        let first = add_wide::<4>(max_abs, inner, first, block);
        let first = add_wide::<2>(max_abs, inner, first, block);
        add_wide::<1>(max_abs, inner, first, block);
    });
}

/// Adds columns of `m` and `b` from `first` on, `WIDE` at a time while there are so many, to the sums, which stay in
/// registers while the rows of the block pass.  Returns the first column that is left.
#[inline(always)]
fn add_wide<const WIDE: usize>(
    max_abs: &mut [f64],
    inner: &mut [f64],
    mut first: usize,
    (m, b): (&[f64], &[f64]),
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
    let (stride, rank) = (matrix.stride(), matrix.cols());
    let group_rows = group_rows(matrix.rows(), rank);
    let groups: Vec<Array2<f64>> = matrix
        .as_slice()
        .par_chunks(group_rows * stride)
        .map(|rows| {
            let mut gram = Array2::zeros((rank, rank));
            let mut scratch = Array2::zeros((BLOCK_ROWS, rank));
            for rows in rows.chunks(BLOCK_ROWS * stride) {
                let mut block = scratch.slice_mut(ndarray::s![..rows.len() / stride, ..]);
                load(rows, stride, (0, rank), block.view_mut());
                backend::add_gram(block.view(), gram.view_mut());
            }
            gram
        })
        .collect();
    let mut total = groups.iter().fold(Array2::zeros((rank, rank)), |total, part| total + part);
    mirror(&mut total);
    total
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
            let mut left = Array2::zeros((BLOCK_ROWS, a.cols()));
            let mut right = Array2::zeros((BLOCK_ROWS, b.cols()));
            for start in (group * group_rows..end).step_by(BLOCK_ROWS) {
                let count = BLOCK_ROWS.min(end - start);
                let mut left = left.slice_mut(ndarray::s![..count, ..]);
                let mut right = right.slice_mut(ndarray::s![..count, ..]);
                load(
                    &a.as_slice()[start * a.stride()..],
                    a.stride(),
                    (0, a.cols()),
                    left.view_mut(),
                );
                load(
                    &b.as_slice()[start * b.stride()..],
                    b.stride(),
                    (0, b.cols()),
                    right.view_mut(),
                );
                backend::add_cross_gram(left.view(), right.view(), cross.view_mut());
            }
            cross
        })
        .collect();
    groups.iter().fold(Array2::zeros((a.cols(), b.cols())), |total, part| total + part)
}

/// Returns the rows of a group: a whole number of blocks, chosen from the shape alone.
fn group_rows(rows: usize, rank: usize) -> usize {
    rows.div_ceil(MOST_GROUPS).max(GROUP_ROWS_BY_RANK * rank).next_multiple_of(BLOCK_ROWS)
}

fn fold(groups: Vec<RowSums>, rank: usize) -> RowSums {
    groups.iter().fold(RowSums::zeros(rank), |mut total, part| {
        total.add(part);
        total
    })
}

/// Copies the lower triangle over the upper one.
fn mirror(gram: &mut Array2<f64>) {
    for i in 0..gram.nrows() {
        for j in i + 1..gram.ncols() {
            gram[(i, j)] = gram[(j, i)];
        }
    }
}

/// Widens padded rows into columns of a contiguous block, of which the first and the number are given.
fn load<V: Value>(
    rows: &[V],
    stride: usize,
    (first, cols): (usize, usize),
    mut block: ArrayViewMut2<'_, f64>,
) {
    let all = block.ncols();
    let block = block.as_slice_mut().expect("contiguous").chunks_exact_mut(all);
    Arch::new().dispatch(|| {
        for (to, from) in block.zip(rows.chunks_exact(stride)) {
            for (to, &from) in to[first..][..cols].iter_mut().zip(from) {
                *to = from.to_f64();
            }
        }
    });
}

/// Rounds columns of a block to the storage type, in the block and into the padded rows.
fn store<V: Value>(
    mut block: ArrayViewMut2<'_, f64>,
    (first, cols): (usize, usize),
    rows: &mut [V],
    stride: usize,
) {
    let all = block.ncols();
    let block = block.as_slice_mut().expect("contiguous").chunks_exact_mut(all);
    Arch::new().dispatch(|| {
        for (from, to) in block.zip(rows.chunks_exact_mut(stride)) {
            for (from, to) in from[first..][..cols].iter_mut().zip(to) {
                *to = V::from_f64(*from);
                *from = to.to_f64();
            }
        }
    });
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
        for (rows, rank) in [(1, 1), (3, 7), (255, 8), (256, 9), (257, 50), (1000, 3), (40, 200)] {
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
