//! An assembled output: products that are summed up in a workspace, and appended from there.
//!
//! ```c
//! const uint64_t cell = k;
//! if (!(met[cell >> 6] >> (cell & 63) & 1)) { met[cell >> 6] |= 1ull << (cell & 63); words[cell >> 12] |= ...; }
//! cells[cell] += X * Z;
//! ...
//! const uint64_t at[1] = {i};
//! if (listed && !output->append(output, listed, at)) return;
//! listed = 0;
//! ```
//!
//! In a hash table the cell is looked for in slots, from that of its hash on:
//!
//! ```c
//! uint64_t slot = cell * 11400714819323198485ull >> 32 & last;
//! while (list[slot] && list[slot] != cell + 1) slot = slot + 1 & last;
//! if (!list[slot]) { list[slot] = cell + 1; met[listed++] = slot; }
//! values[slot] += X * Z;
//! ```
//!
//! The arrays and the functions are those of [`Assembly`](crate::lower::Assembly): what grows is grown there.
//! `append` reads and clears the arrays, so no pointer to them is `restrict`.

use crate::codegen::writer::Writer;
use crate::einsum::Index;
use crate::lower::table::{MULTIPLIER, SHIFT, SLOTS};
use crate::lower::{Addressing, Place};
use crate::schedule::Workspace;

/// Defines what the kernel is handed in the place of the output.
pub(super) fn define(c: &mut Writer) {
    if !c.program.is_assembled() {
        return;
    }
    c.open("struct assembly {");
    c.line("value *cells; uint64_t *met, *words, *list; value *values; uint64_t room;");
    c.line("int32_t (*append)(struct assembly *, uint64_t listed, const uint64_t *at);");
    c.line("uint64_t (*lengthen)(struct assembly *, uint64_t listed);");
    c.line("void *owner;");
    c.depth_back();
    c.line("};");
}

/// Declares the arrays.
pub(super) fn declare(c: &mut Writer) {
    let Addressing::Assembled(workspace) = c.program.addressing else { return };
    c.line("struct assembly *const output = (struct assembly *)out;");
    c.line("uint64_t listed = 0;");
    match workspace {
        Workspace::Dense => {
            c.line("value *const cells = output->cells;");
            c.line("uint64_t *const met = output->met;");
            c.line("uint64_t *const words = output->words;");
        }
        Workspace::Hashed | Workspace::List => {
            c.line("uint64_t *list = output->list, room = output->room;");
            c.line("value *values = output->values;");
        }
    }
    if workspace == Workspace::Hashed {
        c.line("uint64_t *met = output->met;");
    }
}

/// Makes room for one more cell.
fn lengthen(c: &mut Writer) {
    c.open("if (listed == room) {");
    c.line("listed = output->lengthen(output, listed);");
    c.line("list = output->list; values = output->values; room = output->room;");
    if c.program.addressing == Addressing::Assembled(Workspace::Hashed) {
        c.line("met = output->met;");
    }
    c.close();
}

/// Marks `cell`.
fn meet(c: &mut Writer) {
    c.line("listed = 1;");
    c.open("if (!(met[cell >> 6] >> (cell & 63) & 1)) {");
    c.line("met[cell >> 6] |= (uint64_t)1 << (cell & 63);");
    c.line("words[cell >> 12] |= (uint64_t)1 << (cell >> 6 & 63);");
    c.close();
}

/// Marks the row over `lanes` of a dense workspace, whose cells are met together.
pub(super) fn meet_row(c: &mut Writer, lanes: Index) {
    let offset = c.offset(Place::Output, &c.program.output, Some(lanes));
    c.line(&format!("const uint64_t cell = {offset};"));
    meet(c);
}

/// Adds a product to its cell.
pub(super) fn add(c: &mut Writer, workspace: Workspace, product: &str) {
    let array = &c.program.output;
    let offset = c.offset(Place::Output, array, None);
    c.open("{");
    c.line(&format!("const uint64_t cell = {offset};"));
    match workspace {
        Workspace::Dense => {
            meet(c);
            c.line(&format!("cells[cell] += {product};"));
        }
        Workspace::Hashed => {
            lengthen(c);
            c.line(&format!("const uint64_t last = {SLOTS} * room - 1;"));
            c.line(&format!("uint64_t slot = cell * {MULTIPLIER}ull >> {SHIFT} & last;"));
            c.line("while (list[slot] && list[slot] != cell + 1) slot = slot + 1 & last;");
            c.line("if (!list[slot]) { list[slot] = cell + 1; met[listed++] = slot; }");
            c.line(&format!("values[slot] += {product};"));
        }
        Workspace::List => {
            lengthen(c);
            c.line("list[listed] = cell;");
            c.line(&format!("values[listed++] = {product};"));
        }
    }
    c.close();
}

/// Appends what was met inside loops over `outside`; where there is no room for it the kernel ends.
pub(super) fn append(c: &mut Writer, outside: &[Index]) {
    let at: Vec<String> = outside.iter().map(ToString::to_string).collect();
    let (count, at) = (at.len().max(1), if at.is_empty() { "0".into() } else { at.join(", ") });
    c.open("{");
    c.line(&format!("const uint64_t at[{count}] = {{{at}}};"));
    c.line("if (listed && !output->append(output, listed, at)) return;");
    c.line("listed = 0;");
    if c.program.addressing == Addressing::Assembled(Workspace::Hashed) {
        c.line("room = output->room;");
    }
    c.close();
}
