//! How much memory a run will take, told before it takes it.
//!
//! ```text
//! sort    list + sorting copy, and a list to sort into if it is mapped from a file
//! start   list + start
//! narrow  list + a narrow column, or list + narrow list of a mapped file
//! build   narrow list, of which the last tree is made + trees but the last + sorting copy or upper
//!         levels of the last; of several, the columns of the list before that no tree shares
//! solve   trees + private copies + factors + work
//! write   trees, until they are given back + factors + pixels of the figures drawn at once
//! peak    what the process holds anyway + the largest of these, or the peak so far
//! ```
//!
//! The stages follow `Coo::sort`, `Csf::build_all` and the solvers.  Each is foreseen again when it is
//! reached, from what is held then: see [`decompose_common::memory`].

use std::fmt;

use clap::Args;
use decompose_common::machine::{self, parse_size, size};
use decompose_common::memory::{self, Limit};
use decompose_common::progress::Screen;
use decompose_core::schedule::{Pattern, Problem, SparseOperand};
use decompose_core::sweep::TreeLayout;
use decompose_formats::io::Format;
use decompose_formats::{Coo, ModeOrder, Value, Width};
use serde_json::json;

use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::settings::{RunSettings, Task};

/// What the program itself grows by after the tensor is read: loaded kernels, stacks, tables.
const PROGRAM_GROWTH: u64 = 3 << 20;
/// Bytes held to draw a figure, by point of its width: the rows of pixels being drawn, its shapes and texts.
const FIGURE_BYTES: u64 = 3 << 9;
/// Points of width of the widest figure of components, and of one drawn beside it.
const WIDEST: u64 = 1320;
const BESIDE: u64 = 800;

/// Returns the bytes held while the figures of a model of `order` modes are drawn: that of the components, with a
/// column of up to 290 points a mode, and one of the others.
pub(crate) fn figure_bytes(order: usize, settings: &RunSettings) -> u64 {
    if settings.task != Task::Write || settings.plots.is_empty() {
        return 0;
    }
    FIGURE_BYTES * ((120 + 290 * order as u64).min(WIDEST) + BESIDE)
}

/// The limit of a command that fits nothing.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryArgs {
    /// The most memory, as 16G or 512M; what would take more is refused.  [default: what is available]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Computation")]
    max_memory: Option<u64>,
}

impl MemoryArgs {
    /// Sets the limit of this process.
    pub(crate) fn begin(&self) {
        memory::set_limit(memory::limit(self.max_memory));
    }
}

/// Foresees the sort of a list as it was read.
///
/// # Errors
///
/// The numbers, if it does not fit.
pub(crate) fn sort_of<V: Value>(tensor: &Coo<V>) -> Result<(), Failure> {
    let bytes = tensor.bytes_to_sort(&ModeOrder::natural(tensor.order()));
    Ok(memory::foresee(bytes, || "the sort of the list".into(), "raise --max-memory")?)
}

/// Returns the bytes in which a list becomes the tree of `order` with `tail` fused levels, beside its arrays.
///
/// First its columns become narrow: one after another; beside the others if another list has these; or with all arrays in
/// memory of their own if they are mapped from a file, of which `released` bytes go then.  What follows is the memory of
/// a sort unless it is sorted so, to other arrays if another list has these, or the levels above the fused ones, each
/// with a bit an entry.
pub(crate) fn tree_of<V: Value>(
    tensor: &Coo<V>,
    order: &ModeOrder,
    tail: usize,
    released: u64,
) -> u64 {
    let nnz = tensor.nnz() as u64;
    let pointer = Width::below(nnz + 1).bytes() as u64;
    let upper = order.modes().iter().take(tensor.order().saturating_sub(tail));
    let mut cells = 1_u64;
    let levels = upper.map(|&mode| {
        let extent = tensor.extents()[mode];
        cells = cells.saturating_mul(extent);
        cells.min(nnz) * (Width::below(extent).bytes() as u64 + pointer) + nnz / 8
    });
    let levels: u64 = levels.sum();
    let sort = if tensor.is_sorted_by(order) { 0 } else { tensor.sort_bytes(None) };
    let narrow = narrow_list(tensor);
    if tensor.is_mapped() {
        narrow.max((narrow + sort.max(levels)).saturating_sub(released))
    } else if tensor.is_own() {
        widest_narrowed(tensor).max(sort.max(levels))
    } else if sort == 0 {
        narrowed(tensor).sum::<u64>() + levels
    } else {
        (narrowed(tensor).sum::<u64>() + narrow + sort).max(narrow + levels)
    }
}

