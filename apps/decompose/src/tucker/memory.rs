//! The memory of a run beside what all solvers need, and the plan that fits.

use decompose_common::memory::search;
use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::Merging;
use decompose_formats::dense::matrix_bytes;
use decompose_formats::{Coo, Value};
use decompose_tucker::{
    PlanRequest, Target, Truncation, TuckerPlan, core_bytes, plan as plan_tucker, whole_bytes,
    working_bytes,
};

use crate::failure::Failure;
use crate::run::memory::{Forecast, Needs, figure_bytes};
use crate::run::merges;
use crate::run::plan::{Tried, within_memory};
use crate::tucker::settings::{Floor, RanksFrom, Settings, StartFrom};

/// Returns what to do about a run that does not fit.
pub(crate) fn remedy(settings: &Settings) -> &'static str {
    match settings.ranks {
        RanksFrom::Error(_) => "raise --eps, use --precision f32 or fewer --threads",
        _ => "lower --ranks, use --precision f32 or fewer --threads",
    }
}

/// The most that dense products pack of their operands, to the end.
const PACKED: u64 = 4 << 20;

/// Ranks assumed where they are to be found.
const ASSUMED_RANK: u64 = 16;

/// Returns what a Tucker decomposition needs beside list and trees, before the plan.
pub(crate) fn needs<V: Value>(
    tensor: &Coo<V>,
    target: &Target,
    settings: &Settings,
    floor: Floor,
) -> Needs {
    let ranks = match target {
        Target::Ranks(ranks) => Some(ranks.as_slice()),
        Target::Error(_) => None,
    };
    let figures = figure_bytes(tensor.order(), settings);
    let factors =
        ranks.map_or(0, |ranks| factor_bytes::<V>(tensor.extents(), ranks, settings, floor));
    Needs { start: start_bytes(tensor, ranks, settings, floor), factors, work: 0, figures }
}

/// The factors of the start, of the best model of others, and of a HOSVD that is compared.
fn factor_bytes<V: Value>(
    extents: &[u64],
    ranks: &[usize],
    settings: &Settings,
    floor: Floor,
) -> u64 {
    let compared = floor == Floor::Hosvd;
    let models = 1 + u64::from(settings.restarts > 1 || compared) + u64::from(compared);
    let modes = extents.iter().zip(ranks);
    let modes = modes.map(|(&extent, &rank)| matrix_bytes(extent, rank, V::BYTES));
    modes.fold(0_u64, u64::saturating_add).saturating_mul(models)
}

/// The upper levels of a tree, the copy of a sort, the matrices of the iteration.
fn start_bytes<V: Value>(
    tensor: &Coo<V>,
    ranks: Option<&[usize]>,
    settings: &Settings,
    floor: Floor,
) -> u64 {
    let truncation = match settings.start {
        StartFrom::Hosvd(truncation) => truncation,
        _ if floor == Floor::Hosvd => Truncation::AtOnce,
        _ => return 0,
    };
    let nnz = tensor.nnz() as u64;
    let working = tensor.extents().iter().enumerate().map(|(mode, &extent)| {
        let rank = ranks.and_then(|ranks| ranks.get(mode)).map_or(ASSUMED_RANK, |&r| r as u64);
        working_bytes(extent, rank.min(extent))
    });
    let tree = nnz * (8 * tensor.order() + V::BYTES) as u64;
    let matrices = working.max().unwrap_or(0);
    let shrunk = match truncation {
        Truncation::AtOnce => 0,
        Truncation::Sequential => shrunk_bytes(tensor, ranks),
    };
    tree.saturating_add(matrices.max(tensor.sort_bytes(None))).saturating_add(shrunk)
}

/// The tensor after the first truncation: a fibre at each index of the other modes at most.
fn shrunk_bytes<V: Value>(tensor: &Coo<V>, ranks: Option<&[usize]>) -> u64 {
    let others = tensor.extents()[1..].iter().fold(1_u64, |cells, &e| cells.saturating_mul(e));
    let fibres = others.min(tensor.nnz() as u64);
    let rank = ranks.and_then(|ranks| ranks.first()).map_or(ASSUMED_RANK, |&rank| rank as u64);
    let entry = (8 * tensor.order() + V::BYTES + 16) as u64;
    fibres.saturating_mul(rank).saturating_mul(entry)
}

/// Checks that the factors and the core, whose ranks are known before there is a plan, fit: to plan the kernels of a core
/// that does not may take minutes.
///
/// # Errors
///
/// The numbers of the smallest run.
pub(crate) fn check_core<V: Value>(
    tensor: &Coo<V>,
    ranks: &[usize],
    before: Forecast,
    settings: &Settings,
    floor: Floor,
) -> Result<(), Failure> {
    let factors = factor_bytes::<V>(tensor.extents(), ranks, settings, floor);
    let work = core_bytes(ranks);
    let peak = before.base.saturating_add(factors).saturating_add(work);
    let least = Forecast { factors, work, peak: before.peak.max(peak), ..before };
    least.check(remedy(settings))
}

/// Plans the run; where TTMc results do not fit whole, the largest come in windows of rows, one mode
/// after another; where trees do not fit, fewer are kept.
///
/// # Errors
///
/// If nothing fits, with the numbers of the leanest plan; or if there is no plan.
pub(crate) fn plan<V: Value>(
    tensor: &Coo<V>,
    pattern: &Pattern,
    ranks: &[usize],
    before: Forecast,
    settings: &Settings,
    floor: Floor,
) -> Result<(TuckerPlan, Forecast), Failure> {
    search(tensor.order())?;
    let factors = factor_bytes::<V>(tensor.extents(), ranks, settings, floor);
    let before = Forecast { factors, ..before };
    let mut request = PlanRequest {
        extents: tensor.extents(),
        pattern,
        ranks,
        method: settings.solver(),
        value_bytes: V::BYTES,
        threads: settings.threads,
        trees: settings.trees.clone(),
        merging: settings.merging.clone(),
        memory: None,
        most_whole: None,
    };
    let try_plan = |request: &PlanRequest<'_>| -> Result<Tried<TuckerPlan>, CoreError> {
        let plan = plan_tucker(request, Machine::here())?;
        // Copies of the core, when the TTMc results are not needed any more but held; packed operands.
        let packed = plan.work_bytes.min(PACKED);
        let work = plan.work_bytes.saturating_add(packed).saturating_add(core_bytes(ranks));
        let before = Forecast { work, ..before };
        let copies = plan.side_bytes();
        let forecast = match plan.merges.is_empty() {
            true => before.with_trees(tensor, pattern, &plan.kernels.trees, copies),
            false => merges::of_ttmc(before, tensor, pattern, &plan),
        };
        Ok(Tried { bytes: plan.tree_bytes() + copies, forecast, plan })
    };
    let mut found = try_plan(&request)?;
    for bytes in whole_bytes(&request) {
        if found.forecast.fits() {
            return Ok((found.plan, found.forecast));
        }
        request.most_whole = Some(bytes.saturating_sub(1));
        found = try_plan(&request)?;
    }
    // Windows need a tree each; whole results may share one.
    for most_whole in [request.most_whole, None] {
        request.most_whole = most_whole;
        if found.forecast.fits() {
            return Ok((found.plan, found.forecast));
        }
        request.merging = Merging::Never;
        let leaner = within_memory(found.bytes, |memory| {
            request.memory = Some(memory);
            try_plan(&request)
        })?;
        found = leaner.unwrap_or(found);
    }
    found.forecast.check(remedy(settings))?;
    Ok((found.plan, found.forecast))
}
