//! The plan of a run: trees, kernels, and how much of a TTMc result is formed at a time.
//!
//! The TTMc of mode `n` has `I_n x prod_{m != n} R_m` elements.  It is formed whole, or in *windows* of
//! rows that stay in the near cache, twice an update: once for the Gram matrix of its columns, once to
//! multiply it by the vectors found.  Windows need a tree rooted at the mode.  They are taken above a
//! limit of memory, and where the second run of the kernel is predicted to take less than writing a long
//! result and reading it twice.

use decompose_common::linalg::leading_bytes;
use decompose_core::cost::Machine;
use decompose_core::einsum::{Access, Expr, Extents};
use decompose_core::error::CoreError;
use decompose_core::kernels::{mode_index, mode_rank_index, ttmc};
use decompose_core::schedule::{Conflict, Pattern, Problem};
use decompose_core::sweep::{
    Merging, PlanOptions, SearchedKernels, Step, TreeLayout, TreePlan, Trees, TtmcMerge, TtmcSweep,
    plan_kernels, plan_ttmc_merges, posed,
};
use decompose_formats::ModeOrder;
use decompose_formats::dense::{LINE_BYTES, padded};

use crate::config::Method;
use crate::rows::block_rows;

/// Up to this size Gram matrices are formed; above it the subspace is found by products.
pub(crate) const GRAM_MOST: usize = 4096;

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct PlanRequest<'a> {
    /// The extents of the tensor.
    pub extents: &'a [u64],
    /// The counts of its pattern.
    pub pattern: &'a Pattern,
    /// The rank of every mode.
    pub ranks: &'a [usize],
    /// How factors are made better.
    pub method: Method,
    /// Size of a value in bytes: 8 or 4.
    pub value_bytes: usize,
    /// Threads that will run it.
    pub threads: usize,
    /// Which trees are kept.
    pub trees: Trees,
    /// Which modes are merged so that HOOI's kernels share work; other methods, and modes formed in
    /// windows, merge none.
    pub merging: Merging,
    /// The most bytes for trees and private copies together; `None`: no limit.
    pub memory: Option<u64>,
    /// The most bytes of a TTMc result formed whole; `None`: no limit.
    pub most_whole: Option<u64>,
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct TuckerPlan {
    /// Trees and kernels on the tensor itself: a step a mode that is not merged, and for nonnegative
    /// models one for the core.
    pub kernels: TreePlan,
    /// Modes that are taken as one, with their trees and kernels.
    pub merges: Vec<TtmcMerge>,
    /// Partitions of the modes that were considered.
    pub considered: usize,
    /// Predicted seconds of a sweep's kernels if nothing is merged.
    pub plain_seconds: f64,
    /// How the TTMc of each mode is formed; empty for nonnegative models, which never form it.
    pub forming: Vec<Forming>,
    /// Bytes of the largest TTMc result, or window of one, with the matrices of its update.
    pub work_bytes: u64,
}

/// How much of a TTMc result is in memory at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forming {
    /// All of it.
    Whole,
    /// So many rows.
    Windows(u64),
}

/// Plans a run.
///
/// # Errors
///
/// [`CoreError::Memory`] if not even one tree keeps the limit, or if the kernel of a mode whose
/// TTMc is formed in windows owns its rows on none of the given trees; [`CoreError::NoSchedule`].
pub fn plan(request: &PlanRequest<'_>, machine: &Machine) -> Result<TuckerPlan, CoreError> {
    let order = request.extents.len();
    let mut forming: Vec<Forming> = match request.method {
        Method::Nonnegative => Vec::new(),
        Method::Hooi | Method::Core => (0..order).map(|mode| forming(request, mode)).collect(),
    };
    let all: Vec<usize> = (0..expressions(request).len()).collect();
    let options = options(request, request.trees.clone());
    let source = OwnKernels::new(request, &options, machine)?;
    let mut kernels = source.plan(&forming, &all)?;
    if prefer_windows(&source, &mut forming, &kernels) {
        kernels = source.plan(&forming, &all)?;
    }
    let (plain_seconds, plain) = (kernels.seconds(), kernels);
    let (merges, considered) = merges(request, &forming, &plain, machine)?;
    let merged = |mode: &usize| merges.iter().any(|merge| merge.modes.contains(mode));
    let unmerged: Vec<usize> = all.iter().copied().filter(|mode| !merged(mode)).collect();
    let kernels = if merges.is_empty() { plain } else { source.plan(&forming, &unmerged)? };
    let work_bytes = work_bytes(request, &forming);
    Ok(TuckerPlan { kernels, merges, considered, plain_seconds, forming, work_bytes })
}

