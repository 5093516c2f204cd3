//! The C file of a kernel: types, the function, its operands and buffers, and the statements.

use crate::codegen::sizes::named;
use crate::codegen::writer::{Writer, int_type, numbered};
use crate::codegen::{assembled, locate, marked, vector};
use crate::lower::{LevelParam, Program};
use crate::schedule::{Conflict, LevelKind};

/// The name of the function in every kernel.
///
/// ```c
/// void decompose_kernel(const void *const *in, value *out, value *boundary, value *scratch,
///                       const uint64_t *task);
/// ```
///
/// `in` holds what each level of each sparse operand has of coordinates, pointers, bits and ranks or a table; then the
/// operand's values; then the dense operands, and the numbers of [`sizes`](crate::codegen::sizes).  `out` is the output; `boundary`, if not
/// null, takes the first root slice instead.  `scratch` is the memory of large buffers ([`Program::scratch`]).  `task`
/// holds the first node and one past the last node of each level of the first sparse operand, and those
/// of the roots of each other one.
pub const ENTRY: &str = "decompose_kernel";

/// Writes `program` as a C file of one function [`ENTRY`].
///
/// Equal programs give identical text.
pub fn emit_c(program: &Program) -> String {
    let mut c = Writer::new(program);
    c.head();
    c.operands();
    c.locals();
    c.stmts(&program.body);
    c.close();
    c.into_text()
}

/// Up to so many levels registers are chosen for each loop apart.
const FEW_LEVELS: usize = 6;

/// Chooses registers for a function as a whole: for each of many loops that takes gcc two thirds of its time.
const ONE_REGION: &str = "#pragma GCC optimize(\"ira-region=one\")";

impl Writer<'_> {
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
        locate::define(self);
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
        for (tree, param) in self.program.trees.iter().enumerate() {
            let of = numbered(tree);
            for (at, LevelParam { index, storage, kind, .. }) in param.stored().enumerate() {
                if *kind != LevelKind::Dense {
                    bind(self, int_type(storage.coords), &format!("coord{of}_{index}"));
                }
                if param.points(at) {
                    bind(self, int_type(storage.pointers), &format!("child{of}_{index}"));
                }
                match kind {
                    LevelKind::Bitmap => {
                        bind(self, "uint64_t", &format!("bits{of}_{index}"));
                        bind(self, "uint32_t", &format!("ranks{of}_{index}"));
                    }
                    LevelKind::Hashed => bind(self, "uint32_t", &format!("table{of}_{index}")),
                    LevelKind::Dense | LevelKind::Compressed | LevelKind::Singleton => {}
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
            if self.program.kept.registers.contains(&buffer) {
                vector::declare(self, buffer);
            } else if array.indices.is_empty() {
                self.line(&format!("value {} = 0;", array.name));
            } else if let Some(start) = starts[buffer] {
                let start = self.start(buffer, start);
                if self.program.marked.contains(&buffer) {
                    marked::declare(self, buffer, &start);
                    continue;
                }
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
}
