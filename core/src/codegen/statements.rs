//! Statements: each kind is handed to the file that writes it.

use crate::codegen::outer_products::{Batch, row_of_few};
use crate::codegen::writer::Writer;
use crate::codegen::{assembled, intersection, marked, sums, union, vector, vector_matrix};
use crate::lower::{Addressing, Place, Stmt, Together, Update};
use crate::schedule::{TreeLevel, Visited};

impl Writer<'_> {
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::Union { leads, body } => union::union(self, leads, body),
                Stmt::Within { lead, body } => union::within(self, *lead, body),
                Stmt::Append { outside } => assembled::append(self, outside),
                Stmt::LevelLoop {
                    lead: Visited::Level(TreeLevel { tree: 0, level }),
                    located,
                    together,
                    body,
                } if located.is_empty() => self.level_loop(*level, *together, body),
                Stmt::LevelLoop { lead, located, body, .. } => {
                    intersection::level_loop(self, *lead, located, body)
                }
                Stmt::DenseLoop { index, extent, together: Together::Tiles { tiles }, body } => {
                    vector_matrix::summed_rows(self, (*index, *extent), *tiles, body);
                }
                Stmt::DenseLoop { index, extent, body, .. } => {
                    let end = self.extent(*index, *extent);
                    self.open(&format!(
                        "for (uint64_t {index} = 0; {index} < {end}; ++{index}) {{"
                    ));
                    self.stmts(body);
                    self.close();
                }
                Stmt::Clear { buffer } => self.clear(*buffer),
                Stmt::Mark { buffer } => marked::mark(self, *buffer),
                Stmt::Product { target, factors, update, lanes } => match lanes {
                    Some(index) => vector::product(self, *target, factors, *update, *index),
                    None => self.product(*target, factors, *update),
                },
            }
        }
    }

    fn level_loop(&mut self, level: usize, together: Together, body: &[Stmt]) {
        if let Some(pieces) = self.program.levels()[level].pieces {
            return self.pieces(level, pieces, body);
        }
        match together {
            Together::Sums { parts } => sums::summed_values(self, level, parts, body),
            Together::Tiles { tiles } => vector::tiled_level_loop(self, level, tiles, body),
            Together::Batch { nodes } => self.batches(level, nodes, body),
            Together::ShortRows { nodes } => {
                self.open_level_loop(level);
                self.prefetches(level);
                row_of_few(self, nodes, body);
                self.close();
            }
            Together::One => {
                self.open_level_loop(level);
                self.prefetches(level);
                self.stmts(body);
                self.close();
            }
        }
    }

    /// Writes a loop that takes `nodes` nodes together, and the others one by one.
    fn batches(&mut self, level: usize, nodes: u64, body: &[Stmt]) {
        let (index, (begin, end)) = (self.program.levels()[level].index, self.bounds(level));
        self.open("{");
        self.line(&format!("uint64_t at_{index} = {begin};"));
        self.line(&format!("const uint64_t end_{index} = {end};"));
        Batch::of(self, level, nodes, body).emit(self, level);
        self.open(&format!("for (; at_{index} < end_{index}; ++at_{index}) {{"));
        self.bind_node(level);
        self.prefetches(level);
        self.stmts(body);
        self.close();
        self.close();
    }

    fn clear(&mut self, buffer: usize) {
        if self.program.kept.registers.contains(&buffer) {
            vector::clear(self, buffer);
            return;
        }
        if self.program.marked.contains(&buffer) {
            return marked::clear(self, buffer);
        }
        let array = &self.program.buffers[buffer];
        let (name, len) = (array.name.clone(), self.len(Place::Buffer(buffer)));
        if array.indices.is_empty() {
            self.line(&format!("{name} = 0;"));
        } else {
            self.line(&format!("for (size_t q = 0; q < {len}; ++q) {name}[q] = 0;"));
        }
    }

    fn product(&mut self, target: Place, factors: &[Place], update: Update) {
        let factors: Vec<String> = factors.iter().map(|&place| self.element(place)).collect();
        if let (Place::Output, Addressing::Assembled(workspace)) = (target, self.program.addressing)
        {
            return assembled::add(self, workspace, &factors.join(" * "));
        }
        let sign = if update == Update::Assign { "=" } else { "+=" };
        let target = self.element(target);
        self.line(&format!("{target} {sign} {};", factors.join(" * ")));
    }
}
