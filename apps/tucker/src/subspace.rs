//! The update of a factor: leading left singular vectors of the TTMc result, by its size.
//!
//! | method       | what it does                                                    | flops                  |
//! |--------------|-----------------------------------------------------------------|------------------------|
//! | `RowGram`    | eigenvectors of `Y Y^T` (`I_n x I_n`)                           | `I_n^2 P` + eigen      |
//! | `ColumnGram` | eigenvectors `V`, `S^2` of `Y^T Y` (`P x P`); `U = Y V S^-1`    | `I_n P^2` + eigen      |
//! | `Products`   | the same vectors by products `Y^T (Y q)`, no Gram matrix        | `4 I_n P` a column `q` |
//!
//! The one that is predicted to take least is taken ([`Way::of`]).  All find eigenvectors of a squared
//! matrix: singular values below `sqrt(eps)` of the largest are lost to any of them, and a vector is exact to
//! `eps` times the squares' ratio of largest to gap.  The iterations begin near the factor that is to be
//! replaced, since HOOI changes it less and less: at `U` itself, or at `Y^T U`.
//!
//! `U` is then made orthonormal again, since its columns come out as far from it as rounding
//! grows by `S^-1`: by `U (U^T U)^-1/2` until `U^T U` is the identity to rounding.  Directions that
//! `Y` does not have - singular values of rounding size - are replaced by random ones.

use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::linalg::{
    self, Guess, Leading, leading, leading_columns, leading_of, leading_of_flops,
};
use decompose_common::rng::MatrixRng;
use decompose_formats::{Matrix, Value};
use ndarray::{Array2, ArrayView2};

use crate::engine::Engine;
use crate::plan::{Forming, GRAM_MOST};
use crate::rows::{FactorRows, GramPart, Projection, TtmcRows, WithCore, row_gram};

/// Squared singular values below this share of the largest are rounding.
const NEGLIGIBLE: f64 = 1e-13;

/// How the leading singular vectors of `Y` (`I_n x P`) are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the Gram matrix of its rows.
    RowGram,
    /// From the Gram matrix of its columns.
    ColumnGram,
    /// From products with it and its transpose.
    Products,
}

/// What a flop of a product with some columns takes, where one of a Gram matrix takes 1: `Y` is packed
/// and read anew for each block of columns.
const PRODUCT_FLOP: f64 = 2.0;

impl Way {
    /// Chooses for `Y` of `extent x width`, of which `rank` vectors are wanted; `forming` says whether all
    /// rows are at hand at a time.
    ///
    /// Windows of rows allow no Gram matrix of rows, and products would form them over and over.
    pub(crate) fn of(extent: usize, width: usize, rank: usize, forming: Forming) -> Way {
        let whole = forming == Forming::Whole;
        let small = extent.min(width);
        let gram = if whole && extent <= width { Way::RowGram } else { Way::ColumnGram };
        let (size, cells) = (if whole { small } else { width }, extent as f64 * width as f64);
        // A symmetric product computes half of its entries.
        let by_gram = cells * size as f64 + leading_of_flops(size, rank);
        let by_products = PRODUCT_FLOP * 4.0 * cells * leading_columns(rank);
        let products = size > GRAM_MOST || whole && by_products < by_gram;
        if products { Way::Products } else { gram }
    }
}

/// What an update found and took.
pub(crate) struct Update {
    /// `U^T Y` (`R x P`, columns as stored), if wanted.
    pub(crate) core: Option<Array2<f64>>,
    pub(crate) ttmc_seconds: f64,
    pub(crate) subspace_seconds: f64,
}

/// Replaces `factors[mode]` by the leading left singular vectors of its TTMc.
pub(crate) fn update<V: Value>(
    engine: &mut Engine<V>,
    factors: &mut [Matrix<V>],
    mode: usize,
    with_core: WithCore,
    seed: u64,
) -> Result<Update, SolverError> {
    let begun = Instant::now();
    let (extent, width) = (factors[mode].rows(), engine.row_shape(mode).width());
    let mut factor = std::mem::replace(&mut factors[mode], Matrix::zeros(0, 0)?);
    engine.invalidate(mode);
    let pass = Pass { engine, factors, mode, seed, ttmc_seconds: 0.0 };
    let way = Way::of(extent, width, factor.cols(), pass.engine.forming(mode));
    let updated = match way {
        Way::RowGram => pass.by_rows(&mut factor, with_core),
        Way::ColumnGram | Way::Products => pass.by_columns(way, &mut factor, with_core),
    };
    factors[mode] = factor;
    let (core, ttmc_seconds) = updated?;
    let subspace_seconds = begun.elapsed().as_secs_f64() - ttmc_seconds;
    Ok(Update { core, ttmc_seconds, subspace_seconds })
}

