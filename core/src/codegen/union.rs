//! Loops over the union of the coordinates of levels of several trees.
//!
//! ```c
//! uint64_t at_i = task[0], end_i = task[1], at2_i = task[4], end2_i = task[5];
//! while (at_i < end_i || at2_i < end2_i) {
//!     const uint64_t next_i = at_i < end_i ? coord_i[at_i] : UINT64_MAX;
//!     const uint64_t next2_i = at2_i < end2_i ? coord2_i[at2_i] : UINT64_MAX;
//!     const size_t i = smaller(next_i, next2_i);
//!     if (next_i == i) { ... }
//!     if (next2_i == i) { ... }
//!     at_i += next_i == i;
//!     at2_i += next2_i == i;
//! }
//! ```
//!
//! `task[4]` and `task[5]` bound the roots of the second tree.  Below a level that lacks the current coordinate the range of
//! nodes is empty.

use crate::codegen::locate;
use crate::codegen::writer::{Writer, numbered};
use crate::lower::Stmt;
use crate::schedule::TreeLevel;

/// Writes the loop over the coordinates that at least one of `leads` has.
pub(super) fn union(c: &mut Writer, leads: &[TreeLevel], body: &[Stmt]) {
    let Some(&first) = leads.first() else { return };
    let index = c.program.level(first).index;
    let of: Vec<String> = leads.iter().map(|lead| numbered(lead.tree)).collect();
    c.open("{");
    for (&lead, of) in leads.iter().zip(&of) {
        let (begin, end) = bounds(c, lead);
        c.line(&format!("uint64_t at{of}_{index} = {begin};"));
        c.line(&format!("const uint64_t end{of}_{index} = {end};"));
    }
    let left = |of: &String| format!("at{of}_{index} < end{of}_{index}");
    c.open(&format!("while ({}) {{", of.iter().map(left).collect::<Vec<_>>().join(" || ")));
    for (&lead, of) in leads.iter().zip(&of) {
        let (left, coord) = (left(of), c.coord_of(lead));
        c.line(&format!("const uint64_t next{of}_{index} = {left} ? {coord} : UINT64_MAX;"));
    }
    let next = |of: &String| format!("next{of}_{index}");
    let least = of.iter().map(next).reduce(|least, next| format!("smaller({least}, {next})"));
    c.line(&format!("const size_t {index} = {};", least.unwrap_or_default()));
    c.stmts(body);
    for &lead in leads {
        let (of, has) = (numbered(lead.tree), has(c, lead));
        c.line(&format!("at{of}_{index} += {has};"));
    }
    c.close();
    c.close();
}

/// Writes what is done where a level has the current coordinate.
pub(super) fn within(c: &mut Writer, lead: TreeLevel, body: &[Stmt]) {
    let has = has(c, lead);
    c.open(&format!("if ({has}) {{"));
    if lead.tree == 0 {
        c.prefetches(lead.level);
    }
    c.stmts(body);
    c.close();
}

/// The condition that a level has the current coordinate of the union around.
fn has(c: &Writer, lead: TreeLevel) -> String {
    let (of, index) = (numbered(lead.tree), c.program.level(lead).index);
    format!("next{of}_{index} == {index}")
}

/// The range of nodes of a level below the current node above; empty if there is no such node.
fn bounds(c: &Writer, lead: TreeLevel) -> (String, String) {
    let (begin, end) = locate::bounds(c, lead);
    match lead.level.checked_sub(1) {
        None => (begin, end),
        Some(level) => {
            let has = has(c, TreeLevel { level, ..lead });
            (format!("{has} ? {begin} : 0"), format!("{has} ? {end} : 0"))
        }
    }
}
