//! Kernels: compiled or interpreted, called the same way.
#![expect(unsafe_code, reason = "loading and calling compiled kernels")]

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use decompose_formats::{Csf, Ints, Value};
use libloading::Library;

use crate::codegen::{ENTRY, emit_c, sizes};
use crate::error::CoreError;
use crate::lower::{
    Addressing, Arrays, Assembly, JoinedTree, Locator, Operands, Program, TreeParam, interpret,
};
use crate::runtime::compiler::{Built, Toolchain, UNNEEDED};
use crate::schedule::{Conflict, LevelKind};

/// The signature of [`ENTRY`].
pub(super) type Entry =
    unsafe extern "C" fn(*const *const c_void, *mut c_void, *mut c_void, *mut c_void, *const u64);

/// A program that can be run.
#[derive(Clone)]
pub struct Kernel {
    program: Arc<Program>,
    code: Code,
    /// The numbers that the compiled code reads.
    sizes: Arc<[u64]>,
}

#[derive(Clone)]
enum Code {
    Native { entry: Entry, origin: Origin, _library: Arc<Library> },
    Interpreted { why: Uncompiled },
}

/// Why there is no compiled code.
#[derive(Clone)]
enum Uncompiled {
    /// It could not be made.
    Failed(String),
    /// It would have taken longer than it saves.
    Unneeded,
}

/// Where compiled code came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The C file.
    pub source: PathBuf,
    /// Seconds the compiler ran; `None` if the kernel was in the cache.
    pub compiled_in: Option<f64>,
}

/// A program and its compiled file, not yet loaded.
pub(crate) struct Compiled {
    program: Program,
    /// The file, or why there is none.
    built: Result<Built, Uncompiled>,
}

impl Compiled {
    /// Compiles `program`, or finds it in the cache, if the toolchain can.
    pub(crate) fn new(program: Program, toolchain: &Toolchain) -> Compiled {
        let built = match toolchain {
            Toolchain::Interpreter(why) => Err(Uncompiled::Failed(why.clone())),
            Toolchain::Unneeded => Err(Uncompiled::Unneeded),
            Toolchain::Native(compiler) => {
                compiler.build(&emit_c(&program)).map_err(Uncompiled::Failed)
            }
        };
        Compiled { program, built }
    }

    /// Makes a kernel of it.
    ///
    /// The system maps the file, for which it waits until no other thread takes pages: while trees are built
    /// these wait for each other.
    pub(crate) fn load(self) -> Kernel {
        let code = self.built.and_then(|built| {
            let origin = Origin { source: built.source, compiled_in: built.compiled_in };
            load(&built.object, origin).map_err(Uncompiled::Failed)
        });
        let code = code.unwrap_or_else(|why| Code::Interpreted { why });
        let sizes = sizes(&self.program).into();
        Kernel { program: Arc::new(self.program), code, sizes }
    }
}

