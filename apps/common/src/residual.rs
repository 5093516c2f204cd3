//! How far a model is from a tensor, measured at the cells.
//!
//! Solvers know `||X - M||^2` as a difference of squares and inner products.  Near a perfect fit, and where
//! components cancel each other, its digits cancel too.  Here the difference is taken cell by cell, in double
//! precision:
//!
//! ```text
//! ||X - M||^2 = sum over listed cells (x - m)^2  +  sum over other cells m^2
//! ```
//!
//! The first sum is exact to rounding.  The second is nothing where every cell is listed, and is taken cell by cell
//! in boxes of few cells.  Elsewhere it is `||M||^2` less the sum of `m^2` over the listed cells: a difference that
//! cancels again, and whose rounding is part of the answer.
//!
//! A model is a [`Chain`]: a state that each mode's index changes, and a value at the last one.  Cells in
//! lexicographic order share the states of the modes that they agree in.

use std::ops::Range;

use decompose_formats::{Coo, Matrix, Value};
use ndarray::{Array2, Array3, ArrayD, Axis};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

/// Cells of a task: sums do not depend on the number of threads.
const BLOCK: usize = 1 << 14;
/// Sums kept side by side, so that additions do not wait for each other.
const LANES: usize = 8;
/// Roundings of a sum of squares that `||M||^2` and its part at listed cells may be apart by.
const ROUNDINGS: f64 = 16.0;

/// The most cells that are visited one by one, if not all are listed.
pub const CELLS: u64 = 1 << 22;

/// How a residual was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// From norms and the inner product with the tensor.
    InnerProduct,
    /// Cell by cell.
    Cells,
    /// At the listed cells, and from the model's norm elsewhere.
    Entries,
}

/// A measured residual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// `||X - M||^2`.
    pub square: f64,
    /// What rounding may have added to it or taken from it.
    pub rounding: f64,
    /// How it was measured.
    pub measured: Measured,
}

impl Residual {
    /// Returns `||X - M|| / ||X||` for a tensor of squared norm `norm_squared`: the most that it can be, so that
    /// what rounding hides never looks like a perfect fit.
    pub fn relative_error(&self, norm_squared: f64) -> f64 {
        ((self.square.max(0.0) + self.rounding) / norm_squared).sqrt()
    }
}

/// The squared norm of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelSquare {
    /// `||M||^2`.
    pub norm: f64,
    /// The sum of the magnitudes of the terms that it was added up from.
    pub terms: f64,
}

/// A model as a state that each mode changes in turn.
pub trait Chain: Sync {
    /// Returns the state before the first mode.
    fn begin(&self) -> Vec<f64>;

    /// Makes `next` the state behind `mode`, which is not the last, at `index`.
    fn step(&self, mode: usize, index: usize, state: &[f64], next: &mut Vec<f64>);

    /// Returns the value at `index` of the last mode.
    fn value(&self, index: usize, state: &[f64]) -> f64;
}

/// A sum of rank-one terms: weights, and for each mode its factor in parts of columns.
pub struct CpChain<'a, V> {
    /// One a component.
    pub weights: Vec<f64>,
    /// The columns of each factor, in one or several matrices.
    pub factors: Vec<&'a [Matrix<V>]>,
}

impl<V: Value> Chain for CpChain<'_, V> {
    fn begin(&self) -> Vec<f64> {
        self.weights.clone()
    }

    fn step(&self, mode: usize, index: usize, state: &[f64], next: &mut Vec<f64>) {
        next.clear();
        let row = self.factors[mode].iter().flat_map(|part| part.row(index));
        next.extend(state.iter().zip(row).map(|(state, x)| state * x.to_f64()));
    }

    fn value(&self, index: usize, state: &[f64]) -> f64 {
        let mut rest = state;
        let parts = self.factors[self.factors.len() - 1].iter();
        let sums = parts.map(|part| {
            let (own, behind) = rest.split_at(part.cols());
            rest = behind;
            dot(own, part.row(index))
        });
        sums.sum()
    }
}

/// A core and factors.
pub struct TuckerChain<'a, V> {
    /// `R_1 x ... x R_N`.
    pub core: &'a ArrayD<f64>,
    /// `I_n x R_n`.
    pub factors: &'a [Matrix<V>],
}

