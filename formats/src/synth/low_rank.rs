//! Tensors with a planted CP model.

use ndarray::Array2;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::coo::Coo;
use crate::error::FormatError;
use crate::narrow_ints::Ints;
use crate::synth::SynthConfig;
use crate::synth::random::Stream;
use crate::value::Value;

/// The model to plant: `X(i, j, ...) = sum_r A(i, r) B(j, r) ... + noise`.
///
/// The model has sparse factors, so the whole tensor, zeros included, is of low rank.  Each component
/// fills a block of random slices; the blocks have about `nnz` cells together, fewer where they overlap.
/// Factors are uniform in `0.5..1.5` within the block.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct LowRank {
    /// The number of components, from 1.
    pub rank: usize,
    /// The norm of the noise over the norm of the model, from 0; normal noise on the non-zeros.
    pub noise: f64,
}

/// A tensor and what was planted in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Planted<V: Value> {
    /// The tensor.
    pub tensor: Coo<V>,
    /// The factors, one a mode, of its extent times the rank.
    pub factors: Vec<Array2<f64>>,
}

/// Generates a tensor with a planted model; the configured pattern and values are not used.
///
/// Parallel; time `O(nnz * order * rank)`.
///
/// # Errors
///
/// As [`generate`](crate::synth::generate); [`FormatError::NotATensor`] if the rank is 0 or the
/// noise is not a number from 0.
pub fn low_rank<V: Value>(
    config: &SynthConfig,
    model: &LowRank,
) -> Result<Planted<V>, FormatError> {
    if model.rank == 0 || !(model.noise >= 0.0 && model.noise.is_finite()) {
        let why = format!(
            "rank {} with noise {}: give a rank from 1, noise from 0",
            model.rank, model.noise
        );
        return Err(FormatError::NotATensor(why));
    }
    let (pattern, factors) = blocks(config, model.rank)?;
    let exact = evaluate(&pattern, &factors);
    let power = exact.iter().map(|value| value * value).sum::<f64>() / exact.len().max(1) as f64;
    let (stream, scale) = (Stream::new(config.seed, "noise"), model.noise * power.sqrt());
    let noisy = |i: usize| V::from_f64(exact[i] + scale * stream.normal(i as u64));
    let values: Vec<V> = (0..exact.len()).into_par_iter().map(noisy).collect();
    Ok(Planted { tensor: pattern.with_values(values), factors })
}

/// Draws factors without zeros.
fn factors(config: &SynthConfig, rank: usize) -> Vec<Array2<f64>> {
    let factor = |(mode, &extent): (usize, &u64)| {
        let stream = Stream::new(config.seed, "factors").part(mode as u64);
        let cell = |(row, col)| 0.5 + stream.unit((row * rank + col) as u64);
        Array2::from_shape_fn((extent as usize, rank), cell)
    };
    config.extents.iter().enumerate().map(factor).collect()
}

/// Chooses the blocks, empties the factors outside, and lists the cells of all blocks.
fn blocks(config: &SynthConfig, rank: usize) -> Result<(Coo<f32>, Vec<Array2<f64>>), FormatError> {
    let order = config.extents.len();
    let cells: f64 = config.extents.iter().map(|&extent| extent as f64).product();
    let share = (config.nnz as f64 / rank as f64 / cells).powf(1.0 / order as f64).min(1.0);
    let mut factors = factors(config, rank);
    let mut columns: Vec<Vec<u64>> = vec![Vec::new(); order];
    for component in 0..rank {
        let sides: Vec<Vec<u64>> = (0..order)
            .map(|mode| {
                let stream = Stream::new(config.seed, "blocks").part(mode as u64);
                side(config.extents[mode], share, stream.part(component as u64))
            })
            .collect();
        for (factor, side) in factors.iter_mut().zip(&sides) {
            let mut rows = side.iter().copied().peekable();
            for (row, value) in factor.column_mut(component).iter_mut().enumerate() {
                if rows.next_if_eq(&(row as u64)).is_none() {
                    *value = 0.0;
                }
            }
        }
        let size: usize = sides.iter().map(Vec::len).product();
        let mut inner = size;
        for (column, side) in columns.iter_mut().zip(&sides) {
            inner /= side.len();
            column.extend((0..size).map(|cell| side[cell / inner % side.len()]));
        }
    }
    let values = vec![0.0f32; columns.first().map_or(0, Vec::len)];
    let mut pattern =
        Coo::new(config.extents.clone(), columns.into_iter().map(Ints::from).collect(), values)?;
    pattern.sum_duplicates()?;
    Ok((pattern, factors))
}

/// Returns the slices that a block takes of a mode, ascending: `share` of them, at least one.
fn side(extent: u64, share: f64, stream: Stream) -> Vec<u64> {
    let count = ((extent as f64 * share).round() as usize).clamp(1, extent.max(1) as usize);
    let mut slices: Vec<u64> = (0..extent).collect();
    slices.sort_by_cached_key(|&slice| stream.bits(slice));
    slices.truncate(count);
    slices.sort_unstable();
    slices
}

/// Evaluates the model at every entry of the pattern.
fn evaluate(pattern: &Coo<f32>, factors: &[Array2<f64>]) -> Vec<f64> {
    let rank = factors.first().map_or(0, |factor| factor.ncols());
    let columns = pattern.columns();
    let at = |i: usize| {
        let product = |r: usize| -> f64 {
            columns
                .iter()
                .zip(factors)
                .map(|(column, factor)| factor[[column.get(i) as usize, r]])
                .product()
        };
        (0..rank).map(product).sum()
    };
    (0..pattern.nnz()).into_par_iter().map(at).collect()
}
