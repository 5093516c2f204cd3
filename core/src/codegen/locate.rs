//! How the node of a coordinate is found in a level of another operand.
//!
//! ```c
//! // compressed: the next position whose coordinate is not below
//! at2_j = seek_uint32_t(coord2_j, at2_j, end2_j, j);
//! if (at2_j == end2_j) break;
//! if (coord2_j[at2_j] != j) continue;
//!
//! // dense: the place of the coordinate
//! const uint64_t at2_j = at2_i * 100 + j;
//!
//! // bitmap: tests the bit, and counts those before it; a fibre of extent 100 has two words
//! const uint64_t rank2_j = ranked(bits2_j + at2_i * 2, ranks2_j + at2_i * 2, j);
//! if (rank2_j == UINT64_MAX) continue;
//! const uint64_t at2_j = child2_i[at2_i] + rank2_j;
//!
//! // hashed: looks into the slots from that of the hash on
//! const uint64_t at2_j = hashed_uint32_t(table2_j, coord2_j, child2_i[at2_i], child2_i[at2_i + 1], j);
//! if (at2_j == UINT64_MAX) continue;
//! ```
//!
//! Coordinates that are sought ascend, so the place in a compressed level only moves forward: it is sought in steps that
//! double, and then by halving (galloping; Bentley, Yao, "An almost optimal algorithm for unbounded searching", 1976).
//! Between fibres that are equally dense a search takes one step or two.  Into a denser one it leaps over many nodes.
//! In a dense level nodes without children are passed over (`lower/joined_tree.rs`).  Bitmaps and tables are those of
//! `lower/locator.rs`.

use std::collections::BTreeSet;

use crate::codegen::writer::{Writer, int_type, numbered};
use crate::lower::{LevelParam, MULTIPLIER, SLOTS, Stmt, WORD};
use crate::schedule::{LevelKind, TreeLevel};

/// Defines the functions that find coordinates, one for each width of coordinates.
pub(super) fn define(c: &mut Writer) {
    let mut found = BTreeSet::new();
    add_located(c, &c.program.body, &mut found);
    for (kind, coords) in found {
        match kind {
            LevelKind::Compressed => define_seek(c, coords),
            LevelKind::Bitmap => define_ranked(c),
            LevelKind::Hashed => define_hashed(c, coords),
            LevelKind::Dense | LevelKind::Singleton => {}
        }
    }
}

fn define_seek(c: &mut Writer, coords: &str) {
    c.line(&format!(
        "static inline uint64_t seek_{coords}(const {coords} *at_coord, uint64_t at, uint64_t end, \
         uint64_t wanted)"
    ));
    c.open("{");
    c.line("if (at >= end || at_coord[at] >= wanted) return at;");
    c.line("uint64_t step = 1;");
    c.line("while (at + step < end && at_coord[at + step] < wanted) { at += step; step *= 2; }");
    c.line("uint64_t above = smaller(at + step, end);");
    c.open("while (at + 1 < above) {");
    c.line("const uint64_t middle = at + (above - at) / 2;");
    c.line("if (at_coord[middle] < wanted) at = middle; else above = middle;");
    c.close();
    c.line("return above;");
    c.close();
}

fn define_ranked(c: &mut Writer) {
    c.line(
        "static inline uint64_t ranked(const uint64_t *bits, const uint32_t *ranks, uint64_t wanted)",
    );
    c.open("{");
    c.line(&format!("const uint64_t word = bits[wanted / {WORD}];"));
    c.line(&format!("const uint64_t bit = (uint64_t)1 << (wanted % {WORD});"));
    c.line("if (!(word & bit)) return UINT64_MAX;");
    c.line(&format!("return ranks[wanted / {WORD}] + __builtin_popcountll(word & (bit - 1));"));
    c.close();
}

fn define_hashed(c: &mut Writer, coords: &str) {
    c.line(&format!(
        "static inline uint64_t hashed_{coords}(const uint32_t *table, const {coords} *at_coord, \
         uint64_t begin, uint64_t end, uint64_t wanted)"
    ));
    c.open("{");
    c.line(&format!("const uint64_t places = (end - begin) * {SLOTS};"));
    c.line("if (places == 0) return UINT64_MAX;");
    c.line(&format!("table += begin * {SLOTS};"));
    c.line(&format!("uint64_t at = (uint64_t)((uint32_t)wanted * {MULTIPLIER}u) * places >> 32;"));
    c.open("for (;;) {");
    c.line("const uint64_t number = table[at];");
    c.line("if (number == 0) return UINT64_MAX;");
    c.line("if (at_coord[begin + number - 1] == wanted) return begin + number - 1;");
    c.line("if (++at == places) at = 0;");
    c.close();
    c.close();
}