/// Bytes of the largest whole result, for which there is memory throughout, and of what the update of a
/// mode takes beside it.
fn work_bytes(request: &PlanRequest<'_>, forming: &[Forming]) -> u64 {
    let whole = forming.iter().enumerate().filter(|(_, forming)| **forming == Forming::Whole);
    let whole = whole.map(|(mode, _)| result_bytes(request, mode)).max().unwrap_or(0);
    let update = |(mode, forming): (usize, &Forming)| {
        let (extent, rank) = (request.extents[mode], request.ranks[mode] as u64);
        let windows = match forming {
            Forming::Whole => 0,
            // One a thread, and the positions of the slices.
            Forming::Windows(rows) => {
                let window = rows.saturating_mul(row_bytes(request, mode));
                window.saturating_mul(request.threads as u64).saturating_add(8 * extent)
            }
        };
        let small = extent.min(width(request.ranks, mode));
        windows.saturating_add(subspace_bytes(request, mode, small, rank))
    };
    whole.saturating_add(forming.iter().enumerate().map(update).max().unwrap_or(0))
}

/// Plans merges of modes that are formed whole, if the method updates them in turn.
fn merges(
    request: &PlanRequest<'_>,
    forming: &[Forming],
    plain: &TreePlan,
    machine: &Machine,
) -> Result<(Vec<TtmcMerge>, usize), CoreError> {
    if request.method != Method::Hooi {
        return Ok((Vec::new(), 1));
    }
    let whole = |mode: &usize| forming[*mode] == Forming::Whole;
    let modes: Vec<usize> = (0..forming.len()).filter(whole).collect();
    let PlanRequest { extents, pattern, ranks, .. } = *request;
    let sweep = TtmcSweep { extents, pattern, ranks, modes: &modes };
    let mut options = options(request, request.trees.clone());
    options.merging = request.merging.clone();
    let (merges, considered) = plan_ttmc_merges(&sweep, &plain.steps, &options, machine)?;
    let bytes: u64 = merges.iter().map(|merge| merge.tree_bytes() + merge.side_bytes()).sum();
    // Where memory is short the tensor's own trees come first.
    let fits = request.memory.is_none_or(|limit| plain.tree_bytes + bytes <= limit);
    let keep = fits || matches!(request.merging, Merging::Given(_));
    Ok((if keep { merges } else { Vec::new() }, considered))
}

/// The kernels on the tensor itself, searched once for all plans of some of them.
struct OwnKernels<'a> {
    request: &'a PlanRequest<'a>,
    machine: &'a Machine,
    problems: Vec<Problem>,
    kernels: SearchedKernels<'a>,
}

impl<'a> OwnKernels<'a> {
    fn new(
        request: &'a PlanRequest<'a>,
        options: &'a PlanOptions,
        machine: &'a Machine,
    ) -> Result<OwnKernels<'a>, CoreError> {
        let problem = |expr| problem(request, expr);
        let problems: Vec<Problem> = expressions(request).into_iter().map(problem).collect();
        let kernels = SearchedKernels::new(request.extents, &problems, options, machine)?;
        Ok(OwnKernels { request, machine, problems, kernels })
    }

    /// Plans the kernels of the numbers `kernels` together, but those that run in windows by themselves, each on
    /// its own tree: one that lets it own its rows.
    fn plan(&self, forming: &[Forming], kernels: &[usize]) -> Result<TreePlan, CoreError> {
        let in_windows = |kernel: &usize| matches!(forming.get(*kernel), Some(Forming::Windows(_)));
        let (apart, together): (Vec<usize>, Vec<usize>) =
            kernels.iter().copied().partition(in_windows);
        // What is left for the kernels at hand, those behind them having a tree each.
        let mut parts: Vec<TreePlan> = Vec::new();
        let left = |parts: &[TreePlan], behind: usize| {
            let taken: u64 = parts.iter().map(|part| part.tree_bytes + part.side_bytes).sum();
            let behind = behind as u64 * self.kernels.least_tree_bytes();
            self.request.memory.map(|memory| memory.saturating_sub(taken.saturating_add(behind)))
        };
        if !together.is_empty() {
            parts.push(self.kernels.plan_within(&together, left(&parts, apart.len()))?);
        }
        for (at, &kernel) in apart.iter().enumerate() {
            parts.push(self.plan_windows(kernel, left(&parts, apart.len() - at - 1))?);
        }
        Ok(join(parts))
    }

    /// Plans the TTMc of `mode` by itself, on a tree that lets it own its rows, for at most `memory` bytes.
    fn plan_windows(&self, mode: usize, memory: Option<u64>) -> Result<TreePlan, CoreError> {
        let request = self.request;
        let mut plan = self.kernels.plan_within(&[mode], memory)?;
        if !plan.steps.iter().all(owns_rows) && request.trees == Trees::Choose {
            let rooted = Trees::Given(vec![rooted_at(mode, request.extents.len())]);
            let options = PlanOptions { memory, ..options(request, rooted) };
            let own = &self.problems[mode..=mode];
            plan = plan_kernels(request.extents, own, &options, self.machine)?;
            plan.steps.iter_mut().for_each(|step| step.mode = mode);
        }
        if plan.steps.iter().all(owns_rows) { Ok(plan) } else { Err(no_windows(request, mode)) }
    }
}