/// Returns the bytes in which a list whose indices are cut becomes the tree of `x`, an operand of `problem`: its columns
/// anew, and the memory of a sort.
pub(crate) fn cut_tree_of<V: Value>(tensor: &Coo<V>, problem: &Problem, x: &SparseOperand) -> u64 {
    let columns = problem.stored(x.levels());
    let width = |index| Width::listed(problem.extents.of(index)).bytes() as u64;
    let columns: u64 = columns.map(width).sum::<u64>() * tensor.nnz() as u64;
    columns + tensor.sort_bytes(None)
}

/// Returns the bytes of the widest column that becomes narrower in a tree.
fn widest_narrowed<V: Value>(tensor: &Coo<V>) -> u64 {
    narrowed(tensor).max().unwrap_or(0)
}

/// Returns the bytes of each column that becomes narrower in a tree.
fn narrowed<V: Value>(tensor: &Coo<V>) -> impl Iterator<Item = u64> {
    let columns = (0..tensor.order()).map(|mode| (narrow_column(tensor, mode), mode));
    columns.filter(|&(bytes, mode)| bytes < tensor.coords(mode).bytes()).map(|(bytes, _)| bytes)
}

/// Says what was held at the peak, and what was expected.
pub(crate) fn tell_peak(screen: &Screen) {
    if let (Some(actual), Some(expected)) = (machine::peak_bytes(), memory::expected()) {
        let (actual, expected) = (size(actual), size(expected));
        screen.line(format!("memory   {actual} at the peak, {expected} expected"));
    }
}

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
    /// The making of a start.
    pub(crate) start: u64,
    /// All trees.
    pub(crate) trees: u64,
    /// Private copies of outputs.
    pub(crate) copies: u64,
    /// The factors, those of the models kept from other starts, and scratch.
    pub(crate) factors: u64,
    /// What else a solver works in.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) work: u64,
    /// The pixels of the figures drawn at once.
    pub(crate) figures: u64,
    /// What is held while trees are built: lists, trees, and the memory of a sort.
    #[serde(skip)]
    pub(crate) building: u64,
    /// The most the process will hold at once.
    pub(crate) peak: u64,
    /// Whether parts are guessed that show only as the run goes on: it may take more.
    #[serde(skip)]
    pub(crate) guessed: bool,
    /// The most it may hold.
    #[serde(flatten)]
    pub(crate) limit: Option<Limit>,
}

/// What a run is foreseen to take, before it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreseen {
    /// Bytes held at the peak.
    pub(crate) peak: u64,
    /// Seconds of all kernels, if every start makes all iterations it may make; `None` where they are not known.
    pub(crate) seconds: Option<f64>,
}

/// What a solver needs beside the list, known before there is a plan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// See [`Forecast::start`].
    pub(crate) start: u64,
    /// See [`Forecast::factors`].
    pub(crate) factors: u64,
    /// See [`Forecast::work`].
    pub(crate) work: u64,
    /// See [`Forecast::figures`].
    pub(crate) figures: u64,
}

impl Forecast {
    /// Predicts what is known before the plan.
    pub(crate) fn before_plan<V: Value>(
        tensor: &Coo<V>,
        format: Format,
        settings: &RunSettings,
        needs: Needs,
    ) -> Forecast {
        let nnz = tensor.nnz() as u64;
        let indices: u64 = (0..tensor.order()).map(|mode| tensor.coords(mode).bytes()).sum();
        let list = indices + nnz * V::BYTES as u64;
        let resident = machine::resident_bytes().unwrap_or(list);
        let limit = memory::limit(settings.max_memory);
        memory::set_limit(limit);
        let Needs { start, factors, work, figures } = needs;
        let mut forecast = Forecast {
            base: resident.saturating_sub(list) + PROGRAM_GROWTH,
            list,
            mapped: if format == Format::Dtb { list } else { 0 },
            start,
            factors,
            work,
            figures,
            limit,
            ..Forecast::default()
        };
        if !tensor.is_sorted_by(&ModeOrder::natural(tensor.order())) {
            forecast.sorting = tensor.sort_bytes(None);
        }
        // A mapped list is sorted into a copy.
        let copied = if forecast.sorting > 0 { forecast.mapped } else { 0 };
        let matrices = factors.saturating_add(work.max(figures));
        let sort = list + forecast.sorting + copied;
        let stages = matrices.max(sort).max(list.saturating_add(start));
        forecast.peak = forecast.base.saturating_add(stages);
        forecast
    }

