//! Where a fit starts.

use decompose_common::SolverError;
use decompose_common::rng::MatrixRng;
use decompose_formats::Matrix;

use crate::config::{CompleteConfig, ModelKind};
use crate::loss::{Loss, Range};
use crate::mean::root_mean_square;
use crate::network::Network;
use crate::objective::Objective;
use crate::outcome::column_norms;

/// Of the weight of the strongest component, what a component has that is still alive; the root mean
/// square of the values of a model that is.
const ALIVE: f64 = 1e-6;

/// Makes random blocks, scaled so that the model's values at the training entries have a root mean
/// square of 1, as the entries have, measured in their unit.
///
/// Elements are uniform in `[0, 1)` where all entries, or all parameters, are non-negative, else in
/// `[-1, 1)`.  Bias columns start at zero.
///
/// # Errors
///
/// If there is no memory.
pub(crate) fn random(
    objective: &mut Objective,
    seed: u64,
    range: Range,
) -> Result<Vec<Matrix<f64>>, SolverError> {
    let (offset, loss) = (objective.offset(), objective.loss());
    let observed = objective.entries().observed();
    let signed = range == Range::All && observed.iter().any(|&x| x < offset);
    let signed = signed || loss == Loss::Bernoulli;
    let fixed = objective.fixed().clone();
    let least = if signed { -1.0 } else { 0.0 };
    let mut blocks = blocks(objective.network(), seed, least)?;
    // Biases must not count: they are set to zero first.
    fixed.start(&mut blocks);
    let model = objective.entries().evaluate(&blocks.iter().collect::<Vec<_>>())?;
    let scale = root_mean_square(model).recip().powf(1.0 / blocks.len() as f64);
    if scale.is_normal() {
        for block in &mut blocks {
            block.as_mut_slice().iter_mut().for_each(|value| *value *= scale);
        }
        fixed.start(&mut blocks);
    }
    Ok(blocks)
}

/// Gives what a strong ridge has put out in `blocks` a new start, under a weaker one.
///
/// Zero in two blocks stays zero whatever the method, since its gradient is.  Components of a CP model
/// that are so become random, but zero in the first block: the model's values stay as they are.
/// Other models become random as a whole where all their values are zero.
///
/// # Errors
///
/// If there is no memory.
pub(crate) fn revive(
    objective: &mut Objective,
    blocks: &mut Vec<Matrix<f64>>,
    seed: u64,
    config: &CompleteConfig,
) -> Result<(), SolverError> {
    if !matches!(config.model, ModelKind::Cp { .. }) {
        let model = objective.entries().evaluate(&blocks.iter().collect::<Vec<_>>())?;
        if root_mean_square(model) <= ALIVE {
            *blocks = random(objective, seed, config.range())?;
        }
        return Ok(());
    }
    let fixed = objective.fixed();
    let norms: Vec<Vec<f64>> = blocks.iter().map(column_norms).collect();
    let weights: Vec<(usize, f64)> = (0..norms[0].len())
        .filter(|&column| (0..blocks.len()).all(|mode| !fixed.has(mode, column)))
        .map(|column| (column, norms.iter().map(|norms| norms[column]).product()))
        .collect();
    let strongest = weights.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
    let dead: Vec<usize> = weights
        .into_iter()
        .filter(|(_, weight)| *weight <= ALIVE * strongest)
        .map(|(column, _)| column)
        .collect();
    if !dead.is_empty() {
        let fresh = random(objective, seed, config.range())?;
        for (mode, (block, fresh)) in blocks.iter_mut().zip(&fresh).enumerate() {
            for row in 0..block.rows() {
                let (to, from) = (block.row_mut(row), fresh.row(row));
                dead.iter().for_each(|&at| to[at] = if mode == 0 { 0.0 } else { from[at] });
            }
        }
    }
    Ok(())
}

/// Makes blocks with elements uniform from `least` to 1.
fn blocks(network: &Network, seed: u64, least: f64) -> Result<Vec<Matrix<f64>>, SolverError> {
    let one = |(at, (rows, cols)): (usize, (usize, usize))| {
        let rng = MatrixRng::new(seed, at as u64);
        let mut matrix = Matrix::zeros(rows, cols)?;
        for row in 0..rows {
            for (col, value) in matrix.row_mut(row).iter_mut().enumerate() {
                let draw = rng.uniform(row as u64, col as u64);
                *value = least + (1.0 - least) * draw;
            }
        }
        Ok(matrix)
    };
    network.blocks().iter().map(|block| block.matrix()).enumerate().map(one).collect()
}