fn options(request: &PlanRequest<'_>, trees: Trees) -> PlanOptions {
    PlanOptions {
        rank: 0,
        value_bytes: request.value_bytes,
        threads: request.threads,
        memory: request.memory,
        sweeps: PLANNED_SWEEPS,
        trees,
        merging: Merging::Never,
        panels: None,
        updates: Vec::new(),
    }
}

/// Tells whether the tasks of a step write rows of their own.
fn owns_rows(step: &Step) -> bool {
    let conflict = step.candidate.schedule.parallel.map(|parallel| parallel.conflict);
    matches!(conflict, Some(Conflict::Owner | Conflict::Boundary))
}

fn rooted_at(mode: usize, order: usize) -> TreeLayout {
    TreeLayout::new(ModeOrder::by_key(order, |&m| m != mode), 1)
}

fn no_windows(request: &PlanRequest<'_>, mode: usize) -> CoreError {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64);
    CoreError::Memory {
        what: format!("the TTMc of mode {} on a tree that is not rooted at it", mode + 1),
        need: mib(result_bytes(request, mode)),
        limit: mib(request.most_whole.unwrap_or(0)),
    }
}

/// Puts plans of different kernels of one tensor together; trees that several use are kept once.
fn join(parts: Vec<TreePlan>) -> TreePlan {
    let mut parts = parts.into_iter();
    let Some(mut all) = parts.next() else {
        return TreePlan::default();
    };
    for part in parts {
        let share = part.tree_bytes / part.trees.len().max(1) as u64;
        let mut place = Vec::new();
        for tree in part.trees {
            let known = all.trees.iter().position(|known| *known == tree);
            place.push(known.unwrap_or(all.trees.len()));
            if known.is_none() {
                all.trees.push(tree);
                all.tree_bytes += share;
            }
        }
        let steps = part.steps.into_iter();
        all.steps.extend(steps.map(|step| Step { tree: place[step.tree], ..step }));
        all.side_bytes += part.side_bytes;
        all.considered += part.considered;
        all.weighed += part.weighed;
        all.alternatives.extend(part.alternatives);
    }
    all.steps.sort_by_key(|step| step.mode);
    all
}

/// Poses a kernel; operands belong to the solver, so they are stored as the expression names them.
fn problem(request: &PlanRequest<'_>, expr: Expr) -> Problem {
    let order = request.extents.len();
    let mut extents: Extents =
        request.extents.iter().enumerate().map(|(m, &extent)| (mode_index(m), extent)).collect();
    for (mode, &rank) in request.ranks.iter().enumerate() {
        extents.set(mode_rank_index(order, mode), rank as u64);
    }
    posed(expr, extents, request.pattern.clone(), request.value_bytes)
}

/// Returns the bytes of the TTMc results of all modes, formed whole, largest first.
pub fn whole_bytes(request: &PlanRequest<'_>) -> Vec<u64> {
    let order = request.extents.len();
    let mut bytes: Vec<u64> = (0..order).map(|mode| result_bytes(request, mode)).collect();
    bytes.sort_unstable_by(|a, b| b.cmp(a));
    bytes.dedup();
    bytes
}

/// Sweeps over which the building of trees is spread.
const PLANNED_SWEEPS: usize = 20;

/// Returns `prod_{m != n} R_m`; saturates.
pub(crate) fn width(ranks: &[usize], mode: usize) -> u64 {
    let others = ranks.iter().enumerate().filter(|&(m, _)| m != mode);
    others.fold(1, |width, (_, &rank)| width.saturating_mul(rank as u64))
}

fn forming(request: &PlanRequest<'_>, mode: usize) -> Forming {
    match request.most_whole {
        Some(most) if result_bytes(request, mode) > most => in_windows(request, mode),
        _ => Forming::Whole,
    }
}

