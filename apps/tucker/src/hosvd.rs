//! Higher-order singular value decomposition, at once or mode after mode, and ranks for an error.
//!
//! ```text
//! HOSVD      U_n = leading left singular vectors of X_(n)
//! ST-HOSVD   the same of X x_1 U_1^T ... x_(n-1) U_(n-1)^T: smaller with every mode
//! ||X - M||^2 <= sum_n (sum of the squared singular values left out in mode n)
//! ```
//!
//! With `eps`, mode `n` takes the least rank that leaves out at most `eps^2 ||X||^2 / N`, so that
//! `||X - M|| <= eps ||X||`.  Sources: De Lathauwer, De Moor, Vandewalle, SIAM J. Matrix Anal. Appl.
//! 21, 2000; Vannieuwenhoven, Vandebril, Meerbergen, SIAM J. Sci. Comput. 34, 2012.
//!
//! The unfoldings are multiplied fibre by fibre ([`unfolding_gram_product`]): `X_(n) (X_(n)^T Q)` has two
//! sparse operands, and as two kernels its intermediate has the pattern of the fibres; the core schedules
//! neither.  The truncated tensor of ST-HOSVD stays a list of entries: dense along the modes done, sparse along the others.  No
//! kernel has an output of that form, so `truncate` walks the fibres itself.

use decompose_common::SolverError;
use decompose_common::init::unfolding_gram_product;
use decompose_common::linalg::{self, Guess, Leading, leading, leading_bytes, leading_of};
use decompose_common::memory;
use decompose_common::rng::MatrixRng;
use decompose_formats::narrow_ints::Width;
use decompose_formats::{Coo, Csf, Ints, Matrix, ModeOrder, Value};
use ndarray::{Array2, ArrayView2};

use crate::config::check_order;

/// Up to this extent the Gram matrix of an unfolding is formed: its tails are then exact.
const FORMED: usize = 512;
/// The first number of vectors tried where the rank is to be found.
const FIRST_GUESS: usize = 16;

/// What decides the ranks.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// They are given, one a mode.
    Ranks(Vec<usize>),
    /// The relative error: `||X - M|| <= eps ||X||`.
    Error(f64),
}

/// Whether a mode sees the truncation of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// It does not: HOSVD.
    AtOnce,
    /// It does: ST-HOSVD.
    Sequential,
}

/// Factors of a HOSVD.
pub struct Hosvd<V> {
    /// `I_n x R_n`, orthonormal.
    pub factors: Vec<Matrix<V>>,
    /// The bound on `||X - M|| / ||X||` that the values left out give, no less than it can be known.
    pub bound: f64,
    /// What each mode leaves out.
    pub unfoldings: Vec<Unfolding>,
}

/// The singular values of one unfolding: of the tensor, or in an ST-HOSVD of what the modes before left of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfolding {
    /// The extent of the mode.
    pub extent: usize,
    /// The largest singular values, falling: all of them up to an extent of 512, else as many as the rank.
    pub values: Vec<f64>,
    /// The share of the squared norm of the tensor beyond the rank.
    pub left_out: f64,
}

impl Target {
    /// Checks the target.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] for an error that is not between 0 and 1.
    pub fn check(&self) -> Result<(), SolverError> {
        match self {
            Target::Error(eps) if !(*eps > 0.0 && *eps < 1.0) => Err(SolverError::Config(format!(
                "eps is {eps}; the relative error must be above 0 and below 1, as 0.05"
            ))),
            _ => Ok(()),
        }
    }
}

