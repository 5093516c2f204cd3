//! Products over a few rows whose sums stay in vector registers.
//!
//! A pass over a long factor multiplies rows by a small matrix and sums up their Gram matrix. Both are done in
//! *tiles*: the sums of four or eight rows (of a product) or columns (of a Gram matrix) times a few vectors of
//! columns fill the registers, and one step adds a row of the small matrix, or of the factor, to all of them:
//! Goto, van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008, section 4.
//!
//! Rows are `width` values apart: a multiple of [`LANES`], so that vectors are whole, and columns beyond the rank are
//! zero.

use ndarray::{ArrayView2, s};
use pulp::{Arch, Simd, WithSimd};

use crate::linalg::aligned::Lines;

/// Values of the widest vectors.
pub(super) const LANES: usize = 8;
/// Rows of a product, or of a Gram matrix, that are computed together: a tile of eight or two of four.
pub(super) const ROWS: usize = 8;

/// Returns the distance of rows of `rank` columns.
pub(super) fn width_of(rank: usize) -> usize {
    rank.next_multiple_of(LANES)
}

/// Returns how many vectors wide a tile of `rows` rows is at most: its sums, a value of each row in all lanes and one
/// vector have registers.
const fn widest<S: Simd>(rows: usize) -> usize {
    ((S::REGISTER_COUNT - 1) / rows).saturating_sub(1)
}

/// A matrix of `depth` rows that rows of `depth` columns are multiplied by, in panels of the columns of a tile, each
/// row after row.
pub(super) struct Packed {
    depth: usize,
    width: usize,
    values: Lines,
}

impl Packed {
    /// Packs `matrix` for the vectors that [`Arch::new`] chooses.
    pub(super) fn new(matrix: ArrayView2<'_, f64>) -> Packed {
        let (depth, width) = (matrix.nrows(), width_of(matrix.ncols()));
        let mut values = Lines::zeros(depth * width);
        Arch::new().dispatch(Pack { matrix, width, packed: &mut values });
        Packed { depth, width, values }
    }

    /// Writes the products of `rows`, a multiple of [`ROWS`], over `out`; calls `between` after each tile.
    #[inline(always)]
    pub(super) fn multiply<S: Simd>(
        &self,
        simd: S,
        rows: &[f64],
        out: &mut [f64],
        mut between: impl FnMut(),
    ) {
        let mut panels = &self.values[..];
        for (first, vectors) in panels_of::<S>(self.width) {
            let (panel, rest) = panels.split_at(self.depth * vectors * S::F64_LANES);
            panels = rest;
            let tiles = rows.chunks_exact(ROWS * self.width);
            for (rows, out) in tiles.zip(out.chunks_exact_mut(ROWS * self.width)) {
                let tile = Product { rows, out, depth: self.depth, first, panel };
                tile.run(simd, self.width, vectors, &mut between);
            }
        }
    }
}

/// The first column and the vectors of each panel of rows of `width` values: about as many in each.
fn panels_of<S: Simd>(width: usize) -> impl Iterator<Item = (usize, usize)> {
    let vectors = width / S::F64_LANES;
    let panels = vectors.div_ceil(widest::<S>(ROWS / 2).max(1));
    let start = move |panel: usize| panel * vectors / panels;
    (0..panels).map(move |panel| (start(panel) * S::F64_LANES, start(panel + 1) - start(panel)))
}

struct Pack<'a> {
    matrix: ArrayView2<'a, f64>,
    width: usize,
    packed: &'a mut [f64],
}

impl WithSimd for Pack<'_> {
    type Output = ();

    fn with_simd<S: Simd>(self, _: S) {
        let mut panels = self.packed;
        for (first, vectors) in panels_of::<S>(self.width) {
            let columns = vectors * S::F64_LANES;
            let (panel, rest) = panels.split_at_mut(self.matrix.nrows() * columns);
            let [from, to] = [first, first + columns].map(|at| at.min(self.matrix.ncols()));
            let part = self.matrix.slice(s![.., from..to]);
            for (to, from) in panel.chunks_exact_mut(columns).zip(part.rows()) {
                from.assign_to(&mut to[..from.len()]);
            }
            panels = rest;
        }
    }
}

