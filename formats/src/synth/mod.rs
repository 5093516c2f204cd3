//! Synthetic tensors from a seed.
//!
//! Every random number is a function of the seed and a counter, so a tensor has the same bits
//! whatever the number of threads.  Coordinates are distinct and sorted by the natural order; the
//! value of an entry depends on the seed and its coordinates only.

mod distinct;
mod low_rank;
mod random;
mod zipf;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::coo::Coo;
use crate::error::FormatError;
use crate::mix::mix;
use crate::synth::random::Stream;
use crate::synth::zipf::Zipf;
use crate::value::Value;

pub use crate::synth::low_rank::{LowRank, Planted, low_rank};

/// What to generate.
///
/// # Example
///
/// ```
/// use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};
///
/// let config = SynthConfig {
///     extents: vec![1000, 800, 20],
///     nnz: 5000,
///     pattern: Pattern::PowerLaw(vec![1.0, 0.9, 0.0]),
///     values: Values::Counts { mean: 2.5 },
///     seed: 7,
/// };
/// let coo = generate::<f64>(&config)?;
/// assert_eq!(coo.nnz(), 5000);
/// # Ok::<(), decompose_formats::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SynthConfig {
    /// The extent of every mode.
    pub extents: Vec<u64>,
    /// The number of non-zeros.
    pub nnz: u64,
    /// Where they lie.
    pub pattern: Pattern,
    /// What they are.
    pub values: Values,
    /// Chooses one tensor among all of this description.
    pub seed: u64,
}

/// Where non-zeros lie.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All cells are equally likely.
    Uniform,
    /// In each mode the slice of rank `r` (from 0) of `n` has a share that falls as
    /// `1 / (r + 1 + n / 10^4)^s`, with one exponent `s >= 0` a mode; ranks are scattered over the
    /// slices at random.  Modes are independent.
    ///
    /// Where this leaves too few distinct cells to draw in reasonable time, the rest is spread
    /// evenly over the free cells.
    PowerLaw(Vec<f64>),
}

/// What non-zeros are.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// All 1.
    Ones,
    /// Uniform in `low..high`.
    Uniform {
        /// The least value.
        low: f64,
        /// The bound that no value reaches.
        high: f64,
    },
    /// Integers from 1, each next one a constant factor less likely.
    Counts {
        /// The mean, above 1.
        mean: f64,
    },
}

/// Generates a tensor.
///
/// Parallel; time `O(nnz)` a mode and about two sorts, peak memory about three times the list.
///
/// # Errors
///
/// [`FormatError::NotATensor`] if the extents do not hold `nnz` non-zeros, or a parameter of the
/// pattern or the values is out of its range.
pub fn generate<V: Value>(config: &SynthConfig) -> Result<Coo<V>, FormatError> {
    config.values.check()?;
    let pattern = config.draw_pattern()?;
    let stream = Stream::new(config.seed, "values");
    Ok(with_values(pattern, |coords| config.values.at(&stream, coords)))
}

impl SynthConfig {
    /// Draws the cells of the non-zeros; their values mean nothing.
    fn draw_pattern(&self) -> Result<Coo<f32>, FormatError> {
        let fail = |why: String| Err(FormatError::NotATensor(why));
        let cells = self.extents.iter().fold(1, |cells: u128, &n| cells.saturating_mul(n.into()));
        if self.extents.is_empty() || cells < u128::from(self.nnz) {
            return fail(format!("{} non-zeros in {cells} cells: ask for fewer", self.nnz));
        }
        match &self.pattern {
            Pattern::Uniform => {
                let stream = Stream::new(self.seed, "uniform pattern");
                let modes = self.extents.len() as u64;
                distinct::draw(&self.extents, self.nnz, self.seed, |mode, draw| {
                    stream.below(draw * modes + mode as u64, self.extents[mode])
                })
            }
            Pattern::PowerLaw(exponents) => {
                if exponents.len() != self.extents.len() {
                    let (have, modes) = (exponents.len(), self.extents.len());
                    return fail(format!("{have} exponents for {modes} modes: give one a mode"));
                }
                let zipf = |(mode, (&n, &s))| Zipf::new(n, s, self.seed, mode);
                let modes = self.extents.iter().zip(exponents).enumerate();
                let modes: Vec<Zipf> = modes.map(zipf).collect::<Result<_, _>>()?;
                distinct::draw(&self.extents, self.nnz, self.seed, |mode, n| modes[mode].draw(n))
            }
        }
    }
}

impl Values {
    fn check(&self) -> Result<(), FormatError> {
        let why = match *self {
            Values::Uniform { low, high } if !(low < high && (high - low).is_finite()) => {
                format!("values from {low} to {high}: give finite bounds, the lower one first")
            }
            Values::Counts { mean } if !(mean > 1.0 && mean.is_finite()) => {
                format!("counts of mean {mean}: give a mean above 1")
            }
            _ => return Ok(()),
        };
        Err(FormatError::NotATensor(why))
    }

    /// Returns the value at the cell whose coordinates hash to `cell`.
    fn at(&self, stream: &Stream, cell: u64) -> f64 {
        match *self {
            Values::Ones => 1.0,
            Values::Uniform { low, high } => low + (high - low) * stream.unit(cell),
            Values::Counts { mean } => {
                // An exponential of this scale, rounded down, has the mean `mean - 1`.
                let scale = 1.0 / (1.0 / (mean - 1.0)).ln_1p();
                1.0 + (-scale * (-stream.unit(cell)).ln_1p()).floor()
            }
        }
    }
}

/// Gives each entry the value that `of` returns for the hash of its coordinates.
fn with_values<V: Value>(pattern: Coo<f32>, of: impl Fn(u64) -> f64 + Sync) -> Coo<V> {
    let columns = pattern.columns();
    let cell =
        |i: usize| columns.iter().fold(0, |hash, column| mix(hash ^ column.get(i)).wrapping_add(1));
    let values: Vec<V> =
        (0..pattern.nnz()).into_par_iter().map(|i| V::from_f64(of(cell(i)))).collect();
    pattern.with_values(values)
}
