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
//! One operand leads.  Its coordinates ascend, so the place in the others only moves forward: it is sought in
//! steps that double, and then by halving (galloping; Bentley, Yao, "An almost optimal algorithm for
//! unbounded searching", 1976).  Operands of like density thus take a step or two a coordinate, as if
//! merged, and a short one leaps over a long one.  In a dense root the coordinate is the place, and nodes without
//! children are passed over (`lower/joined_tree.rs`).

use std::collections::BTreeSet;

use crate::codegen::marked;
use crate::codegen::writer::{Writer, int_type, numbered};
use crate::lower::Stmt;
use crate::schedule::{LevelKind, TreeLevel, Visited};

/// Defines the search for a coordinate, for each width of coordinates that is searched.
pub(super) fn define_seek(c: &mut Writer) {
    let mut types = BTreeSet::new();
    add_types(c, &c.program.body, &mut types);
    for kind in types {
        c.line(&format!(
            "static inline uint64_t seek_{kind}(const {kind} *at_coord, uint64_t at, uint64_t end, \
             uint64_t wanted)"
        ));
        c.open("{");
        c.line("if (at >= end || at_coord[at] >= wanted) return at;");
        c.line("uint64_t step = 1;");
        c.line(
            "while (at + step < end && at_coord[at + step] < wanted) { at += step; step *= 2; }",
        );
        c.line("uint64_t above = smaller(at + step, end);");
        c.open("while (at + 1 < above) {");
        c.line("const uint64_t middle = at + (above - at) / 2;");
        c.line("if (at_coord[middle] < wanted) at = middle; else above = middle;");
        c.close();
        c.line("return above;");
        c.close();
    }
}

/// Adds the types of the coordinates that `stmts` search.
fn add_types(c: &Writer, stmts: &[Stmt], types: &mut BTreeSet<&'static str>) {
    for stmt in stmts {
        match stmt {
            Stmt::LevelLoop { located, body, .. } => {
                let levels = located.iter().filter_map(|&at| at.level());
                let stored = levels.map(|at| c.program.level(at));
                let sought = stored.filter(|level| level.kind == LevelKind::Compressed);
                types.extend(sought.map(|level| int_type(level.storage.coords)));
                add_types(c, body, types);
            }
            Stmt::DenseLoop { body, .. } => add_types(c, body, types),
            Stmt::Clear { .. } | Stmt::Mark { .. } | Stmt::Append { .. } | Stmt::Product { .. } => {
            }
        }
    }
}

/// Writes the loop over the coordinates of `lead` that occur in all of `located`.
pub(super) fn level_loop(c: &mut Writer, lead: Visited, located: &[Visited], body: &[Stmt]) {
    let index = c.program.index_of(lead);
    let sought = |c: &Writer, at: TreeLevel| c.program.level(at).kind == LevelKind::Compressed;
    c.open("{");
    for other in located.iter().filter_map(|at| at.level()) {
        if sought(c, other) {
            let (of, (begin, end)) = (numbered(other.tree), bounds(c, other));
            c.line(&format!("uint64_t at{of}_{index} = {begin};"));
            c.line(&format!("const uint64_t end{of}_{index} = {end};"));
        }
    }
    match lead {
        Visited::Level(lead) => open(c, lead),
        Visited::Buffer(buffer) => marked::open(c, buffer),
    }
    for other in located {
        let other = match *other {
            Visited::Level(other) => other,
            Visited::Buffer(buffer) => {
                marked::locate(c, buffer, index);
                continue;
            }
        };
        let of = numbered(other.tree);
        let (at, end) = (format!("at{of}_{index}"), format!("end{of}_{index}"));
        if sought(c, other) {
            let kind = int_type(c.program.level(other).storage.coords);
            let coord = format!("coord{of}_{index}");
            c.line(&format!("{at} = seek_{kind}({coord}, {at}, {end}, {index});"));
            c.line(&format!("if ({at} == {end}) break;"));
            c.line(&format!("if ({coord}[{at}] != {index}) continue;"));
        } else {
            c.line(&format!("const uint64_t {at} = {index};"));
            pass_childless(c, other);
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
    let TreeLevel { tree, level } = at;
    let (index, of, (begin, end)) = (c.program.level(at).index, numbered(tree), bounds(c, at));
    let (at, until) = (format!("at{of}_{index}"), format!("end{of}_{index}"));
    c.open(&format!("for (uint64_t {at} = {begin}, {until} = {end}; {at} < {until}; ++{at}) {{"));
    c.line(&format!("const size_t {index} = coord{of}_{index}[{at}];"));
    pass_childless(c, TreeLevel { tree, level });
}

/// Goes on to the next coordinate if the current node of a dense level has no children.
fn pass_childless(c: &mut Writer, TreeLevel { tree, level }: TreeLevel) {
    let levels = &c.program.trees[tree].levels;
    if levels[level].kind == LevelKind::Dense && level + 1 < levels.len() {
        let (index, of) = (levels[level].index, numbered(tree));
        let (child, at) = (format!("child{of}_{index}"), format!("at{of}_{index}"));
        c.line(&format!("if ({child}[{at}] == {child}[{at} + 1]) continue;"));
    }
}

/// The first node of a level below the current one above, and one past the last.
fn bounds(c: &Writer, at: TreeLevel) -> (String, String) {
    let TreeLevel { tree, level } = at;
    let Some(up) = level.checked_sub(1) else {
        return match tree {
            0 => c.bounds(0),
            _ => (
                "0".into(),
                format!("task[{}]", 2 * c.program.trees[0].stored().count() + tree - 1),
            ),
        };
    };
    if tree == 0 {
        return c.bounds(level);
    }
    let (of, up) = (numbered(tree), c.program.level(TreeLevel { tree, level: up }).index);
    (format!("child{of}_{up}[at{of}_{up}]"), format!("child{of}_{up}[at{of}_{up} + 1]"))
}
