//! The loop program.
//!
//! ```text
//! stmt  := level loop [join visited*] { stmt* } positions of one tree level below the current node, or marked cells
//!        | union level+ { stmt* }              the coordinates that a level of any of several trees has
//!        | within level { stmt* }              where that level has the coordinate of the union
//!        | dense loop index extent { stmt* }
//!        | clear buffer
//!        | mark buffer                          its cell at the current coordinate of its first index
//!        | append index*                        what was summed of an assembled output
//!        | place (=|+=) place * ... * place [over lanes of index]
//! place := the current non-zero of a tree | dense operand | buffer | output
//! ```
//!
//! A level loop that joins levels of other trees visits the coordinates that all of them have: its own level leads, and
//! each coordinate is located in the others.  A buffer whose cells are marked can lead and be located like a level.
//!
//! A union visits the coordinates of the sum of several products, each with a tree of its own.  Below a level that lacks
//! the current coordinate there are no nodes.
//!
//! A statement over *lanes* stands for the innermost dense loop over an index that every array
//! in it stores contiguously: one vector statement.  Arrays are addressed by the indices that the
//! loops around them bind.

use std::collections::BTreeSet;

use decompose_formats::dense::padded;
use decompose_formats::narrow_ints::Width;

use crate::einsum::Index;
use crate::optimisation::{Optimisation, Optimisations};
use crate::schedule::{
    Chunks, Command, Conflict, LevelKind, Space, TaskCut, TreeLevel, Vectors, Visited, Workspace,
};

/// A kernel as loops.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The expression, for people.
    pub title: String,
    /// The schedule, for people.
    pub schedule: String,
    /// Size of a value in bytes: 8 or 4.
    pub value_bytes: usize,
    /// The sparse operands; the first one is cut into tasks.
    pub trees: Vec<TreeParam>,
    /// The dense operands, in the order of the expression; each may store its indices in another
    /// order than the expression names them.
    pub dense: Vec<Array>,
    /// The output; if it has the first sparse operand's pattern, the block at one position; if it is assembled, the
    /// workspace.
    pub output: Array,
    /// How the output is addressed.
    pub addressing: Addressing,
    /// The buffers.
    pub buffers: Vec<Array>,
    /// Where those are kept that vector registers could hold.
    pub kept: Kept,
    /// Those whose cells are marked, ascending: a cell is a coordinate of the first index.
    pub marked: Vec<usize>,
    /// How tasks share the output.
    pub conflict: Conflict,
    /// Into which tasks the work is cut.
    pub tasks: Tasks,
    /// The loops that become vector code.
    pub vectors: Vectors,
    /// What the executor clears before the kernel runs.
    pub zeroing: Zeroing,
    /// Rows prefetched.
    pub prefetches: Vec<PrefetchRow>,
    /// What generated code makes use of.
    pub optimisations: Optimisations,
    /// The statements.
    pub body: Vec<Stmt>,
}

/// A sparse operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeParam {
    /// Its name.
    pub name: String,
    /// Its levels, root first.
    pub levels: Vec<LevelParam>,
}

/// How a level is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelStorage {
    /// The width of its coordinates.
    pub coords: Width,
    /// The width of its pointers; of no meaning at the last level and at fused ones.
    pub pointers: Width,
}

/// Pieces of the nodes of the next level below each node of the level above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Whether the size of a piece is given or their number; of strided ones, the distance of nodes or their number.
    pub command: Command,
    /// That number.
    pub factor: u64,
    /// Which nodes a piece has.
    pub chunks: Chunks,
}

/// A level of a sparse operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelParam {
    /// The index that it stores.
    pub index: Index,
    /// Its extent: all coordinates are below.
    pub extent: u64,
    /// How it is stored.
    pub storage: LevelStorage,
    /// Of which kind it is.
    pub kind: LevelKind,
    /// The pieces that it numbers, if it is no level of the stored tree.
    pub pieces: Option<Pieces>,
}

impl TreeParam {
    /// Returns the levels that are stored.
    pub fn stored(&self) -> impl Iterator<Item = &LevelParam> {
        self.levels.iter().filter(|level| level.pieces.is_none())
    }

    /// Tells whether the stored level number `level` has pointers to its nodes' children: there are some, and not in the
    /// same positions.
    pub fn points(&self, level: usize) -> bool {
        self.stored().nth(level + 1).is_some_and(|next| next.kind != LevelKind::Singleton)
    }

    /// Returns which of the stored levels level number `level` is; of one that numbers pieces, which they are of.
    pub fn stored_place(&self, level: usize) -> usize {
        self.levels[..level].iter().filter(|level| level.pieces.is_none()).count()
    }
}

