//! Passes over the slices of a TTMc result.
//!
//! `Y_(n)` (`I_n x P`, `P = prod_{m != n} R_m`) comes as the kernel wrote it: a row for each index
//! of mode `n`, made of segments padded to vector registers.  Passes pack some rows at a time into
//! contiguous doubles that stay in the near cache, and leave out rows that are zero throughout, those
//! of indices without non-zeros.  Each thread takes a contiguous range of rows
//! and sums by itself; the sums are added in order, so that the same number of threads gives the
//! same bits.

use std::ops::Range;

use decompose_common::linalg::{add_cross_gram, add_gram, multiply};
use decompose_formats::Value;
use ndarray::{Array2, ArrayView2, s};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSliceMut,
};

/// Doubles of a packed block: 512 KiB, so that it and a partner stay in the second cache.
const BLOCK: usize = 1 << 16;

/// Some rows of a TTMc result.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, V> {
    pub(crate) values: &'a [V],
    pub(crate) shape: RowShape,
}

/// How a row is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Elements from one row to the next.
    pub(crate) len: usize,
    /// Elements from one segment of a row to the next.
    pub(crate) stride: usize,
    /// Elements of a segment that count; the others are padding.
    pub(crate) cols: usize,
}

impl RowShape {
    /// Returns the elements of a row without padding, `P`.
    pub(crate) fn width(self) -> usize {
        self.len / self.stride * self.cols
    }
}

impl<V: Value> Rows<'_, V> {
    /// Returns the number of rows.
    pub(crate) fn count(&self) -> usize {
        self.values.len() / self.shape.len
    }

    /// Packs those of `rows` that are not zero throughout into `block`, row by row, and lists them
    /// in `present`, counted from the first of `rows`.
    fn pack(&self, rows: Range<usize>, block: &mut [f64], present: &mut Vec<usize>) {
        let RowShape { len, stride, cols } = self.shape;
        present.clear();
        let mut packed = block.chunks_exact_mut(self.shape.width());
        let values = self.values[rows.start * len..rows.end * len].chunks_exact(len);
        for (at, row) in values.enumerate() {
            if row.iter().all(|value| *value == V::default()) {
                continue;
            }
            let Some(block) = packed.next() else { return };
            for (to, from) in block.chunks_exact_mut(cols).zip(row.chunks_exact(stride)) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64());
            }
            present.push(at);
        }
    }

    /// Packs columns `columns` (of `P`) into `block`: each becomes a row of `I_n`.
    fn pack_columns(&self, columns: Range<usize>, block: &mut [f64]) {
        let RowShape { len, stride, cols } = self.shape;
        let count = self.count();
        for (to, column) in block.chunks_exact_mut(count).zip(columns) {
            let at = column / cols * stride + column % cols;
            let values = self.values[at..].iter().step_by(len);
            to.iter_mut().zip(values).for_each(|(to, from)| *to = from.to_f64());
        }
    }
}

/// The Gram matrix of the columns of a TTMc result, `Y^T Y` (`P x P`), as its rows come in.
pub(crate) struct ColumnGram {
    /// One a thread.
    parts: Vec<Array2<f64>>,
}

impl ColumnGram {
    /// Begins with no rows of `width` elements.
    pub(crate) fn new(width: usize) -> ColumnGram {
        let threads = rayon::current_num_threads();
        ColumnGram { parts: (0..threads).map(|_| Array2::zeros((width, width))).collect() }
    }

    /// Adds rows.  Time `O(rows * P^2)`.
    pub(crate) fn add<V: Value>(&mut self, rows: &Rows<'_, V>) {
        let (count, width) = (rows.count(), rows.shape.width());
        let share = count.div_ceil(self.parts.len()).max(1);
        self.parts.iter_mut().enumerate().collect::<Vec<_>>().into_par_iter().for_each(
            |(part, gram)| {
                let own = (part * share).min(count)..((part + 1) * share).min(count);
                let mut present = Vec::new();
                for_blocks(own, width, |range, block| {
                    rows.pack(range, block, &mut present);
                    add_gram(matrix(block, (present.len(), width)), gram.view_mut());
                });
            },
        );
    }

    /// Returns the sum over all rows.
    pub(crate) fn finish(self) -> Array2<f64> {
        sum_of_lower(self.parts)
    }
}

/// Returns the Gram matrix of all rows, `Y Y^T` (`I_n x I_n`).  Time `O(P * I_n^2)`.
pub(crate) fn row_gram<V: Value>(rows: &Rows<'_, V>) -> Array2<f64> {
    let (count, width) = (rows.count(), rows.shape.width());
    let threads = rayon::current_num_threads();
    let share = width.div_ceil(threads).max(1);
    let parts: Vec<Array2<f64>> = (0..threads)
        .into_par_iter()
        .map(|part| {
            let mut gram = Array2::zeros((count, count));
            let own = (part * share).min(width)..((part + 1) * share).min(width);
            for_blocks(own, count, |range, block| {
                rows.pack_columns(range.clone(), block);
                add_gram(matrix(block, (range.len(), count)), gram.view_mut());
            });
            gram
        })
        .collect();
    sum_of_lower(parts)
}

/// What a projection sums up.
pub(crate) struct ProjectionSums {
    /// `U^T U`, `R x R`; its lower triangle.
    gram: Array2<f64>,
    /// `U^T Y`, `R x P`, if wanted.
    core: Option<Array2<f64>>,
}

