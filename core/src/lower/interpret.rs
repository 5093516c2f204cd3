//! The interpreter of programs: the executor when there is no C compiler, and the reference for
//! compiled code.
//!
//! It runs the same statements in the same order as the generated C.  Vector statements are loops
//! over slices, so at ranks of 16 and more most time is spent in them.

use std::collections::BTreeMap;
use std::ops::Range;

use decompose_formats::{Csf, Ints, Value};

use crate::einsum::Index;
use crate::lower::JoinedTree;
use crate::lower::assembly::Assembly;
use crate::lower::bitmap::Bitmap;
use crate::lower::ir::{Addressing, Pieces, Place, Program, Stmt, Update};
use crate::schedule::{Chunks, Command, LevelKind, TreeLevel, Visited};

/// What a program works on.
pub struct Operands<'a, V: Value> {
    /// The first sparse operand.
    pub sparse: &'a Csf<V>,
    /// The other sparse operands.
    pub beside: &'a [JoinedTree<V>],
    /// The roots of each of them that are visited; all of them if this is empty.
    pub roots_beside: &'a [Range<u64>],
    /// Its values, one for each node of the last level: the tree's own, or others.
    pub values: &'a [V],
    /// The dense operands as the program's arrays lay them out.
    pub dense: &'a [&'a [V]],
    /// The rows, or blocks at positions, `first_row..` of the output.
    pub output: &'a mut [V],
    /// The number of the first row, or position, in `output`.
    pub first_row: u64,
    /// Receives the first root slice instead of the output.
    pub boundary: Option<&'a mut [V]>,
    /// The nodes of each level that are visited.
    pub nodes: &'a [Range<u64>],
    /// The rows that these nodes name, from `first_row` on, if `output` has no others: they are numbered
    /// by [`Program::numbered_rows`].
    pub window: Option<Range<u64>>,
    /// Receives an assembled output.
    pub assembly: Option<&'a mut Assembly<V>>,
    /// Taken for the coordinates of the root level, if given: rows of the output are then counted by
    /// them.  No dense operand may have the root's index.
    pub roots: Option<&'a Ints>,
}

impl<'a, V: Value> Operands<'a, V> {
    /// Returns operands for all of `output`, read from `sparse` with the coordinates and `values` given.
    pub fn whole(
        sparse: &'a Csf<V>,
        values: &'a [V],
        dense: &'a [&'a [V]],
        output: &'a mut [V],
        nodes: &'a [Range<u64>],
    ) -> Operands<'a, V> {
        let (boundary, window, roots) = (None, None, None);
        let (beside, roots_beside, first_row, assembly) = (&[][..], &[][..], 0, None);
        Operands {
            sparse,
            beside,
            roots_beside,
            values,
            dense,
            output,
            first_row,
            boundary,
            nodes,
            window,
            assembly,
            roots,
        }
    }

    /// Returns a sparse operand.
    fn tree(&self, tree: usize) -> &'a Csf<V> {
        if tree == 0 { self.sparse } else { self.beside[tree - 1].tree() }
    }

    /// Returns the roots of a tree of [`Operands::beside`] that are visited.
    pub fn roots_of(&self, beside: usize) -> Range<u64> {
        let all = || 0..self.beside[beside].nodes(0);
        self.roots_beside.get(beside).cloned().unwrap_or_else(all)
    }

    /// Returns the coordinates of the nodes of a level, or what is taken for them.
    pub fn coords(&self, level: usize) -> &'a Ints {
        match self.roots {
            Some(roots) if level == 0 => roots,
            _ => &self.sparse.levels()[level].coords,
        }
    }
}

