//! How much memory a run will take, told before it takes it.
//!
//! ```text
//! sort    list + sorting copy
//! copy    list twice                         (of a mapped file only)
//! start   list + start                       (nvecs only)
//! build   list + trees but the last + sorting copy or upper levels of the last
//! fuse    trees + the largest that has its last levels fused
//! solve   trees + private copies + factors + kept models + scratch
//! write   factors + pixels of the largest figure
//! peak    what the process holds anyway + the largest of these, or the peak so far
//! ```
//!
//! The stages follow `Coo::sort`, `Csf::build_all`, `Engine::build` and `solve`.

use std::fmt;

use decompose_common::machine::{self, size};
use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{self, PlanOptions, SweepPlan, TreeLayout, Trees};
use decompose_formats::dense::padded;
use decompose_formats::io::Format;
use decompose_formats::{Coo, ModeOrder, Value};

use crate::cp::args::Init;
use crate::cp::settings::{Settings, StartFrom, Task};
use crate::failure::Failure;

/// Columns that `nvecs` iterates beyond the rank, and its matrices.
const NVECS_COLUMNS: u64 = 10;
const NVECS_MATRICES: u64 = 3;

/// Sweeps over which the building of trees is spread: the default limit, whatever the limit of the
/// run, so that a run resumed with another limit keeps its plan and thereby its bits.
const PLANNED_SWEEPS: usize = 50;
/// What the program itself grows by after the tensor is read: loaded kernels, stacks, tables.
const PROGRAM_GROWTH: u64 = 2 << 20;
/// Bytes held to draw one square point of a figure: pixels at four samples, smoothed, encoded.
const FIGURE_BYTES: u64 = 72;

/// The predicted memory of a run, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Forecast {
    /// What the process holds beside all this: program, threads, buffers.
    pub(crate) base: u64,
    /// The list of non-zeros.
    pub(crate) list: u64,
    /// A list mapped from its file, held until its copy can be sorted.
    pub(crate) mapped: u64,
    /// The copy that a sort works in.
    pub(crate) sorting: u64,
    /// The making of a start by `nvecs`.
    pub(crate) start: u64,
    /// All trees.
    pub(crate) trees: u64,
    /// Private copies of outputs.
    pub(crate) copies: u64,
    /// The factors, those of the models kept from other starts, and scratch.
    pub(crate) factors: u64,
    /// The pixels of the largest figure.
    pub(crate) figures: u64,
    /// The most the process will hold at once.
    pub(crate) peak: u64,
    /// The most it may hold.
    pub(crate) limit: Option<u64>,
}

impl Forecast {
    /// Predicts what is known before the plan: list, sort and factors.
    pub(crate) fn before_plan<V: Value>(
        tensor: &Coo<V>,
        format: Format,
        settings: &Settings,
    ) -> Forecast {
        let nnz = tensor.nnz() as u64;
        let indices: u64 = (0..tensor.order()).map(|mode| tensor.coords(mode).bytes()).sum();
        let list = indices + nnz * V::BYTES as u64;
        let resident = machine::resident_bytes().unwrap_or(list);
        let available = machine::available_bytes().map(|bytes| bytes.saturating_add(resident));
        let mut forecast = Forecast {
            base: resident.saturating_sub(list) + PROGRAM_GROWTH,
            list,
            mapped: if format == Format::Dtb { list } else { 0 },
            start: start_bytes(tensor, settings, list),
            factors: factor_bytes::<V>(tensor.extents(), settings),
            figures: figure_bytes(tensor.order(), settings),
            limit: settings.max_memory.or(available),
            ..Forecast::default()
        };
        if !tensor.is_sorted_by(&ModeOrder::natural(tensor.order())) {
            forecast.sorting = sort_bytes(tensor);
        }
        let matrices = forecast.factors.saturating_add(forecast.figures);
        let stages = matrices.max(list + forecast.sorting).max(list.saturating_add(forecast.start));
        forecast.peak = forecast.base.saturating_add(stages);
        forecast
    }

    /// Adds what the plan tells.
    fn with_plan<V: Value>(self, tensor: &Coo<V>, plan: &SweepPlan, pattern: &Pattern) -> Forecast {
        let natural = ModeOrder::natural(tensor.order());
        let resorts = plan.trees.iter().any(|tree| tree.order != natural);
        let sorting = if resorts { sort_bytes(tensor) } else { 0 };
        let bytes =
            |tree: &TreeLayout| sweep::tree_bytes(tensor.extents(), tree, pattern, V::BYTES);
        // Trees are built plain; then some of them have their last levels fused.
        let plain = |tree: &TreeLayout| bytes(&TreeLayout { order: tree.order.clone(), tail: 1 });
        let all_plain: u64 = plan.trees.iter().map(plain).sum();
        let leaves = |tree: &TreeLayout| {
            let last = tree.order.modes().last().map_or(0, |&mode| tensor.coords(mode).bytes());
            last + (tensor.nnz() * V::BYTES) as u64
        };
        // Any tree may be the last, which takes over arrays of the list.
        let build = plan.trees.iter().map(|tree| {
            let upper = plain(tree).saturating_sub(leaves(tree));
            self.list + (all_plain - plain(tree)) + sorting.max(upper)
        });
        let fused = plan.trees.iter().filter(|tree| tree.tail > 1).map(bytes).max().unwrap_or(0);
        let fuse = all_plain.max(plan.tree_bytes) + fused;
        let solve = plan.tree_bytes + plan.side_bytes + self.factors;
        let copying = if resorts { self.list + self.mapped } else { self.list };
        let stages = build.max().unwrap_or(0).max(fuse).max(solve).max(copying);
        let peak = self.peak.max(self.base + stages);
        Forecast {
            sorting: self.sorting.max(sorting),
            trees: plan.tree_bytes,
            copies: plan.side_bytes,
            peak: peak.max(machine::peak_bytes().unwrap_or(0)),
            ..self
        }
    }