/// Computes the HOSVD of `coo`; sorts it once a mode, and last by its natural order.
///
/// Where an unfolding has fewer singular values than asked for, the other columns are random, from `seed`, and all
/// are orthonormal.
/// Memory: the upper levels of a tree and [`working_bytes`] beside the list; ST-HOSVD also holds
/// the truncated tensor, of `nnz` fibres of mode 1 times `R_1` entries.
///
/// # Errors
///
/// [`SolverError::Config`] for a target out of range, [`SolverError::Format`] if there is no memory.
pub fn hosvd<V: Value>(
    coo: &mut Coo<V>,
    target: &Target,
    truncation: Truncation,
    seed: u64,
) -> Result<Hosvd<V>, SolverError> {
    let order = coo.order();
    check_order(order)?;
    target.check()?;
    let norm_squared = coo.norm_squared();
    let mut factors = Vec::with_capacity(order);
    let mut unfoldings = Vec::with_capacity(order);
    let mut left_out = 0.0;
    let mut shrunk: Option<Coo<V>> = None;
    for mode in 0..order {
        let current = shrunk.as_mut().unwrap_or(&mut *coo);
        let wanted = match target {
            Target::Ranks(ranks) => Wanted::Rank(ranks[mode]),
            Target::Error(eps) => Wanted::Tail(eps * eps * norm_squared / order as f64),
        };
        let fibres = fibres(current, mode)?;
        let Leaders { factor, values, tail } = leading_factor(&fibres, wanted, seed)?;
        left_out += tail;
        let extent = factor.rows();
        unfoldings.push(Unfolding { extent, values, left_out: tail.max(0.0) / norm_squared });
        if truncation == Truncation::Sequential && mode + 1 < order {
            let next = truncate(current, &fibres, mode, &factor)?;
            drop(fibres);
            shrunk = Some(next);
        }
        factors.push(factor);
    }
    drop(shrunk);
    reduce(coo, &mut factors, seed)?;
    coo.sort(&ModeOrder::natural(order))?;
    let bound = (left_out / norm_squared).max(known::<V>(order)).sqrt();
    Ok(Hosvd { factors, bound, unfoldings })
}

/// Where the rank of a mode is above the product of the others - of one mode at most - replaces its
/// factor by as many leading vectors of what the others leave of the tensor, which loses nothing.
fn reduce<V: Value>(
    coo: &mut Coo<V>,
    factors: &mut [Matrix<V>],
    seed: u64,
) -> Result<(), SolverError> {
    let product = |mode: usize| {
        let others = factors.iter().enumerate().filter(|&(m, _)| m != mode);
        others.fold(1_usize, |product, (_, factor)| product.saturating_mul(factor.cols()))
    };
    let above = (0..factors.len()).find(|&mode| factors[mode].cols() > product(mode));
    let Some((mode, rank)) = above.map(|mode| (mode, product(mode))) else { return Ok(()) };
    let order = factors.len();
    let mut shrunk: Option<Coo<V>> = None;
    for other in (0..order).filter(|&m| m != mode) {
        let current = shrunk.as_mut().unwrap_or(&mut *coo);
        let fibres = fibres(current, other)?;
        shrunk = Some(truncate(current, &fibres, other, &factors[other])?);
    }
    let current = shrunk.as_mut().unwrap_or(coo);
    let fibres = fibres(current, mode)?;
    factors[mode] = leading_factor(&fibres, Wanted::Rank(rank), seed)?.factor;
    Ok(())
}

/// What to do about a step that does not fit.
const REMEDY: &str = "lower the ranks or raise eps, or use single precision";

/// Sorts the list with `mode` last and makes its tree, both foreseen.
fn fibres<V: Value>(list: &mut Coo<V>, mode: usize) -> Result<Csf<V>, SolverError> {
    let order = last_mode(list.order(), mode);
    let what = || format!("the fibres of mode {}", mode + 1);
    if !list.is_sorted_by(&order) {
        memory::foresee(list.sort_bytes(None), what, REMEDY)?;
        list.sort(&order)?;
    }
    let nnz = list.nnz() as u64;
    let pointer = Width::below(nnz + 1).bytes() as u64;
    let width = |m: usize| Width::below(list.extents()[m]).bytes() as u64;
    let (last, upper) = (mode, &order.modes()[..order.modes().len() - 1]);
    let mut cells = 1_u64;
    let levels = upper.iter().map(|&m| {
        cells = cells.saturating_mul(list.extents()[m]);
        // A node and a pointer, while it is made also a bit an entry.
        cells.min(nnz) * (width(m) + pointer) + nnz / 8
    });
    let levels: u64 = levels.sum();
    let bytes = levels + nnz * (width(last) + V::BYTES as u64);
    memory::foresee(bytes, what, REMEDY)?;
    Ok(Csf::from_sorted(list, &order)?)
}