/// Runs `program` on `operands`.
///
/// # Panics
///
/// If the operands do not have the shapes that the program expects.
pub fn interpret<V: Value>(program: &Program, operands: Operands<V>) {
    let buffers = program.buffers.iter().map(|b| vec![V::default(); b.len as usize]).collect();
    let bitmap =
        |buffer: &usize| (*buffer, Bitmap::new(program.buffers[*buffer].extents[0] as usize));
    let marks = program.marked.iter().map(bitmap).collect();
    let mut machine = Interpreter {
        program,
        operands,
        buffers,
        marks,
        row_stride: program.numbered_rows().map_or(0, |(_, stride)| stride as usize),
        stopped: false,
        at: [0; Index::COUNT],
        pieces: vec![(0..0, 1); program.levels().len()],
        position: program.trees.iter().map(|tree| vec![0; tree.levels.len()]).collect(),
        united: program.trees.iter().map(|tree| vec![true; tree.levels.len()]).collect(),
    };
    machine.run(&program.body);
}

/// The pieces of `nodes`, each as its nodes and the distance from one to the next.
fn pieces_of(nodes: &Range<u64>, pieces: &Pieces) -> Vec<(Range<u64>, usize)> {
    let count = nodes.end.saturating_sub(nodes.start);
    let size = match pieces.command {
        Command::Split => pieces.factor,
        Command::Divide => count.div_ceil(pieces.factor),
    }
    .max(1);
    let Range { start, end } = *nodes;
    match pieces.chunks {
        Chunks::Contiguous => {
            let begins = (start..end).step_by(size as usize);
            begins.map(|begin| (begin..end.min(begin.saturating_add(size)), 1)).collect()
        }
        Chunks::Strided => {
            let firsts = start..end.min(start.saturating_add(size));
            firsts.map(|first| (first..end, size as usize)).collect()
        }
    }
}

struct Interpreter<'a, V: Value> {
    program: &'a Program,
    operands: Operands<'a, V>,
    buffers: Vec<Vec<V>>,
    /// The cells that are marked, of each marked buffer.
    marks: BTreeMap<usize, Bitmap>,
    /// The elements of a row by which `first_row` counts.
    row_stride: usize,
    /// Whether there is no room for more of an assembled output.
    stopped: bool,
    /// The current coordinate of each index.
    at: [usize; Index::COUNT],
    /// The current node of each level that is looped over, by tree.
    position: Vec<Vec<usize>>,
    /// Whether each level, by tree, has the current coordinate of the union that it is in.
    united: Vec<Vec<bool>>,
    /// The current piece of each level of the first tree that numbers pieces: its nodes, and the distance from one to the
    /// next.
    pieces: Vec<(Range<u64>, usize)>,
}

