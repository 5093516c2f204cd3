//! Completion: models of the observed entries of a tensor, where an entry that is not listed is
//! unknown, not zero.
//!
//! A model `M` of few parameters minimises, over the observed entries `Omega` only,
//!
//! ```text
//! f = sum over (i,j,k) in Omega of loss(x_ijk, m_ijk) + sum over blocks b of reg_b |theta_b|^2
//! ```
//!
//! with entries measured in the unit in which their root mean square is one, and is judged on entries
//! that it has not seen.  Models are expressions of one tensor and dense
//! blocks ([`network`]): CP, Tucker and tensor train.  All of them, and every loss, are fitted by
//! [`config::Algorithm::Adam`] and [`config::Algorithm::Lbfgs`] on the full gradient; least squares
//! also by alternation over the blocks, CP by coordinate descent and by stochastic steps.
//!
//! The work over the entries is contractions that [`decompose_core`] schedules: the model's values
//! at the entries (TTTP) and gradients (MTTKRP and its kin).  Row-wise normal equations and stochastic
//! steps are compiled loops of its `runtime`.
//!
//! Sources: Hong, Kolda, Duersch, "Generalized canonical polyadic tensor decomposition", SIAM
//! Review 62, 2020 (losses, gradients); Smith, Park, Karypis, "An exploration of optimization
//! algorithms for high performance tensor completion", SC 2016 (ALS, CCD++, SGD for tensors).

mod adam;
mod algorithm;
mod als;
mod baseline;
mod biases;
mod ccd;
mod checkpoint;
mod choose_ridge;
pub mod config;
mod conjugate_gradients;
mod data;
mod entries;
mod fit;
mod kernel;
mod lbfgs;
pub mod loss;
mod mean;
mod memory;
mod method;
pub mod metrics;
pub mod network;
mod objective;
pub mod outcome;
mod problem;
mod quality;
mod rank;
mod recommend;
mod rounds;
mod rows;
mod run;
mod scaling;
mod solve;
pub mod split;
mod start;
mod stochastic;
mod stop;

pub use baseline::{Baseline, baselines};
pub use checkpoint::{check_identity, saved_history, write_identity};
pub use config::{Algorithm, Biases, CompleteConfig, ModelKind, Reg, Start};
pub use data::Data;
pub use decompose_common::SolverError;
pub use decompose_common::stopping::StopReason;
pub use entries::values_at;
pub use loss::{Loss, Range};
pub use mean::root_mean_square;
pub use memory::fit_bytes;
pub use metrics::{Scores, six_digits};
pub use network::Network;
pub use objective::{Needs, Objective};
pub use outcome::{CompleteOutcome, EpochRecord, Observer, StartReport};
pub use quality::{BitQuality, Quality};
pub use rank::{RankFit, RankRow};
pub use recommend::{Recommendation, STABLE, recommend};
pub use solve::solve;
pub use split::{Parts, Share, SplitRule, overlap, split, with_zeros};
pub use stop::Patience;