/// Returns the bytes that [`hosvd`] works in beside list and tree, for one mode.
pub fn working_bytes(extent: u64, rank: u64) -> u64 {
    if extent <= FORMED as u64 {
        return extent * extent * 8 * 6;
    }
    // Blocks of the iteration, and the product with its slices of columns.
    leading_bytes(extent, rank).saturating_add(extent.saturating_mul(rank + 8).saturating_mul(24))
}

/// What a mode asks for.
#[derive(Clone, Copy)]
enum Wanted {
    Rank(usize),
    /// The least rank that leaves out at most this.
    Tail(f64),
}

fn last_mode(order: usize, mode: usize) -> ModeOrder {
    ModeOrder::by_key(order, |&m| m == mode)
}

/// What is known of an unfolding.
struct Leaders<V> {
    /// The leading vectors.
    factor: Matrix<V>,
    /// The singular values that were found.
    values: Vec<f64>,
    /// The sum of the squared singular values left out.
    tail: f64,
}

impl<V: Value> Leaders<V> {
    fn new(
        found: &Leading,
        rank: usize,
        rng: MatrixRng,
        tail: f64,
    ) -> Result<Leaders<V>, SolverError> {
        let largest = found.values.first().copied().unwrap_or(0.0);
        let value = |&square: &f64| if square > NEGLIGIBLE * largest { square.sqrt() } else { 0.0 };
        let values = found.values.iter().map(value).collect();
        Ok(Leaders { factor: factor(found, rank, rng)?, values, tail })
    }
}

/// Returns the leading vectors of the unfolding of the mode that is last in `fibres`.
fn leading_factor<V: Value>(
    fibres: &Csf<V>,
    wanted: Wanted,
    seed: u64,
) -> Result<Leaders<V>, SolverError> {
    let mode = fibres.mode_order().modes().last().copied().unwrap_or(0);
    let extent = fibres.extents()[mode] as usize;
    let rng = MatrixRng::new(seed, mode as u64);
    let total: f64 = fibres.values().iter().map(|value| value.to_f64().powi(2)).sum();
    let foresee = |rank: usize| {
        let bytes = working_bytes(extent as u64, rank as u64);
        memory::foresee(bytes, || format!("the leading vectors of mode {}", mode + 1), REMEDY)
    };
    if extent <= FORMED {
        foresee(extent)?;
        let gram = product(fibres, Array2::eye(extent).view())?;
        let found = leading_of(gram.view(), extent, Guess::Random(seed))?;
        let tail = |rank: usize| found.values.iter().skip(rank).sum::<f64>();
        let rank = match wanted {
            Wanted::Rank(rank) => rank,
            Wanted::Tail(most) => (1..=extent).find(|&rank| tail(rank) <= most).unwrap_or(extent),
        };
        return Leaders::new(&found, rank, rng, tail(rank));
    }
    let mut count = match wanted {
        Wanted::Rank(rank) => rank,
        Wanted::Tail(_) => FIRST_GUESS.min(extent),
    };
    loop {
        foresee(count)?;
        let found = leading(extent, count, Guess::Random(seed), &mut |q| product(fibres, q))?;
        let tail = |rank: usize| (total - found.values.iter().take(rank).sum::<f64>()).max(0.0);
        let rank = match wanted {
            Wanted::Rank(rank) => Some(rank),
            Wanted::Tail(most) => (1..=count).find(|&rank| tail(rank) <= most),
        };
        match rank {
            Some(rank) => return Leaders::new(&found, rank, rng, tail(rank)),
            None if count == extent => return Leaders::new(&found, extent, rng, 0.0),
            None => count = (2 * count).min(extent),
        }
    }
}