/// A dense array: operand, output or buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name in generated code.
    pub name: String,
    /// Its indices, outermost first.
    pub indices: Vec<Index>,
    /// The extent of each index.
    pub extents: Vec<u64>,
    /// The distance between neighbours along each index, in elements; rows are padded.
    pub strides: Vec<u64>,
    /// The number of elements, padding included; 1 for a scalar.
    pub len: u64,
}

impl Array {
    /// Lays out an array row-major, its rows padded for values of `value_bytes`.
    pub fn new(name: &str, dims: &[(Index, u64)], value_bytes: usize) -> Array {
        let mut strides = vec![1; dims.len()];
        let mut len = 1;
        for (at, &(_, extent)) in dims.iter().enumerate().rev() {
            strides[at] = len;
            let last = at + 1 == dims.len();
            let width = if last { padded(extent as usize, value_bytes) as u64 } else { extent };
            len *= width;
        }
        Array {
            name: name.to_owned(),
            indices: dims.iter().map(|&(index, _)| index).collect(),
            extents: dims.iter().map(|&(_, extent)| extent).collect(),
            strides,
            len,
        }
    }

    /// Returns the padded length of a row: of the last index.
    pub fn row(&self) -> u64 {
        let above = self.strides.len().checked_sub(2).map(|at| self.strides[at]);
        above.unwrap_or(self.len)
    }
}

/// The bitmaps of a marked buffer: one of the words of the other, then one of its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitmaps {
    /// The words of 64 bits of the upper one.
    pub upper: u64,
    /// The elements that both take in scratch memory.
    pub len: u64,
}

/// Into which tasks the work is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// What they have equally much of.
    pub space: Space,
    /// How large they are, or how many; `None`: as many as follow from the threads.
    pub cut: Option<TaskCut>,
    /// How many a thread has, where that decides.
    pub per_thread: usize,
}

/// How an output is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// By the coordinates of its indices.
    Coordinates,
    /// By the position of the current non-zero: one block each.
    Positions,
    /// By cells of a workspace that is appended to a list, in which the number of a cell is that of its element.
    Assembled(Workspace),
}

/// Where the buffers that vector registers could hold are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// In registers.
    pub registers: BTreeSet<usize>,
    /// In memory, though registers could hold each of them alone: a C compiler would put them there
    /// too, and others on the stack.
    pub memory: BTreeSet<usize>,
}

/// What the executor clears before a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeroing {
    /// Rows of the output without a root slice: the kernel assigns all others, and all positions.
    Gaps,
    /// The whole output: the kernel adds to it.
    All,
}

/// Rows of a dense operand or of the output prefetched in the loop over a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchRow {
    /// The level whose coordinates address the rows.
    pub level: usize,
    /// Whose rows.
    pub place: Place,
    /// How many positions ahead.
    pub distance: u64,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Visits the children, at a level, of the current node of the level above, or the roots; or the marked cells of a
    /// buffer.
    LevelLoop {
        /// Whose coordinates are visited.
        lead: Visited,
        /// Levels of other trees, in whose current nodes the coordinate is located, and marked buffers; where one
        /// lacks it, it is passed over.
        located: Vec<Visited>,
        /// Which nodes are taken together.
        together: Together,
        /// What is done at each node.
        body: Vec<Stmt>,
    },
    /// Visits the coordinates, ascending, that any of several levels has below the current nodes of the levels above.
    Union {
        /// The levels, each of another tree, all of the same index.
        leads: Vec<TreeLevel>,
        /// What is done at each coordinate.
        body: Vec<Stmt>,
    },
    /// Does something where a level of the union around has the current coordinate.
    Within {
        /// The level.
        lead: TreeLevel,
        /// What is done.
        body: Vec<Stmt>,
    },
    /// Counts an index from 0 to its extent.
    DenseLoop {
        /// The index.
        index: Index,
        /// Its extent.
        extent: u64,
        /// Which iterations are taken together.
        together: Together,
        /// What is done for each.
        body: Vec<Stmt>,
    },
    /// Sets a buffer to zero, and no cell of it is marked any more.
    Clear {
        /// The buffer.
        buffer: usize,
    },
    /// Marks a cell of a buffer.
    Mark {
        /// The buffer.
        buffer: usize,
    },
    /// Appends what was summed of an assembled output to its list, and empties the workspace.
    Append {
        /// The indices whose coordinates all of it shares.
        outside: Vec<Index>,
    },
    /// Multiplies.
    Product {
        /// Where the product goes.
        target: Place,
        /// What is multiplied.
        factors: Vec<Place>,
        /// Whether the target is replaced or added to.
        update: Update,
        /// The index of the vector loop; a target without it receives the sum over it.
        lanes: Option<Index>,
    },
}

