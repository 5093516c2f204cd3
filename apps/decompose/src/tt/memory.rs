//! The memory of a run beside what all solvers need, and the trees that fit.

use decompose_common::memory::foresee;
use decompose_core::sweep::{Merging, PlanOptions, TreeLayout, Trees};
use decompose_formats::{Coo, ModeSet, PatternCounts, Value};
use decompose_tt::bonds::Ordering;
use decompose_tt::{Method, bytes_of_pair, kernels, svd};

use crate::failure::Failure;
use crate::pattern;
use crate::run::memory::{Forecast, Needs, figure_bytes};
use crate::run::plan::{Tried, fitting};
use crate::tt::settings::Settings;

/// What to do about a run that does not fit.
pub(crate) const REMEDY: &str =
    "lower --ranks or --max-rank, use --method als, use --precision f32";

/// Sweeps over which the building of trees is spread: the default limit, whatever the limit of the
/// run, so that a run resumed with another limit keeps its plan and thereby its bits.
const PLANNED_SWEEPS: usize = 50;

/// Bonds whose rank nothing but the tensor's values bounds are taken to need no more than this.
const GUESSED_RANK: u64 = 64;

/// The trees of a run with what they promise.
pub(crate) struct Planned {
    pub(crate) trees: Vec<TreeLayout>,
    pub(crate) forecast: Forecast,
    /// Predicted seconds of the kernels of a sweep, each once; `None` for `svd`.
    pub(crate) seconds: Option<f64>,
}

/// Returns what is needed beside list and trees by a train with `ordering` of the ranks `ranks`.
fn needs<V: Value>(
    tensor: &Coo<V>,
    counts: &PatternCounts,
    (ordering, ranks): (&Ordering, &[u64]),
    settings: &Settings,
) -> Needs {
    let ends = [&[1], ranks, &[1]].concat();
    let extent = |k: usize| tensor.extents()[ordering.order.modes()[k]];
    let core = |k: usize| ends[k].saturating_mul(extent(k)).saturating_mul(ends[k + 1]);
    let order = tensor.order();
    let cores = (0..order).map(core).fold(0, u64::saturating_add);
    let largest = (0..order).map(core).max().unwrap_or(0);
    let value = V::BYTES as u64;
    let work = match settings.config.method {
        // An environment as it is computed and unpacked, or a core made orthogonal.
        Method::Als => largest.saturating_mul(32),
        Method::Dmrg => {
            let pair = |k: usize| {
                let (left, right) = (ends[k].saturating_mul(extent(k)), extent(k + 1));
                bytes_of_pair(left, right.saturating_mul(ends[k + 2]), ends[k + 1])
            };
            (0..order - 1).map(pair).max().unwrap_or(0)
        }
        // Payloads of two levels of the tree, and the dense matrices of the unfolding between them.
        Method::Svd => {
            let modes = ordering.order.modes();
            let nodes = |k: usize| counts.count(ModeSet::of(&modes[k..])).value;
            let step = |k: usize| {
                let payloads = nodes(k).saturating_mul(ends[k]);
                let payloads = payloads.saturating_add(nodes(k + 1).saturating_mul(ends[k + 1]));
                // Coordinates that do not occur have no rows.
                let used = counts.count(ModeSet::of(&modes[k..=k])).value;
                let matrices = svd::matrix_bytes(ends[k].saturating_mul(used), nodes(k + 1));
                matrices.saturating_add(payloads.saturating_mul(8))
            };
            (0..order - 1).map(step).max().unwrap_or(0)
        }
    };
    let figures = figure_bytes(order, settings);
    // The cores, and those that a kernel multiplies by, padded and packed.
    let packed = if settings.config.method == Method::Svd { 0 } else { 2 * value };
    Needs { start: 0, factors: cores.saturating_mul(8 + packed), work, figures }
}

/// Adds what a train with `ordering` needs beside list and trees.
///
/// Ranks that a bound on the error decides are guessed; each step is foreseen when those before it are known.
pub(crate) fn with_needs<V: Value>(
    before: Forecast,
    tensor: &Coo<V>,
    counts: &PatternCounts,
    (ordering, settings): (&Ordering, &Settings),
) -> Forecast {
    let ranks: Vec<u64> = guessed(ordering, settings).iter().map(|&rank| rank as u64).collect();
    let guessed = ranks != ordering.ranks;
    let Needs { factors, work, figures, .. } = needs(tensor, counts, (ordering, &ranks), settings);
    let matrices = factors.saturating_add(figures.max(work));
    let peak = before.peak.max(before.base.saturating_add(matrices));
    Forecast { factors, work, figures, peak, guessed, ..before }
}

/// Foresees what the solver holds throughout, the trees being built: the train, and private copies.
///
/// # Errors
///
/// The numbers, if it does not fit.
pub(crate) fn solve(planned: &Planned, settings: &Settings) -> Result<(), Failure> {
    let Forecast { factors, copies, .. } = planned.forecast;
    // Trains whose ranks are not known grow step by step.
    let held = match settings.config.method {
        Method::Als => factors.saturating_add(copies),
        Method::Dmrg | Method::Svd => 0,
    };
    Ok(foresee(held, || "the train and private copies of results".into(), REMEDY)?)
}

/// Plans the trees of the tensor, its modes in train order, by [`fitting`].
///
/// # Errors
///
/// If nothing fits, with the numbers of the best plan.
pub(crate) fn plan<V: Value>(
    tensor: &Coo<V>,
    counts: &PatternCounts,
    before: Forecast,
    (ordering, settings): (&Ordering, &Settings),
) -> Result<Planned, Failure> {
    let pattern = pattern::of(counts);
    if settings.config.method == Method::Svd {
        let trees = vec![TreeLayout::new(svd::tree_order(tensor.order()), 1)];
        let forecast = before.with_trees(tensor, &pattern, &trees, 0);
        forecast.check(REMEDY)?;
        return Ok(Planned { trees, forecast, seconds: None });
    }
    let options = PlanOptions {
        rank: 0,
        value_bytes: V::BYTES,
        threads: settings.threads,
        memory: None,
        sweeps: PLANNED_SWEEPS,
        trees: Trees::Choose,
        merging: Merging::Never,
        panels: None,
        updates: Vec::new(),
    };
    let ranks = guessed(ordering, settings);
    let sweep = kernels::of_sweep(settings.config.method, tensor.order());
    let found = fitting(tensor.order(), options, REMEDY, |options| {
        let plan = kernels::plan(counts, &sweep, &ranks, options)?;
        let forecast = before.with_trees(tensor, &pattern, &plan.trees, plan.side_bytes);
        Ok(Tried { bytes: plan.tree_bytes + plan.side_bytes, forecast, plan })
    })?;
    let Tried { plan, forecast, .. } = found;
    Ok(Planned { seconds: Some(plan.seconds()), trees: plan.trees, forecast })
}

/// Returns the ranks that are planned for: those asked for, or the predicted ones.
pub(crate) fn guessed(ordering: &Ordering, settings: &Settings) -> Vec<usize> {
    let most = match settings.config.ranks.bound() {
        Some(_) => GUESSED_RANK,
        None => u64::MAX,
    };
    ordering.ranks.iter().map(|&rank| rank.min(most) as usize).collect()
}
