//! The memory of a run beside what all solvers need, and the plan that fits.

use decompose_common::memory::foresee;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{self, SweepPlan};
use decompose_cp::{PlanRequest, Planner, square_bytes};
use decompose_formats::dense::matrix_bytes;
use decompose_formats::{Coo, PatternCounts, Value};

use crate::cp::args::Init;
use crate::cp::settings::{Settings, StartFrom};
use crate::failure::Failure;
use crate::run::memory::{Forecast, Needs, figure_bytes};
use crate::run::merges;
use crate::run::plan::{Tried, fitting};

/// What to do about a run that does not fit.
pub(crate) const REMEDY: &str = "lower --rank, use --precision f32, keep fewer trees with --trees";

/// Columns that `nvecs` iterates beyond the rank, and its matrices.
const NVECS_COLUMNS: u64 = 10;
const NVECS_MATRICES: u64 = 3;

/// Returns what CP-ALS needs beside list and trees.
pub(crate) fn needs<V: Value>(tensor: &Coo<V>, settings: &Settings) -> Needs {
    Needs {
        start: start_bytes(tensor, settings),
        factors: factor_bytes::<V>(tensor.extents(), settings),
        work: checkpoint_bytes::<V>(tensor.extents(), settings).saturating_add(square_bytes(
            tensor.extents(),
            settings.config.rank,
            &settings.config,
            settings.threads,
        )),
        figures: figure_bytes(tensor.order(), settings),
    }
}

/// Foresees the making of a start.
///
/// # Errors
///
/// The numbers, if it does not fit.
pub(crate) fn start(forecast: &Forecast) -> Result<(), Failure> {
    Ok(foresee(forecast.start, || "the start by leading vectors".into(), REMEDY)?)
}

/// Plans the sweep by [`fitting`].
///
/// # Errors
///
/// If nothing fits, with the numbers of the best plan; or if there is no plan.
pub(crate) fn plan<V: Value>(
    tensor: &Coo<V>,
    counts: &PatternCounts,
    before: Forecast,
    settings: &Settings,
) -> Result<(SweepPlan, Forecast), Failure> {
    let mut request = PlanRequest::new::<V>(&settings.config, tensor.order());
    request.optimisations = settings.optimisations;
    request.options.threads = settings.threads;
    request.options.trees = settings.trees.clone();
    request.options.merging = settings.merging.clone();
    let mut planner = Planner::new(tensor, counts, &request);
    let found = fitting(tensor.order(), request.options, REMEDY, |options| {
        let plan = planner.plan(options)?;
        let forecast = forecast(before, tensor, planner.pattern(), &plan);
        Ok(Tried { bytes: plan.tree_bytes() + plan.side_bytes(), forecast, plan })
    })?;
    Ok((found.plan, found.forecast))
}

fn forecast<V: Value>(
    before: Forecast,
    tensor: &Coo<V>,
    pattern: &Pattern,
    plan: &SweepPlan,
) -> Forecast {
    match plan.merges.is_empty() {
        true => before.with_trees(tensor, pattern, &plan.kernels.trees, plan.side_bytes()),
        false => merges::of_sweep(before, tensor, pattern, plan),
    }
}

fn factor_bytes<V: Value>(extents: &[u64], settings: &Settings) -> u64 {
    let config = &settings.config;
    let matrix = |rows: u64| matrix_bytes(rows, config.rank, V::BYTES);
    let model = extents.iter().map(|&extent| matrix(extent)).fold(0, u64::saturating_add);
    let nonneg = extents.iter().enumerate().filter(|(mode, _)| config.nonneg.contains(*mode));
    let scratch = nonneg.map(|(_, &extent)| extent).max().unwrap_or(0);
    model.saturating_mul(config.restarts as u64).saturating_add(matrix(scratch))
}

/// A checkpoint of factors that may be stored in panels makes one of them whole.
fn checkpoint_bytes<V: Value>(extents: &[u64], settings: &Settings) -> u64 {
    let longest = extents.iter().copied().max().unwrap_or(0);
    let rank = settings.config.rank;
    let in_panels = sweep::panel_columns(rank, V::BYTES) < rank;
    match settings.checkpoint_every {
        Some(_) if in_panels => matrix_bytes(longest, rank, V::BYTES),
        _ => 0,
    }
}

/// A copy of the list, sorted, with the matrices of the iteration.
fn start_bytes<V: Value>(tensor: &Coo<V>, settings: &Settings) -> u64 {
    if settings.start != StartFrom::Init(Init::Nvecs) {
        return 0;
    }
    let list = tensor.bytes();
    let longest = tensor.extents().iter().copied().max().unwrap_or(0);
    let columns = (settings.config.rank as u64).saturating_add(NVECS_COLUMNS);
    let matrices = longest.saturating_mul(columns).saturating_mul(8 * NVECS_MATRICES);
    // Upper levels of the tree: about half the list.
    list.saturating_add(tensor.sort_bytes(None).max(matrices.saturating_add(list / 2)))
}