    fn fits(&self) -> bool {
        self.limit.is_none_or(|limit| self.peak <= limit)
    }

    /// Refuses a run that would not fit.
    ///
    /// # Errors
    ///
    /// The numbers and what to do.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.fits() { Ok(()) } else { Err(self.refusal()) }
    }

    fn refusal(&self) -> Failure {
        let limit = size(self.limit.unwrap_or(0));
        let need = size(self.peak);
        Failure::input(format!("this run needs {need} of memory but {limit} may be used: {self}"))
            .help(
                "lower --rank, use --precision f32, keep fewer trees with --trees, or raise \
                 --max-memory if the machine has more",
            )
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("list", self.list),
            ("mapped", self.mapped),
            ("sorting", self.sorting),
            ("start", self.start),
            ("trees", self.trees),
            ("private copies", self.copies),
            ("factors", self.factors),
            ("figures", self.figures),
            ("program", self.base),
        ];
        let shown = parts.iter().filter(|(_, bytes)| *bytes > 0);
        let shown: Vec<String> =
            shown.map(|(name, bytes)| format!("{name} {}", size(*bytes))).collect();
        f.write_str(&shown.join(", "))
    }
}

/// Plans the sweep; where the best plan does not fit, ever leaner ones, and last a single tree in
/// the order of the list, which needs no sorting.
///
/// # Errors
///
/// If nothing fits, with the numbers of the best plan; or if there is no plan.
pub(crate) fn plan<V: Value>(
    tensor: &Coo<V>,
    pattern: &Pattern,
    before: Forecast,
    settings: &Settings,
) -> Result<(SweepPlan, Forecast), Failure> {
    let mut options = PlanOptions {
        rank: settings.config.rank,
        value_bytes: V::BYTES,
        threads: settings.threads,
        memory: None,
        sweeps: PLANNED_SWEEPS,
        trees: settings.trees.clone(),
    };
    let try_plan = |options: &PlanOptions| -> Result<(SweepPlan, Forecast), CoreError> {
        let plan = sweep::plan(tensor.extents(), pattern, options, Machine::here())?;
        let forecast = before.with_plan(tensor, &plan, pattern);
        Ok((plan, forecast))
    };
    let mut found = try_plan(&options)?;
    let best = found.1;
    while !found.1.fits() {
        // Strictly less each time, so this ends.
        options.memory = Some((found.0.tree_bytes + found.0.side_bytes).saturating_sub(1));
        found = match try_plan(&options) {
            Err(CoreError::Memory { .. }) if options.trees == Trees::Choose => {
                let order = ModeOrder::natural(tensor.order());
                let plain = TreeLayout { order, tail: 1 };
                options = PlanOptions { trees: Trees::Given(vec![plain]), memory: None, ..options };
                try_plan(&options)?
            }
            Err(CoreError::Memory { .. }) => return Err(best.refusal()),
            other => other?,
        };
    }
    Ok(found)
}

/// See `Coo::sort`: 16 bytes an entry, 24 if the indices need more than 64 bits together.
fn sort_bytes<V: Value>(tensor: &Coo<V>) -> u64 {
    let bits = |extent: u64| 64 - extent.saturating_sub(1).leading_zeros();
    let key: u32 = tensor.extents().iter().map(|&extent| bits(extent)).sum();
    tensor.nnz() as u64 * if key > 64 { 24 } else { 16 }
}

fn factor_bytes<V: Value>(extents: &[u64], settings: &Settings) -> u64 {
    let config = &settings.config;
    // Clamped where the product could wrap; nothing near it fits anyway.
    let row = (padded(config.rank.min(usize::MAX >> 8), V::BYTES) * V::BYTES) as u64;
    let rows = extents.iter().fold(0_u64, |sum, &extent| sum.saturating_add(extent));
    let nonneg = extents.iter().enumerate().filter(|(mode, _)| config.nonneg.contains(*mode));
    let scratch = nonneg.map(|(_, &extent)| extent).max().unwrap_or(0);
    let models = rows.saturating_mul(config.restarts as u64);
    models.saturating_add(scratch).saturating_mul(row)
}

/// The figure of components is the largest: a column of 290 points a mode, a row of 79 each of up
/// to eight components.
fn figure_bytes(order: usize, settings: &Settings) -> u64 {
    if settings.task != Task::Write {
        return 0;
    }
    let width = 120 + 290 * order as u64;
    let height = 116 + 79 * settings.config.rank.min(8) as u64;
    FIGURE_BYTES * (width * height).max(800 * 574)
}

/// A copy of the list, sorted, with the matrices of the iteration.
fn start_bytes<V: Value>(tensor: &Coo<V>, settings: &Settings, list: u64) -> u64 {
    if settings.start != StartFrom::Init(Init::Nvecs) {
        return 0;
    }
    let longest = tensor.extents().iter().copied().max().unwrap_or(0);
    let columns = (settings.config.rank as u64).saturating_add(NVECS_COLUMNS);
    let matrices = longest.saturating_mul(columns).saturating_mul(8 * NVECS_MATRICES);
    // Upper levels of the tree: about half the list.
    list.saturating_add(sort_bytes(tensor).max(matrices.saturating_add(list / 2)))
}
