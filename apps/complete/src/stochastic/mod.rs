//! Stochastic gradient steps over the entries of a tensor, in parallel without races.
//!
//! A step at entry `(i, j, k)` reads and writes the rows `A(i,:)`, `B(j,:)`, `C(k,:)` of a CP model:
//!
//! ```text
//! m = sum_r A(i,r) B(j,r) C(k,r) + offset,   d = dloss/dm (x, m)
//! A(i,r) -= step * (d * B(j,r) C(k,r) + decay_i A(i,r)),   and B, C alike from the old rows
//! ```
//!
//! Each step needs what the one before it wrote, so this is no contraction and cannot be scheduled
//! as one.  [`Strata`] cuts every mode into as many parts as there are threads; blocks of entries
//! that share no part in any mode form a stratum and run at the same time, the strata one after
//! another (Gemulla, Nijkamp, Haas, Sismanis, "Large-scale matrix factorization with distributed
//! stochastic gradient descent", KDD 2011, for matrices; here for any order).  The result depends
//! on the seed and the number of threads only.  Steps on squared distances are compiled for order and
//! rank ([`Steps`]).
//!
//! The step is `step / (c s)`: `s` is the mean squared length of the direction in which an entry
//! pulls a row, estimated from the factors, and `c` the curvature of the loss, so that 1 would fit
//! an entry exactly.  It grows by 5% with each epoch that made the objective smaller; one that did
//! not is undone and halves it (the "bold driver": Battiti, 1989).

mod step;
mod strata;
#[cfg(test)]
mod tests;

use std::io;

use decompose_common::SolverError;
use decompose_common::checkpoint::fixed;
use decompose_common::npz::{NpzIn, NpzOut};
use decompose_core::runtime::{Columns, StepShape, Steps, Toolchain, Values};
use decompose_formats::{Coo, Matrix};

use crate::checkpoint::{read_blocks, write_blocks};
use crate::config::CompleteConfig;
use crate::loss::{Loss, Range};
use crate::method::{Method, Progress};
use crate::objective::Objective;
use crate::stochastic::step::{PassRule, Slope};
use crate::stochastic::strata::Strata;

/// The first step.
const STEP: f64 = 0.03;
/// What a step is multiplied by after an epoch that made the objective smaller.
const GROWTH: f64 = 1.05;
/// Below this share of the first step nothing moves any more.
const SMALLEST: f64 = 1e-9;

/// The state of the method.
pub(crate) struct Sgd {
    strata: Strata,
    /// The steps on squares; `None` without a compiler.
    steps: Option<Steps>,
    first: f64,
    step: f64,
    epoch: u64,
    /// The best place so far, and the objective there.
    before: Option<(Vec<Matrix<f64>>, f64)>,
    free: Vec<Vec<f64>>,
    least: Vec<f64>,
}

impl Sgd {
    /// Sorts the entries into strata for the threads of the current pool.
    ///
    /// # Errors
    ///
    /// If a mode is too long.
    pub(crate) fn new(
        tensor: &Coo<f64>,
        objective: &Objective,
        config: &CompleteConfig,
        toolchain: &Toolchain,
    ) -> Result<Sgd, SolverError> {
        let rank = objective.network().blocks()[0].matrix().1;
        let threads = rayon::current_num_threads();
        let strata = Strata::new(tensor, rank, threads, config.seed)?;
        let fixed = objective.fixed();
        let free = |mode| (0..rank).map(|c| f64::from(u8::from(!fixed.has(mode, c)))).collect();
        let (least, values) = match config.range() {
            Range::All => (f64::NEG_INFINITY, Values::All),
            Range::NonNegative => (0.0, Values::Bounded),
        };
        let columns = if fixed.any() { Columns::Marked } else { Columns::All };
        let shape =
            StepShape { order: tensor.order(), row: Strata::row_len(rank), columns, values };
        let first = config.step.unwrap_or(STEP);
        Ok(Sgd {
            strata,
            steps: Steps::new(shape, toolchain).ok(),
            first,
            step: first,
            epoch: 0,
            before: None,
            free: (0..tensor.order()).map(free).collect(),
            least: vec![least; tensor.order()],
        })
    }
}