/// Which iterations of a loop are taken together: the sums are the same but for their rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Together {
    /// None.
    #[default]
    One,
    /// Those that add values to one scalar: so many partial sums side by side.
    Sums {
        /// How many.
        parts: u64,
    },
    /// Those that add rows to one row, of which so many tiles stay in registers, one after the other.
    Tiles {
        /// How many.
        tiles: u64,
    },
    /// Those that add outer products to one matrix: so many nodes at a time.
    Batch {
        /// How many.
        nodes: u64,
    },
    /// Rows of the output that are a sum of outer products of no more nodes than this are set at once.
    ShortRows {
        /// How many.
        nodes: u64,
    },
}

/// Whether a target is replaced or added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `=`
    Assign,
    /// `+=`
    Add,
}

/// An operand of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The value of the current non-zero of a tree.
    Value(usize),
    /// A dense operand.
    Dense(usize),
    /// A buffer.
    Buffer(usize),
    /// The output.
    Output,
}

/// Buffers of up to this many bytes stand on the stack of a task, larger ones in its scratch memory.
const STACK_BYTES: u64 = 16 << 10;

/// Tells whether the output is written outside of loops over `level` of the first tree: in another loop
/// over its index, other rows are.
fn writes_outside(body: &[Stmt], level: usize) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::LevelLoop { lead, body, .. } => {
            *lead != Visited::Level(TreeLevel { tree: 0, level }) && writes_outside(body, level)
        }
        Stmt::DenseLoop { body, .. } | Stmt::Union { body, .. } | Stmt::Within { body, .. } => {
            writes_outside(body, level)
        }
        Stmt::Product { target, .. } => *target == Place::Output,
        Stmt::Clear { .. } | Stmt::Mark { .. } | Stmt::Append { .. } => false,
    })
}

impl Program {
    /// Returns where each buffer begins in a task's scratch memory, `None` for one on the stack,
    /// and the number of elements of that memory.  Where sizes are no constants, no array is on the stack.  That of a
    /// marked buffer begins with its bitmaps.
    pub fn scratch(&self) -> (Vec<Option<u64>>, u64) {
        let mut len = 0;
        let mut place = |(buffer, array): (usize, &Array)| {
            let sized =
                !self.optimisations.has(Optimisation::Constants) && !array.indices.is_empty();
            let bitmaps = self.bitmaps(buffer);
            let bytes = array.len * self.value_bytes as u64;
            let large = sized || bytes > STACK_BYTES || bitmaps.is_some();
            let start = large.then_some(len);
            if large {
                len += bitmaps.map_or(0, |bitmaps| bitmaps.len);
                len += array.len.next_multiple_of(64 / self.value_bytes as u64);
            }
            start
        };
        let starts = self.buffers.iter().enumerate().map(&mut place).collect();
        (starts, len)
    }

    /// Returns the bitmaps of a buffer whose cells are marked.
    pub fn bitmaps(&self, buffer: usize) -> Option<Bitmaps> {
        self.marked.binary_search(&buffer).ok()?;
        let lower = self.buffers[buffer].extents[0].div_ceil(64);
        let upper = lower.div_ceil(64);
        let bytes = ((lower + upper) * 8).next_multiple_of(64);
        Some(Bitmaps { upper, len: bytes / self.value_bytes as u64 })
    }

    /// Returns the index of what is visited.
    pub fn index_of(&self, at: Visited) -> Index {
        match at {
            Visited::Level(at) => self.level(at).index,
            Visited::Buffer(buffer) => self.buffers[buffer].indices[0],
        }
    }

    /// Returns the index whose coordinate is the row of the output, and its stride, if the first
    /// level of the sparse operand gives rows of the output, which is not assembled.
    pub fn root_row(&self) -> Option<(Index, u64)> {
        let root = self.levels().first().filter(|_| !self.is_assembled())?.index;
        let at = self.output.indices.iter().position(|&index| index == root)?;
        Some((root, self.output.strides[at]))
    }