/// Returns `U^T Y` of the factor that `factors[mode]` is.
pub(crate) fn core<V: Value>(
    engine: &mut Engine<V>,
    factors: &mut [Matrix<V>],
    mode: usize,
) -> Result<Update, SolverError> {
    let begun = Instant::now();
    let mut factor = std::mem::replace(&mut factors[mode], Matrix::zeros(0, 0)?);
    engine.invalidate(mode);
    let mut pass = Pass { engine, factors, mode, seed: 0, ttmc_seconds: 0.0 };
    let summed = pass.core_of(&mut factor);
    let ttmc_seconds = pass.ttmc_seconds;
    factors[mode] = factor;
    let subspace_seconds = begun.elapsed().as_secs_f64() - ttmc_seconds;
    Ok(Update { core: Some(summed?), ttmc_seconds, subspace_seconds })
}

/// The passes over one TTMc result.
struct Pass<'a, V: Value> {
    engine: &'a mut Engine<V>,
    /// All factors; that of the mode is taken out.
    factors: &'a [Matrix<V>],
    mode: usize,
    seed: u64,
    ttmc_seconds: f64,
}

type Found = Result<(Option<Array2<f64>>, f64), SolverError>;

impl<V: Value> Pass<'_, V> {
    /// Few rows: the eigenvectors of `Y Y^T` are the factor.
    fn by_rows(mut self, factor: &mut Matrix<V>, with_core: WithCore) -> Found {
        self.ttmc_seconds += self.engine.form(self.mode, self.factors)?;
        let gram = row_gram(self.engine.formed(self.mode), self.engine.row_shape(self.mode));
        let near = factor.view().mapv(Value::to_f64);
        let guess = Guess::Near(near.view(), self.seed);
        let found = leading_of(gram.view(), factor.cols(), guess)?;
        let kept = kept(&found);
        for (mut row, vectors) in factor.view_mut().rows_mut().into_iter().zip(found.vectors.rows())
        {
            for (k, (to, &from)) in row.iter_mut().zip(vectors).enumerate() {
                *to = V::from_f64(if k < kept { from } else { 0.0 });
            }
        }
        let gram = linalg::gram(factor);
        self.finish(factor, gram, kept)?;
        let core = match with_core {
            WithCore::Yes => Some(self.core_of(factor)?),
            WithCore::No => None,
        };
        Ok((core, self.ttmc_seconds))
    }

    /// Few columns, or many of both: the eigenvectors of `Y^T Y`.
    fn by_columns(mut self, way: Way, factor: &mut Matrix<V>, with_core: WithCore) -> Found {
        let width = self.engine.row_shape(self.mode).width();
        let found = match way {
            Way::Products => self.by_products(width, factor)?,
            _ => {
                let gram = self.column_gram(width)?;
                let near = self.near(factor)?;
                let guess = near.as_ref().map(|near| Guess::Near(near.t(), self.seed));
                let guess = guess.unwrap_or(Guess::Random(self.seed));
                leading_of(gram.view(), factor.cols(), guess)?
            }
        };
        let kept = kept(&found);
        let scale = |k: usize| if k < kept { found.values[k].sqrt().recip() } else { 0.0 };
        let mut w = found.vectors;
        w.indexed_iter_mut().for_each(|((_, k), w)| *w *= scale(k));
        let (gram, core) = self.project(w.view(), factor, with_core)?;
        let turned = self.finish(factor, gram, kept)?;
        // A random column has no part in Y but by rounding; its row of the core must be true.
        let core = match core {
            Some(_) if kept < factor.cols() => Some(self.core_of(factor)?),
            Some(core) => Some(turned.t().dot(&core)),
            None => None,
        };
        Ok((core, self.ttmc_seconds))
    }

    /// Finds the eigenvectors of `Y^T Y` by products `Y^T (Y q)`.
    fn by_products(
        &mut self,
        width: usize,
        factor: &mut Matrix<V>,
    ) -> Result<Leading, SolverError> {
        let (rows, seed) = (factor.rows(), self.seed);
        let near = self.near(factor)?;
        let guess = near.as_ref().map(|near| Guess::Near(near.t(), seed));
        let guess = guess.unwrap_or(Guess::Random(seed));
        leading(width, factor.cols(), guess, &mut |q: ArrayView2<'_, f64>| {
            let mut image = Matrix::<V>::zeros(rows, q.ncols())?;
            let (_, product) = self.project(q, &mut image, WithCore::Yes)?;
            Ok::<_, SolverError>(
                product.unwrap_or_default().reversed_axes().as_standard_layout().into_owned(),
            )
        })
    }

    /// Returns `U^T Y` of the factor to be replaced, `None` where that would form `Y` once more.
    fn near(&mut self, factor: &mut Matrix<V>) -> Result<Option<Array2<f64>>, SolverError> {
        let whole = self.engine.forming(self.mode) == Forming::Whole;
        whole.then(|| self.core_of(factor)).transpose()
    }

    /// Computes `U = Y W` into `factor`; returns `U^T U` and, if wanted, `U^T Y`.
    fn project(
        &mut self,
        w: ArrayView2<'_, f64>,
        factor: &mut Matrix<V>,
        with_core: WithCore,
    ) -> Result<(Array2<f64>, Option<Array2<f64>>), SolverError> {
        let w = w.as_standard_layout();
        self.pass(factor, w.ncols(), &|rows| Projection::new(w.view(), rows, with_core))
    }

    /// Returns `U^T Y`.
    fn core_of(&mut self, factor: &mut Matrix<V>) -> Result<Array2<f64>, SolverError> {
        let (width, rank) = (self.engine.row_shape(self.mode).width(), factor.cols());
        let summed = self.pass(factor, rank, &|rows| Projection::of_existing(rows, width, rank))?;
        Ok(summed.1.unwrap_or_default())
    }

    /// Returns `Y^T Y`.
    fn column_gram(&mut self, width: usize) -> Result<Array2<f64>, SolverError> {
        // A row takes P^2 / 2 multiply-adds, a non-zero at least P in the kernel.
        let shares = self.engine.shares(self.mode, width as f64 / 2.0);
        let mut parts: Vec<GramPart> = shares.iter().map(|_| GramPart::new(width)).collect();
        let shares = shares.into_iter().zip(&mut parts).collect();
        let add = |part: &mut &mut GramPart, rows: &TtmcRows<'_, V>| part.add(rows);
        self.ttmc_seconds += self.engine.visit(self.mode, self.factors, shares, add)?;
        Ok(GramPart::sum(parts))
    }

    /// Takes all rows of `Y` through projections, one a thread, that `part` makes for its rows of the
    /// factor: `rank` multiply-adds an element.
    fn pass<'a>(
        &mut self,
        factor: &'a mut Matrix<V>,
        rank: usize,
        part: &dyn Fn(FactorRows<'a, V>) -> Projection<'a, V>,
    ) -> Result<(Array2<f64>, Option<Array2<f64>>), SolverError> {
        let stride = factor.stride();
        let shares = self.engine.shares(self.mode, rank as f64);
        let mut rest = factor.as_mut_slice();
        let mut parts = Vec::with_capacity(shares.len());
        for share in &shares {
            let (rows, after) = rest.split_at_mut(share.rows.len() * stride);
            rest = after;
            parts.push(part(FactorRows { rows, stride, first: share.rows.start }));
        }
        let shares = shares.into_iter().zip(&mut parts).collect();
        let add = |part: &mut &mut Projection<'a, V>, rows: &TtmcRows<'_, V>| part.add(rows);
        self.ttmc_seconds += self.engine.visit(self.mode, self.factors, shares, add)?;
        Ok(Projection::sum(parts))
    }

    /// Makes the first `kept` columns orthonormal, given their Gram matrix, and replaces the others,
    /// which are zero; returns the matrix by which the columns were multiplied.
    fn finish(
        &self,
        factor: &mut Matrix<V>,
        gram: Array2<f64>,
        kept: usize,
    ) -> Result<Array2<f64>, SolverError> {
        let turned = linalg::orthonormalise(factor, gram)?;
        linalg::complete(factor, kept, MatrixRng::new(self.seed, self.mode as u64))?;
        Ok(turned)
    }
}