impl<V: Value> Chain for TuckerChain<'_, V> {
    fn begin(&self) -> Vec<f64> {
        self.core.iter().copied().collect()
    }

    fn step(&self, mode: usize, index: usize, state: &[f64], next: &mut Vec<f64>) {
        let row = self.factors[mode].row(index);
        let width = state.len() / row.len();
        next.clear();
        next.resize(width, 0.0);
        for (slice, u) in state.chunks_exact(width).zip(row) {
            let u = u.to_f64();
            next.iter_mut().zip(slice).for_each(|(next, g)| *next += u * g);
        }
    }

    fn value(&self, index: usize, state: &[f64]) -> f64 {
        dot(state, self.factors[self.factors.len() - 1].row(index))
    }
}

/// A train whose cores of `r_(k-1) x I_k x r_k` are in the order of the modes.
pub struct TrainChain<'a> {
    cores: &'a [Array3<f64>],
    /// The last core, a row for each index.
    last: Array2<f64>,
}

impl TrainChain<'_> {
    /// Makes the chain of `cores`, of which it copies the last.
    ///
    /// # Panics
    ///
    /// If there is no core.
    pub fn new(cores: &[Array3<f64>]) -> TrainChain<'_> {
        let last = cores[cores.len() - 1].index_axis(Axis(2), 0);
        TrainChain { cores, last: last.t().as_standard_layout().into_owned() }
    }
}

impl Chain for TrainChain<'_> {
    fn begin(&self) -> Vec<f64> {
        vec![1.0]
    }

    fn step(&self, mode: usize, index: usize, state: &[f64], next: &mut Vec<f64>) {
        let slice = self.cores[mode].index_axis(Axis(1), index);
        next.clear();
        next.resize(slice.ncols(), 0.0);
        for (row, state) in slice.rows().into_iter().zip(state) {
            next.iter_mut().zip(row).for_each(|(next, g)| *next += state * g);
        }
    }

    fn value(&self, index: usize, state: &[f64]) -> f64 {
        dot(state, self.last.row(index).to_slice().unwrap_or_default())
    }
}

/// Measures `model`, of squared norm `square`, on a list sorted by its natural order without duplicates.
///
/// Boxes of at most `most_cells` cells are visited whole.  Time `O(cells R)` for CP, memory a few states a thread;
/// the result does not depend on the number of threads.
pub fn residual<V: Value>(
    list: &Coo<V>,
    model: &dyn Chain,
    square: ModelSquare,
    most_cells: u64,
) -> Residual {
    let cells = list.extents().iter().fold(1_u64, |cells, &n| cells.saturating_mul(n));
    let all_listed = cells == list.nnz() as u64;
    if !all_listed && cells <= most_cells {
        return Residual {
            square: by_cells(list, model),
            rounding: 0.0,
            measured: Measured::Cells,
        };
    }
    let (listed, inside) = by_entries(list, model);
    if all_listed {
        return Residual { square: listed, rounding: 0.0, measured: Measured::Cells };
    }
    let elsewhere = (square.norm - inside).max(0.0);
    let rounding = ROUNDINGS * f64::EPSILON * (square.terms + inside);
    Residual { square: listed + elsewhere, rounding, measured: Measured::Entries }
}

/// Returns the sums of `(x - m)^2` and `m^2` over the listed cells.
fn by_entries<V: Value>(list: &Coo<V>, model: &dyn Chain) -> (f64, f64) {
    let last = list.order() - 1;
    let block = |block: usize| {
        let mut path = Path::new(model, last);
        let mut at = vec![0; last];
        let mut sums = (0.0, 0.0);
        for entry in block * BLOCK..list.nnz().min((block + 1) * BLOCK) {
            at.iter_mut()
                .enumerate()
                .for_each(|(mode, at)| *at = list.coords(mode).get(entry) as usize);
            let index = list.coords(last).get(entry) as usize;
            let value = model.value(index, path.to(&at));
            let off = list.values()[entry].to_f64() - value;
            sums = (sums.0 + off * off, sums.1 + value * value);
        }
        sums
    };
    let blocks = (0..list.nnz().div_ceil(BLOCK)).into_par_iter().map(block);
    let blocks: Vec<(f64, f64)> = blocks.collect();
    blocks.iter().fold((0.0, 0.0), |sums, block| (sums.0 + block.0, sums.1 + block.1))
}

