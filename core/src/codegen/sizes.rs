//! Numbers that are known before a kernel runs: strides, lengths, extents, vectors of a row.
//!
//! They are literals. Without [`Optimisation::Constants`] they are names, and the kernel reads their
//! values when it begins: [`sizes`] says which it expects, in the order of its declarations.
//!
//! ```c
//! const uint64_t *const sizes = in[7];
//! const uint64_t stride_A2_0 = sizes[0];
//! ```

use crate::codegen::writer::Writer;
use crate::einsum::Index;
use crate::lower::{Bitmaps, Place, Program, Stmt, common_row, lanes};
use crate::optimisation::Optimisation;
use crate::schedule::LevelKind;

/// Returns the numbers that the kernel of `program` reads when it begins; none where they are literals.
pub fn sizes(program: &Program) -> Vec<u64> {
    named(program).into_iter().map(|(_, size)| size).collect()
}

/// Returns these numbers with their names.
pub(super) fn named(program: &Program) -> Vec<(String, u64)> {
    let mut named = Vec::new();
    if literal(program) {
        return named;
    }
    let dense = (0..program.dense.len()).map(Place::Dense);
    let buffers = (0..program.buffers.len()).map(Place::Buffer);
    for place in dense.chain(buffers).chain([Place::Output]) {
        let Some(array) = program.array(place) else { continue };
        let name = name_of(program, place);
        let outer = array.strides.iter().take(array.strides.len().saturating_sub(1));
        named.extend(outer.enumerate().map(|(at, &by)| (format!("stride_{name}_{at}"), by)));
        if !matches!(place, Place::Dense(_)) {
            named.push((format!("len_{name}"), array.len));
        }
    }
    for (array, start) in program.buffers.iter().zip(program.scratch().0) {
        named.extend(start.map(|start| (format!("start_{}", array.name), start)));
    }
    for &buffer in &program.marked {
        let name = &program.buffers[buffer].name;
        let bitmaps = program.bitmaps(buffer).map(|bitmaps| [bitmaps.upper, bitmaps.len]);
        let names = [format!("upper_{name}"), format!("bitmaps_{name}")];
        named.extend(names.into_iter().zip(bitmaps.into_iter().flatten()));
    }
    let levels = program.trees.iter().flat_map(|tree| &tree.levels);
    for level in levels.filter(|at| matches!(at.kind, LevelKind::Dense | LevelKind::Bitmap)) {
        add(&mut named, format!("extent_{}", level.index), level.extent);
    }
    add_loops(program, &program.body, &mut named);
    named
}

/// Adds a number, if its name is not there.
fn add(named: &mut Vec<(String, u64)>, name: String, size: u64) {
    if named.iter().all(|(other, _)| *other != name) {
        named.push((name, size));
    }
}

/// Adds the extents of loops and the vectors of rows in `stmts`.
fn add_loops(program: &Program, stmts: &[Stmt], named: &mut Vec<(String, u64)>) {
    for stmt in stmts {
        match stmt {
            Stmt::LevelLoop { body, .. } | Stmt::Union { body, .. } | Stmt::Within { body, .. } => {
                add_loops(program, body, named);
            }
            Stmt::DenseLoop { index, extent, body, .. } => {
                add(named, format!("extent_{index}"), *extent);
                add_loops(program, body, named);
            }
            Stmt::Product { target, factors, lanes: Some(index), .. } => {
                let row = common_row(program, *target, factors, *index);
                add(named, format!("vectors_{index}"), row / lanes(program, row));
            }
            Stmt::Clear { .. }
            | Stmt::Mark { .. }
            | Stmt::Append { .. }
            | Stmt::Product { lanes: None, .. } => {}
        }
    }
}

/// Tells whether numbers are literals.
fn literal(program: &Program) -> bool {
    program.optimisations.has(Optimisation::Constants)
}

fn name_of(program: &Program, place: Place) -> &str {
    match (place, program.array(place)) {
        (Place::Output, _) | (_, None) => "out",
        (_, Some(array)) => &array.name,
    }
}

impl Writer<'_> {
    /// Tells whether numbers are literals.
    pub(super) fn literal(&self) -> bool {
        literal(self.program)
    }

    /// A number that is `size` or has this name.
    fn size(&self, size: u64, name: impl FnOnce() -> String) -> String {
        if self.literal() { size.to_string() } else { name() }
    }

    /// The distance between neighbours along index number `at` of an array; along the last it is 1.
    pub(super) fn stride(&self, place: Place, at: usize) -> String {
        let strides = &self.program.array(place).expect("a place with elements").strides;
        match strides.get(at) {
            Some(&by) if at + 1 < strides.len() => {
                self.size(by, || format!("stride_{}_{at}", name_of(self.program, place)))
            }
            _ => "1".to_owned(),
        }
    }

    /// The elements of an array.
    pub(super) fn len(&self, place: Place) -> String {
        let len = self.program.array(place).expect("a place with elements").len;
        self.size(len, || format!("len_{}", name_of(self.program, place)))
    }

    /// Where a buffer begins in scratch memory.
    pub(super) fn start(&self, buffer: usize, start: u64) -> String {
        self.size(start, || format!("start_{}", self.program.buffers[buffer].name))
    }

    /// The words of the upper bitmap of a marked buffer.
    pub(super) fn upper(&self, buffer: usize, bitmaps: Bitmaps) -> String {
        self.size(bitmaps.upper, || format!("upper_{}", self.program.buffers[buffer].name))
    }

    /// The elements that its bitmaps take.
    pub(super) fn bitmaps_len(&self, buffer: usize, bitmaps: Bitmaps) -> String {
        self.size(bitmaps.len, || format!("bitmaps_{}", self.program.buffers[buffer].name))
    }

    /// The iterations of a dense loop.
    pub(super) fn extent(&self, index: Index, extent: u64) -> String {
        self.size(extent, || format!("extent_{index}"))
    }

    /// The vectors of a row over `index`.
    pub(super) fn vectors(&self, index: Index, vectors: u64) -> String {
        self.size(vectors, || format!("vectors_{index}"))
    }
}
