//! What to compute, and from where to start.

use std::path::PathBuf;

use decompose_common::SolverError;
use decompose_common::checkpoint::CheckpointRule;
use decompose_common::model::TuckerModel;
use decompose_common::stopping::StopRule;
use decompose_formats::Matrix;

/// The options of a Tucker decomposition.
#[derive(Clone, Debug)]
pub struct TuckerConfig {
    /// The rank of every mode, `R_1, ..., R_N`.
    pub ranks: Vec<usize>,
    /// How factors are made better.
    pub method: Method,
    /// The seed of the first start; restart `k` (from 0) uses `seed + k`.  Default 0.
    pub seed: u64,
    /// When to stop.  Default: change of fit below 1e-5, 50 iterations.
    pub stop: StopRule,
    /// The number of starts; the best fit is kept.  Default 1.
    pub restarts: usize,
    /// Where and how often to save the state.  Default: never.
    pub checkpoint: Option<CheckpointRule>,
}

/// How factors are made better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Higher-order orthogonal iteration.
    Hooi,
    /// Not at all: the factors given, orthonormal, keep, and only the core is computed.
    Core,
    /// Nonnegative factors and core: hierarchical alternating least squares.
    Nonnegative,
}

/// Where a run starts.
pub enum Start<V> {
    /// Factors from the seed: orthonormal, or for nonnegative ones uniform in `[0, 1)`.  The first
    /// update of HOOI then is a randomised range finder: it takes the leading subspace of the
    /// unfolding times a random matrix of Kronecker structure.
    Random,
    /// These factors, `I_n x R_n`; further restarts are random.  They should be orthonormal; for
    /// nonnegative ones the absolute values are taken.
    Factors(Vec<Matrix<V>>),
    /// The factors of a model, and for nonnegative ones its core.
    Given(TuckerModel<V>),
    /// The state that an earlier run saved into this folder.  Its options must agree, limits
    /// excepted; the run then continues as if it had never stopped, bit by bit.
    Checkpoint(PathBuf),
}

impl TuckerConfig {
    /// Makes the default options for HOOI with `ranks`.
    pub fn new(ranks: Vec<usize>) -> TuckerConfig {
        TuckerConfig {
            ranks,
            method: Method::Hooi,
            seed: 0,
            stop: StopRule::default(),
            restarts: 1,
            checkpoint: None,
        }
    }

    /// Checks the options against a tensor of `extents`.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] with the option, its value and the remedy.
    pub fn check(&self, extents: &[u64]) -> Result<(), SolverError> {
        check_ranks(extents, &self.ranks)?;
        if self.restarts == 0 {
            return Err(SolverError::Config("restarts is 0; use at least 1".into()));
        }
        self.stop.validate()?;
        self.checkpoint.as_ref().map_or(Ok(()), CheckpointRule::validate)
    }
}

/// Checks that a Tucker model of `ranks` makes sense for a tensor of `extents`.
///
/// # Errors
///
/// [`SolverError::Config`]: an order below 2, ranks of the wrong count, a rank of 0, above its
/// extent, or above the product of the others.
pub fn check_ranks(extents: &[u64], ranks: &[usize]) -> Result<(), SolverError> {
    let fail = |why: String| Err(SolverError::Config(why));
    let order = extents.len();
    check_order(order)?;
    if ranks.len() != order {
        let count = ranks.len();
        return fail(format!(
            "{count} ranks for a tensor of {order} modes; give one rank for all modes, or one a mode"
        ));
    }
    for (mode, (&rank, &extent)) in ranks.iter().zip(extents).enumerate() {
        let number = mode + 1;
        if rank == 0 {
            return fail(format!("the rank of mode {number} is 0; use at least 1"));
        }
        if rank as u64 > extent {
            return fail(format!(
                "the rank {rank} of mode {number} is above its extent {extent}; lower it"
            ));
        }
    }
    for (mode, &rank) in ranks.iter().enumerate() {
        let number = mode + 1;
        let others = ranks.iter().enumerate().filter(|&(m, _)| m != mode);
        let product = others.fold(1_usize, |product, (_, &rank)| product.saturating_mul(rank));
        if rank > product {
            return fail(format!(
                "the rank {rank} of mode {number} is above the product {product} of the other \
                 ranks: its last columns could do nothing; lower it or raise the others"
            ));
        }
    }
    Ok(())
}

/// Refuses vectors.
///
/// # Errors
///
/// [`SolverError::Config`] if `order` is below 2.
pub fn check_order(order: usize) -> Result<(), SolverError> {
    if order >= 2 {
        return Ok(());
    }
    let why = "a tensor of order 1 has no Tucker decomposition but itself; give one of order 2 or \
               more";
    Err(SolverError::Config(why.into()))
}
