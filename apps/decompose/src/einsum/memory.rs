//! How much memory a run takes, told before it starts.

use std::fmt;

use decompose_common::machine::{resident_bytes, size};
use decompose_common::memory::{self, Limit};
use decompose_core::contract::{Appended, Planned, element_bytes};
use decompose_core::lower::{joined_bytes, workspace_bytes};
use decompose_core::schedule::{OutputForm, Problem, resolve};
use decompose_formats::Value;

use crate::failure::Failure;
use crate::schedule::choose::Pick;
use crate::schedule::measure::output_bytes;
use crate::schedule::met_together;

/// Bytes by what takes them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EinsumForecast {
    /// What is held now: the program, the list and the dense operands.
    held: u64,
    tree: u64,
    /// Dense operands as the kernel reads them.
    packed: u64,
    /// Dense operands as they are held, each given up when it is packed.
    given_up: u64,
    output: u64,
    /// An element of a sum.
    element: u64,
    copies: u64,
    buffers: u64,
    limit: Option<Limit>,
    remedy: &'static str,
}

/// What to do about a run that does not fit.
const REMEDY: &str = "use --precision f32 or fewer --threads";

/// What to do about a step that is no kernel and does not fit.
pub(crate) const REMEDY_STEP: &str = "use --precision f32";

/// What to do about a result that does not fit as an array, where few of its elements may be other than zero.
pub(crate) const REMEDY_LIST: &str =
    "write a list of non-zeros (--out to .tns, .mtx, .ttx or .dtb)";

impl EinsumForecast {
    /// Predicts the run of `pick` with `threads` threads; the building of its trees takes `tree` bytes beside what is held,
    /// of which `given_up` bytes are dense operands.
    pub(crate) fn new<V: Value>(
        pick: &Pick,
        (tree, given_up): (u64, u64),
        threads: usize,
        max_memory: Option<u64>,
    ) -> EinsumForecast {
        let held = resident_bytes().unwrap_or(0);
        let output = output_bytes(&pick.problem, (&pick.schedule, &pick.cost));
        let buffers = pick.cost.buffer_elements.saturating_mul((threads * V::BYTES) as u64);
        EinsumForecast {
            held,
            tree: tree.saturating_add(joined_bytes(&pick.problem, &pick.schedule)),
            packed: dense_inputs(&pick.problem),
            given_up,
            output: match pick.schedule.workspace {
                Some(_) => output,
                // Once as the kernel writes it, once as it is written to the file.
                None => output.saturating_mul(2),
            },
            element: 0,
            copies: pick.side_bytes,
            buffers: buffers.saturating_add(workspaces::<V>(pick, threads)),
            limit: memory::limit(max_memory),
            remedy: match pick.problem.output {
                OutputForm::Dense if pick.problem.sparse.len() > 1 => REMEDY_LIST,
                _ => REMEDY,
            },
        }
    }

    /// Predicts the run of the sum of `planned` products by one kernel, whose trees take `trees` bytes.
    pub(crate) fn of_sum<V: Value>(
        planned: &[(usize, Planned)],
        trees: u64,
        threads: usize,
        max_memory: Option<u64>,
    ) -> EinsumForecast {
        let parts = planned
            .iter()
            .map(|(_, plan)| EinsumForecast::new::<V>(plan, (0, 0), threads, max_memory));
        let parts: Vec<EinsumForecast> = parts.collect();
        let Some(&first) = parts.first() else { return EinsumForecast::default() };
        let joined = parts.iter().map(|part| part.tree).fold(trees, u64::saturating_add);
        let element = planned.first().map_or(0, |(_, plan)| {
            let (problem, appended) = (&plan.problem, Appended::by(&plan.problem, &plan.schedule));
            element_bytes(&problem.expr, &problem.extents, V::BYTES, appended)
        });
        EinsumForecast {
            tree: joined,
            output: sum_elements(planned).saturating_mul(element),
            element,
            ..first
        }
    }

    /// Returns the forecast for a result of so many elements: see [`EinsumForecast::of_sum`].
    pub(crate) fn with_elements(self, elements: u64) -> EinsumForecast {
        EinsumForecast { output: elements.saturating_mul(self.element), ..self }
    }

