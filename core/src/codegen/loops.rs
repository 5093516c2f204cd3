//! The C text: loops and their frame.  Vector statements are in `vector`.

use std::collections::BTreeSet;
use std::fmt::Write;

use decompose_formats::ints::Width;

use crate::codegen::batch::{Batch, row_of_few};
use crate::codegen::registers::{Kept, kept};
use crate::codegen::sizes::named;
use crate::codegen::{assembled, joined, rows, vector};
use crate::einsum::Index;
use crate::lower::{
    Addressing, Array, LevelParam, Place, Program, Stmt, TreeLevel, TreeParam, Update,
};
use crate::schedule::{Conflict, Fusion};

/// The name of the function in every kernel.
///
/// ```c
/// void decompose_kernel(const void *const *in, value *out, value *boundary, value *scratch,
///                       const uint64_t *task);
/// ```
///
/// `in` holds coordinates and pointers of each level (pointers not for the last) and the values of each
/// sparse operand, the dense operands, and the numbers of [`sizes`](crate::codegen::sizes).  `out` is the output; `boundary`, if not
/// null, takes the first root slice instead.  `scratch` is the memory of large buffers ([`Program::scratch`]).  `task`
/// holds the first node and one past the last node of each level of the first sparse operand, and the number
/// of the roots of each other one.
pub const ENTRY: &str = "decompose_kernel";

/// Writes `program` as a C file of one function [`ENTRY`].
///
/// Equal programs give identical text.
pub fn emit_c(program: &Program) -> String {
    let Kept { registers, memory } = kept(program);
    let mut c = Writer { program, registers, memory, text: String::new(), depth: 0 };
    c.head();
    c.operands();
    c.locals();
    c.stmts(&program.body);
    c.depth = 0;
    c.line("}");
    c.text
}

/// Up to so many levels registers are chosen for each loop apart.
const FEW_LEVELS: usize = 6;

/// Chooses registers for a function as a whole: for each of many loops that takes gcc two thirds of its time.
const ONE_REGION: &str = "#pragma GCC optimize(\"ira-region=one\")";

/// The text as it grows.
pub(super) struct Writer<'a> {
    pub(super) program: &'a Program,
    /// The buffers in vector registers.
    pub(super) registers: BTreeSet<usize>,
    /// Those that must not get there.
    pub(super) memory: BTreeSet<usize>,
    text: String,
    depth: usize,
}

