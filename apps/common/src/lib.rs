//! What every solver of the suite shares: dense linear algebra, initial guesses, stopping rules,
//! histories, scores, checkpoints and model files.
//!
//! Notation: a tensor of order N has extents `I_1 x ... x I_N`; a CP model of rank R has weights
//! `lambda` (R numbers) and factors `A_n` (`I_n x R`).  Reductions run in `f64` whatever the
//! storage, in an order that depends on the data only: results do not depend on the number of
//! threads.

pub mod checkpoint;
pub mod error;
pub mod evaluate;
pub mod factor_match;
pub mod files;
pub mod history;
pub mod init;
pub mod interrupt;
pub mod linalg;
pub mod machine;
pub mod memory;
pub mod model;
pub mod npz;
pub mod overwrite;
pub mod printable;
pub mod progress;
pub mod residual;
pub mod restarts;
pub mod rng;
pub mod run_folder;
mod solver_error;
pub mod standing;
pub mod stopping;
pub mod strongest;
pub mod system;

pub use error::CommonError;
pub use solver_error::SolverError;
