//! The plan of a run: the order of the modes, the ranks to expect, and which trees are kept.
//!
//! Kernels are scheduled on the trees when they are asked for: see [`crate::kernels`].  The ranks of `dmrg`
//! and `svd` show as the run goes on; until then they are what the pattern lets a bond have.

use decompose_common::SolverError;
use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::kernels::mode_index;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{
    Merging, PlanOptions, Step, TreeLayout, TreePlan, Trees, plan_kernels,
};
use decompose_formats::{Coo, ModeOrder, ModeSet, PatternCounts, Value};

use crate::bonds::{self, Ordering};
use crate::config::{Method, Ranks, TtConfig};
use crate::dmrg::bytes_of_pair;
use crate::kernels::{Kernels, of_sweep, problem};
use crate::svd;

/// Sweeps over which the building of trees is spread: the default limit, whatever the limit of the
/// run, so that a run resumed with another limit keeps its plan and thereby its bits.
const PLANNED_SWEEPS: usize = 50;

/// Bonds whose rank nothing but the tensor's values bounds are taken to need no more than this.
const GUESSED_RANK: u64 = 64;

/// The order of the modes along the train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrainOrder {
    /// The order of their numbers.
    Natural,
    /// The order whose train is predicted to have the fewest numbers.
    Fewest,
    /// This one.
    Given(ModeOrder),
}

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct PlanRequest<'a> {
    /// The method and the ranks.
    pub config: &'a TtConfig,
    /// The order of the modes.
    pub order: TrainOrder,
    /// Precision and threads; how much memory trees may take.
    pub options: PlanOptions,
}

impl<'a> PlanRequest<'a> {
    /// Makes the request for a run on values of the type `V`, the modes in the order of their numbers.
    ///
    /// The planner chooses among all trees, without a limit of memory, for the threads of the current pool.
    pub fn new<V: Value>(config: &'a TtConfig) -> PlanRequest<'a> {
        let options = PlanOptions {
            rank: 0,
            value_bytes: V::BYTES,
            threads: rayon::current_num_threads(),
            memory: None,
            sweeps: PLANNED_SWEEPS,
            trees: Trees::Choose,
            merging: Merging::Never,
            panels: None,
            updates: Vec::new(),
        };
        PlanRequest { config, order: TrainOrder::Natural, options }
    }

    /// Checks the options against a tensor of `extents`, its modes numbered as in the file.
    ///
    /// Whether listed ranks fit an order that is to be found shows in [`Planner::new`].
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] with the option, its value and the remedy.
    pub fn check(&self, extents: &[u64]) -> Result<(), SolverError> {
        let order = match &self.order {
            TrainOrder::Given(order) if order.modes().len() != extents.len() => {
                return Err(SolverError::Config(format!(
                    "order {order} does not list each of the {} modes once",
                    extents.len()
                )));
            }
            TrainOrder::Given(order) => order.clone(),
            TrainOrder::Natural | TrainOrder::Fewest => ModeOrder::natural(extents.len()),
        };
        match (&self.order, &self.config.ranks) {
            (TrainOrder::Fewest, Ranks::Each(ranks)) if ranks.len() + 1 == extents.len() => Ok(()),
            _ => self.config.check(&along(&order, extents)),
        }
    }
}

/// The trees of a run with what they promise; for `svd` the tree that it walks.
#[derive(Clone, Debug)]
pub struct TtPlan {
    /// The trees, of modes in train order.
    pub trees: Vec<TreeLayout>,
    /// The kernels of a sweep as they were planned; none for `svd`.
    pub steps: Vec<Step>,
    /// Predicted bytes of the trees.
    pub tree_bytes: u64,
    /// Predicted bytes of private copies of results.
    pub side_bytes: u64,
    /// Predicted seconds of the kernels, each once; `None` for `svd`.
    pub seconds: Option<f64>,
}

/// Bytes that a run holds beside its trees, as far as its ranks are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainBytes {
    /// The cores, and those that a kernel multiplies by, padded and packed.
    pub cores: u64,
    /// What the largest step works in.
    pub work: u64,
    /// Whether ranks are guessed that only the tensor's values bound.
    pub guessed: bool,
}