    /// Returns the stored level whose coordinates number the rows of the output when a part of it is written
    /// alone, and the elements of such a row: the first level where tasks own its rows, that of the
    /// outermost index for private copies and ranges, if only its nodes are written to; `None` if the output
    /// has no such rows.
    pub fn numbered_rows(&self) -> Option<(usize, u64)> {
        let owned = self.root_row().filter(|_| self.conflict != Conflict::Privatise);
        if let Some((_, stride)) = owned {
            return Some((0, stride));
        }
        if self.is_assembled() {
            return None;
        }
        let (&outermost, inner) = self.output.indices.split_first()?;
        let level = self.levels().iter().position(|level| level.index == outermost);
        let level = level.filter(|_| !inner.is_empty())?;
        let counted = writes_outside(&self.body, level);
        let stored = self.trees.first().map_or(level, |tree| tree.stored_place(level));
        (!counted).then_some((stored, self.output.strides[0]))
    }

    /// Returns the levels of the first sparse operand, root first.
    pub fn levels(&self) -> &[LevelParam] {
        self.trees.first().map_or(&[], |tree| &tree.levels)
    }

    /// Returns a level.
    pub fn level(&self, at: TreeLevel) -> &LevelParam {
        &self.trees[at.tree].levels[at.level]
    }

    /// Returns the index of the level above if one position loop runs over both.
    pub(crate) fn fused_above(&self, level: usize) -> Option<Index> {
        let up = self.levels()[level.checked_sub(1)?];
        (self.levels()[level].kind == LevelKind::Singleton).then_some(up.index)
    }

    /// Tells whether the nodes of `level` in a piece are no neighbours.
    pub(crate) fn is_strided(&self, level: usize) -> bool {
        let up = level.checked_sub(1).and_then(|up| self.levels()[up].pieces);
        up.is_some_and(|pieces| pieces.chunks == Chunks::Strided)
    }

    /// Tells whether the output is assembled.
    pub fn is_assembled(&self) -> bool {
        matches!(self.addressing, Addressing::Assembled(_))
    }

    /// Tells whether elements of an assembled output are appended slice by slice of the root, in its order.
    pub fn appends_by_root(&self) -> bool {
        self.outside().first() == self.levels().first().map(|root| &root.index)
            && !self.outside().is_empty()
    }

    /// Returns the indices whose coordinates are given when elements of an assembled output are appended.
    pub fn outside(&self) -> &[Index] {
        fn find(stmts: &[Stmt]) -> Option<&[Index]> {
            stmts.iter().find_map(|stmt| match stmt {
                Stmt::Append { outside } => Some(outside.as_slice()),
                Stmt::LevelLoop { body, .. }
                | Stmt::Union { body, .. }
                | Stmt::Within { body, .. }
                | Stmt::DenseLoop { body, .. } => find(body),
                Stmt::Clear { .. } | Stmt::Mark { .. } | Stmt::Product { .. } => None,
            })
        }
        find(&self.body).unwrap_or_default()
    }

    /// Returns how many cells of the workspace of an assembled output are met together: those of a row if a statement
    /// over lanes writes it.
    pub fn cells_met_together(&self) -> u64 {
        self.cells_met_together_in(&self.body)
    }

    /// Returns what [`Program::cells_met_together`] is for the statements `body`.
    pub(super) fn cells_met_together_in(&self, body: &[Stmt]) -> u64 {
        fn over_lanes(stmts: &[Stmt], own: Index) -> bool {
            stmts.iter().any(|stmt| match stmt {
                Stmt::LevelLoop { body, .. }
                | Stmt::Union { body, .. }
                | Stmt::Within { body, .. }
                | Stmt::DenseLoop { body, .. } => over_lanes(body, own),
                Stmt::Product { target, lanes, .. } => {
                    *target == Place::Output && *lanes == Some(own)
                }
                Stmt::Clear { .. } | Stmt::Mark { .. } | Stmt::Append { .. } => false,
            })
        }
        let last = self.output.indices.last().zip(self.output.extents.last());
        match last {
            Some((&index, &extent)) if over_lanes(body, index) => extent,
            _ => 1,
        }
    }

    /// Returns the trees whose roots are united; none unless the program computes a sum.
    pub fn united(&self) -> impl Iterator<Item = usize> + '_ {
        let leads = self.body.iter().flat_map(|stmt| match stmt {
            Stmt::Union { leads, .. } => leads.as_slice(),
            _ => &[],
        });
        leads.map(|lead| lead.tree)
    }

    /// Returns the array of `place`; `None` for the value of a sparse operand.
    pub fn array(&self, place: Place) -> Option<&Array> {
        match place {
            Place::Value(_) => None,
            Place::Dense(dense) => Some(&self.dense[dense]),
            Place::Buffer(buffer) => Some(&self.buffers[buffer]),
            Place::Output => Some(&self.output),
        }
    }
}