/// Adds the kinds of the levels that `stmts` locate coordinates in, with the types of their coordinates.
fn add_located(c: &Writer, stmts: &[Stmt], found: &mut BTreeSet<(LevelKind, &'static str)>) {
    for stmt in stmts {
        match stmt {
            Stmt::LevelLoop { located, body, .. } => {
                let levels = located.iter().filter_map(|&at| at.level());
                let stored = levels.map(|at| c.program.level(at));
                found.extend(stored.map(|level| match level.kind {
                    // Bits do not depend on it.
                    LevelKind::Bitmap => (level.kind, ""),
                    kind => (kind, int_type(level.storage.coords)),
                }));
                add_located(c, body, found);
            }
            Stmt::DenseLoop { body, .. } | Stmt::Union { body, .. } | Stmt::Within { body, .. } => {
                add_located(c, body, found);
            }
            Stmt::Clear { .. } | Stmt::Mark { .. } | Stmt::Append { .. } | Stmt::Product { .. } => {
            }
        }
    }
}

/// Declares, before a loop, what moves forward with its coordinates.
pub(super) fn declare(c: &mut Writer, other: TreeLevel) {
    let level = c.program.level(other);
    if level.kind == LevelKind::Compressed {
        let (of, index, (begin, end)) = (numbered(other.tree), level.index, bounds(c, other));
        c.line(&format!("uint64_t at{of}_{index} = {begin};"));
        c.line(&format!("const uint64_t end{of}_{index} = {end};"));
    }
}

/// Finds the node of the current coordinate, or goes on to the next one if there is none.
pub(super) fn locate(c: &mut Writer, other: TreeLevel) {
    let (of, level) = (numbered(other.tree), c.program.level(other));
    let (index, coords) = (level.index, int_type(level.storage.coords));
    let at = format!("at{of}_{index}");
    match level.kind {
        LevelKind::Compressed | LevelKind::Singleton => {
            let (coord, end) = (format!("coord{of}_{index}"), format!("end{of}_{index}"));
            c.line(&format!("{at} = seek_{coords}({coord}, {at}, {end}, {index});"));
            c.line(&format!("if ({at} == {end}) break;"));
            c.line(&format!("if ({coord}[{at}] != {index}) continue;"));
        }
        LevelKind::Dense => {
            let extent = c.extent(index, level.extent);
            let before = c.node_above(other).map(|up| format!("{up} * {extent} + "));
            c.line(&format!("const uint64_t {at} = {}{index};", before.unwrap_or_default()));
            pass_childless(c, other);
        }
        LevelKind::Bitmap => {
            let (begin, _) = bounds(c, other);
            let fibre = match c.node_above(other) {
                Some(up) => {
                    let words =
                        format!("(({} + {}) / {WORD})", c.extent(index, level.extent), WORD - 1);
                    format!(" + {up} * {words}")
                }
                None => String::new(),
            };
            let (bits, ranks) = (format!("bits{of}_{index}"), format!("ranks{of}_{index}"));
            let rank = format!("rank{of}_{index}");
            c.line(&format!(
                "const uint64_t {rank} = ranked({bits}{fibre}, {ranks}{fibre}, {index});"
            ));
            c.line(&format!("if ({rank} == UINT64_MAX) continue;"));
            c.line(&format!("const uint64_t {at} = {begin} + {rank};"));
        }
        LevelKind::Hashed => {
            let (begin, end) = bounds(c, other);
            let (table, coord) = (format!("table{of}_{index}"), format!("coord{of}_{index}"));
            c.line(&format!(
                "const uint64_t {at} = hashed_{coords}({table}, {coord}, {begin}, {end}, {index});"
            ));
            c.line(&format!("if ({at} == UINT64_MAX) continue;"));
        }
    }
}

/// Goes on to the next coordinate if the current node of a dense level has no children.
pub(super) fn pass_childless(c: &mut Writer, TreeLevel { tree, level }: TreeLevel) {
    let levels = &c.program.trees[tree].levels;
    // The first tree has full levels only.
    if tree > 0 && levels[level].kind == LevelKind::Dense && level + 1 < levels.len() {
        let (index, of) = (levels[level].index, numbered(tree));
        let (child, at) = (format!("child{of}_{index}"), format!("at{of}_{index}"));
        c.line(&format!("if ({child}[{at}] == {child}[{at} + 1]) continue;"));
    }
}

/// The first node of a level below the current one above, and one past the last.
pub(super) fn bounds(c: &Writer, at: TreeLevel) -> (String, String) {
    let TreeLevel { tree, level } = at;
    if tree == 0 {
        return c.bounds(level);
    }
    let Some(up) = c.node_above(at) else {
        let roots = 2 * (c.program.trees[0].stored().count() + tree - 1);
        return (format!("task[{roots}]"), format!("task[{}]", roots + 1));
    };
    let LevelParam { index, extent, kind, .. } = *c.program.level(at);
    if kind == LevelKind::Dense {
        let extent = c.extent(index, extent);
        return (format!("{up} * {extent}"), format!("({up} + 1) * {extent}"));
    }
    let child =
        format!("child{}_{}", numbered(tree), c.program.trees[tree].levels[level - 1].index);
    (format!("{child}[{up}]"), format!("{child}[{up} + 1]"))
}