impl Kernel {
    /// Makes a kernel of `program`: compiled if the toolchain can, interpreted otherwise.
    ///
    /// A compiler that fails, or a file that cannot be loaded, is no error either: the kernel is
    /// interpreted and [`Kernel::interpreted`] says why.
    pub fn new(program: Program, toolchain: &Toolchain) -> Kernel {
        Compiled::new(program, toolchain).load()
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns where the compiled code is; `None` if the kernel is interpreted.
    pub fn origin(&self) -> Option<&Origin> {
        match &self.code {
            Code::Native { origin, .. } => Some(origin),
            Code::Interpreted { .. } => None,
        }
    }

    /// Returns why the kernel is interpreted; `None` if it is compiled.
    pub fn interpreted(&self) -> Option<&str> {
        match &self.code {
            Code::Native { .. } => None,
            Code::Interpreted { why: Uncompiled::Failed(why) } => Some(why),
            Code::Interpreted { why: Uncompiled::Unneeded } => Some(UNNEEDED),
        }
    }

    /// Returns why the kernel could not be compiled; `None` if it is compiled, or need not be.
    pub fn failed(&self) -> Option<&str> {
        match &self.code {
            Code::Interpreted { why: Uncompiled::Failed(why) } => Some(why),
            _ => None,
        }
    }

    /// Checks that `operands` have the shapes that the program was made for.
    ///
    /// Everything that a compiled kernel trusts is checked here: value and index widths, levels,
    /// lengths of the dense operands, alignment, the rows of the output.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] naming the one that does not fit.
    fn check<V: Value>(&self, operands: &Operands<V>) -> Result<(), CoreError> {
        let program = &*self.program;
        let bad = |operand: &str, why: String| {
            Err(CoreError::Operand { operand: operand.to_owned(), why })
        };
        if !self.fits(operands) {
            return bad(
                &program.trees[0].name,
                "extents, levels, widths, nodes or values differ from the kernel's".into(),
            );
        }
        let others = program.trees.iter().skip(1);
        if operands.beside.len() + 1 != program.trees.len() {
            return bad("sparse operands", format!("{} beside the first", operands.beside.len()));
        }
        let differs = |(param, have): &(&TreeParam, &JoinedTree<V>)| {
            !is_stored(param, have.tree()) || !have.fits(&param.levels)
        };
        let beyond =
            |beside: usize| operands.roots_of(beside).end > operands.beside[beside].nodes(0);
        if (0..operands.beside.len()).any(beyond) {
            return bad("sparse operands", "roots that one of them does not have".into());
        }
        if let Some((tree, _)) = others.zip(operands.beside).find(differs) {
            return bad(&tree.name, "extents, levels or widths differ from the kernel's".into());
        }
        if program.dense.len() != operands.dense.len() {
            return bad("dense operands", format!("{} given", operands.dense.len()));
        }
        // Rows shorter than a cache line are aligned to their own length.
        let aligned = |row: u64, slice: &[V]| {
            (slice.as_ptr() as usize).is_multiple_of((row as usize * V::BYTES).min(64))
        };
        for (array, slice) in program.dense.iter().zip(operands.dense) {
            if (slice.len() as u64) < array.len || !aligned(array.row(), slice) {
                let (have, want) = (slice.len(), array.len);
                return bad(&array.name, format!("{have} aligned elements, {want} needed"));
            }
        }
        if let Addressing::Assembled(workspace) = program.addressing {
            let own = operands.assembly.as_deref();
            return match own.is_some_and(|own| own.is_for(workspace, program.output.len)) {
                true => Ok(()),
                false => Err(CoreError::Internal("an output without its assembly".into())),
            };
        }
        let output = &program.output;
        let written = [(Some(&operands.output), self.written(operands))];
        let boundary = [(operands.boundary.as_ref(), self.slice_len())];
        for (rows, want) in written.into_iter().chain(boundary) {
            let Some(rows) = rows else { continue };
            let have = rows.len() as u64;
            if have < want {
                return bad(&output.name, format!("{have} elements, {want} needed"));
            }
            if !aligned(output.row().min(self.slice_len()), rows) {
                return bad(&output.name, "the rows are not aligned".into());
            }
        }
        Ok(())
    }

    /// Tells whether the tree is one that the kernel walks.
    fn fits<V: Value>(&self, operands: &Operands<V>) -> bool {
        let program = &*self.program;
        let levels = operands.sparse.levels();
        program.trees.first().is_some_and(|tree| {
            is_stored(tree, operands.sparse) && has_full_levels(tree, operands.sparse)
        }) && operands.nodes.len() == levels.len()
            && operands.values.len() == operands.sparse.nnz()
            && program.value_bytes == V::BYTES
            && levels.iter().zip(operands.nodes).enumerate().all(|(at, (level, nodes))| {
                let coords = operands.coords(at);
                coords.width() == level.coords.width()
                    && coords.len() == level.coords.len()
                    && nodes.start <= nodes.end
                    && nodes.end <= level.coords.len() as u64
            })
    }

    /// Returns one past the last element of the output's slice that the kernel may write.
    fn written<V: Value>(&self, operands: &Operands<V>) -> u64 {
        let Program { output, conflict, .. } = &*self.program;
        let first = operands.first_row;
        let (Some(roots), Some(leaves)) = (operands.nodes.first(), operands.nodes.last()) else {
            return 0;
        };
        match (conflict, self.program.root_row()) {
            (Conflict::Positions, _) => leaves.end.saturating_sub(first) * self.slice_len(),
            (Conflict::Owner | Conflict::Boundary, Some(_)) => {
                let apart = u64::from(operands.boundary.is_some());
                if roots.end <= roots.start + apart {
                    return 0;
                }
                let last = operands.coords(0).get(roots.end as usize - 1);
                (last + 1).saturating_sub(first) * self.slice_len()
            }
            (Conflict::Privatise | Conflict::Owner, _) => {
                match (&operands.window, self.program.numbered_rows()) {
                    (Some(rows), Some((_, stride))) => rows.end.saturating_sub(first) * stride,
                    _ => output.len,
                }
            }
            _ => output.len,
        }
    }

    /// Returns the elements that a task owns together: the output's block of a root slice, of a row in its range,
    /// or of a position, or else all of it.
    pub(super) fn slice_len(&self) -> u64 {
        let Program { output, conflict, .. } = &*self.program;
        match (conflict, self.program.numbered_rows()) {
            (Conflict::Owner | Conflict::Boundary, Some((_, stride))) => stride,
            _ => output.len,
        }
    }

    /// Runs the kernel over the nodes that `operands` name, with the memory that
    /// [`Program::scratch`] asks for.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if an operand does not have the shape that the kernel expects.
    pub(super) fn run<V: Value>(
        &self,
        operands: Operands<V>,
        scratch: &mut [V],
    ) -> Result<(), CoreError> {
        self.check(&operands)?;
        if (scratch.len() as u64) < self.program.scratch().1 {
            return Err(CoreError::Internal("a kernel without its scratch memory".into()));
        }
        if operands.nodes.iter().any(|nodes| nodes.is_empty()) {
            return Ok(());
        }
        match &self.code {
            Code::Interpreted { .. } => interpret(&self.program, operands),
            Code::Native { entry, .. } => {
                call(*entry, &self.program, &self.sizes, operands, scratch);
            }
        }
        Ok(())
    }
}

/// Tells whether `tree` is stored as the kernel reads it.
fn is_stored<V: Value>(params: &TreeParam, tree: &Csf<V>) -> bool {
    let extents = tree.mode_order().modes().iter().map(|&mode| tree.extents()[mode]);
    tree.levels().len() == params.stored().count()
        && extents.zip(params.stored()).all(|(have, level)| have <= level.extent)
        && tree.levels().iter().zip(params.stored()).enumerate().all(|(at, (level, param))| {
            let leaf = at + 1 == tree.levels().len();
            let points = params.points(at);
            level.coords.width() == param.storage.coords
                && (leaf || points != level.pointers.is_empty())
                && (!points || level.pointers.width() == param.storage.pointers)
        })
}

/// Tells whether the dense levels of the first tree have every coordinate below each node above.
fn has_full_levels<V: Value>(params: &TreeParam, tree: &Csf<V>) -> bool {
    let nodes = |at: usize| tree.levels()[at].coords.len() as u64;
    params.stored().enumerate().all(|(at, level)| {
        let above = at.checked_sub(1).map_or(1, nodes);
        level.kind != LevelKind::Dense || nodes(at) == above * level.extent
    })
}

fn load(object: &Path, origin: Origin) -> Result<Code, String> {
    let (entry, library) = open(object)?;
    Ok(Code::Native { entry, origin, _library: library })
}

/// Loads `object`, compiled here; the function may be called as long as the library is kept.
pub(super) fn open(object: &Path) -> Result<(Entry, Arc<Library>), String> {
    // SAFETY: the file was compiled from a source of this program: it has no initialisers, and its
    // name is a hash of its content.
    let library = unsafe { Library::new(object) }.map_err(|e| e.to_string())?;
    // SAFETY: every source defines ENTRY with this signature; the library outlives the pointer,
    // since callers keep both in the same value.
    let entry = unsafe { library.get::<Entry>(ENTRY.as_bytes()) }.map_err(|e| e.to_string())?;
    Ok((*entry, Arc::new(library)))
}

fn call<V: Value>(
    entry: Entry,
    program: &Program,
    sizes: &[u64],
    operands: Operands<V>,
    scratch: &mut [V],
) {
    let mut inputs: Vec<*const c_void> = Vec::new();
    for (at, param) in program.trees.iter().enumerate() {
        let beside = at.checked_sub(1).map(|at| &operands.beside[at]);
        for (depth, level) in param.stored().enumerate() {
            if level.kind != LevelKind::Dense {
                let listed = |tree: &JoinedTree<V>| pointer(tree.coords(depth));
                inputs.push(beside.map_or_else(|| pointer(operands.coords(depth)), listed));
            }
            if param.points(depth) {
                let own = || pointer(&operands.sparse.levels()[depth].pointers);
                inputs.push(beside.map_or_else(own, |tree| pointer(tree.pointers(depth))));
            }
            match beside.and_then(|tree| tree.locator(depth)) {
                None => {}
                Some(Locator::Table(table)) => inputs.push(table.as_ptr().cast()),
                Some(Locator::Bitmap { words, ranks }) => {
                    inputs.extend([words.as_ptr().cast(), ranks.as_ptr().cast()]);
                }
            }
        }
        let values = beside.map_or(operands.values, |tree| tree.tree().values());
        inputs.push(values.as_ptr().cast());
    }
    inputs.extend(operands.dense.iter().map(|slice| slice.as_ptr().cast::<c_void>()));
    inputs.push(sizes.as_ptr().cast());
    let roots = (0..operands.beside.len()).map(|beside| operands.roots_of(beside));
    let roots: Vec<u64> = roots.flat_map(|r| [r.start, r.end]).collect();
    let outside = program.outside().len();
    let mut raw = operands.assembly.map(|assembly| RawAssembly::of(assembly, outside));
    let output = match &mut raw {
        Some(raw) => std::ptr::from_mut(raw).cast(),
        None => from_row_zero(program, operands.first_row, operands.output),
    };
    let boundary = operands.boundary.map_or(std::ptr::null_mut(), |rows| rows.as_mut_ptr().cast());
    let nodes = operands.nodes.iter().flat_map(|r| [r.start, r.end]);
    let task: Vec<u64> = nodes.chain(roots).collect();
    // SAFETY: `check` has compared every array with the program, whose `sizes` these are; coordinates are below their
    // extents and pointers ascend (invariants of `Csf`), so the kernel stays inside them.  Slices
    // written to are borrowed mutably, and no other task holds them.  Cells of a workspace are below the length of the
    // array whose offsets they are, and `raw` lives until the call has ended.
    unsafe { entry(inputs.as_ptr(), output, boundary, scratch.as_mut_ptr().cast(), task.as_ptr()) }
}

/// What a kernel is handed in the place of an assembled output: `struct assembly` of the generated code.
#[repr(C)]
struct RawAssembly<V: Value> {
    cells: *mut V,
    met: *mut u64,
    words: *mut u64,
    list: *mut u64,
    values: *mut V,
    /// How many cells may be listed.
    room: u64,
    append: unsafe extern "C" fn(*mut RawAssembly<V>, u64, *const u64) -> i32,
    lengthen: unsafe extern "C" fn(*mut RawAssembly<V>, u64) -> u64,
    owner: *mut Assembly<V>,
    /// How many coordinates are given to `append`.
    outside: usize,
}

impl<V: Value> RawAssembly<V> {
    /// Lends the arrays of `owner` to compiled code.
    fn of(owner: &mut Assembly<V>, outside: usize) -> RawAssembly<V> {
        let owner = std::ptr::from_mut(owner);
        let (append, lengthen) = (append::<V>, lengthen::<V>);
        let mut raw = RawAssembly {
            cells: std::ptr::null_mut(),
            met: std::ptr::null_mut(),
            words: std::ptr::null_mut(),
            list: std::ptr::null_mut(),
            values: std::ptr::null_mut(),
            room: 0,
            append,
            lengthen,
            owner,
            outside,
        };
        raw.lend();
        raw
    }