impl Writer<'_> {
    pub(super) fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn open(&mut self, text: &str) {
        self.line(text);
        self.depth += 1;
    }

    /// Ends an indented part without a line of its own.
    pub(super) fn depth_back(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    fn head(&mut self) {
        let value = if self.program.value_bytes == 8 { "double" } else { "float" };
        self.line(&format!("// {}", self.program.title));
        for line in self.program.schedule.lines() {
            self.line(&format!("//   {line}"));
        }
        for line in self.program.to_string().lines().skip(1) {
            self.line(&format!("// | {line}"));
        }
        if self.program.levels().len() > FEW_LEVELS {
            self.line(ONE_REGION);
        }
        self.line("#include <stddef.h>");
        self.line("#include <stdint.h>");
        self.line(&format!("typedef {value} value;"));
        for lanes in vector::lane_counts(self.program) {
            let bytes = lanes as usize * self.program.value_bytes;
            // A vector of one value would go through memory.
            let size = if lanes == 1 { String::new() } else { format!("vector_size({bytes}), ") };
            self.line(&format!("typedef value vec{lanes} __attribute__(({size}may_alias));"));
        }
        self.line(
            "static inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }",
        );
        self.line(
            "static inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }",
        );
        joined::define_seek(self);
        assembled::define(self);
        self.line("");
    }

    fn operands(&mut self) {
        let signature = "(const void *const *in, value *out, value *boundary, value *scratch, \
                         const uint64_t *task)";
        self.line(&format!("void {ENTRY}{signature}"));
        self.open("{");
        let mut slot = 0;
        let mut bind = |c: &mut Self, kind: &str, name: &str| {
            c.line(&format!("const {kind} *restrict {name} = in[{slot}];"));
            slot += 1;
        };
        for (tree, TreeParam { levels, .. }) in self.program.trees.iter().enumerate() {
            let of = numbered(tree);
            for (at, level) in levels.iter().enumerate() {
                let LevelParam { index, storage, fusion, .. } = level;
                bind(self, int_type(storage.coords), &format!("coord{of}_{index}"));
                if at + 1 < levels.len() && *fusion == Fusion::Separate {
                    bind(self, int_type(storage.pointers), &format!("child{of}_{index}"));
                }
            }
            bind(self, "value", &format!("nonzero{of}"));
        }
        for array in &self.program.dense {
            bind(self, "value", &array.name);
        }
        if !self.literal() {
            self.line(&format!("const uint64_t *const sizes = in[{slot}];"));
        }
        for (at, (name, _)) in named(self.program).iter().enumerate() {
            self.line(&format!("const uint64_t {name} = sizes[{at}];"));
        }
        if self.program.conflict != Conflict::Boundary {
            self.line("(void)boundary;");
        }
        if self.program.scratch().1 == 0 {
            self.line("(void)scratch;");
        }
    }

    fn locals(&mut self) {
        assembled::declare(self);
        let (starts, _) = self.program.scratch();
        for (buffer, array) in self.program.buffers.iter().enumerate() {
            if self.registers.contains(&buffer) {
                vector::declare(self, buffer);
            } else if array.indices.is_empty() {
                self.line(&format!("value {} = 0;", array.name));
            } else if let Some(start) = starts[buffer] {
                let start = self.start(buffer, start);
                self.line(&format!("value *restrict const {} = scratch + {start};", array.name));
            } else {
                let (name, len) = (&array.name, array.len);
                // Sums over lanes read the padding, which other statements never write.
                let padded = array.extents.last().is_some_and(|&extent| extent < array.row());
                let zero = if padded { " = {0}" } else { "" };
                self.line(&format!("value {name}[{len}] __attribute__((aligned(64))){zero};"));
            }
        }
    }

    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::Append { outside } => assembled::append(self, outside),
                Stmt::Walk { lead: TreeLevel { tree: 0, level }, located, body }
                    if located.is_empty() =>
                {
                    self.walk(*level, body);
                }
                Stmt::Walk { lead, located, body } => joined::walk(self, *lead, located, body),
                Stmt::Range { index, extent, body }
                    if rows::summed_rows(self, (*index, *extent), body) => {}
                Stmt::Range { index, extent, body } => {
                    let end = self.extent(*index, *extent);
                    self.open(&format!(
                        "for (uint64_t {index} = 0; {index} < {end}; ++{index}) {{"
                    ));
                    self.stmts(body);
                    self.close();
                }
                Stmt::Clear { buffer } => self.clear(*buffer),
                Stmt::Product { target, factors, update, lanes } => match lanes {
                    Some(index) => vector::product(self, *target, factors, *update, *index),
                    None => self.product(*target, factors, *update),
                },
            }
        }
    }

    fn walk(&mut self, level: usize, body: &[Stmt]) {
        if vector::tiled_walk(self, level, body) {
            return;
        }
        let batch = Batch::of(self, level, body);
        if let Some(batch) = &batch {
            let (index, (begin, end)) = (self.program.levels()[level].index, self.bounds(level));
            self.open("{");
            self.line(&format!("uint64_t at_{index} = {begin};"));
            self.line(&format!("const uint64_t end_{index} = {end};"));
            batch.emit(self, level);
            self.open(&format!("for (; at_{index} < end_{index}; ++at_{index}) {{"));
            self.bind_node(level);
        } else {
            self.open_walk(level);
        }
        self.prefetches(level);
        if level > 0 || !row_of_few(self, body) {
            self.stmts(body);
        }
        self.close();
        if batch.is_some() {
            self.close();
        }
    }

    /// Opens the loop over the nodes of `level` and binds the coordinate.
    pub(super) fn open_walk(&mut self, level: usize) {
        let index = self.program.levels()[level].index;
        if let Some(up) = self.fused_above(level) {
            self.open("{");
            self.line(&format!("const uint64_t at_{index} = at_{up};"));
        } else {
            let (begin, end) = self.bounds(level);
            self.open(&format!(
                "for (uint64_t at_{index} = {begin}, end_{index} = {end}; \
                 at_{index} < end_{index}; ++at_{index}) {{"
            ));
        }
        self.bind_node(level);
    }

    /// The index of the level above if one position loop walks both.
    pub(super) fn fused_above(&self, level: usize) -> Option<Index> {
        let up = self.program.levels()[level.checked_sub(1)?];
        (up.fusion == Fusion::WithNext).then_some(up.index)
    }

    /// The index of the position loop that walks `level`, and the place of its end in `task`.  Fused levels have the
    /// same positions: named alike, they are computed once and stay in one register.
    fn position_loop(&self, level: usize) -> (Index, usize) {
        let first = (0..=level).rev().find(|&at| self.fused_above(at).is_none());
        let first = first.expect("nothing is above the first level");
        (self.program.levels()[first].index, 2 * first + 1)
    }

    /// The first node of `level` below the current one above, and one past the last.
    pub(super) fn bounds(&self, level: usize) -> (String, String) {
        let (low, high) = (2 * level, 2 * level + 1);
        match level.checked_sub(1).map(|up| self.program.levels()[up].index) {
            None => (format!("task[{low}]"), format!("task[{high}]")),
            Some(up) => {
                let children = |next: &str| format!("child_{up}[at_{up}{next}]");
                let begin = format!("larger(task[{low}], {})", children(""));
                (begin, format!("smaller(task[{high}], {})", children(" + 1")))
            }
        }
    }

    /// Binds the coordinate of the current node, and the output's row where it follows from it.
    pub(super) fn bind_node(&mut self, level: usize) {
        let index = self.program.levels()[level].index;
        self.line(&format!("const size_t {index} = coord_{index}[at_{index}];"));
        if level == 0 {
            self.bind_row();
        }
        self.bind_position(level);
    }

    /// Points `row` at the output row of the current root slice.
    fn bind_row(&mut self) {
        let Some((root, _)) = self.program.root_row() else { return };
        let at = self.program.output.indices.iter().position(|&index| index == root);
        let at = at.expect("the rows of the output are numbered by the root");
        let own = format!("out + {root} * {}", self.stride(Place::Output, at));
        let row = match self.program.conflict {
            Conflict::Boundary => format!("boundary && at_{root} == task[0] ? boundary : {own}"),
            _ => own,
        };
        self.line(&format!("value *const row = {row};"));
    }

    /// Points `row` at the output's block of the current non-zero, below the last level.
    fn bind_position(&mut self, level: usize) {
        let positions = self.program.addressing == Addressing::Positions;
        if positions && level + 1 == self.program.levels().len() {
            let (index, len) = (self.program.levels()[level].index, self.len(Place::Output));
            self.line(&format!("value *const row = out + at_{index} * {len};"));
        }
    }

    /// Asks for the rows that a later node of `level` will read or add to.
    pub(super) fn prefetches(&mut self, level: usize) {
        for prefetch in self.program.prefetches.iter().filter(|r| r.level == level) {
            let index = self.program.levels()[level].index;
            let Some(array) = self.program.array(prefetch.place) else { continue };
            let (walked, last) = self.position_loop(level);
            let distance = prefetch.distance;
            let ahead = format!("smaller(at_{walked} + {distance}, task[{last}] - 1)");
            // Indices before this one are those of loops around the walk.
            let at = array.indices.iter().position(|&i| i == index);
            let at = at.expect("rows are asked for at the level that numbers them");
            let outer = array.indices[..at].iter().enumerate();
            let stride = |at: usize| self.stride(prefetch.place, at);
            let outer = outer.map(|(at, index)| format!(" + {index} * {}", stride(at)));
            let (outer, name) = (outer.collect::<String>(), self.base(prefetch.place));
            let written = if prefetch.place == Place::Output { ", 1" } else { "" };
            let (stride, bytes) = (stride(at), array.strides[at] * self.program.value_bytes as u64);
            self.open("{");
            self.line(&format!(
                "const char *const ahead = (const char *)({name}{outer} + \
                 (size_t)coord_{index}[{ahead}] * {stride});"
            ));
            if self.literal() {
                for offset in (0..bytes.max(1)).step_by(64) {
                    self.line(&format!("__builtin_prefetch(ahead + {offset}{written});"));
                }
            } else {
                self.line(&format!("for (size_t at = 0; at < {stride} * sizeof(value); at += 64)"));
                self.line(&format!("    __builtin_prefetch(ahead + at{written});"));
            }
            self.close();
        }
    }

    fn clear(&mut self, buffer: usize) {
        if self.registers.contains(&buffer) {
            vector::clear(self, buffer);
            return;
        }
        let array = &self.program.buffers[buffer];
        let (name, len) = (array.name.clone(), self.len(Place::Buffer(buffer)));
        if array.indices.is_empty() {
            self.line(&format!("{name} = 0;"));
        } else {
            self.line(&format!("for (size_t q = 0; q < {len}; ++q) {name}[q] = 0;"));
        }
    }

    fn product(&mut self, target: Place, factors: &[Place], update: Update) {
        let factors: Vec<String> = factors.iter().map(|&place| self.element(place)).collect();
        if let (Place::Output, Addressing::Assembled(workspace)) = (target, self.program.addressing)
        {
            return assembled::add(self, workspace, &factors.join(" * "));
        }
        let sign = if update == Update::Assign { "=" } else { "+=" };
        let target = self.element(target);
        self.line(&format!("{target} {sign} {};", factors.join(" * ")));
    }

    /// The current element of `place`.
    pub(super) fn element(&self, place: Place) -> String {
        match self.program.array(place) {
            None => {
                let tree = if let Place::Value(tree) = place { tree } else { 0 };
                let leaf = self.program.trees[tree].levels.last();
                let leaf = leaf.expect("a sparse operand has levels").index;
                let of = numbered(tree);
                format!("nonzero{of}[at{of}_{leaf}]")
            }
            Some(array) if array.indices.is_empty() && place != Place::Output => {
                if matches!(place, Place::Dense(_)) {
                    format!("{}[0]", array.name)
                } else {
                    array.name.clone()
                }
            }
            Some(array) => format!("{}[{}]", self.base(place), self.offset(place, array, None)),
        }
    }

    /// The pointer from which offsets of `place` count.
    pub(super) fn base(&self, place: Place) -> String {
        match self.program.array(place) {
            Some(array) if place != Place::Output => array.name.clone(),
            _ if self.program.addressing == Addressing::Positions => "row".to_owned(),
            _ if self.program.root_row().is_some() => "row".to_owned(),
            _ => "out".to_owned(),
        }
    }

    /// The distance of the current element of `place` from its base, lanes at zero.
    pub(super) fn offset(&self, place: Place, array: &Array, lanes: Option<Index>) -> String {
        let root = self.program.root_row().map(|(root, _)| root);
        let mut offset = String::new();
        for (at, &index) in array.indices.iter().enumerate() {
            if place == Place::Output && Some(index) == root || Some(index) == lanes {
                continue;
            }
            let plus = if offset.is_empty() { "" } else { " + " };
            // Writing to a string cannot fail.
            let _ = match self.stride(place, at).as_str() {
                "1" => write!(offset, "{plus}{index}"),
                stride => write!(offset, "{plus}{index} * {stride}"),
            };
        }
        if offset.is_empty() { "0".to_owned() } else { offset }
    }
}

/// Returns the number that names of a tree have in generated code; none of the first.
pub(super) fn numbered(tree: usize) -> String {
    if tree == 0 { String::new() } else { (tree + 1).to_string() }
}

pub(super) fn int_type(width: Width) -> &'static str {
    match width {
        Width::W16 => "uint16_t",
        Width::W32 => "uint32_t",
        Width::W64 => "uint64_t",
    }
}