impl Method for Sgd {
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        value: f64,
    ) -> Result<Progress, SolverError> {
        match &mut self.before {
            Some((best, least)) if value.is_nan() || value > *least => {
                copy(best, blocks);
                self.step *= 0.5;
            }
            Some((best, least)) => {
                copy(blocks, best);
                *least = value;
                self.step *= GROWTH;
            }
            None => {
                let copies: Result<_, _> = blocks.iter().map(Matrix::try_clone).collect();
                self.before = Some((copies?, value));
            }
        }
        if self.step < SMALLEST * self.first {
            return Ok(Progress::Stationary);
        }
        let loss = objective.loss();
        let observed = objective.entries().observed();
        let mean = observed.iter().sum::<f64>() / observed.len().max(1) as f64;
        let curvature = loss.curvature(mean);
        let step = self.step / (curvature * pull(blocks)).max(f64::MIN_POSITIVE);
        let rule = PassRule {
            step,
            offset: objective.offset(),
            ridge: objective.reg(),
            free: &self.free,
            least: &self.least,
        };
        self.epoch += 1;
        let epoch = self.epoch;
        let slope = |x: f64, m: f64| loss.slope(x, m);
        let slope = match &self.steps {
            Some(steps) if loss == Loss::Gaussian => Slope::Squares(steps),
            _ => Slope::Of(&slope),
        };
        self.strata.pass(blocks, &rule, epoch, slope)?;
        Ok(Progress::Moved)
    }

    fn forget(&mut self) {
        (self.step, self.before) = (self.first, None);
    }

    fn save(&self, out: &mut NpzOut<'_>) -> io::Result<()> {
        let least = self.before.as_ref().map_or(f64::NAN, |(_, least)| *least);
        out.numbers("sgd", &[self.step, least])?;
        out.numbers("sgd_epoch", &[self.epoch])?;
        match &self.before {
            Some((blocks, _)) => write_blocks(out, "before", blocks),
            None => Ok(()),
        }
    }

    fn load(&mut self, archive: &mut NpzIn) -> Result<(), SolverError> {
        let [step, least] = fixed::<f64, 2>(archive, "sgd")?;
        [self.epoch] = fixed::<u64, 1>(archive, "sgd_epoch")?;
        self.step = step;
        self.before = match archive.has("before_1") {
            true => Some((read_blocks(archive, "before", self.free.len())?, least)),
            false => None,
        };
        Ok(())
    }
}

fn copy(from: &[Matrix<f64>], to: &mut [Matrix<f64>]) {
    for (from, to) in from.iter().zip(to) {
        to.as_mut_slice().copy_from_slice(from.as_slice());
    }
}

/// The mean squared length of the product of all rows but one, for the mode where it is greatest.
fn pull(blocks: &[Matrix<f64>]) -> f64 {
    let squares = |block: &Matrix<f64>| -> Vec<f64> {
        let mut sums = vec![0.0; block.cols()];
        for row in 0..block.rows() {
            sums.iter_mut().zip(block.row(row)).for_each(|(sum, value)| *sum += value * value);
        }
        sums.iter().map(|sum| sum / block.rows().max(1) as f64).collect()
    };
    let means: Vec<Vec<f64>> = blocks.iter().map(squares).collect();
    let of_mode = |mode: usize| -> f64 {
        let product = |r: usize| {
            let others = means.iter().enumerate().filter(|(m, _)| *m != mode);
            others.map(|(_, means)| means[r]).product::<f64>()
        };
        (0..means[mode].len()).map(product).sum()
    };
    (0..blocks.len()).map(of_mode).fold(0.0, f64::max)
}