/// Returns the Gram matrix of the unfolding times `q`.
fn product<V: Value>(fibres: &Csf<V>, q: ArrayView2<'_, f64>) -> Result<Array2<f64>, SolverError> {
    let mut block = Matrix::zeros(q.nrows(), q.ncols())?;
    block.view_mut().assign(&q);
    Ok(unfolding_gram_product(fibres, &block)?.view().to_owned())
}

/// Returns the `rank` leading vectors found, completed by random ones of `rng` where there are fewer singular values.
fn factor<V: Value>(
    found: &Leading,
    rank: usize,
    rng: MatrixRng,
) -> Result<Matrix<V>, SolverError> {
    let largest = found.values.first().copied().unwrap_or(0.0);
    let real = |value: &&f64| **value > NEGLIGIBLE * largest;
    let kept = found.values.iter().take_while(real).count().min(rank);
    let mut factor = Matrix::zeros(found.vectors.nrows(), rank)?;
    for (mut to, from) in factor.view_mut().rows_mut().into_iter().zip(found.vectors.rows()) {
        to.iter_mut().zip(from).take(kept).for_each(|(to, &from)| *to = V::from_f64(from));
    }
    let gram = linalg::gram(&factor);
    linalg::orthonormalise(&mut factor, gram)?;
    linalg::complete(&mut factor, kept, rng)?;
    Ok(factor)
}

/// Squared singular values below this share of the largest are rounding.
const NEGLIGIBLE: f64 = 1e-14;

/// Returns the least squared relative error that the unfoldings of `order` modes tell from rounding.
fn known<V: Value>(order: usize) -> f64 {
    // Columns of factors are orthonormal to some roundings of their precision.
    order as f64 * NEGLIGIBLE.max((8.0 * V::EPSILON).powi(2))
}

/// Multiplies the tensor, sorted with `mode` last as `fibres` are, by the transposed `factor` in
/// that mode: each fibre becomes one of `R_n` entries.
fn truncate<V: Value>(
    coo: &Coo<V>,
    fibres: &Csf<V>,
    mode: usize,
    factor: &Matrix<V>,
) -> Result<Coo<V>, SolverError> {
    let rank = factor.cols();
    let parents = &fibres.levels()[fibres.levels().len() - 2].pointers;
    let leaves = &fibres.levels()[fibres.levels().len() - 1].coords;
    let count = parents.len().saturating_sub(1);
    let width = |m: usize| match m == mode {
        true => Width::listed(rank as u64),
        false => Width::listed(coo.extents()[m]),
    };
    let entry = V::BYTES + (0..coo.order()).map(|m| width(m).bytes()).sum::<usize>();
    let bytes = (count as u64).saturating_mul((rank * entry + 8) as u64);
    memory::foresee(bytes, || format!("the tensor truncated in mode {}", mode + 1), REMEDY)?;
    let mut values = Vec::with_capacity(count * rank);
    let mut firsts = Vec::with_capacity(count);
    let mut sum = vec![0.0; rank];
    for fibre in 0..count {
        let (start, end) = (parents.get(fibre) as usize, parents.get(fibre + 1) as usize);
        firsts.push(start);
        sum.fill(0.0);
        for entry in start..end {
            let value = fibres.values()[entry].to_f64();
            let row = factor.row(leaves.get(entry) as usize);
            sum.iter_mut().zip(row).for_each(|(sum, u)| *sum += value * u.to_f64());
        }
        values.extend(sum.iter().map(|&x| V::from_f64(x)));
    }
    let mut extents = coo.extents().to_vec();
    extents[mode] = rank as u64;
    let column = |m: usize| -> Ints {
        let of = |entry: usize| match m == mode {
            true => (entry % rank) as u64,
            false => coo.coords(m).get(firsts[entry / rank]),
        };
        Ints::collect((0..values.len()).map(of), Width::listed(extents[m]))
    };
    let coords = (0..coo.order()).map(column).collect();
    Ok(Coo::new(extents, coords, values)?)
}
