//! What to compute, and from where to start.

use std::path::PathBuf;

use decompose_common::SolverError;
use decompose_common::checkpoint::CheckpointRule;
use decompose_common::model::{Arrangement, CpModel};
use decompose_common::stopping::StopRule;
use decompose_formats::ModeOrder;

/// The options of a CP decomposition.
#[derive(Clone, Debug)]
pub struct CpConfig {
    /// The number of components R.
    pub rank: usize,
    /// The seed of the first start; restart `k` (from 0) uses `seed + k`.  Default 0.
    pub seed: u64,
    /// When to stop.  Default: change of fit below 1e-5, 50 iterations.
    pub stop: StopRule,
    /// Ridge: this is added to the diagonal of `Y` (unit-free: the factors are normalised).
    /// Default 0.
    pub reg: f64,
    /// The modes whose factors must not be negative.  Default none.
    pub nonneg: NonNegModes,
    /// The number of starts; the best fit is kept.  Default 1.  All models stay in memory until
    /// the end, to be compared.
    pub restarts: usize,
    /// The order in which the modes are updated.  Default 1, 2, ..., N.
    pub update_order: Option<ModeOrder>,
    /// Whether the components of the result are sorted and their signs fixed.  Default: they are.
    pub arrangement: Arrangement,
    /// Where and how often to save the state.  Default: never.
    pub checkpoint: Option<CheckpointRule>,
}

/// A choice of modes, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NonNegModes {
    /// No mode.
    None,
    /// Every mode.
    All,
    /// These modes.
    Listed(Vec<usize>),
}

impl NonNegModes {
    /// Tells whether `mode` is among them.
    pub fn contains(&self, mode: usize) -> bool {
        match self {
            NonNegModes::None => false,
            NonNegModes::All => true,
            NonNegModes::Listed(modes) => modes.contains(&mode),
        }
    }
}

/// Where a run starts.
pub enum Start<V> {
    /// Factors uniform in `[0, 1)`, from the seed.
    Random,
    /// The factors of a model; further restarts are random.  Weights do not matter to least
    /// squares.  In non-negative modes the absolute values are taken.
    Given(CpModel<V>),
    /// The state that an earlier run saved into this folder.  Its options must agree, limits and
    /// arrangement excepted; the run then continues as if it had never stopped, bit by bit.
    Checkpoint(PathBuf),
}

impl CpConfig {
    /// Makes the default options for rank `rank`.
    pub fn new(rank: usize) -> CpConfig {
        CpConfig {
            rank,
            seed: 0,
            stop: StopRule::default(),
            reg: 0.0,
            nonneg: NonNegModes::None,
            restarts: 1,
            update_order: None,
            arrangement: Arrangement::Sorted,
            checkpoint: None,
        }
    }

    /// Checks the options against a tensor of order `order`.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] with the option, its value and the remedy.
    pub fn check(&self, order: usize) -> Result<(), SolverError> {
        let fail = |why: String| Err(SolverError::Config(why));
        let counts = [("rank", self.rank), ("restarts", self.restarts)];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return fail(format!("{name} is 0; use at least 1"));
        }
        self.stop.validate()?;
        if !(self.reg >= 0.0 && self.reg.is_finite()) {
            return fail(format!("reg is {}; use a number from 0 on", self.reg));
        }
        if let NonNegModes::Listed(modes) = &self.nonneg
            && let Some(mode) = modes.iter().find(|&&mode| mode >= order)
        {
            return fail(format!("nonneg names mode {} of an order-{order} tensor", mode + 1));
        }
        if let Some(modes) = self.update_order.as_ref().filter(|o| o.modes().len() != order) {
            return fail(format!("dimorder {modes} does not list each of the {order} modes once"));
        }
        self.checkpoint.as_ref().map_or(Ok(()), CheckpointRule::validate)
    }

    /// Returns the modes in the order of their updates.
    pub fn modes(&self, order: usize) -> Vec<usize> {
        match &self.update_order {
            Some(modes) => modes.modes().to_vec(),
            None => (0..order).collect(),
        }
    }
}