/// Orders the modes of one tensor and plans its trees.
///
/// The plan is that of `decompose tt` with the same options.
///
/// # Example
///
/// ```
/// use std::ops::ControlFlow;
///
/// use decompose_core::runtime::Toolchain;
/// use decompose_formats::{Coo, PatternCounts};
/// use decompose_tt::{Method, PlanRequest, Planner, Ranks, Start, TtConfig, solve};
///
/// // The entry (i, j, k) of this 4 x 3 x 2 tensor is (i + 1) (j + 1) (k + 1): ranks of one suffice.
/// let cells = (0..24_u32).map(|cell| [cell / 6, cell / 2 % 3, cell % 2]);
/// let values: Vec<f64> = cells.clone().map(|at| at.iter().map(|&i| f64::from(i + 1)).product()).collect();
/// let coords = (0..3).map(|mode| cells.clone().map(|at| at[mode]).collect::<Vec<_>>().into());
/// let tensor = Coo::<f64>::new(vec![4, 3, 2], coords.collect(), values)?;
///
/// let config = TtConfig::new(Method::Als, Ranks::Uniform(1));
/// let request = PlanRequest::new::<f64>(&config);
/// let planner = Planner::new(&PatternCounts::of(&tensor), &request)?;
/// let plan = planner.plan(&request.options)?;
/// let tensor = tensor.permute_modes(&planner.ordering().order)?;
/// let mut kernels = planner.kernels(tensor, &plan, Toolchain::detect())?;
/// let outcome = solve(&mut kernels, Start::Random, &config, &mut |_| ControlFlow::Continue(()))?;
/// assert!(outcome.verified.relative_error < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Planner {
    /// Of modes in train order.
    counts: PatternCounts,
    pattern: Pattern,
    method: Method,
    ordering: Ordering,
    /// What each bond is expected to hold.
    expected: Vec<u64>,
    /// The ranks that kernels are planned for.
    ranks: Vec<usize>,
    guessed: bool,
}

impl Planner {
    /// Orders the modes of a tensor whose pattern has these `counts`.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] if the options do not fit the tensor.
    pub fn new(counts: &PatternCounts, request: &PlanRequest<'_>) -> Result<Planner, SolverError> {
        request.check(counts.extents())?;
        let TtConfig { method, ranks, .. } = request.config;
        let cap = match ranks {
            Ranks::Uniform(rank) => Some(*rank),
            Ranks::Each(ranks) => ranks.iter().copied().max(),
            Ranks::Error { max_rank, .. } => *max_rank,
        };
        let natural = ModeOrder::natural(counts.extents().len());
        let mut ordering = match &request.order {
            TrainOrder::Natural => bonds::predict(counts, &natural, cap),
            TrainOrder::Fewest => bonds::choose(counts, cap),
            TrainOrder::Given(order) => bonds::predict(counts, order, cap),
        };
        let counts = counts.permute_modes(&ordering.order);
        request.config.check(counts.extents())?;
        let bounded = ranks.bound().is_some();
        let most = if bounded { GUESSED_RANK } else { u64::MAX };
        let mut expected: Vec<u64> = ordering.ranks.iter().map(|&rank| rank.min(most)).collect();
        let guessed = expected != ordering.ranks;
        if !bounded {
            let largest = ranks.largest(counts.extents())?;
            ordering.ranks = largest.into_iter().map(|rank| rank as u64).collect();
            // A train by `als` has the ranks it is given, whatever the pattern lets it have.
            if *method == Method::Als {
                expected.clone_from(&ordering.ranks);
            }
        }
        let ranks = ordering.ranks.iter().map(|&rank| rank.min(most) as usize).collect();
        let modes: Vec<_> = (0..counts.extents().len()).map(mode_index).collect();
        let pattern = Pattern::of(&counts, &modes);
        Ok(Planner { counts, pattern, method: *method, ordering, expected, ranks, guessed })
    }

    /// Returns the order of the modes, the ranks asked for or predicted, and the numbers predicted.
    pub fn ordering(&self) -> &Ordering {
        &self.ordering
    }

    /// Returns the counts of the pattern, its modes in train order.
    pub fn counts(&self) -> &PatternCounts {
        &self.counts
    }

    /// Gives up the planner for its counts, which [`crate::solve_svd`] asks for.
    pub fn into_counts(self) -> PatternCounts {
        self.counts
    }