/// The product of a TTMc result with a small matrix, `U = Y W` (`I_n x R`), as its rows come in.
pub(crate) struct Projection<'a> {
    /// `P x R`; `None`: the rows of `U` are there already.
    w: Option<ArrayView2<'a, f64>>,
    /// One a thread.
    parts: Vec<ProjectionSums>,
}

/// Whether `U^T Y` is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithCore {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl<'a> Projection<'a> {
    /// Begins a product with `w` (`P x R`).
    pub(crate) fn new(w: ArrayView2<'a, f64>, core: WithCore) -> Projection<'a> {
        Projection::begin(Some(w), w.dim(), core)
    }

    /// Begins the sum `U^T Y` over the rows of a `U` (`I_n x rank`) that is there.
    pub(crate) fn of_existing(width: usize, rank: usize) -> Projection<'a> {
        Projection::begin(None, (width, rank), WithCore::Yes)
    }

    fn begin(
        w: Option<ArrayView2<'a, f64>>,
        (width, rank): (usize, usize),
        core: WithCore,
    ) -> Projection<'a> {
        let part = |_| ProjectionSums {
            gram: Array2::zeros((rank, rank)),
            core: (core == WithCore::Yes).then(|| Array2::zeros((rank, width))),
        };
        Projection { w, parts: (0..rayon::current_num_threads()).map(part).collect() }
    }

    /// Takes in some rows of `Y`; `out` are the same rows of `U`, `stride` elements apart.
    /// Time `O(rows * P * R)`.
    pub(crate) fn add<V: Value>(&mut self, rows: &Rows<'_, V>, out: &mut [V], stride: usize) {
        let (count, width) = (rows.count(), rows.shape.width());
        let share = count.div_ceil(self.parts.len()).max(1);
        let w = self.w;
        let shares = out.par_chunks_mut(share * stride).zip(&mut self.parts).enumerate();
        shares.for_each(|(part, (out, sums))| {
            let own = (part * share).min(count)..((part + 1) * share).min(count);
            let rank = sums.gram.nrows();
            let mut u = Array2::zeros((block_rows(width), rank));
            let mut rest = out;
            let mut present = Vec::new();
            for_blocks(own, width, |range, block| {
                let (own, after) = std::mem::take(&mut rest).split_at_mut(range.len() * stride);
                rest = after;
                rows.pack(range, block, &mut present);
                let y = matrix(block, (present.len(), width));
                let mut u = u.slice_mut(s![..present.len(), ..]);
                match w {
                    Some(w) => {
                        multiply(y, w, u.view_mut());
                        own.fill(V::default());
                        store(u.as_slice_mut().unwrap_or_default(), (own, stride), &present);
                    }
                    None => load((own, stride), &present, u.as_slice_mut().unwrap_or_default()),
                }
                add_gram(u.view(), sums.gram.view_mut());
                if let Some(core) = &mut sums.core {
                    add_cross_gram(u.view(), y, core.view_mut());
                }
            });
        });
    }

    /// Returns `U^T U` (`R x R`) and, if wanted, `U^T Y` (`R x P`).
    pub(crate) fn finish(self) -> (Array2<f64>, Option<Array2<f64>>) {
        let mut grams = Vec::new();
        let mut core: Option<Array2<f64>> = None;
        for part in self.parts {
            grams.push(part.gram);
            core = match (core, part.core) {
                (Some(sum), Some(part)) => Some(sum + part),
                (None, part) => part,
                (sum, None) => sum,
            };
        }
        (sum_of_lower(grams), core)
    }
}

/// Calls `visit` with consecutive ranges of `own` and memory for that many rows of `width`.
fn for_blocks(own: Range<usize>, width: usize, mut visit: impl FnMut(Range<usize>, &mut [f64])) {
    let most = block_rows(width);
    let mut memory = vec![0.0; most.min(own.len()) * width];
    for start in own.clone().step_by(most) {
        let range = start..own.end.min(start + most);
        let len = range.len() * width;
        visit(range, &mut memory[..len]);
    }
}

fn block_rows(width: usize) -> usize {
    (BLOCK / width.max(1)).clamp(8, 512)
}

fn matrix(block: &[f64], (rows, cols): (usize, usize)) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((rows, cols), &block[..rows * cols]).expect("a block of whole rows")
}

/// Widens the rows `present` of padded ones, `stride` apart, into `to`.
fn load<V: Value>((rows, stride): (&[V], usize), present: &[usize], to: &mut [f64]) {
    let cols = to.len() / present.len().max(1);
    for (to, at) in to.chunks_exact_mut(cols.max(1)).zip(present) {
        let from = &rows[at * stride..];
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64());
    }
}

/// Rounds rows to the storage type, in place and into the rows `present` of padded ones, `stride`
/// apart.
fn store<V: Value>(from: &mut [f64], (rows, stride): (&mut [V], usize), present: &[usize]) {
    let cols = from.len() / present.len().max(1);
    for (from, at) in from.chunks_exact_mut(cols.max(1)).zip(present) {
        for (from, to) in from.iter_mut().zip(&mut rows[at * stride..]) {
            *to = V::from_f64(*from);
            *from = to.to_f64();
        }
    }
}

/// Adds matrices of which the lower triangles count, and mirrors the sum.
fn sum_of_lower(parts: Vec<Array2<f64>>) -> Array2<f64> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    parts.for_each(|part| sum += &part);
    for i in 0..sum.nrows() {
        for j in i + 1..sum.ncols() {
            sum[(i, j)] = sum[(j, i)];
        }
    }
    sum
}
