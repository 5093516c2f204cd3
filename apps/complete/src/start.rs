//! Where a fit starts.

use decompose_common::rng::MatrixRng;
use decompose_formats::Matrix;

use crate::error::CompleteError;
use crate::loss::{Loss, Range};
use crate::network::Network;
use crate::objective::Objective;

/// Makes random blocks, scaled so that the model's values at the training entries have the root
/// mean square of the entries (of 1 for log odds).
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
) -> Result<Vec<Matrix<f64>>, CompleteError> {
    let (offset, loss) = (objective.offset(), objective.loss());
    let observed = objective.entries().observed();
    let signed = range == Range::All && observed.iter().any(|&x| x < offset);
    let signed = signed || loss == Loss::Bernoulli;
    let squares: f64 = observed.iter().map(|&x| (x - offset) * (x - offset)).sum();
    let target = match loss {
        Loss::Bernoulli => 1.0,
        _ => (squares / observed.len().max(1) as f64).sqrt(),
    };
    let fixed = objective.fixed().clone();
    let least = if signed { -1.0 } else { 0.0 };
    let mut blocks = blocks(objective.network(), seed, least)?;
    // Biases must not count: they are set to zero first.
    fixed.start(&mut blocks);
    let model = objective.entries().evaluate(&blocks.iter().collect::<Vec<_>>())?;
    let squares: f64 = model.iter().map(|m| m * m).sum();
    let size = (squares / model.len().max(1) as f64).sqrt();
    let scale = (target / size).powf(1.0 / blocks.len() as f64);
    if scale.is_normal() {
        for block in &mut blocks {
            block.as_mut_slice().iter_mut().for_each(|value| *value *= scale);
        }
        fixed.start(&mut blocks);
    }
    Ok(blocks)
}

/// Makes blocks with elements uniform from `least` to 1.
fn blocks(network: &Network, seed: u64, least: f64) -> Result<Vec<Matrix<f64>>, CompleteError> {
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