    /// Returns the forecast without the making of a start, which foresees its own steps.
    pub(crate) fn without_start(self) -> Forecast {
        let sort = self.list + self.sorting + if self.sorting > 0 { self.mapped } else { 0 };
        let matrices = self.factors.saturating_add(self.work.max(self.figures));
        let peak = self.base.saturating_add(matrices.max(sort));
        Forecast { start: 0, peak, ..self }
    }

    /// Adds the trees that are built from the list and kept, all of them at once, and `copies` of
    /// outputs beside them.
    pub(crate) fn with_trees<V: Value>(
        self,
        tensor: &Coo<V>,
        pattern: &Pattern,
        trees: &[TreeLayout],
        copies: u64,
    ) -> Forecast {
        let sorted = tensor.sorted_by().cloned();
        let sorted = sorted.unwrap_or_else(|| ModeOrder::natural(tensor.order()));
        let blocked = trees.iter().any(|tree| tree.blocks.is_some());
        let resorts = blocked || trees.iter().any(|tree| tree.order != sorted);
        let sorting = if resorts { sort_bytes_of(tensor, trees) } else { 0 };
        let numbers = number_bytes(tensor, trees);
        let bytes = |tree: &TreeLayout| tree.bytes(tensor.extents(), pattern, V::BYTES);
        let kept: u64 = trees.iter().map(bytes).sum();
        let leaves = |tree: &TreeLayout| {
            let fused = tree.order.modes().iter().rev().take(tree.fused);
            let coordinates: u64 = fused.map(|&mode| narrow_column(tensor, mode)).sum();
            coordinates + (tensor.nnz() * V::BYTES) as u64
        };
        let narrow = narrow_list(tensor);
        // The list from which a tree is sorted shares the leaves of another; that of one tree is its own.
        let unshared = trees.iter().map(|tree| narrow - leaves(tree)).max().unwrap_or(0);
        let before = if trees.len() > 1 { unshared + numbers } else { 0 };
        // Any tree may be the last; the memory of sorts is held until then.
        let build = trees.iter().map(|tree| {
            let bits = (tensor.nnz() / 8 * tensor.order()) as u64;
            let upper = bytes(tree).saturating_sub(leaves(tree)) + bits;
            before + narrow + numbers + (kept - bytes(tree)) + upper.max(sorting + bits)
        });
        let building = build.max().unwrap_or(0).max(self.narrowing(tensor) + numbers);
        self.with_built(kept, copies, sorting, building)
    }

    /// The bytes held while the columns of the list become as narrow as levels of trees.
    pub(crate) fn narrowing<V: Value>(&self, tensor: &Coo<V>) -> u64 {
        (self.list + widest_narrowed(tensor)).max(self.mapped + narrow_list(tensor))
    }

    /// Adds `kept` bytes of trees and `copies` of outputs, for which memory of `building` bytes is
    /// held at once, `sorting` of them to sort in.
    pub(crate) fn with_built(
        self,
        kept: u64,
        copies: u64,
        sorting: u64,
        building: u64,
    ) -> Forecast {
        let solver = kept.saturating_add(copies).saturating_add(self.factors);
        let solve = solver.saturating_add(self.work);
        let write = solver.saturating_add(self.figures);
        let peak = self.peak.max(self.base.saturating_add(building.max(solve).max(write)));
        Forecast {
            sorting: self.sorting.max(sorting),
            trees: kept,
            copies,
            building,
            peak: peak.max(machine::peak_bytes().unwrap_or(0)),
            ..self
        }
    }

    /// Tells whether the peak is within the limit.
    pub(crate) fn fits(&self) -> bool {
        self.limit.is_none_or(|limit| self.peak <= limit.bytes)
    }

    /// Refuses a run that would not fit; `remedy` says what else to do than raise the limit.
    ///
    /// # Errors
    ///
    /// The numbers and what to do.
    pub(crate) fn check(&self, remedy: &str) -> Result<(), Failure> {
        if self.fits() { Ok(()) } else { Err(self.refusal(remedy)) }
    }