    /// Returns the counts as a planner names them, from which the memory of trees follows.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Plans the trees.  The options may differ from those of the request in memory, trees and threads.
    ///
    /// # Errors
    ///
    /// [`CoreError::Memory`] if nothing keeps the limit; [`CoreError::NoSchedule`].
    pub fn plan(&self, options: &PlanOptions) -> Result<TtPlan, CoreError> {
        let (extents, order) = (self.counts.extents(), self.counts.extents().len());
        if self.method == Method::Svd {
            let tree = TreeLayout::new(svd::tree_order(order), 1);
            let tree_bytes = tree.bytes(extents, &self.pattern, options.value_bytes);
            let (trees, steps) = (vec![tree], Vec::new());
            return Ok(TtPlan { trees, steps, tree_bytes, side_bytes: 0, seconds: None });
        }
        let pose = |left_out| {
            let posed = problem(left_out, &self.counts, &self.ranks, options.value_bytes);
            posed.map(|(problem, _)| problem)
        };
        let kernels = of_sweep(self.method, order).into_iter();
        let problems = kernels.map(pose).collect::<Result<Vec<_>, _>>()?;
        let plan = plan_kernels(extents, &problems, options, Machine::here())?;
        let seconds = Some(plan.seconds());
        let TreePlan { trees, steps, tree_bytes, side_bytes, .. } = plan;
        Ok(TtPlan { trees, steps, tree_bytes, side_bytes, seconds })
    }

    /// Builds the trees of `plan` from `tensor`, whose modes are in train order, and for `als`, whose ranks are
    /// known, the kernels.
    ///
    /// # Errors
    ///
    /// As [`Kernels::build`] and [`Kernels::prepare`].
    pub fn kernels<V: Value>(
        self,
        tensor: Coo<V>,
        plan: &TtPlan,
        toolchain: Toolchain,
    ) -> Result<Kernels<V>, CoreError> {
        let sweep = of_sweep(self.method, tensor.order());
        let mut kernels = Kernels::build(tensor, &plan.trees, self.counts, toolchain)?;
        if self.method == Method::Als {
            kernels.prepare(&sweep, &self.ranks)?;
        }
        Ok(kernels)
    }

    /// Predicts what a run with values of `value_bytes` holds beside its trees; saturates.
    pub fn train_bytes(&self, value_bytes: usize) -> TrainBytes {
        let extents = self.counts.extents();
        let ends = [&[1], self.expected.as_slice(), &[1]].concat();
        let core = |k: usize| ends[k].saturating_mul(extents[k]).saturating_mul(ends[k + 1]);
        let (all, bonds) = (0..extents.len(), 0..extents.len() - 1);
        let numbers = all.clone().map(core).fold(0, u64::saturating_add);
        let work = match self.method {
            // An environment as it is computed and unpacked, or a core made orthogonal.
            Method::Als => all.map(|k| core(k).saturating_mul(32)).max(),
            Method::Dmrg => bonds.map(|k| self.pair_bytes(k, &ends)).max(),
            Method::Svd => bonds.map(|k| self.unfolding_bytes(k, &ends)).max(),
        };
        let packed = if self.method == Method::Svd { 0 } else { 2 * value_bytes as u64 };
        let cores = numbers.saturating_mul(8 + packed);
        TrainBytes { cores, work: work.unwrap_or(0), guessed: self.guessed }
    }

    /// Bytes of a step of `dmrg` at the bond behind core `k`.
    fn pair_bytes(&self, k: usize, ends: &[u64]) -> u64 {
        let extents = self.counts.extents();
        let (rows, columns) = (ends[k].saturating_mul(extents[k]), extents[k + 1]);
        bytes_of_pair(rows, columns.saturating_mul(ends[k + 2]), ends[k + 1])
    }

    /// Bytes of a step of `svd` at the bond behind core `k`: the payloads of two levels of the tree, and the dense
    /// matrices of the unfolding between them.
    fn unfolding_bytes(&self, k: usize, ends: &[u64]) -> u64 {
        let order = self.counts.extents().len();
        let count = |modes: &[usize]| self.counts.count(ModeSet::of(modes)).value;
        let nodes = |k: usize| count(&(k..order).collect::<Vec<_>>());
        let payloads = nodes(k).saturating_mul(ends[k]);
        let payloads = payloads.saturating_add(nodes(k + 1).saturating_mul(ends[k + 1]));
        // Coordinates that do not occur have no rows.
        let rows = ends[k].saturating_mul(count(&[k]));
        svd::matrix_bytes(rows, nodes(k + 1)).saturating_add(payloads.saturating_mul(8))
    }
}

/// Returns `extents` in train order.
fn along(order: &ModeOrder, extents: &[u64]) -> Vec<u64> {
    order.modes().iter().map(|&mode| extents[mode]).collect()
}