/// Chooses the code for a number of vectors.
macro_rules! by_vectors {
    ($vectors:expr, $run:ident($($argument:expr),*)) => {
        match $vectors {
            1 => $run::<S, 1>($($argument),*),
            2 => $run::<S, 2>($($argument),*),
            3 => $run::<S, 3>($($argument),*),
            4 => $run::<S, 4>($($argument),*),
            5 => $run::<S, 5>($($argument),*),
            6 => $run::<S, 6>($($argument),*),
            other => unreachable!("a tile of {other} vectors"),
        }
    };
}

/// Rows, and a panel that they are multiplied by.
struct Product<'a> {
    rows: &'a [f64],
    out: &'a mut [f64],
    depth: usize,
    /// The first column of the panel.
    first: usize,
    panel: &'a [f64],
}

impl Product<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, width: usize, vectors: usize, between: &mut impl FnMut()) {
        by_vectors!(vectors, multiply_rows(simd, self, width, between))
    }
}

#[inline(always)]
fn multiply_rows<S: Simd, const N: usize>(
    simd: S,
    product: Product<'_>,
    width: usize,
    between: &mut impl FnMut(),
) {
    if N <= widest::<S>(ROWS) {
        multiply_tile::<S, ROWS, N>(simd, product, width);
        between();
    } else {
        let Product { rows, out, depth, first, panel } = product;
        let half = ROWS / 2 * width;
        let halves = rows.chunks_exact(half).zip(out.chunks_exact_mut(half));
        for (rows, out) in halves {
            let product = Product { rows, out, depth, first, panel };
            multiply_tile::<S, { ROWS / 2 }, N>(simd, product, width);
            between();
        }
    }
}

#[inline(always)]
fn multiply_tile<S: Simd, const R: usize, const N: usize>(
    simd: S,
    product: Product<'_>,
    width: usize,
) {
    let Product { rows, out, depth, first, panel } = product;
    let rows: [&[f64]; R] = std::array::from_fn(|at| &rows[at * width..][..depth]);
    let (panel, _) = S::as_simd_f64s(panel);
    let (panel, _) = panel.as_chunks::<N>();
    let mut sums = [[simd.splat_f64s(0.0); N]; R];
    for (k, weights) in panel[..depth].iter().enumerate() {
        let scalars: [S::f64s; R] = std::array::from_fn(|at| simd.splat_f64s(rows[at][k]));
        for lane in 0..N {
            for at in 0..R {
                sums[at][lane] = simd.mul_add_e_f64s(scalars[at], weights[lane], sums[at][lane]);
            }
        }
    }
    for (at, sums) in sums.iter().enumerate() {
        let (out, _) = S::as_mut_simd_f64s(&mut out[at * width + first..]);
        out[..N].copy_from_slice(sums);
    }
}

/// Adds the lower triangle of `B^T B` to `gram` (`width x width`), where `rows` are those of `B` with `rank` columns;
/// what else of `gram` changes is undefined.
#[inline(always)]
pub(super) fn add_gram<S: Simd>(
    simd: S,
    rows: &[f64],
    rank: usize,
    width: usize,
    gram: &mut [f64],
) {
    for (column, gram) in (0..rank).step_by(ROWS).zip(gram.chunks_exact_mut(ROWS * width)) {
        // Few columns in the last tile are half of one.
        let few = rank - column <= ROWS / 2;
        let gram = if few { &mut gram[..ROWS / 2 * width] } else { gram };
        for (first, vectors) in panels_of::<S>(column + ROWS) {
            let sums = GramRows { rows, width, gram: &mut *gram, column, first };
            sums.run(simd, vectors);
        }
    }
}

/// Rows of a factor, and the rows of their Gram matrix from `column` on: those of a tile or of half of one.
struct GramRows<'a> {
    rows: &'a [f64],
    width: usize,
    gram: &'a mut [f64],
    column: usize,
    /// The first column that is summed.
    first: usize,
}

impl GramRows<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, vectors: usize) {
        by_vectors!(vectors, sum_rows(simd, self))
    }
}

#[inline(always)]
fn sum_rows<S: Simd, const N: usize>(simd: S, sums: GramRows<'_>) {
    if N <= widest::<S>(ROWS) && sums.gram.len() == ROWS * sums.width {
        sum_tile::<S, ROWS, N>(simd, sums);
    } else {
        let GramRows { rows, width, gram, column, first } = sums;
        let half = ROWS / 2;
        for (at, gram) in gram.chunks_exact_mut(half * width).enumerate() {
            let column = column + at * half;
            let sums = GramRows { rows, width, gram, column, first };
            sum_tile::<S, { ROWS / 2 }, N>(simd, sums);
        }
    }
}