    /// Takes the arrays of the owner, which may have grown.
    fn lend(&mut self) {
        // SAFETY: the owner is borrowed mutably for the call of the kernel, in which nothing else refers to it.
        let Arrays { cells, met, words, list, values, room } = unsafe { (*self.owner).arrays() };
        (self.cells, self.met, self.words) =
            (cells.as_mut_ptr(), met.as_mut_ptr(), words.as_mut_ptr());
        (self.list, self.values, self.room) = (list.as_mut_ptr(), values.as_mut_ptr(), room as u64);
    }
}

/// Appends the first `listed` cells of the list; returns 0 if there was no room for them, 1 otherwise.
///
/// # Safety
///
/// `raw` is what a kernel was handed, and `at` has as many numbers as it says.
unsafe extern "C" fn append<V: Value>(
    raw: *mut RawAssembly<V>,
    listed: u64,
    at: *const u64,
) -> i32 {
    // SAFETY: the kernel passes on what it was handed, and an array of its own.
    let (raw, at) = unsafe { (&mut *raw, std::slice::from_raw_parts(at, (*raw).outside)) };
    // SAFETY: as in `lend`.
    let owner = unsafe { &mut *raw.owner };
    owner.set_listed(listed as usize);
    let appended = owner.append(at);
    raw.room = owner.arrays().room as u64;
    i32::from(appended)
}

/// Makes room in the list or table, which is full; returns how many are listed.
///
/// # Safety
///
/// `raw` is what a kernel was handed.
unsafe extern "C" fn lengthen<V: Value>(raw: *mut RawAssembly<V>, listed: u64) -> u64 {
    // SAFETY: the kernel passes on what it was handed.
    let raw = unsafe { &mut *raw };
    // SAFETY: as in `lend`.
    let owner = unsafe { &mut *raw.owner };
    owner.set_listed(listed as usize);
    owner.lengthen();
    let listed = owner.listed() as u64;
    raw.lend();
    listed
}

/// Returns where the whole output would begin, of which these `rows` are those from `first_row` on.
///
/// The kernel counts rows and positions from the first of the whole output; it never writes before
/// `first_row`, so the shifted pointers are only ever used inside the slices.  Of windows of rows that an
/// inner level numbers, the executor found the least and the greatest in the nodes themselves.
fn from_row_zero<V: Value>(program: &Program, first_row: u64, rows: &mut [V]) -> *mut c_void {
    let stride = match program.addressing {
        Addressing::Positions => program.output.len,
        Addressing::Coordinates => program.numbered_rows().map_or(0, |(_, stride)| stride),
        Addressing::Assembled(_) => 0,
    };
    let before = first_row * stride;
    rows.as_mut_ptr().wrapping_sub(before as usize).cast()
}

fn pointer(ints: &Ints) -> *const c_void {
    match ints {
        Ints::U16(array) => array.as_ptr().cast(),
        Ints::U32(array) => array.as_ptr().cast(),
        Ints::U64(array) => array.as_ptr().cast(),
    }
}