impl<'a, V: Value> Interpreter<'a, V> {
    fn run(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            if self.stopped {
                return;
            }
            match stmt {
                Stmt::LevelLoop { lead, located, body, .. } => {
                    self.level_loop(*lead, located, body)
                }
                Stmt::Union { leads, body } => self.union(leads, body),
                Stmt::Within { lead, body } => {
                    if self.united[lead.tree][lead.level] {
                        self.run(body);
                    }
                }
                Stmt::DenseLoop { index, extent, body, .. } => {
                    for at in 0..*extent as usize {
                        self.at[index.number()] = at;
                        self.run(body);
                    }
                }
                Stmt::Append { outside } => {
                    let at: Vec<u64> =
                        outside.iter().map(|index| self.at[index.number()] as u64).collect();
                    if let Some(assembly) = &mut self.operands.assembly {
                        self.stopped |= !assembly.append(&at);
                    }
                }
                Stmt::Clear { buffer } => match self.marks.get_mut(buffer) {
                    Some(marks) => marks.take(|_| {}),
                    None => self.buffers[*buffer].fill(V::default()),
                },
                Stmt::Mark { buffer } => self.mark(*buffer),
                Stmt::Product { target, factors, update, lanes } => match lanes {
                    Some(index) => self.vector(*target, factors, *update, *index),
                    None => self.scalar(*target, factors, *update),
                },
            }
        }
    }

    /// Marks the current cell of a buffer, and empties it if it was not marked.
    fn mark(&mut self, buffer: usize) {
        let (array, values) = (&self.program.buffers[buffer], &mut self.buffers[buffer]);
        let (cell, row) = (self.at[array.indices[0].number()], array.strides[0] as usize);
        if self.marks.get_mut(&buffer).expect("a marked buffer").mark(cell) {
            values[cell * row..][..row].fill(V::default());
        }
    }

    fn level_loop(&mut self, lead: Visited, located: &'a [Visited], body: &'a [Stmt]) {
        let index = self.program.index_of(lead).number();
        let lead = match lead {
            Visited::Level(lead) => lead,
            Visited::Buffer(buffer) => {
                for cell in self.marks[&buffer].cells() {
                    self.at[index] = cell;
                    if located.iter().all(|&other| self.locate(other, cell as u64)) {
                        self.run(body);
                    }
                }
                return;
            }
        };
        let (nodes, step) = self.children(lead);
        if let Some(pieces) = self.program.level(lead).pieces {
            self.at[index] = 0;
            for piece in pieces_of(&nodes, &pieces) {
                self.pieces[lead.level] = piece;
                self.run(body);
            }
            return;
        }
        for position in nodes.step_by(step) {
            if self.is_childless(lead, position as usize) {
                continue;
            }
            let coord = self.coord(lead, position);
            self.position[lead.tree][lead.level] = position as usize;
            self.at[index] = coord as usize;
            if located.iter().all(|&other| self.locate(other, coord)) {
                self.run(body);
            }
        }
    }

    fn union(&mut self, leads: &'a [TreeLevel], body: &'a [Stmt]) {
        let nodes = |lead: &TreeLevel| {
            let above = lead.level.checked_sub(1);
            match above.is_none_or(|above| self.united[lead.tree][above]) {
                true => self.children(*lead).0,
                false => 0..0,
            }
        };
        let mut left: Vec<Range<u64>> = leads.iter().map(nodes).collect();
        while !self.stopped {
            let next = |(lead, nodes): (&TreeLevel, &Range<u64>)| {
                (!nodes.is_empty()).then(|| self.coord(*lead, nodes.start))
            };
            let next: Vec<Option<u64>> = leads.iter().zip(&left).map(next).collect();
            let Some(coord) = next.iter().flatten().min().copied() else { return };
            for ((lead, nodes), next) in leads.iter().zip(&mut left).zip(next) {
                let has = next == Some(coord);
                self.united[lead.tree][lead.level] = has;
                self.position[lead.tree][lead.level] = nodes.start as usize;
                self.at[self.program.level(*lead).index.number()] = coord as usize;
                nodes.start += u64::from(has);
            }
            self.run(body);
        }
    }

    /// Returns the coordinates that a level lists.
    fn coords(&self, at: TreeLevel) -> &'a Ints {
        match at.tree {
            0 => self.operands.coords(self.program.trees[0].stored_place(at.level)),
            tree => self.operands.beside[tree - 1].coords(at.level),
        }
    }

    /// Returns the coordinate of a node of a level below the current node above.
    fn coord(&self, at: TreeLevel, node: u64) -> u64 {
        let param = self.program.level(at);
        match param.kind {
            LevelKind::Dense => node - self.above(at) as u64 * param.extent,
            _ => self.coords(at).get(node as usize),
        }
    }

    /// Returns the current node above a level; 0 above the root.
    fn above(&self, TreeLevel { tree, level }: TreeLevel) -> usize {
        level.checked_sub(1).map_or(0, |up| self.position[tree][up])
    }

    /// Returns the nodes of a level below the current node of the level above that are visited, and the distance from one
    /// to the next.
    fn children(&self, TreeLevel { tree, level }: TreeLevel) -> (Range<u64>, usize) {
        let above = level.checked_sub(1);
        if let Some(piece) =
            above.filter(|&up| self.program.trees[tree].levels[up].pieces.is_some())
        {
            return self.pieces[piece].clone();
        }
        let stored = self.program.trees[tree].stored_place(level);
        let (node, param) =
            (self.above(TreeLevel { tree, level }), &self.program.trees[tree].levels[level]);
        if let Some(beside) = tree.checked_sub(1) {
            if level == 0 {
                return (self.operands.roots_of(beside), 1);
            }
            return (self.operands.beside[beside].children(level, node, param), 1);
        }
        let visited = self.operands.nodes[stored].clone();
        if above.is_none() {
            return (visited, 1);
        }
        let up = &self.operands.sparse.levels()[stored - 1];
        let (first, next) = (up.first_child(node), up.first_child(node + 1));
        (visited.start.max(first)..visited.end.min(next), 1)
    }

    /// Tells whether a node of a level has no children though there are levels below: a dense one has such nodes.
    fn is_childless(&self, at: TreeLevel, node: usize) -> bool {
        let levels = &self.program.trees[at.tree].levels;
        let dense = levels[at.level].kind == LevelKind::Dense && at.level + 1 < levels.len();
        match at.tree.checked_sub(1).filter(|_| dense) {
            Some(beside) => {
                let pointers = self.operands.beside[beside].pointers(at.level);
                pointers.get(node) == pointers.get(node + 1)
            }
            // The first tree has full levels only.
            None => false,
        }
    }

    /// Makes the node of `coord` the current one of a level; returns whether there is one, or whether the cell is marked.
    fn locate(&mut self, at: Visited, coord: u64) -> bool {
        let at = match at {
            Visited::Level(at) => at,
            Visited::Buffer(buffer) => return self.marks[&buffer].has(coord as usize),
        };
        let param = self.program.level(at);
        let above = self.above(at);
        if param.kind == LevelKind::Dense {
            let node = above * param.extent as usize + coord as usize;
            self.position[at.tree][at.level] = node;
            return !self.is_childless(at, node);
        }
        let (coords, (Range { start, end }, _)) = (self.coords(at), self.children(at));
        let beside = at.tree.checked_sub(1).map(|beside| &self.operands.beside[beside]);
        if let Some(locator) = beside.and_then(|tree| tree.locator(at.level)) {
            let found = locator.find((coords, param.extent), (above, &(start..end)), coord);
            self.position[at.tree][at.level] = found.unwrap_or(start) as usize;
            return found.is_some();
        }
        let (mut low, mut high) = (start, end);
        while low < high {
            let middle = low + (high - low) / 2;
            match coords.get(middle as usize) < coord {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        self.position[at.tree][at.level] = low as usize;
        low < end && coords.get(low as usize) == coord
    }

    /// The offset of the current element of `place` in its array, lanes at zero.
    fn offset(&self, place: Place, lanes: Option<Index>) -> usize {
        let array = self.program.array(place).expect("a place with elements");
        let fixed = array.indices.iter().zip(&array.strides).filter(|(i, _)| Some(**i) != lanes);
        let offset: usize = fixed.map(|(i, s)| self.at[i.number()] * *s as usize).sum();
        match place {
            Place::Output if self.program.addressing == Addressing::Positions => {
                (self.leaf(0) - self.operands.first_row as usize) * array.len as usize + offset
            }
            Place::Output if self.on_boundary() => offset - self.root() * self.root_stride(),
            Place::Output => offset - self.operands.first_row as usize * self.row_stride,
            _ => offset,
        }
    }

    /// Tells whether the current root slice began in an earlier task.
    fn on_boundary(&self) -> bool {
        self.operands.boundary.is_some()
            && self.position[0].first() == Some(&(self.operands.nodes[0].start as usize))
    }

    fn root(&self) -> usize {
        self.at[self.program.levels()[0].index.number()]
    }

    fn root_stride(&self) -> usize {
        let row = self.program.root_row();
        row.expect("rows of a boundary are numbered by the root").1 as usize
    }

    /// The current non-zero of a tree.
    fn leaf(&self, tree: usize) -> usize {
        *self.position[tree].last().expect("a sparse operand has levels")
    }

    fn read(&self, place: Place, lanes: Option<Index>) -> &[V] {
        if let Place::Value(tree) = place {
            let leaf = self.leaf(tree);
            let values = match tree {
                0 => self.operands.values,
                tree => self.operands.tree(tree).values(),
            };
            return &values[leaf..=leaf];
        }
        let offset = self.offset(place, lanes);
        match place {
            Place::Value(_) => unreachable!("it has no offset"),
            Place::Dense(dense) => &self.operands.dense[dense][offset..],
            Place::Buffer(buffer) => &self.buffers[buffer][offset..],
            Place::Output => &self.operands.output[offset..],
        }
    }

    fn write(&mut self, place: Place, lanes: Option<Index>) -> &mut [V] {
        let offset = self.offset(place, lanes);
        let boundary = self.on_boundary();
        if let Place::Buffer(buffer) = place {
            return &mut self.buffers[buffer][offset..];
        }
        if self.program.is_assembled() {
            let assembly = self.operands.assembly.as_mut().expect("an assembled output");
            return assembly.meet(offset as u64);
        }
        let rows = match (boundary, &mut self.operands.boundary) {
            (true, Some(row)) => row,
            _ => &mut self.operands.output,
        };
        &mut rows[offset..]
    }

    fn scalar(&mut self, target: Place, factors: &[Place], update: Update) {
        let mut product = V::from_f64(1.0);
        for &factor in factors {
            product *= self.read(factor, None)[0];
        }
        self.put(target, product, (update, None));
    }

    /// Adds a value to the current element of `target`, or assigns it.
    fn put(&mut self, target: Place, value: V, (update, lanes): (Update, Option<Index>)) {
        if target == Place::Output && self.program.is_assembled() {
            let cell = self.offset(target, lanes) as u64;
            if let Some(assembly) = &mut self.operands.assembly {
                assembly.add(cell, value);
            }
            return;
        }
        let element = &mut self.write(target, lanes)[0];
        *element = if update == Update::Assign { value } else { *element + value };
    }

    fn vector(&mut self, target: Place, factors: &[Place], update: Update, index: Index) {
        let has = |place: Place| {
            self.program.array(place).is_some_and(|array| array.indices.contains(&index))
        };
        let lanes = Some(index);
        let (long, short): (Vec<Place>, Vec<Place>) = factors.iter().partition(|f| has(**f));
        let mut scale = V::from_f64(1.0);
        for &factor in &short {
            scale *= self.read(factor, lanes)[0];
        }
        let rows = long.iter().chain([&target]).filter_map(|&place| self.program.array(place));
        let width = rows.filter(|a| a.indices.contains(&index)).map(|a| a.row()).min();
        let width = width.expect("an array along whose index the statement has lanes") as usize;
        let mut product = [V::default(); LANE_BLOCK];
        let mut sum = V::default();
        for start in (0..width).step_by(LANE_BLOCK) {
            let block = LANE_BLOCK.min(width - start);
            let product = &mut product[..block];
            product.fill(scale);
            for &factor in &long {
                let row = &self.read(factor, lanes)[start..start + block];
                product.iter_mut().zip(row).for_each(|(p, &x)| *p *= x);
            }
            if !has(target) {
                sum += product.iter().copied().sum::<V>();
                continue;
            }
            let row = &mut self.write(target, lanes)[start..start + block];
            match update {
                Update::Assign => row.copy_from_slice(product),
                Update::Add => row.iter_mut().zip(product).for_each(|(t, p)| *t += *p),
            }
        }
        if !has(target) {
            self.put(target, sum, (update, lanes));
        }
    }
}

/// Lanes that are multiplied at a time: a few vector registers.
const LANE_BLOCK: usize = 64;
