//! Passes over the slices of a TTMc result.
//!
//! `Y_(n)` (`I_n x P`, `P = prod_{m != n} R_m`) comes as the kernel wrote it: a row for each index
//! of mode `n`, or for each that has non-zeros, made of segments padded to vector registers.  Passes pack
//! some rows at a time into contiguous doubles that stay in the near cache, and leave out rows that are
//! zero throughout.  Each thread takes a share of the rows and sums by itself; the sums are added in
//! order, so that the same number of threads gives the same bits.

use std::ops::Range;

use decompose_common::linalg::{add_cross_gram, add_gram, multiply};
use decompose_formats::{Ints, Value};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

/// Doubles of a packed block: 512 KiB, so that it and a partner stay in the second cache ...
const BLOCK: usize = 1 << 16;
/// ... but no fewer rows than a product with a wide matrix needs to outweigh its reading, up to 8 MiB.
const LEAST_ROWS: usize = 128;
const LARGEST_BLOCK: usize = 1 << 20;

/// Returns how many rows of `width` elements are taken at a time.
pub(crate) fn block_rows(width: usize) -> usize {
    let width = width.max(1);
    (BLOCK / width).max(LEAST_ROWS.min(LARGEST_BLOCK / width)).clamp(8, 512)
}

/// Some rows of a TTMc result.
#[derive(Clone)]
pub(crate) struct TtmcRows<'a, V> {
    pub(crate) values: &'a [V],
    pub(crate) shape: RowShape,
    /// Which rows they are.
    pub(crate) places: Places<'a>,
}

/// Which rows of a whole result some rows are.
#[derive(Clone)]
pub(crate) enum Places<'a> {
    /// All from this one on, empty ones too.
    From(usize),
    /// Those at these positions of a list, none of them empty.
    Listed(&'a Ints, Range<u64>),
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

/// Rows of doubles without padding, and which rows they are.
#[derive(Default)]
struct Packed {
    memory: Vec<f64>,
    present: Vec<usize>,
}

impl Packed {
    /// Takes in those of `rows` that are not zero throughout.
    fn fill<V: Value>(&mut self, rows: &TtmcRows<'_, V>) {
        let RowShape { len, stride, cols } = rows.shape;
        self.memory.resize(rows.values.len() / len * rows.shape.width(), 0.0);
        self.present.clear();
        let mut packed = self.memory.chunks_exact_mut(rows.shape.width());
        for (at, row) in rows.values.chunks_exact(len).enumerate() {
            let place = match &rows.places {
                Places::From(_) if row.iter().all(|value| *value == V::default()) => continue,
                Places::From(first) => first + at,
                Places::Listed(list, range) => list.get(range.start as usize + at) as usize,
            };
            let Some(packed) = packed.next() else { return };
            for (to, from) in packed.chunks_exact_mut(cols).zip(row.chunks_exact(stride)) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64());
            }
            self.present.push(place);
        }
    }

    fn view(&self, width: usize) -> ArrayView2<'_, f64> {
        matrix(&self.memory, (self.present.len(), width))
    }
}

/// The Gram matrix of the columns of a share of the rows, `Y^T Y` (`P x P`), as they come in.
pub(crate) struct GramPart {
    gram: Array2<f64>,
    packed: Packed,
}

impl GramPart {
    /// Begins with no rows of `width` elements.
    pub(crate) fn new(width: usize) -> GramPart {
        GramPart { gram: Array2::zeros((width, width)), packed: Packed::default() }
    }

    /// Adds rows.  Time `O(rows * P^2)`.
    pub(crate) fn add<V: Value>(&mut self, rows: &TtmcRows<'_, V>) {
        self.packed.fill(rows);
        add_gram(self.packed.view(rows.shape.width()), self.gram.view_mut());
    }

    /// Returns the sum over all shares.
    pub(crate) fn sum(parts: Vec<GramPart>) -> Array2<f64> {
        sum_of_lower(parts.into_iter().map(|part| part.gram).collect())
    }
}

/// Returns the Gram matrix of all rows of a whole result, `Y Y^T` (`I_n x I_n`).  Time `O(P * I_n^2)`.
pub(crate) fn row_gram<V: Value>(values: &[V], shape: RowShape) -> Array2<f64> {
    let (count, width) = (values.len() / shape.len, shape.width());
    let threads = rayon::current_num_threads();
    let share = width.div_ceil(threads).max(1);
    let parts: Vec<Array2<f64>> = (0..threads)
        .into_par_iter()
        .map(|part| {
            let mut gram = Array2::zeros((count, count));
            let own = (part * share).min(width)..((part + 1) * share).min(width);
            let mut memory = vec![0.0; block_rows(count).min(own.len()) * count];
            for start in own.clone().step_by(block_rows(count)) {
                let columns = start..own.end.min(start + block_rows(count));
                let block = &mut memory[..columns.len() * count];
                pack_columns(values, shape, columns.clone(), block);
                add_gram(matrix(block, (columns.len(), count)), gram.view_mut());
            }
            gram
        })
        .collect();
    sum_of_lower(parts)
}

