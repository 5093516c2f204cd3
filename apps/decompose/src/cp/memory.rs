//! The memory of a run beside what all solvers need, and the plan that fits.

use decompose_common::memory::{foresee, search};
use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{self, Merging, PlanOptions, SweepPlan, TreeLayout, Trees};
use decompose_cp::square_bytes;
use decompose_formats::dense::matrix_bytes;
use decompose_formats::{Coo, ModeOrder, PatternCounts, Value};

use crate::cp::args::Init;
use crate::cp::settings::{Settings, StartFrom};
use crate::failure::Failure;
use crate::pattern;
use crate::run::memory::{Forecast, Needs, figure_bytes};
use crate::run::merges;
use crate::run::plan::{Tried, within_memory};

/// What to do about a run that does not fit.
pub(crate) const REMEDY: &str = "lower --rank, use --precision f32, keep fewer trees with --trees";

/// Columns that `nvecs` iterates beyond the rank, and its matrices.
const NVECS_COLUMNS: u64 = 10;
const NVECS_MATRICES: u64 = 3;

/// Sweeps over which the building of trees is spread: the default limit, whatever the limit of the
/// run, so that a run resumed with another limit keeps its plan and thereby its bits.
const PLANNED_SWEEPS: usize = 50;

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

/// Plans the sweep; where the best plan does not fit, ever leaner ones, and last a single tree in
/// the order of the list, which needs no sorting.
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
    search(tensor.order())?;
    let techniques = settings.techniques;
    let rows = (settings.config.rank, V::BYTES);
    let mut pattern = pattern::of_sweep(counts, rows, (&settings.trees, techniques));
    let mut options = PlanOptions {
        rank: settings.config.rank,
        value_bytes: V::BYTES,
        threads: settings.threads,
        memory: None,
        sweeps: PLANNED_SWEEPS,
        trees: settings.trees.clone(),
        merging: settings.merging.clone(),
        panels: None,
        updates: settings.config.modes(tensor.order()),
    };
    let mut try_plan = |options: &PlanOptions| -> Result<(SweepPlan, Forecast), CoreError> {
        let (source, machine) = ((tensor, counts), Machine::here());
        let plan = sweep::plan_counted(source, &mut pattern, options, techniques, machine)?;
        let forecast = forecast(before, tensor, &pattern, &plan);
        Ok((plan, forecast))
    };
    let best = try_plan(&options)?;
    if best.1.fits() {
        return Ok(best);
    }
    let bytes = |plan: &SweepPlan| plan.tree_bytes() + plan.side_bytes();
    let leaner = within_memory(bytes(&best.0), |memory| {
        options.memory = Some(memory);
        let found = try_plan(&options)?;
        Ok(Tried { bytes: bytes(&found.0), fits: found.1.fits(), plan: found })
    })?;
    let found = match leaner {
        None if options.trees == Trees::Choose => {
            let plain = TreeLayout::new(ModeOrder::natural(tensor.order()), 1);
            let (trees, merging) = (Trees::Given(vec![plain]), Merging::Never);
            Some(try_plan(&PlanOptions { trees, merging, memory: None, ..options })?)
        }
        leaner => leaner,
    };
    let fitting = found.filter(|found| found.1.fits());
    fitting.ok_or_else(|| best.1.refusal(REMEDY))
}

fn forecast<V: Value>(
    before: Forecast,
    tensor: &Coo<V>,
    pattern: &Pattern,
    plan: &SweepPlan,
) -> Forecast {
    match plan.merges.is_empty() {
        true => before.with_trees(tensor, pattern, &plan.kernels.trees, plan.side_bytes()),
        false => merges::of_sweep(before, tensor, (pattern, plan)),
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
    match settings.config.checkpoint {
        Some(_) if in_panels => matrix_bytes(longest, rank, V::BYTES),
        _ => 0,
    }
}

/// A copy of the list, sorted, with the matrices of the iteration.
fn start_bytes<V: Value>(tensor: &Coo<V>, settings: &Settings) -> u64 {
    if settings.start != StartFrom::Init(Init::Nvecs) {
        return 0;
    }
    let indices: u64 = (0..tensor.order()).map(|mode| tensor.coords(mode).bytes()).sum();
    let list = indices + (tensor.nnz() * V::BYTES) as u64;
    let longest = tensor.extents().iter().copied().max().unwrap_or(0);
    let columns = (settings.config.rank as u64).saturating_add(NVECS_COLUMNS);
    let matrices = longest.saturating_mul(columns).saturating_mul(8 * NVECS_MATRICES);
    // Upper levels of the tree: about half the list.
    list.saturating_add(tensor.sort_bytes(None).max(matrices.saturating_add(list / 2)))
}
