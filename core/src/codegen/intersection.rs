//! Loops over the levels of several sparse operands: the intersection of their coordinates.
//!
//! ```c
//! uint64_t at2_j = child2_i[at2_i], end2_j = child2_i[at2_i + 1];
//! for (uint64_t at_j = ...; at_j < end_j; ++at_j) {
//!     const size_t j = coord_j[at_j];
//!     at2_j = seek_uint32_t(coord2_j, at2_j, end2_j, j);
//!     if (at2_j == end2_j) break;
//!     if (coord2_j[at2_j] != j) continue;
//!     ...
//! }
//! ```
//!
//! One operand leads; its coordinates are found in the others, by means of what their levels are (`locate`).

use crate::codegen::writer::{Writer, numbered};
use crate::codegen::{locate, marked};
use crate::lower::Stmt;
use crate::schedule::{TreeLevel, Visited};

/// Writes the loop over the coordinates of `lead` that occur in all of `located`.
pub(super) fn level_loop(c: &mut Writer, lead: Visited, located: &[Visited], body: &[Stmt]) {
    let index = c.program.index_of(lead);
    c.open("{");
    located.iter().filter_map(|at| at.level()).for_each(|at| locate::declare(c, at));
    match lead {
        Visited::Level(lead) => open(c, lead),
        Visited::Buffer(buffer) => marked::open(c, buffer),
    }
    for other in located {
        match *other {
            Visited::Level(other) => locate::locate(c, other),
            Visited::Buffer(buffer) => marked::locate(c, buffer, index),
        }
    }
    if let Visited::Level(TreeLevel { tree: 0, level }) = lead {
        c.prefetches(level);
    }
    c.stmts(body);
    c.close();
    if let Visited::Buffer(_) = lead {
        c.close();
        c.close();
    }
    c.close();
}

/// Opens the loop over the nodes of a level and binds the coordinate.
fn open(c: &mut Writer, at: TreeLevel) {
    if at.tree == 0 {
        c.open_level_loop(at.level);
        return;
    }
    let (index, of) = (c.program.level(at).index, numbered(at.tree));
    let ((begin, end), coord) = (locate::bounds(c, at), c.coord_of(at));
    let (node, until) = (format!("at{of}_{index}"), format!("end{of}_{index}"));
    c.open(&format!(
        "for (uint64_t {node} = {begin}, {until} = {end}; {node} < {until}; ++{node}) {{"
    ));
    c.line(&format!("const size_t {index} = {coord};"));
    locate::pass_childless(c, at);
}
