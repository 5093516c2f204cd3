//! Loops over the levels of the first sparse operand.

use crate::codegen::writer::Writer;
use crate::einsum::Index;
use crate::lower::{Addressing, Place};
use crate::schedule::{Conflict, Fusion};

impl Writer<'_> {
    /// Opens the loop over the nodes of `level` and binds the coordinate.
    pub(super) fn open_level_loop(&mut self, level: usize) {
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

    /// The index of the level above if one position loop runs over both.
    pub(super) fn fused_above(&self, level: usize) -> Option<Index> {
        let up = self.program.levels()[level.checked_sub(1)?];
        (up.fusion == Fusion::WithNext).then_some(up.index)
    }

    /// The index of the position loop that runs over `level`, and the place of its end in `task`.  Fused levels have the
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
            let (positions, last) = self.position_loop(level);
            let distance = prefetch.distance;
            let ahead = format!("smaller(at_{positions} + {distance}, task[{last}] - 1)");
            // Indices before this one are those of loops around the level loop.
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
}
