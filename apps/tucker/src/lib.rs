#![doc = include_str!("../README.md")]

mod arrange;
mod checkpoint;
pub mod config;
mod dense;
pub mod engine;
mod fit;
mod hooi;
pub mod hosvd;
mod nonneg;
pub mod outcome;
pub mod plan;
mod rows;
mod solve;
mod state;
mod steps;
mod subspace;

pub use checkpoint::{saved_history, saved_ranks};
pub use config::{Method, Start, TuckerConfig, check_order, check_ranks};
pub use decompose_common::SolverError;
pub use decompose_common::checkpoint::CheckpointRule;
pub use decompose_common::history::{IterationRecord, Observer};
pub use decompose_common::model::TuckerModel;
pub use decompose_common::restarts::RestartReport;
pub use decompose_common::stopping::{StopReason, StopRule};
pub use dense::{core_bytes, slice_norms};
pub use engine::Engine;
pub use hosvd::{Hosvd, Target, Truncation, Unfolding, hosvd, working_bytes};
pub use outcome::TuckerOutcome;
pub use plan::{Forming, PlanRequest, TuckerPlan, plan, whole_bytes};
pub use solve::{
    check_start, history_layout, is_compared, may_end_below_hosvd, solve, solve_above,
};
pub use steps::Role;
