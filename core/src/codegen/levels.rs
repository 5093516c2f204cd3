//! Loops over the levels of the first sparse operand, and over pieces of their nodes.
//!
//! ```c
//! const uint64_t first_J = child_i[at_i], last_J = child_i[at_i + 1], size_J = 8;
//! for (uint64_t at_J = first_J; at_J < last_J; at_J += size_J) {
//!     const uint64_t from_j = at_J, to_j = smaller(at_J + size_J, last_J);
//!     for (uint64_t at_j = from_j, end_j = to_j; at_j < end_j; ++at_j) ...
//! ```

use crate::codegen::writer::{Writer, numbered};
use crate::einsum::Index;
use crate::lower::{Addressing, LevelParam, Pieces, Place, Stmt};
use crate::schedule::{Chunks, Command, Conflict, LevelKind, TreeLevel};

impl Writer<'_> {
    /// Opens the loop over the nodes of `level` and binds the coordinate.
    pub(super) fn open_level_loop(&mut self, level: usize) {
        let index = self.program.levels()[level].index;
        if let Some(up) = self.program.fused_above(level) {
            self.open("{");
            self.line(&format!("const uint64_t at_{index} = at_{up};"));
        } else {
            let (begin, end) = self.bounds(level);
            let next = match self.stride_of_nodes(level) {
                Some(stride) => format!("at_{index} += {stride}"),
                None => format!("++at_{index}"),
            };
            self.open(&format!(
                "for (uint64_t at_{index} = {begin}, end_{index} = {end}; \
                 at_{index} < end_{index}; {next}) {{"
            ));
        }
        self.bind_node(level);
    }

    /// Writes the loop over the pieces of the nodes of the level below, around `body`.
    pub(super) fn pieces(&mut self, level: usize, pieces: Pieces, body: &[Stmt]) {
        let (outer, (begin, end)) = (self.program.levels()[level].index, self.bounds(level));
        let inner = self.program.levels()[level + 1].index;
        let Pieces { command, factor, chunks } = pieces;
        self.open("{");
        self.line(&format!("const uint64_t first_{outer} = {begin};"));
        self.line(&format!("const uint64_t last_{outer} = larger({end}, first_{outer});"));
        let nodes = format!("(last_{outer} - first_{outer})");
        let size = match command {
            Command::Split => factor.to_string(),
            Command::Divide => format!("larger(1, {nodes} / {factor} + ({nodes} % {factor} != 0))"),
        };
        self.line(&format!("const uint64_t size_{outer} = {size};"));
        let (until, next, to) = match chunks {
            Chunks::Contiguous => (
                format!("last_{outer}"),
                format!("at_{outer} += size_{outer}"),
                format!("smaller(at_{outer} + size_{outer}, last_{outer})"),
            ),
            Chunks::Strided => (
                format!("smaller(first_{outer} + size_{outer}, last_{outer})"),
                format!("++at_{outer}"),
                format!("last_{outer}"),
            ),
        };
        self.open(&format!(
            "for (uint64_t at_{outer} = first_{outer}; at_{outer} < {until}; {next}) {{"
        ));
        if self.program.outside().contains(&outer) {
            // Elements are appended with its coordinate, of which there is one.
            self.line(&format!("const size_t {outer} = 0;"));
        }
        self.line(&format!("const uint64_t from_{inner} = at_{outer}, to_{inner} = {to};"));
        self.stmts(body);
        self.close();
        self.close();
    }

    /// The distance of the nodes of `level` in a piece, if they are no neighbours.
    pub(super) fn stride_of_nodes(&self, level: usize) -> Option<String> {
        let strided = self.program.is_strided(level);
        strided.then(|| format!("size_{}", self.program.levels()[level - 1].index))
    }

    /// Which of the stored levels `level` is.
    fn stored_place(&self, level: usize) -> usize {
        self.program.trees.first().map_or(level, |tree| tree.stored_place(level))
    }

    /// The index of the position loop that runs over `level`, and the place of its end in `task`.  Fused levels have the
    /// same positions: named alike, they are computed once and stay in one register.
    fn position_loop(&self, level: usize) -> (Index, usize) {
        let first = (0..=level).rev().find(|&at| self.program.fused_above(at).is_none());
        let first = first.expect("nothing is above the first level");
        (self.program.levels()[first].index, 2 * self.stored_place(first) + 1)
    }

    /// The first node of `level` below the current one above, and one past the last.
    pub(super) fn bounds(&self, level: usize) -> (String, String) {
        let stored = self.stored_place(level);
        let (low, high) = (2 * stored, 2 * stored + 1);
        match level.checked_sub(1).map(|up| self.program.levels()[up]) {
            None => (format!("task[{low}]"), format!("task[{high}]")),
            Some(up) if up.pieces.is_some() => {
                let index = self.program.levels()[level].index;
                (format!("from_{index}"), format!("to_{index}"))
            }
            Some(LevelParam { index: up, .. })
                if self.program.levels()[level].kind == LevelKind::Dense =>
            {
                let LevelParam { index, extent, .. } = self.program.levels()[level];
                let extent = self.extent(index, extent);
                let begin = format!("larger(task[{low}], at_{up} * {extent})");
                (begin, format!("smaller(task[{high}], (at_{up} + 1) * {extent})"))
            }
            Some(LevelParam { index: up, .. }) => {
                let children = |next: &str| format!("child_{up}[at_{up}{next}]");
                let begin = format!("larger(task[{low}], {})", children(""));
                (begin, format!("smaller(task[{high}], {})", children(" + 1")))
            }
        }
    }

    /// Binds the coordinate of the current node, and the output's row where it follows from it.
    pub(super) fn bind_node(&mut self, level: usize) {
        let index = self.program.levels()[level].index;
        let coord = self.coord_of(TreeLevel { tree: 0, level });
        self.line(&format!("const size_t {index} = {coord};"));
        if level == 0 {
            self.bind_row();
        }
        self.bind_position(level);
    }

    /// The coordinate of the current node of a level: of a dense one, how far the node is from the first one below the
    /// node above.
    pub(super) fn coord_of(&self, at: TreeLevel) -> String {
        let (level, of) = (self.program.level(at), numbered(at.tree));
        let (index, node) = (level.index, format!("at{of}_{}", level.index));
        match (level.kind, self.node_above(at)) {
            (LevelKind::Dense, None) => node,
            (LevelKind::Dense, Some(up)) => {
                format!("{node} - {up} * {}", self.extent(index, level.extent))
            }
            _ => format!("coord{of}_{index}[{node}]"),
        }
    }

    /// The current node above a level.
    pub(super) fn node_above(&self, TreeLevel { tree, level }: TreeLevel) -> Option<String> {
        let up = self.program.trees[tree].levels[level.checked_sub(1)?].index;
        Some(format!("at{}_{up}", numbered(tree)))
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
