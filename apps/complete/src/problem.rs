//! The objective that options pose on the training entries.

use decompose_common::SolverError;
use decompose_core::runtime::Toolchain;
use decompose_formats::Coo;

use crate::biases::Fixed;
use crate::config::{Algorithm, Biases, CompleteConfig, ModelKind, Reg};
use crate::network::Network;
use crate::objective::{Needs, Objective};

/// Schedules the kernels that the algorithm needs on the training entries, measured in their unit.
///
/// # Errors
///
/// If a kernel has no schedule, or there is no memory.
pub(crate) fn objective(
    train: &Coo<f64>,
    config: &CompleteConfig,
    toolchain: &Toolchain,
) -> Result<Objective, SolverError> {
    let (kind, fixed, offset) = augmented(config, train);
    let network = Network::new(&kind, train.extents());
    let reg = match &config.reg {
        Reg::Given(each) if each.len() > 1 => each.clone(),
        Reg::Given(one) => vec![one.first().copied().unwrap_or(0.0); network.blocks().len()],
        // Each round has its own.
        Reg::Chosen => vec![0.0; network.blocks().len()],
    };
    let needs = match config.algorithm {
        Algorithm::Adam | Algorithm::Lbfgs | Algorithm::AlsCg => Needs::Gradients,
        Algorithm::Als if !matches!(kind, ModelKind::Cp { .. }) => Needs::Gradients,
        _ => Needs::Values,
    };
    let objective = Objective::new(train, network, config.loss, reg, needs, toolchain)?;
    Ok(objective.with_biases(offset, fixed))
}

/// Returns the model with its biases as components, which of its columns stay, and the offset.
fn augmented(config: &CompleteConfig, train: &Coo<f64>) -> (ModelKind, Fixed, f64) {
    match (&config.model, config.biases) {
        (ModelKind::Cp { rank }, Biases::Modes) => {
            let order = train.order();
            let mean = train.sum() / train.nnz().max(1) as f64;
            let offset = config.loss.link(mean);
            (ModelKind::Cp { rank: rank + order }, Fixed::ones(*rank, order), offset)
        }
        (kind, _) => (kind.clone(), Fixed::none(), 0.0),
    }
}
