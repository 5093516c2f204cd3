//! The plan of a sweep: which trees are kept, which modes are merged, how each MTTKRP runs.
//!
//! Trees may be stored in blocks, so that the rows of factors that a block touches stay in cache.  How many
//! fibres lie in the blocks is estimated first, and counted for the blocks of the trees that are chosen:
//! see [`decompose_core::sweep::plan_counted`].

use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::kernels::mode_index;
use decompose_core::optimisation::{Optimisation, Optimisations};
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{
    Merging, PlanOptions, SweepPlan, Trees, blockings, estimate_blocks, panel_columns, plan_counted,
};
use decompose_formats::dense::padded;
use decompose_formats::{Coo, PatternCounts, Value};

use crate::config::CpConfig;

/// Sweeps over which the building of trees is spread: the default limit, whatever the limit of the
/// run, so that a run resumed with another limit keeps its plan and thereby its bits.
const PLANNED_SWEEPS: usize = 50;

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// Rank, precision, threads and updates; which trees and merges, and how much memory they may take.
    pub options: PlanOptions,
    /// What plans make use of.
    pub optimisations: Optimisations,
}

impl PlanRequest {
    /// Makes the request for a run on a tensor of `order` modes with values of the type `V`.
    ///
    /// The planner chooses among all trees and merges, without a limit of memory, for the threads of the
    /// current pool.
    pub fn new<V: Value>(config: &CpConfig, order: usize) -> PlanRequest {
        let options = PlanOptions {
            rank: config.rank,
            value_bytes: V::BYTES,
            threads: rayon::current_num_threads(),
            memory: None,
            sweeps: PLANNED_SWEEPS,
            trees: Trees::Choose,
            merging: Merging::Choose,
            panels: None,
            updates: config.modes(order),
        };
        PlanRequest { options, optimisations: Optimisations::default() }
    }
}

/// Plans sweeps of one tensor, and keeps what it counts from one plan to the next.
pub struct Planner<'a, V: Value> {
    tensor: &'a Coo<V>,
    counts: &'a PatternCounts,
    pattern: Pattern,
    optimisations: Optimisations,
}

impl<'a, V: Value> Planner<'a, V> {
    /// Makes a planner of `tensor`, whose pattern has these `counts`.
    ///
    /// The blocks of trees are estimated: of given trees theirs, else those worth considering.
    pub fn new(
        tensor: &'a Coo<V>,
        counts: &'a PatternCounts,
        request: &PlanRequest,
    ) -> Planner<'a, V> {
        let PlanRequest { options, optimisations } = request;
        let modes: Vec<_> = (0..tensor.order()).map(mode_index).collect();
        let mut pattern = Pattern::of(counts, &modes);
        // Blocks are sized for the rows of panels, which are planned wherever rows are long.
        let columns = match optimisations.has(Optimisation::Panels) {
            true => panel_columns(options.rank, options.value_bytes),
            false => options.rank,
        };
        let row_bytes = padded(columns, options.value_bytes) * options.value_bytes;
        let blocks = match &options.trees {
            Trees::Given(trees) => trees.iter().filter_map(|tree| tree.blocks.clone()).collect(),
            Trees::Choose if optimisations.has(Optimisation::Blocks) => {
                blockings(counts, row_bytes as u64, Machine::here())
            }
            _ => Vec::new(),
        };
        estimate_blocks(&mut pattern, counts.extents(), blocks);
        Planner { tensor, counts, pattern, optimisations: *optimisations }
    }

    /// Plans a sweep.  The options may differ from those of the planner in trees, merges, memory and threads.
    ///
    /// # Errors
    ///
    /// [`CoreError::Memory`] if nothing keeps the limit; [`CoreError::NoSchedule`].
    pub fn plan(&mut self, options: &PlanOptions) -> Result<SweepPlan, CoreError> {
        let (tensor, counts) = (self.tensor, self.counts);
        plan_counted(
            tensor,
            counts,
            &mut self.pattern,
            options,
            self.optimisations,
            Machine::here(),
        )
    }

    /// Returns the counts and estimates of the pattern, from which the memory of trees follows.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }
}

/// Plans the sweeps of a run on `tensor`, which is sorted and without duplicates.
///
/// The plan is that of `decompose cp` with the same options.
///
/// # Errors
///
/// Those of [`Planner::plan`].
///
/// # Example
///
/// ```
/// use std::ops::ControlFlow;
///
/// use decompose_core::runtime::Toolchain;
/// use decompose_core::sweep::Engine;
/// use decompose_cp::{CpConfig, Start, plan, solve};
/// use decompose_formats::Coo;
///
/// // The entry (i, j, k) of this 4 x 3 x 2 tensor of rank one is (i + 1) (j + 1) (k + 1).
/// let cells = (0..24_u32).map(|cell| [cell / 6, cell / 2 % 3, cell % 2]);
/// let values: Vec<f64> = cells.clone().map(|at| at.iter().map(|&i| f64::from(i + 1)).product()).collect();
/// let coords = (0..3).map(|mode| cells.clone().map(|at| at[mode]).collect::<Vec<_>>().into());
/// let tensor = Coo::<f64>::new(vec![4, 3, 2], coords.collect(), values)?;
///
/// let config = CpConfig::new(1);
/// let plan = plan(&tensor, &config)?;
/// let (mut engine, _) = Engine::build(tensor, &plan, &Toolchain::detect())?;
/// let outcome = solve(&mut engine, Start::Random, &config, &mut |_| ControlFlow::Continue(()))?;
/// assert!(outcome.best().fit > 0.999_999);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan<V: Value>(tensor: &Coo<V>, config: &CpConfig) -> Result<SweepPlan, CoreError> {
    let request = PlanRequest::new::<V>(config, tensor.order());
    let counts = PatternCounts::of(tensor);
    Planner::new(tensor, &counts, &request).plan(&request.options)
}