/// Returns the sum of `(x - m)^2` over all cells.
fn by_cells<V: Value>(list: &Coo<V>, model: &dyn Chain) -> f64 {
    let last = list.order() - 1;
    let (extents, length) = (&list.extents()[..last], list.extents()[last] as usize);
    let fibres = extents.iter().product::<u64>() as usize;
    let share = (BLOCK / length.max(1)).max(1);
    let fibre_of = |entry: usize| {
        let modes = extents.iter().enumerate();
        modes.fold(0, |at, (m, &n)| at * n as usize + list.coords(m).get(entry) as usize)
    };
    let block = |block: usize| -> f64 {
        let own: Range<usize> = block * share..fibres.min((block + 1) * share);
        let mut entry = first(list.nnz(), |entry| fibre_of(entry) >= own.start);
        let mut path = Path::new(model, last);
        let mut sum = 0.0;
        for fibre in own {
            let state = path.to(&place(fibre, extents));
            for index in 0..length {
                let here = entry < list.nnz()
                    && list.coords(last).get(entry) as usize == index
                    && fibre_of(entry) == fibre;
                let x = if here { list.values()[entry].to_f64() } else { 0.0 };
                entry += usize::from(here);
                let off = x - model.value(index, state);
                sum += off * off;
            }
        }
        sum
    };
    let blocks: Vec<f64> = (0..fibres.div_ceil(share)).into_par_iter().map(block).collect();
    blocks.iter().sum()
}

/// Returns the coordinates of cell number `cell` of a box, the last fastest.
fn place(cell: usize, extents: &[u64]) -> Vec<usize> {
    let mut at = vec![0; extents.len()];
    let mut rest = cell;
    for (at, &extent) in at.iter_mut().zip(extents).rev() {
        *at = rest % extent as usize;
        rest /= extent as usize;
    }
    at
}