    /// Returns the refusal of a run that would not fit.
    pub(crate) fn refusal(&self, remedy: &str) -> Failure {
        let need = size(self.peak);
        let (limit, source) = match self.limit {
            Some(limit) => (size(limit.bytes), format!(" ({})", limit.source)),
            None => (size(0), String::new()),
        };
        let why =
            format!("this run needs {need} of memory but {limit} may be used{source}: {self}");
        Failure::input(why).help(format!("{remedy}, or raise --max-memory if the machine has more"))
    }

    /// Foresees the sort of the list.
    ///
    /// # Errors
    ///
    /// The numbers, if it does not fit.
    pub(crate) fn sort(&self, remedy: &'static str) -> Result<(), Failure> {
        let copied = if self.sorting > 0 { self.mapped } else { 0 };
        Ok(memory::foresee(self.sorting + copied, || "the sort of the list".into(), remedy)?)
    }

    /// Foresees the building of trees from the list, which is held.
    ///
    /// # Errors
    ///
    /// The numbers, if it does not fit.
    pub(crate) fn build(&self, remedy: &'static str) -> Result<(), Failure> {
        let more = self.building.saturating_sub(self.list);
        Ok(memory::foresee(more, || "the building of the trees".into(), remedy)?)
    }

    /// Foresees what the solver takes beside the trees, which are built, with `copies` of outputs.
    ///
    /// # Errors
    ///
    /// The numbers, if it does not fit.
    pub(crate) fn solve(&self, copies: u64, remedy: &'static str) -> Result<(), Failure> {
        // Copies are planned for whole results, and made for the rows that tasks write.
        let copies = copies.min(self.copies);
        let more = self.factors.saturating_add(self.work).saturating_add(copies);
        Ok(memory::foresee(more, || "the model and what it is fitted in".into(), remedy)?)
    }

    /// Foresees the writing of the files, which is never refused; meanwhile trees are given back.
    pub(crate) fn write(&self) {
        let more = self.figures.saturating_sub(self.trees);
        if more > 0 {
            memory::note(more);
        }
    }

    /// Returns the peak as it was foreseen last: each stage again when it was reached.
    pub(crate) fn last(&self) -> u64 {
        memory::expected().unwrap_or(self.peak)
    }

    /// Says what is expected.
    ///
    /// # Errors
    ///
    /// If standard output cannot be written.
    pub(crate) fn tell(&self, console: &Console) -> Result<(), Failure> {
        let limit = self.limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
        let least = if self.guessed { "at least " } else { "" };
        let peak = size(self.peak);
        console.screen.line(format!("memory   {least}{peak}{limit} expected at the peak ({self})"));
        console.event("memory", json!(self))
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
            ("work", self.work),
            ("figures", self.figures),
            ("program", self.base),
        ];
        let shown = parts.iter().filter(|(_, bytes)| *bytes > 0);
        let shown: Vec<String> =
            shown.map(|(name, bytes)| format!("{name} {}", size(*bytes))).collect();
        f.write_str(&shown.join(", "))
    }
}

/// The bytes of the list with coordinates as narrow as those of trees; see `Csf::build_all`.
pub(crate) fn narrow_list<V: Value>(tensor: &Coo<V>) -> u64 {
    let columns: u64 = (0..tensor.order()).map(|mode| narrow_column(tensor, mode)).sum();
    columns + (tensor.nnz() * V::BYTES) as u64
}

fn narrow_column<V: Value>(tensor: &Coo<V>, mode: usize) -> u64 {
    (tensor.nnz() * Width::below(tensor.extents()[mode]).bytes()) as u64
}

/// The bytes of the numbers of the blocks of one of `trees`.
fn number_bytes<V: Value>(tensor: &Coo<V>, trees: &[TreeLayout]) -> u64 {
    let blocks = trees.iter().filter_map(|tree| tree.blocks.as_ref());
    let widths = blocks.map(|blocks| Width::below(blocks.extent()).bytes());
    (tensor.nnz() * widths.max().unwrap_or(0)) as u64
}

/// The most that one of `trees` is sorted in, with the numbers of its blocks.
fn sort_bytes_of<V: Value>(tensor: &Coo<V>, trees: &[TreeLayout]) -> u64 {
    let sorts = trees.iter().map(|tree| tensor.sort_bytes(tree.blocks.as_ref()));
    sorts.max().unwrap_or(0)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}
