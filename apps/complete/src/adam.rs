//! Adam on the full gradient.
//!
//! ```text
//! m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
//! theta -= rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + e)
//! ```
//!
//! The rate is `step` times the root mean square of the free parameters at the start, and halves
//! when the objective has not reached a new minimum for ten epochs.  An epoch is one step.  Source:
//! Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1.

use std::io;

use decompose_common::SolverError;
use decompose_common::checkpoint::fixed;
use decompose_common::npz::{NpzIn, NpzOut};
use decompose_formats::Matrix;

use crate::checkpoint::{read_blocks, write_blocks};
use crate::config::CompleteConfig;
use crate::loss::Range;
use crate::method::{Method, Progress};
use crate::objective::Objective;

/// The first rate, as a share of the size of the parameters.
const STEP: f64 = 0.05;
/// The memory of the mean of gradients.
const MEAN: f64 = 0.9;
/// The memory of the mean of their squares.
const SQUARE: f64 = 0.999;
/// Keeps quotients finite.
const TINY: f64 = 1e-12;
/// Epochs without a new minimum that halve the rate.
const FAILS: u64 = 10;

/// The state of the method.
pub(crate) struct Adam {
    gradient: Vec<Matrix<f64>>,
    mean: Vec<Matrix<f64>>,
    square: Vec<Matrix<f64>>,
    step: f64,
    rate: Option<f64>,
    time: u32,
    least: f64,
    fails: u64,
    range: Range,
}

impl Adam {
    /// Makes room.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub(crate) fn new(objective: &Objective, config: &CompleteConfig) -> Result<Adam, SolverError> {
        let blocks = || objective.network().blocks().iter().map(|block| block.matrix());
        let room = || -> Result<Vec<Matrix<f64>>, SolverError> {
            Ok(blocks().map(|(rows, cols)| Matrix::zeros(rows, cols)).collect::<Result<_, _>>()?)
        };
        Ok(Adam {
            gradient: room()?,
            mean: room()?,
            square: room()?,
            step: config.step.unwrap_or(STEP),
            rate: None,
            time: 0,
            least: f64::INFINITY,
            fails: 0,
            range: config.range(),
        })
    }
}

impl Method for Adam {
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        value: f64,
    ) -> Result<Progress, SolverError> {
        let start = self.step * size(blocks);
        let rate = self.rate.get_or_insert(start);
        self.fails = if value < self.least { 0 } else { self.fails + 1 };
        self.least = self.least.min(value);
        if self.fails >= FAILS {
            *rate *= 0.5;
            self.fails = 0;
        }
        let rate = *rate;
        objective.gradient(blocks, &mut self.gradient)?;
        self.time += 1;
        let (first, second) =
            (1.0 - MEAN.powi(self.time as i32), 1.0 - SQUARE.powi(self.time as i32));
        let moments = self.mean.iter_mut().zip(&mut self.square).zip(&self.gradient);
        for (block, ((mean, square), gradient)) in blocks.iter_mut().zip(moments) {
            let moments = mean.as_mut_slice().iter_mut().zip(square.as_mut_slice());
            let slopes = moments.zip(gradient.as_slice());
            for (theta, ((m, v), g)) in block.as_mut_slice().iter_mut().zip(slopes) {
                *m = MEAN * *m + (1.0 - MEAN) * g;
                *v = SQUARE * *v + (1.0 - SQUARE) * g * g;
                *theta -= rate * (*m / first) / ((*v / second).sqrt() + TINY);
                if self.range == Range::NonNegative {
                    *theta = theta.max(0.0);
                }
            }
        }
        Ok(Progress::Moved)
    }

    fn forget(&mut self) {
        for matrix in self.mean.iter_mut().chain(&mut self.square) {
            matrix.as_mut_slice().fill(0.0);
        }
        (self.rate, self.time) = (None, 0);
        (self.least, self.fails) = (f64::INFINITY, 0);
    }

    fn save(&self, out: &mut NpzOut<'_>) -> io::Result<()> {
        write_blocks(out, "mean", &self.mean)?;
        write_blocks(out, "square", &self.square)?;
        out.numbers("adam", &[self.rate.unwrap_or(f64::NAN), self.least])?;
        out.numbers("adam_counts", &[u64::from(self.time), self.fails])
    }

    fn load(&mut self, archive: &mut NpzIn) -> Result<(), SolverError> {
        self.mean = read_blocks(archive, "mean", self.mean.len())?;
        self.square = read_blocks(archive, "square", self.square.len())?;
        let [rate, least] = fixed::<f64, 2>(archive, "adam")?;
        let [time, fails] = fixed::<u64, 2>(archive, "adam_counts")?;
        self.rate = Some(rate).filter(|rate| !rate.is_nan());
        (self.least, self.time, self.fails) = (least, time as u32, fails);
        Ok(())
    }
}

/// The root mean square of all parameters.
fn size(blocks: &[Matrix<f64>]) -> f64 {
    let count: usize = blocks.iter().map(|block| block.rows() * block.cols()).sum();
    let squares = blocks.iter().flat_map(|block| block.as_slice()).map(|value| value * value);
    (squares.sum::<f64>() / count.max(1) as f64).sqrt()
}
