//! The method of each algorithm.

use decompose_common::SolverError;
use decompose_core::runtime::Toolchain;
use decompose_formats::Coo;

use crate::adam::Adam;
use crate::als::Als;
use crate::ccd::Ccd;
use crate::config::{Algorithm, CompleteConfig, ModelKind};
use crate::conjugate_gradients::AlsCg;
use crate::lbfgs::Lbfgs;
use crate::method::Method;
use crate::objective::Objective;
use crate::stochastic::Sgd;

/// Makes the method of `config` for the training entries `tensor`.
///
/// # Errors
///
/// If a kernel has no schedule, or there is no memory.
pub(crate) fn method(
    config: &CompleteConfig,
    tensor: &Coo<f64>,
    objective: &Objective,
    toolchain: &Toolchain,
) -> Result<Box<dyn Method>, SolverError> {
    let row_wise = matches!(config.model, ModelKind::Cp { .. });
    Ok(match config.algorithm {
        Algorithm::Als if row_wise => {
            Box::new(Als::new(tensor, objective, config.range(), toolchain)?)
        }
        Algorithm::Als | Algorithm::AlsCg => Box::new(AlsCg::new(objective)?),
        Algorithm::Ccd => Box::new(Ccd::new(tensor, objective, config, toolchain)?),
        Algorithm::Sgd => Box::new(Sgd::new(tensor, objective, config, toolchain)?),
        Algorithm::Adam => Box::new(Adam::new(objective, config)?),
        Algorithm::Lbfgs => Box::new(Lbfgs::new(objective, config.range())?),
    })
}
