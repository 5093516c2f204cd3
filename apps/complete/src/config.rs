//! What to fit, and how.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use decompose_common::SolverError;
use decompose_common::checkpoint::CheckpointRule;
use decompose_formats::Matrix;

use crate::loss::{Loss, Range};
use crate::stop::Patience;

/// The options of a completion.
#[derive(Clone, Debug)]
pub struct CompleteConfig {
    /// The model with its ranks.
    pub model: ModelKind,
    /// How it is fitted.  Default alternating least squares.
    pub algorithm: Algorithm,
    /// What is minimised.  Default gaussian.
    pub loss: Loss,
    /// The ridge `reg` of the objective.  Default 0.01 for all blocks.
    pub reg: Reg,
    /// Which parameters may be negative.  Default: all.
    pub sign: Range,
    /// Whether a CP model has a global offset and one for each index.  Default: it has not.
    pub biases: Biases,
    /// Decides the start and the order of stochastic steps.  Default 0.
    pub seed: u64,
    /// When the validation error (without validation entries, the training error) has settled.
    pub patience: Patience,
    /// The most epochs of a round.  Default 500.
    pub max_epochs: usize,
    /// The most time.
    pub max_time: Option<Duration>,
    /// The length of the steps of SGD and Adam relative to the scale of the problem; see
    /// [`Algorithm`].  Default: the algorithm's own.
    pub step: Option<f64>,
    /// Passes over the modes for each block of components of CCD++.  Default 1.
    pub inner: usize,
    /// Components that CCD++ updates together; 1 is the textbook's.  Default 8.
    pub block: usize,
    /// Starts, from `seed`, `seed + 1`, ...; the one with the least deciding error is kept.
    /// Default 1.
    pub restarts: usize,
    /// Where and how often the state is saved.  Default: it is not.
    pub checkpoint: Option<CheckpointRule>,
}

/// The ridge of the objective.
///
/// It is flat: a row bears the same ridge whether it has one entry or a thousand.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reg {
    /// One for all blocks, or one a block.
    Given(Vec<f64>),
    /// The one of a path from strong to weak whose validation error is the least
    /// ([`solve`](crate::solve)).
    Chosen,
}

/// A model and its ranks.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// A sum of components.
    Cp {
        /// Their number.
        rank: usize,
    },
    /// A core times a factor a mode.
    Tucker {
        /// One a mode.
        ranks: Vec<usize>,
    },
    /// A train of cores.
    Train {
        /// One for each pair of neighbouring modes.
        ranks: Vec<usize>,
    },
}

/// How a model is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Alternating least squares: the normal equations of every row of a factor, solved exactly.
    Als,
    /// Alternating least squares by conjugate gradients in every slice of a block; no matrix of
    /// `R x R` a row is stored.
    AlsCg,
    /// Cyclic coordinate descent, some components at a time (CCD++ and its block form).
    Ccd,
    /// Stochastic gradient steps, in parallel without races.
    Sgd,
    /// Adaptive moments on the full gradient.
    Adam,
    /// Limited-memory quasi-Newton on the full gradient.
    Lbfgs,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::Als,
        Algorithm::AlsCg,
        Algorithm::Ccd,
        Algorithm::Sgd,
        Algorithm::Adam,
        Algorithm::Lbfgs,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Als => "als",
            Algorithm::AlsCg => "als-cg",
            Algorithm::Ccd => "ccd",
            Algorithm::Sgd => "sgd",
            Algorithm::Adam => "adam",
            Algorithm::Lbfgs => "lbfgs",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a model has offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Biases {
    /// It has none.
    None,
    /// One for all entries, and one for each index of each mode.
    Modes,
}

/// Where a run starts.
pub enum Start {
    /// Random blocks, from the seed.
    Random,
    /// These blocks.
    Given(Vec<Matrix<f64>>),
    /// Where the run saved in this folder stopped.
    Checkpoint(PathBuf),
}

impl Reg {
    /// Checks the numbers for a model of so many blocks.
    fn check(&self, blocks: usize) -> Result<(), SolverError> {
        let fail = |why: String| Err(SolverError::Config(why));
        let Reg::Given(numbers) = self else { return Ok(()) };
        if numbers.len() != 1 && numbers.len() != blocks {
            return fail(format!("reg has {} numbers; give 1, or {blocks}", numbers.len()));
        }
        match numbers.iter().find(|reg| !(**reg >= 0.0 && reg.is_finite())) {
            Some(reg) => fail(format!("reg is {reg}; use numbers from 0 on")),
            None => Ok(()),
        }
    }
}