/// Returns the first of `0..count` for which `test` holds, given that it holds for all later ones.
fn first(count: usize, test: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if test(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The states along the modes but the last, to a cell.
struct Path<'a> {
    model: &'a dyn Chain,
    /// Where the states were made; `usize::MAX` where none was.
    at: Vec<usize>,
    /// The state before each mode.
    states: Vec<Vec<f64>>,
}

impl<'a> Path<'a> {
    /// Stands before the first of `modes` modes.
    fn new(model: &'a dyn Chain, modes: usize) -> Path<'a> {
        let mut states = vec![Vec::new(); modes + 1];
        states[0] = model.begin();
        Path { model, at: vec![usize::MAX; modes], states }
    }

    /// Returns the state behind the indices `at`.
    fn to(&mut self, at: &[usize]) -> &[f64] {
        let same = self.at.iter().zip(at).take_while(|(known, wanted)| known == wanted).count();
        for mode in same..at.len() {
            let (before, behind) = self.states.split_at_mut(mode + 1);
            self.model.step(mode, at[mode], &before[mode], &mut behind[0]);
            self.at[mode] = at[mode];
        }
        &self.states[at.len()]
    }
}

/// Returns the inner product of a state with a row.
fn dot<V: Value>(state: &[f64], row: &[V]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (states, rows) = (state.chunks_exact(LANES), row.chunks_exact(LANES));
    let rest = states.remainder().iter().zip(rows.remainder());
    let rest: f64 = rest.map(|(state, x)| state * x.to_f64()).sum();
    for (states, row) in states.zip(rows) {
        for ((lane, state), x) in lanes.iter_mut().zip(states).zip(row) {
            *lane += state * x.to_f64();
        }
    }
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use decompose_formats::ModeOrder;
    use ndarray::IxDyn;

    use super::*;
    use crate::init;
    use crate::rng::MatrixRng;

    const EXTENTS: [u64; 3] = [5, 4, 11];

    /// The value of a CP model at a cell, by its definition.
    fn value(weights: &[f64], factors: &[Matrix<f64>], at: [usize; 3]) -> f64 {
        let term = |r: usize| (0..3).map(|n| factors[n].row(at[n])[r]).product::<f64>();
        weights.iter().enumerate().map(|(r, weight)| weight * term(r)).sum()
    }

    fn list(listed: impl Fn(usize) -> bool) -> Coo<f64> {
        let cells: Vec<usize> = (0..220).filter(|&cell| listed(cell)).collect();
        let at = |cell: usize| [cell / 44, cell / 11 % 4, cell % 11];
        let column =
            |m: usize| cells.iter().map(|&cell| at(cell)[m] as u32).collect::<Vec<u32>>().into();
        let rng = MatrixRng::new(2, 9);
        let values: Vec<f64> = cells.iter().map(|&cell| rng.uniform(cell as u64, 0)).collect();
        let mut list = Coo::new(EXTENTS.to_vec(), (0..3).map(column).collect(), values).unwrap();
        list.sort(&ModeOrder::natural(3)).unwrap();
        list
    }

    #[test]
    fn all_ways_agree_with_the_definition() {
        // Nine components: one and a bit of the lanes.
        let factors = init::random::<f64>(&EXTENTS, 9, 4).unwrap();
        let weights: Vec<f64> = (0..9).map(|r| f64::from(r) - 3.5).collect();
        let cells: Vec<f64> = (0..220)
            .map(|cell| value(&weights, &factors, [cell / 44, cell / 11 % 4, cell % 11]))
            .collect();
        let norm: f64 = cells.iter().map(|m| m * m).sum();
        let square = ModelSquare { norm, terms: norm };
        let parts: Vec<&[Matrix<f64>]> = factors.iter().map(std::slice::from_ref).collect();
        let chain = CpChain { weights: weights.clone(), factors: parts };
        for (kind, few) in [(Measured::Cells, u64::MAX), (Measured::Entries, 0)] {
            let list = list(|cell| cell % 3 == 0);
            let mut want = norm;
            for (&x, cell) in list.values().iter().zip((0..220).step_by(3)) {
                want += (x - cells[cell]).powi(2) - cells[cell].powi(2);
            }
            let found = residual(&list, &chain, square, few);
            assert_eq!(found.measured, kind);
            assert!((found.square / want - 1.0).abs() < 1e-12, "{found:?} {want}");
            assert!(found.rounding < 1e-13 * norm);
        }
        let whole = list(|_| true);
        let want: f64 = whole.values().iter().zip(&cells).map(|(x, m)| (x - m).powi(2)).sum();
        let found = residual(&whole, &chain, square, 0);
        assert_eq!((found.measured, found.rounding), (Measured::Cells, 0.0));
        assert!((found.square / want - 1.0).abs() < 1e-13, "{found:?} {want}");
    }

    #[test]
    fn cores_and_trains_are_chains_too() {
        let list = list(|cell| cell % 4 != 1);
        let core = ArrayD::from_shape_fn(IxDyn(&[2, 3, 2]), |at| {
            (at[0] * 6 + at[1] * 2 + at[2]) as f64 - 4.5
        });
        let wide = init::random::<f64>(&EXTENTS, 3, 7).unwrap();
        let narrow = init::random::<f64>(&EXTENTS, 2, 7).unwrap();
        let [a, _, c] = <[Matrix<f64>; 3]>::try_from(narrow).ok().unwrap();
        let b = wide.into_iter().nth(1).unwrap();
        let factors = [a, b, c];
        let dense = |at: [usize; 3]| -> f64 {
            let term = |(place, g): (IxDyn, &f64)| {
                g * (0..3).map(|n| factors[n].row(at[n])[place[n]]).product::<f64>()
            };
            core.indexed_iter().map(term).sum()
        };
        let mut want = 0.0;
        for cell in 0..220 {
            let at = [cell / 44, cell / 11 % 4, cell % 11];
            let x = MatrixRng::new(2, 9).uniform(cell as u64, 0);
            want += (if cell % 4 == 1 { 0.0 } else { x } - dense(at)).powi(2);
        }
        let square = ModelSquare { norm: 0.0, terms: 0.0 };
        let tucker = TuckerChain { core: &core, factors: &factors };
        let found = residual(&list, &tucker, square, 220);
        assert!((found.square / want - 1.0).abs() < 1e-12, "{found:?} {want}");
        // The same model as a train: the first factor, core and second factor, the third.
        let first = Array3::from_shape_fn((1, 5, 2), |(_, i, r)| factors[0].row(i)[r]);
        let second = Array3::from_shape_fn((2, 4, 2), |(r, j, t)| {
            (0..3).map(|s| core[[r, s, t]] * factors[1].row(j)[s]).sum()
        });
        let third = Array3::from_shape_fn((2, 11, 1), |(t, k, _)| factors[2].row(k)[t]);
        let cores = [first, second, third];
        let found = residual(&list, &TrainChain::new(&cores), square, 220);
        assert!((found.square / want - 1.0).abs() < 1e-12, "{found:?} {want}");
    }

    #[test]
    fn what_rounding_hides_is_no_perfect_fit() {
        let hidden = Residual { square: -1e-18, rounding: 4e-16, measured: Measured::Entries };
        assert!((hidden.relative_error(1.0) - 2e-8).abs() < 1e-15);
    }
}
