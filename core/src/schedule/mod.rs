//! Schedules: every decision about how an expression is computed, and nothing else.
//!
//! A [`Problem`] is what is asked: an expression, the extents, what is known of the sparse
//! operands.  A [`Schedule`] is an answer: splits, path, loop nest, layouts, parallel loop,
//! prefetches.  It is a plain value that prints, parses back, and is judged legal in one place,
//! [`Schedule::verify`].  Searches make schedules; lowering never knows which one did.

mod branched;
mod directive;
mod format;
mod infer;
mod legal;
mod loop_nest;
mod pattern;
mod problem;
mod split;
mod text;
mod workspace;

use crate::einsum::Index;
use crate::nest::{Forest, Node};
use crate::path::Path;

pub use branched::Branched;
pub use directive::Directive;
pub use format::{Format, LevelKind};
pub use infer::{Inferred, InferredLevel, infer};
pub use legal::Rule;
pub(crate) use legal::{MOST_LOCATED, MOST_WORKSPACE_CELLS};
pub use loop_nest::{
    Accumulator, Intermediate, Loop, LoopNest, Marks, Over, Step, TreeLevel, Visited, resolve,
};
pub use pattern::Pattern;
pub(crate) use pattern::spread_pairs;
pub use problem::{
    JoinCounts, OutputForm, Packing, Problem, SparseOperand, StoredTree, Storing, has_pattern_of,
};
pub use split::{Chunks, Command, Cut, Split, SplitIndex, free_letter};
pub use workspace::Workspace;
pub(crate) use workspace::has_rows;

/// All decisions about one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The indices that are cut into pieces, whose parts everything else names.
    pub splits: Vec<Split>,
    /// In which products the expression is computed.
    pub path: Path,
    /// Which loops run around them.
    pub nest: Forest,
    /// The storage of each sparse operand, in the order of the problem's list.
    pub layouts: Vec<Layout>,
    /// The storage of each intermediate, one a term but the last.
    pub buffers: Vec<BufferKind>,
    /// Where an assembled output is summed up.
    pub workspace: Option<Workspace>,
    /// The loop that is cut into tasks.
    pub parallel: Option<Parallel>,
    /// The loops that become vector code.
    pub vectors: Vectors,
    /// Dense operands whose rows are prefetched.
    pub prefetches: Vec<Prefetch>,
}

/// Tasks a thread where any number is allowed: enough to even out what equal numbers of non-zeros do
/// not.
const TASKS_PER_THREAD: usize = 16;

/// Slices of an output that tasks share are long from this many bytes on,
const LONG_SLICE: u64 = 32 << 10;

/// and an output with fewer slices is short: tasks would share as much as there is.
const FEW_SLICES: u64 = 64;

impl Schedule {
    /// Returns into how many tasks a thread the work is cut.
    ///
    /// One where each has a copy of the output, or appends elements that others append too.
    ///
    /// One also where the loops over the tree stand inside dense loops: every task runs these anew, and what those over
    /// the tree found near in one iteration it must fetch again in every task.
    ///
    /// One also where tasks share long slices of a short output, which they clear and add besides.
    pub fn tasks_per_thread(&self, problem: &Problem) -> usize {
        let Some(parallel) = self.parallel else { return 1 };
        let repeated = |node: &Node| match node {
            Node::Loop { index, body } => {
                *index != parallel.index && loops_over(body, parallel.index)
            }
            Node::Term(_) => false,
        };
        let copied = match parallel.conflict {
            Conflict::Assemble => !problem.expr.output.set().contains(parallel.index),
            conflict => conflict == Conflict::Privatise,
        };
        let long = parallel.conflict == Conflict::Boundary
            && problem.extents.of(parallel.index) < FEW_SLICES
            && problem.slice_bytes(parallel.index) >= LONG_SLICE;
        let few = copied || long || self.nest.roots.iter().any(repeated);
        if few { 1 } else { TASKS_PER_THREAD }
    }
}

fn loops_over(nodes: &[Node], root: Index) -> bool {
    nodes.iter().any(|node| match node {
        Node::Loop { index, body } => *index == root || loops_over(body, root),
        Node::Term(_) => false,
    })
}

/// The storage of a sparse operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The input of the expression that is stored so; `None` for the only sparse one.
    pub input: Option<usize>,
    /// Its levels.
    pub format: Format,
}

/// The storage of an intermediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferKind {
    /// An array over its stored indices.
    Dense,
    /// An array, and bitmaps of the coordinates of its first index that were met.  Only these are read and cleared
    /// (Scorch's sparse workspaces).
    Sparse,
}

/// The parallel loop.
///
/// Every nest can be cut along the sparse operand: the result is linear in it, so each task runs
/// the whole nest on a part of the non-zeros, and the results add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parallel {
    /// The index of the loop: the first level of the sparse operand.
    pub index: Index,
    /// What is cut into equal parts.
    pub space: Space,
    /// What happens when two tasks write the same element.
    pub conflict: Conflict,
    /// How large tasks are, or how many; `None`: as many as [`Schedule::tasks_per_thread`] says.
    pub tasks: Option<TaskCut>,
}

/// Tasks of a given size, or a given number of them, whatever the number of threads.
///
/// ```text
/// parallel i position boundary split 4096    tasks of 4,096 non-zeros
/// parallel i coordinate owner divide 64      64 tasks of equally many coordinates
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskCut {
    /// Whether the size is given or the number.
    pub command: Command,
    /// That number.
    pub factor: u64,
}

impl TaskCut {
    /// Returns how many coordinates or non-zeros a task has, where there are `units` of them.
    pub fn size(&self, units: u64) -> u64 {
        match self.command {
            Command::Split => self.factor.max(1),
            Command::Divide => units.div_ceil(self.factor.max(1)).max(1),
        }
    }
}

/// Which loop becomes vector code.
///
/// A dense loop becomes one vector statement, a loop over a level adds up several partial sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Vectors {
    /// Every loop that can.
    #[default]
    All,
    /// None.
    None,
    /// Loops over this index only.
    Over(Index),
}

impl Vectors {
    /// Tells whether a loop over `index` may become vector code.
    pub fn allow(self, index: Index) -> bool {
        match self {
            Vectors::All => true,
            Vectors::None => false,
            Vectors::Over(own) => own == index,
        }
    }
}

/// What a partition cuts into equal parts (Wang, "Automatic Optimization of Sparse Tensor Algebra
/// Programs", 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The range of coordinates.
    Coordinate,
    /// The non-zeros: equal work whatever their coordinates.
    Position,
}

/// How tasks share the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conflict {
    /// Tasks end where root slices end, or blocks that are ranges of the result's rows: no element has two
    /// writers.
    Owner,
    /// Tasks may end inside a root slice; the part of a slice that began in an earlier task goes
    /// to a side buffer and is added when all tasks are done.
    Boundary,
    /// Every task has its own copy of the output; the copies are summed in order.
    Privatise,
    /// Tasks end between non-zeros and own their positions of an output with the operand's pattern.
    Positions,
    /// Every task has its own list of the elements of an assembled output; the lists follow each other, and
    /// elements of the same coordinates are summed.
    Assemble,
}

/// Rows prefetched before their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefetch {
    /// Whose rows.
    pub of: PrefetchOf,
    /// How many iterations ahead.
    pub distance: u64,
}

/// What rows may be prefetched of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrefetchOf {
    /// A dense input of the expression, by position.
    Input(usize),
    /// The output, addressed by coordinates that do not follow the root.
    Output,
}
