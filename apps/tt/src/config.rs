//! What to compute, and from where to start.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use decompose_common::SolverError;
use decompose_common::checkpoint::CheckpointRule;
use decompose_common::stopping::StopRule;

use crate::bonds;
use crate::train::Train;

/// How the train is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// One core at a time, ranks given: least squares by turns.
    Als,
    /// Two cores at a time, ranks adapted to an error bound or given.
    Dmrg,
    /// Truncated singular value decompositions of the unfoldings, one after the other.
    Svd,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Als => "als",
            Method::Dmrg => "dmrg",
            Method::Svd => "svd",
        })
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Method, String> {
        match name {
            "als" => Ok(Method::Als),
            "dmrg" => Ok(Method::Dmrg),
            "svd" => Ok(Method::Svd),
            other => Err(format!("no method `{other}`; use als, dmrg or svd")),
        }
    }
}

/// How large the bonds between the cores are.
#[derive(Clone, Debug, PartialEq)]
pub enum Ranks {
    /// The same rank everywhere, less where a bond cannot have it.
    Uniform(usize),
    /// One rank a bond, in train order.
    Each(Vec<usize>),
    /// As large as needed for this bound on `||X - T|| / ||X||`, up to a rank.
    Error {
        /// The bound.
        eps: f64,
        /// The most of any bond.
        max_rank: Option<usize>,
    },
}

impl Ranks {
    /// Returns the bound on the relative error that was asked for.
    pub fn bound(&self) -> Option<f64> {
        match self {
            Ranks::Error { eps, .. } => Some(*eps),
            Ranks::Uniform(_) | Ranks::Each(_) => None,
        }
    }

    /// Returns the most that each bond of a tensor of `extents`, in train order, may have.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] if a rank is 0, the list has not one rank a bond, or lists more than a
    /// bond can have: the product of the extents on either side, and a neighbour's rank times the
    /// extent between.
    pub fn largest(&self, extents: &[u64]) -> Result<Vec<usize>, SolverError> {
        let bonds = extents.len().saturating_sub(1);
        let (asked, listed) = match self {
            Ranks::Uniform(rank) => (vec![*rank; bonds], false),
            Ranks::Each(ranks) => (ranks.clone(), true),
            Ranks::Error { max_rank, .. } => (vec![max_rank.unwrap_or(usize::MAX); bonds], false),
        };
        if asked.contains(&0) {
            return Err(SolverError::Config("a rank is 0; use at least 1".into()));
        }
        if asked.len() != bonds {
            let (have, order) = (asked.len(), extents.len());
            return Err(SolverError::Config(format!(
                "{have} ranks for a tensor of order {order}, whose train has {bonds} bonds; list \
                 one rank a bond, or one for all"
            )));
        }
        let possible = bonds::possible(&asked, extents);
        match (0..bonds).find(|&bond| listed && possible[bond] < asked[bond]) {
            None => Ok(possible),
            Some(bond) => Err(SolverError::Config(format!(
                "rank {} of bond {} is more than the {} that the extents around it and the other \
                 ranks allow",
                asked[bond],
                bond + 1,
                possible[bond]
            ))),
        }
    }
}

/// The options of a decomposition.
#[derive(Clone, Debug)]
pub struct TtConfig {
    /// How the train is found.
    pub method: Method,
    /// The ranks of the bonds.
    pub ranks: Ranks,
    /// The seed of the first start; restart `k` (from 0) uses `seed + k`.  Default 0.
    pub seed: u64,
    /// The number of starts of `als` and `dmrg`; the best fit is kept.  Default 1.
    pub restarts: usize,
    /// When an iteration ends.  Default: change of fit below 1e-5, 50 iterations.
    pub stop: StopRule,
    /// Where and how often to save the state of an iteration.  Default: never.
    pub checkpoint: Option<CheckpointRule>,
    /// The most bytes of a dense matrix of `dmrg` and `svd`.  Default: no limit.
    pub memory: Option<u64>,
}

/// Where an iteration starts.
pub enum Start {
    /// Orthonormal cores from random numbers.
    Random,
    /// A train of the same extents in train order; for `als` also of the same ranks.
    Given(Train),
    /// The state that an earlier run saved into this folder.  Its options must agree, limits
    /// excepted; the run then continues as if it had never stopped, bit by bit.
    Checkpoint(PathBuf),
}

impl TtConfig {
    /// Makes the default options.
    pub fn new(method: Method, ranks: Ranks) -> TtConfig {
        TtConfig {
            method,
            ranks,
            seed: 0,
            restarts: 1,
            stop: StopRule::default(),
            checkpoint: None,
            memory: None,
        }
    }

    /// Checks the options against a tensor of `extents` in train order.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] with the option, its value and the remedy.
    pub fn check(&self, extents: &[u64]) -> Result<(), SolverError> {
        let fail = |why: String| Err(SolverError::Config(why));
        let order = extents.len();
        if order < 2 {
            return fail("a tensor of order 1 is a vector: a train needs two modes".into());
        }
        if let Some(eps) = self.ranks.bound().filter(|eps| !(*eps > 0.0 && *eps < 1.0)) {
            return fail(format!("eps is {eps}; use a number between 0 and 1"));
        }
        if self.method == Method::Als && self.ranks.bound().is_some() {
            return fail("als keeps the ranks it is given: give ranks, or use dmrg or svd".into());
        }
        if self.method == Method::Dmrg && order == 2 {
            return fail("a tensor of order 2 has one bond: use svd or als instead of dmrg".into());
        }
        self.stop.validate()?;
        if self.restarts == 0 || (self.restarts > 1 && self.method == Method::Svd) {
            return fail(format!(
                "restarts is {}; svd has no start, others at least 1",
                self.restarts
            ));
        }
        if self.restarts > 1 && self.checkpoint.is_some() {
            return fail(
                "a run of several restarts saves no checkpoints: start them singly".into(),
            );
        }
        if self.checkpoint.is_some() && self.method == Method::Svd {
            return fail("svd does not iterate: it has no checkpoints".into());
        }
        self.checkpoint.as_ref().map_or(Ok(()), CheckpointRule::validate)?;
        self.ranks.largest(extents).map(|_| ())
    }
}