fn in_windows(request: &PlanRequest<'_>, mode: usize) -> Forming {
    let width = usize::try_from(width(request.ranks, mode)).unwrap_or(usize::MAX);
    Forming::Windows((block_rows(width) as u64).clamp(1, request.extents[mode]))
}

/// Changes whole results to windows where these are predicted to be faster; tells whether it did.
fn prefer_windows(source: &OwnKernels<'_>, forming: &mut [Forming], plan: &TreePlan) -> bool {
    let OwnKernels { request, machine, .. } = *source;
    let mut changed = false;
    for (mode, forming) in forming.iter_mut().enumerate() {
        let bytes = result_bytes(request, mode);
        let given =
            matches!(&request.merging, Merging::Given(sets) if sets.concat().contains(&mode));
        if *forming != Forming::Whole || bytes <= machine.l3_bytes || given {
            continue;
        }
        // Lines written, or read, once.
        let pass =
            bytes as f64 / LINE_BYTES as f64 * machine.stream_line / request.threads.max(1) as f64;
        let Some(whole) = plan.steps.iter().find(|step| step.mode == mode) else { continue };
        let Ok(rooted) = source.plan_windows(mode, request.memory) else { continue };
        // A kernel is charged for reading and writing its result, which windows keep in cache; then
        // the Gram matrix and the projection read a whole result once each.
        let windows = 2.0 * (rooted.seconds() - 2.0 * pass).max(0.0);
        if windows < whole.seconds + 2.0 * pass {
            *forming = in_windows(request, mode);
            changed = true;
        }
    }
    changed
}

/// Bytes of a row of the TTMc result, with the most padding that any order of its columns brings.
fn row_bytes(request: &PlanRequest<'_>, mode: usize) -> u64 {
    let PlanRequest { ranks, value_bytes, .. } = *request;
    let last = (0..ranks.len()).filter(|&m| m != mode);
    let padded_to = last.map(|m| {
        let rank = ranks[m].min(usize::MAX >> 8);
        (width(ranks, mode) / rank as u64).saturating_mul(padded(rank, value_bytes) as u64)
    });
    padded_to.max().unwrap_or(1).saturating_mul(value_bytes as u64)
}

fn result_bytes(request: &PlanRequest<'_>, mode: usize) -> u64 {
    row_bytes(request, mode).saturating_mul(request.extents[mode])
}

/// Bytes of the matrices of an update: the Gram matrix of the small side, one a thread, or the
/// block of an iteration by products.
fn subspace_bytes(request: &PlanRequest<'_>, mode: usize, small: u64, rank: u64) -> u64 {
    let threads = request.threads as u64;
    let width = width(request.ranks, mode);
    let rows = block_rows(usize::try_from(width).unwrap_or(usize::MAX)) as u64;
    let packed = rows.saturating_mul(width).saturating_mul(8 * threads);
    let vectors = leading_bytes(small, rank);
    let projection = width.saturating_mul(rank).saturating_mul(8 * (threads + 1));
    let gram = match small <= GRAM_MOST as u64 {
        true => small * small * 8 * (threads + 2),
        // The image of a block of vectors, one row an index of the mode.
        false => request.extents[mode].saturating_mul((rank + 16) * request.value_bytes as u64),
    };
    gram.saturating_add(vectors).saturating_add(projection).saturating_add(packed)
}

/// Returns the expressions of a sweep: a TTMc a mode; for nonnegative models a TTMc times the core
/// a mode, and the TTMc of all modes.
fn expressions(request: &PlanRequest<'_>) -> Vec<Expr> {
    let order = request.extents.len();
    match request.method {
        Method::Hooi | Method::Core => (0..order).map(|mode| ttmc(order, Some(mode))).collect(),
        Method::Nonnegative => {
            let modes = (0..order).map(|mode| with_core(order, mode));
            modes.chain([ttmc(order, None)]).collect()
        }
    }
}

/// Returns the TTMc of `mode` times the core: `A1(i,r) = X(i,j,k) * U2(j,s) * U3(k,t) * G(r,s,t)`.
fn with_core(order: usize, mode: usize) -> Expr {
    let rank = |mode| mode_rank_index(order, mode);
    let mut expr = ttmc(order, Some(mode));
    let core = (0..order).map(rank).collect();
    expr.inputs.push(Access { tensor: "G".into(), indices: core });
    let indices = vec![mode_index(mode), rank(mode)];
    expr.output = Access { tensor: format!("A{}", mode + 1), indices };
    expr
}