    /// Returns the expected peak.
    pub(crate) fn peak(&self) -> u64 {
        self.held.saturating_add(self.tree).saturating_add(self.running())
    }

    /// Returns what packing and the kernel take beside what is held.
    fn running(&self) -> u64 {
        let parts = [self.packed, self.output, self.copies, self.buffers];
        let kernel = parts.into_iter().fold(0, u64::saturating_add);
        // An operand is given up when all of it is packed.
        kernel.saturating_sub(self.given_up).max(self.packed)
    }

    /// Tells whether the run fits.
    pub(crate) fn fits(&self) -> bool {
        self.exceeded().is_none()
    }

    /// Returns the limit that the run exceeds, if it does.
    fn exceeded(&self) -> Option<Limit> {
        self.limit.filter(|limit| self.peak() > limit.bytes)
    }

    /// Refuses a run that does not fit.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.exceeded() {
            None => Ok(()),
            Some(Limit { bytes, source }) => {
                let (need, limit) = (size(self.peak()), size(bytes));
                let why = format!(
                    "this run needs {need} of memory but {limit} may be used ({source}): {self}"
                );
                let remedy = self.remedy;
                let help = format!("{remedy}, or raise --max-memory if the machine has more");
                Err(Failure::input(why).help(help))
            }
        }
    }

    /// Foresees the building of the tree.
    pub(crate) fn build(&self) -> Result<(), Failure> {
        Ok(memory::foresee(self.tree, || "the building of the tree".into(), REMEDY)?)
    }

    /// Foresees the run of the kernel.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        Ok(memory::foresee(self.running(), || "the run of the kernel".into(), REMEDY)?)
    }
}

impl fmt::Display for EinsumForecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("output", self.output),
            ("private copies", self.copies),
            ("buffers", self.buffers),
            ("dense operands", self.packed),
            ("tree", self.tree),
            ("held", self.held),
        ];
        let shown = parts.iter().filter(|(_, bytes)| *bytes > 0);
        let shown: Vec<String> =
            shown.map(|(name, bytes)| format!("{name} {}", size(*bytes))).collect();
        f.write_str(&shown.join(", "))
    }
}

/// Bytes of the workspaces of all threads, and of the bitmaps of sparse buffers.
fn workspaces<V: Value>(pick: &Pick, threads: usize) -> u64 {
    let Ok(nest) = resolve(&pick.problem, &pick.schedule) else { return 0 };
    let workspace = pick.schedule.workspace.map_or(0, |kind| {
        let cells = pick.problem.workspace_cells(nest.last());
        workspace_bytes::<V>(kind, cells, met_together(pick, &nest))
    });
    let marks = nest.buffers.iter().filter_map(|made| made.marks);
    let marked: u64 = marks.map(|marks| pick.problem.extents.of(marks.index)).sum();
    workspace.saturating_add(marked.div_ceil(8)).saturating_mul(threads as u64)
}

/// Returns about how many elements a sum has: coordinates of different products are taken to be independent.
fn sum_elements(planned: &[(usize, Planned)]) -> u64 {
    let Some((_, first)) = planned.first() else { return 0 };
    let output = first.problem.expr.output.set();
    let cells = output.iter().map(|index| first.problem.extents.of(index) as f64).product::<f64>();
    let empty = |(_, plan): &(usize, Planned)| {
        1.0 - (plan.problem.assembled_elements() as f64 / cells.max(1.0)).min(1.0)
    };
    // Of few of many cells the difference from one is lost.
    let few: f64 = planned.iter().map(|(_, plan)| plan.problem.assembled_elements() as f64).sum();
    let share = 1.0 - planned.iter().map(empty).product::<f64>();
    if few < 1e-6 * cells { few as u64 } else { (share * cells).ceil() as u64 }
}

/// Bytes of the dense operands; saturates.
fn dense_inputs(problem: &Problem) -> u64 {
    let bytes = |input: usize| problem.buffer_bytes(problem.expr.inputs[input].set());
    problem.dense_inputs().map(bytes).fold(0, u64::saturating_add)
}