/// Returns how many of the vectors found stand for more than rounding.
fn kept(found: &Leading) -> usize {
    let largest = found.values.first().copied().unwrap_or(0.0);
    found.values.iter().take_while(|&&value| value > NEGLIGIBLE * largest).count()
}

#[cfg(test)]
mod tests {
    use super::Way;
    use crate::plan::Forming;

    #[test]
    fn the_way_follows_the_sizes() {
        let whole = |extent, width, rank| Way::of(extent, width, rank, Forming::Whole);
        assert_eq!(whole(183, 1000, 10), Way::RowGram);
        assert_eq!(whole(1140, 1000, 10), Way::ColumnGram);
        assert_eq!(whole(2_300_000, 256, 16), Way::ColumnGram);
        // A Gram matrix of 4096 columns costs more than some hundred products.
        assert_eq!(whole(6066, 4096, 16), Way::Products);
        assert_eq!(whole(100_000, 65_536, 16), Way::Products);
        // Windows keep to the Gram matrix, which needs them once, while it is small enough.
        assert_eq!(Way::of(6066, 4096, 16, Forming::Windows(99)), Way::ColumnGram);
        assert_eq!(Way::of(100, 4096, 16, Forming::Windows(99)), Way::ColumnGram);
        assert_eq!(Way::of(100, 65_536, 16, Forming::Windows(99)), Way::Products);
    }
}