/// Packs columns `columns` (of `P`) into `block`: each becomes a row of `I_n`.
fn pack_columns<V: Value>(values: &[V], shape: RowShape, columns: Range<usize>, block: &mut [f64]) {
    let RowShape { len, stride, cols } = shape;
    for (to, column) in block.chunks_exact_mut(values.len() / len).zip(columns) {
        let at = column / cols * stride + column % cols;
        let values = values[at..].iter().step_by(len);
        to.iter_mut().zip(values).for_each(|(to, from)| *to = from.to_f64());
    }
}

/// Whether `U^T Y` is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithCore {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// Rows of a factor, `stride` elements apart, that a share of the rows of `Y` belongs to.
pub(crate) struct FactorRows<'a, V> {
    pub(crate) rows: &'a mut [V],
    pub(crate) stride: usize,
    /// The number of the first.
    pub(crate) first: usize,
}

/// The product of a share of the rows of a TTMc result with a small matrix, `U = Y W` (`I_n x R`), as
/// they come in.
pub(crate) struct Projection<'a, V> {
    /// `P x R`; `None`: the rows of `U` are there already.
    w: Option<ArrayView2<'a, f64>>,
    out: FactorRows<'a, V>,
    /// `U^T U`, `R x R`; its lower triangle.
    gram: Array2<f64>,
    /// `U^T Y`, `R x P`, if wanted.
    core: Option<Array2<f64>>,
    packed: Packed,
    u: Vec<f64>,
}

impl<'a, V: Value> Projection<'a, V> {
    /// Begins a product with `w` (`P x R`) into `out`, which is cleared.
    pub(crate) fn new(
        w: ArrayView2<'a, f64>,
        out: FactorRows<'a, V>,
        core: WithCore,
    ) -> Projection<'a, V> {
        out.rows.fill(V::default());
        let (width, rank) = w.dim();
        Projection::begin(Some(w), out, width, rank, core)
    }

    /// Begins the sum `U^T Y` (`rank x width`) over the rows of a `U` that is there.
    pub(crate) fn of_existing(
        out: FactorRows<'a, V>,
        width: usize,
        rank: usize,
    ) -> Projection<'a, V> {
        Projection::begin(None, out, width, rank, WithCore::Yes)
    }

    fn begin(
        w: Option<ArrayView2<'a, f64>>,
        out: FactorRows<'a, V>,
        width: usize,
        rank: usize,
        core: WithCore,
    ) -> Projection<'a, V> {
        let core = (core == WithCore::Yes).then(|| Array2::zeros((rank, width)));
        let gram = Array2::zeros((rank, rank));
        Projection { w, out, gram, core, packed: Packed::default(), u: Vec::new() }
    }

    /// Takes in some rows.  Time `O(rows * P * R)`.
    pub(crate) fn add(&mut self, rows: &TtmcRows<'_, V>) {
        self.packed.fill(rows);
        let (present, rank) = (&self.packed.present, self.gram.nrows());
        let y = self.packed.view(rows.shape.width());
        self.u.resize(present.len() * rank, 0.0);
        let mut u = ArrayViewMut2::from_shape((present.len(), rank), &mut self.u)
            .expect("a row of the factor for each present one");
        match self.w {
            Some(w) => {
                multiply(y, w, u.view_mut());
                self.out.store(u.as_slice_mut().unwrap_or_default(), present);
            }
            None => self.out.load(present, u.as_slice_mut().unwrap_or_default()),
        }
        add_gram(u.view(), self.gram.view_mut());
        if let Some(core) = &mut self.core {
            add_cross_gram(u.view(), y, core.view_mut());
        }
    }

    /// Returns `U^T U` (`R x R`) and, if wanted, `U^T Y` (`R x P`), over all shares.
    pub(crate) fn sum(parts: Vec<Projection<'a, V>>) -> (Array2<f64>, Option<Array2<f64>>) {
        let mut grams = Vec::new();
        let mut core: Option<Array2<f64>> = None;
        for part in parts {
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

impl<V: Value> FactorRows<'_, V> {
    /// Widens the rows `present` into `to`.
    fn load(&self, present: &[usize], to: &mut [f64]) {
        let cols = to.len() / present.len().max(1);
        for (to, at) in to.chunks_exact_mut(cols.max(1)).zip(present) {
            let from = &self.rows[(at - self.first) * self.stride..];
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64());
        }
    }

    /// Rounds rows to the storage type, in place and into the rows `present`.
    fn store(&mut self, from: &mut [f64], present: &[usize]) {
        let cols = from.len() / present.len().max(1);
        for (from, at) in from.chunks_exact_mut(cols.max(1)).zip(present) {
            let to = &mut self.rows[(at - self.first) * self.stride..];
            for (from, to) in from.iter_mut().zip(to) {
                *to = V::from_f64(*from);
                *from = to.to_f64();
            }
        }
    }
}

fn matrix(block: &[f64], (rows, cols): (usize, usize)) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((rows, cols), &block[..rows * cols]).expect("a block of whole rows")
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