#[inline(always)]
fn sum_tile<S: Simd, const R: usize, const N: usize>(simd: S, tile: GramRows<'_>) {
    let GramRows { rows, width, gram, column, first } = tile;
    let mut sums = [[simd.splat_f64s(0.0); N]; R];
    for row in rows.chunks_exact(width) {
        let (vectors, _) = S::as_simd_f64s(&row[first..]);
        let (vectors, scalars) = (&vectors[..N], &row[column..][..R]);
        let scalars: [S::f64s; R] = std::array::from_fn(|at| simd.splat_f64s(scalars[at]));
        for lane in 0..N {
            for at in 0..R {
                sums[at][lane] = simd.mul_add_e_f64s(scalars[at], vectors[lane], sums[at][lane]);
            }
        }
    }
    for (at, sums) in sums.iter().enumerate() {
        let (gram, _) = S::as_mut_simd_f64s(&mut gram[at * width + first..]);
        for (total, &sum) in gram[..N].iter_mut().zip(sums) {
            *total = simd.add_f64s(*total, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::ArrayView2;
    use pulp::{Scalar, Simd, WithSimd};

    use super::{Pack, Packed, ROWS, add_gram, width_of};
    use crate::init;
    use crate::linalg::aligned::Lines;

    /// A product and a Gram matrix by one kind of vectors.
    struct Both<'a> {
        rows: &'a [f64],
        by: ArrayView2<'a, f64>,
    }

    type Kind = fn(Both<'_>) -> (Vec<f64>, Vec<f64>);

    impl WithSimd for Both<'_> {
        type Output = (Vec<f64>, Vec<f64>);

        fn with_simd<S: Simd>(self, simd: S) -> (Vec<f64>, Vec<f64>) {
            let (depth, width) = (self.by.nrows(), width_of(self.by.ncols()));
            let mut values = Lines::zeros(depth * width);
            Pack { matrix: self.by, width, packed: &mut values }.with_simd(simd);
            let mut product = vec![0.0; self.rows.len()];
            let mut tiles = 0;
            Packed { depth, width, values }.multiply(simd, self.rows, &mut product, || tiles += 1);
            assert!(tiles > 0);
            let mut gram = vec![0.0; width * width];
            add_gram(simd, self.rows, depth, width, &mut gram);
            (product, gram)
        }
    }

    #[test]
    fn every_kind_of_vectors_and_every_width_gives_the_products() {
        let mut kinds: Vec<Kind> =
            vec![|both| Scalar::new().vectorize(both), |both| pulp::Arch::new().dispatch(both)];
        #[cfg(target_arch = "x86_64")]
        if pulp::x86::V3::try_new().is_some() {
            kinds.push(|both| Simd::vectorize(pulp::x86::V3::try_new().expect("asked for"), both));
        }
        for rank in (1..=17).chain([24, 31, 40, 50, 56, 64, 104, 120]) {
            let width = width_of(rank);
            let random = |rows: usize, seed: u64| {
                let factor = init::random::<f64>(&[rows as u64], rank, seed).unwrap().remove(0);
                factor.view().mapv(|x| x - 0.3)
            };
            let (a, by) = (random(3 * ROWS, 1), random(rank, 2));
            let mut rows = vec![0.0; 3 * ROWS * width];
            for (to, from) in rows.chunks_exact_mut(width).zip(a.rows()) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            let (product, gram) = (a.dot(&by), a.t().dot(&a));
            for kind in &kinds {
                let (have, lower) = kind(Both { rows: &rows, by: by.view() });
                // Sums of up to 120 products of numbers below 1, in another order.
                let close = |have: f64, want: f64| (have - want).abs() < 1e-13 * 120.0;
                for ((i, j), &want) in product.indexed_iter() {
                    assert!(close(have[i * width + j], want), "rank {rank}");
                }
                for ((i, j), &want) in gram.indexed_iter().filter(|((i, j), _)| j <= i) {
                    assert!(close(lower[i * width + j], want), "rank {rank}");
                }
                assert!(have.chunks_exact(width).all(|row| row[rank..].iter().all(|&x| x == 0.0)));
            }
        }
    }
}
