//! Tensor trains of sparse tensors.
//!
//! A tensor `X` of `I_1 x ... x I_N` is approximated by a chain of small matrices, one for each
//! coordinate:
//!
//! ```text
//! T(i_1, .., i_N) = G_1[:, i_1, :] G_2[:, i_2, :] ... G_N[:, i_N, :]      G_k: r_(k-1) x I_k x r_k
//! ```
//!
//! which takes `sum r_(k-1) I_k r_k` numbers.  Three methods find one:
//!
//! * `als` ([`solve`]): one core at a time, ranks given; each update is one TTTc over the
//!   non-zeros and one QR;
//! * `dmrg` ([`solve`]): two neighbouring cores at a time, ranks adapted to a bound on the error;
//! * `svd` ([`solve_svd`]): TT-SVD on the columns of the unfoldings that are not empty; no start
//!   and no iteration, the error quasi-optimal.
//!
//! The error is measured afterwards in each case ([`verify()`]).  Modes are numbered in *train
//! order* throughout this crate, [`plan`] excepted: whoever wants another order of the cores renumbers the modes of
//! the tensor ([`decompose_formats::Coo::permute_modes`]); the [`Planner`] proposes one, and the trees to keep.
//!
//! Sources: Oseledets, "Tensor-Train Decomposition", SIAM J. Sci. Comput. 33, 2011; Holtz,
//! Rohwedder, Schneider, SIAM J. Sci. Comput. 34, 2012; Li, Yu, Batselier, J. Comput. Appl. Math.
//! 405, 2022.  TTTc: Kanakagiri, Solomonik, SPAA 2024.

mod als;
pub mod bonds;
mod checkpoint;
pub mod config;
mod dmrg;
pub mod kernels;
pub mod outcome;
pub mod plan;
mod solve;
mod spectrum;
mod state;
pub mod svd;
pub mod train;
pub mod verify;

pub use checkpoint::saved_history;
pub use config::{Method, Ranks, Start, TtConfig};
pub use decompose_common::SolverError;
pub use kernels::{BondSizes, KernelNote, Kernels, LeftOut};
pub use outcome::TtOutcome;
pub use plan::{PlanRequest, Planner, TrainBytes, TrainOrder, TtPlan};
pub use solve::{check_start, history_layout, solve, solve_svd};
pub use train::{Bond, Cut, Rounding, Train};
pub use verify::{Measured, Verified, verify};
