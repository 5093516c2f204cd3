//! Canonical polyadic decomposition of sparse tensors by alternating least squares.
//!
//! A tensor `X` of `I_1 x ... x I_N` is approximated by R rank-one terms,
//!
//! ```text
//! M = sum_r lambda_r a_r^(1) o ... o a_r^(N),      A_n = [a_1^(n) ... a_R^(n)],  I_n x R
//! ```
//!
//! so that `||X - M||` is least.  With all factors but `A_n` fixed this is a linear least-squares
//! problem; [`solve`] solves one a mode, in turn, until the fit `1 - ||X - M|| / ||X||` settles:
//!
//! ```text
//! A_n <- X_(n) (A_N (.) ... (.) A_1) Y^-1,         Y = hadamard over m != n of A_m^T A_m
//! ```
//!
//! The first product, MTTKRP, is the only work over the non-zeros and comes from
//! [`decompose_core::sweep::MttkrpSweep`], planned by [`plan`].  All else is one pass over the rows of `A_n` and
//! algebra on `R x R` matrices; nothing of the size of the tensor's box is ever formed.
//!
//! Source: Kolda, Bader, "Tensor Decompositions and Applications", SIAM Review 51, 2009.
//! Conventions (normalisation, stopping, fit) are those of the Tensor Toolbox, and from the same
//! start the fits are those of pyttb's `cp_als`.  We deviate where its normal equations are
//! singular to the precision of the factors: see [`decompose_common::linalg::invert_spd`]; and where the fit's
//! formula cancels: see [`decompose_common::residual`].
//!
//! Values whose squares leave the range of doubles are divided by [`decompose_formats::Coo::unit`] first; the
//! model gets it back by [`CpModel::in_unit`].

mod als;
mod checkpoint;
pub mod config;
mod fit;
pub mod outcome;
mod plan;
mod solve;
mod state;
mod update;

pub use als::history_layout;
pub use checkpoint::saved_history;
pub use config::{CpConfig, NonNegModes, Start};
pub use decompose_common::SolverError;
pub use decompose_common::checkpoint::CheckpointRule;
pub use decompose_common::history::{IterationRecord, Observer};
pub use decompose_common::model::{Arrangement, CpModel};
pub use decompose_common::restarts::RestartReport;
pub use decompose_common::stopping::{StopReason, StopRule};
pub use outcome::{CpOutcome, GramReport};
pub use plan::{PlanRequest, Planner, plan};
pub use solve::{check_start, nvecs_start, solve, square_bytes};