impl CompleteConfig {
    /// Makes the default options for `model`.
    pub fn new(model: ModelKind) -> CompleteConfig {
        CompleteConfig {
            model,
            algorithm: Algorithm::Als,
            loss: Loss::Gaussian,
            reg: Reg::Given(vec![1e-2]),
            sign: Range::All,
            biases: Biases::None,
            seed: 0,
            patience: Patience::default(),
            max_epochs: 500,
            max_time: None,
            step: None,
            inner: 1,
            block: 8,
            restarts: 1,
            checkpoint: None,
        }
    }

    /// Returns whether parameters may be negative, which the loss decides too.
    pub fn range(&self) -> Range {
        if self.loss.range() == Range::NonNegative { Range::NonNegative } else { self.sign }
    }

    /// Checks the options against a tensor of `extents`.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] with the option, its value and the remedy.
    pub fn check(&self, extents: &[u64]) -> Result<(), SolverError> {
        let fail = |why: String| Err(SolverError::Config(why));
        if extents.len() < 2 {
            return fail("a tensor of one mode has no structure to complete it by".into());
        }
        self.check_model(extents)?;
        self.check_algorithm()?;
        let blocks = extents.len() + usize::from(matches!(self.model, ModelKind::Tucker { .. }));
        self.reg.check(blocks)?;
        if self.step.is_some_and(|step| !(step > 0.0 && step.is_finite())) {
            return fail("step must be above 0".into());
        }
        if let Loss::Huber(bend) = self.loss
            && !(bend > 0.0 && bend.is_finite())
        {
            return fail(format!("huber-delta is {bend}; use a number above 0"));
        }
        let counts = [
            ("epochs", self.max_epochs),
            ("ccd-inner", self.inner),
            ("ccd-block", self.block),
            ("restarts", self.restarts),
        ];
        match counts.iter().find(|(_, count)| *count == 0) {
            Some((name, _)) => fail(format!("{name} is 0; use at least 1")),
            None => {
                self.checkpoint.as_ref().map_or(Ok(()), CheckpointRule::validate)?;
                self.patience.check()
            }
        }
    }

    fn check_model(&self, extents: &[u64]) -> Result<(), SolverError> {
        let fail = |why: String| Err(SolverError::Config(why));
        let order = extents.len();
        let (ranks, want) = match &self.model {
            ModelKind::Cp { rank } => (std::slice::from_ref(rank), 1),
            ModelKind::Tucker { ranks } => (ranks.as_slice(), order),
            ModelKind::Train { ranks } => (ranks.as_slice(), order - 1),
        };
        if ranks.len() != want {
            let have = ranks.len();
            return fail(format!("{have} ranks for a tensor of {order} modes; give {want}"));
        }
        if ranks.contains(&0) {
            return fail("a rank is 0; use at least 1".into());
        }
        if let ModelKind::Tucker { ranks } = &self.model {
            let wide = ranks.iter().zip(extents).position(|(&rank, &extent)| rank as u64 > extent);
            if let Some(mode) = wide {
                let (rank, extent) = (ranks[mode], extents[mode]);
                return fail(format!(
                    "rank {rank} of mode {} exceeds its extent {extent}",
                    mode + 1
                ));
            }
        }
        if self.biases == Biases::Modes && !matches!(self.model, ModelKind::Cp { .. }) {
            return fail("biases belong to CP models; leave them out, or use such a model".into());
        }
        if self.biases == Biases::Modes && self.range() == Range::NonNegative {
            let why = "biases have a sign; leave them out, or use another range than the non-negative \
                       numbers, and another loss than poisson and gamma";
            return fail(why.into());
        }
        Ok(())
    }

    fn check_algorithm(&self) -> Result<(), SolverError> {
        let (name, loss) = (self.algorithm.name(), self.loss);
        let least_squares =
            matches!(self.algorithm, Algorithm::Als | Algorithm::AlsCg | Algorithm::Ccd);
        if least_squares && !loss.is_quadratic() {
            return Err(SolverError::Config(format!(
                "{name} minimises the gaussian loss; use lbfgs, adam or sgd for {loss}"
            )));
        }
        let cp = matches!(self.model, ModelKind::Cp { .. });
        if !cp && matches!(self.algorithm, Algorithm::Ccd | Algorithm::Sgd) {
            return Err(SolverError::Config(format!(
                "{name} fits CP models; use als, lbfgs or adam for others"
            )));
        }
        let unbounded =
            self.algorithm == Algorithm::AlsCg || (!cp && self.algorithm == Algorithm::Als);
        if unbounded && self.range() == Range::NonNegative {
            return Err(SolverError::Config(format!(
                "{name} cannot keep parameters from being negative here; use lbfgs or adam, or als \
                 with a CP model"
            )));
        }
        Ok(())
    }
}
