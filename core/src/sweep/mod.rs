//! The kernels of one solver sweep, planned together.
//!
//! A sweep of CP-ALS needs one MTTKRP a mode.  [`plan`] decides which modes are merged so that
//! kernels share work, which trees (CSF mode orders) to keep and which kernel runs on which tree;
//! [`Engine`] builds the trees, compiles the kernels meanwhile, and runs them.  Kernels of other solvers
//! are planned by [`plan_kernels`], and those of a Tucker sweep may share work too: [`plan_ttmc_merges`].

mod alternatives;
mod blocked;
mod budget;
mod engine;
mod entries;
mod kernels;
mod layout;
mod limited;
mod mode_groups;
mod mttkrp_merges;
mod options;
mod panels;
mod partitions;
mod problems;
mod prune;
mod select_trees;
mod table;
mod tree_plan;
mod trees;
mod ttmc_merges;

use decompose_formats::{Coo, Panels, Value};

use crate::error::CoreError;

pub use alternatives::Alternative;
pub use blocked::{blockings, count_blocks, estimate_blocks};
pub use engine::Engine;
pub use entries::{Tuples, entries_of};
pub use kernels::BuildReport;
pub(crate) use kernels::{executors, timed};
pub use layout::TreeLayout;
pub use limited::{plan_counted, plan_limited};
pub use mttkrp_merges::{Merge, SweepPlan};
pub use options::{Merging, PlanOptions, Trees};
pub use panels::{panel_columns, plan};
pub use problems::posed;
pub use tree_plan::{Step, TreePlan};
pub use trees::{SearchedKernels, plan_kernels};
pub use ttmc_merges::{TtmcMerge, TtmcSweep, plan_ttmc_merges};

/// The MTTKRPs of one sparse tensor, one a mode: all that CP-ALS needs to know of the non-zeros.
pub trait MttkrpSweep<V: Value>: Send {
    /// Returns the extents of the tensor, by mode.
    fn extents(&self) -> &[u64];

    /// Returns the tensor's squared Frobenius norm, summed in `f64`.
    fn norm_squared(&self) -> f64;

    /// Returns the columns of each panel in which factors of `rank` columns are stored.
    fn panels(&self, rank: usize) -> Vec<usize> {
        vec![rank]
    }

    /// Overwrites `factors[mode]` with the matricised tensor times the Khatri-Rao product of all
    /// other factors: row `i_n` becomes `sum X(i_1, ..., i_N) * prod_{m != n} factors[m][i_m, :]`.
    ///
    /// The matrix serves as the result so that no second one of that size is needed; MTTKRP never
    /// reads it.  Whoever changes another factor than the one just computed calls
    /// [`MttkrpSweep::forget`] before the next product: products of factors may be kept.
    ///
    /// # Errors
    ///
    /// If the factors do not fit the tensor and the panels.
    fn mttkrp(&mut self, mode: usize, factors: &mut [Panels<V>]) -> Result<(), CoreError>;

    /// Returns the tensor as a list again, sorted by its natural order.
    ///
    /// Time and memory of the list, and of a sort.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if there is no memory.
    fn entries(&self) -> Result<Coo<V>, CoreError>;

    /// Drops what is kept of the factors of earlier calls.
    fn forget(&mut self) {}
}
