//! Loops over a level that end in an outer product, several nodes at a time.
//!
//! ```text
//! for j in level 2 of X:                         for j0, j1 in level 2 of X:
//!     T1(t) = ...                                    T1(t) of j0, T1(t) of j1 = ...
//!     for s: sum(s,t) += U(j,s) * T1(t)     ->       for s: sum(s,t) += U(j0,s) * T1(t) of j0
//!                                                                     + U(j1,s) * T1(t) of j1
//! ```
//!
//! An outer product loads and stores each vector of its target for one multiply-add; a batch of
//! nodes shares the load and the store.
//!
//! A row of the output that is set to the sum of such a loop, of no more nodes than a batch, is set at
//! once (`row_of_few`): otherwise its sum is cleared, read, written, and copied.

use crate::codegen::writer::Writer;
use crate::einsum::Index;
use crate::lower::{Outer, Place, Stmt, Update, lanes, outer_product};
use crate::schedule::Visited;

/// A level loop that ends in an outer product, and how many nodes it takes at a time.
pub(super) struct Batch<'a> {
    outer: Outer<'a>,
    nodes: u64,
    /// Name, number and width of the vectors.
    name: String,
    count: u64,
    width: u64,
}

impl<'a> Batch<'a> {
    /// Returns the batches of `nodes` nodes of the loop of `level` over `body`.
    pub(super) fn of(c: &Writer, level: usize, nodes: u64, body: &'a [Stmt]) -> Batch<'a> {
        let Some(outer) = outer_product(c.program, level, body) else {
            unreachable!("batches of {body:?}");
        };
        let array = &c.program.buffers[outer.row];
        let width = lanes(c.program, array.len);
        Batch { outer, nodes, name: array.name.clone(), count: array.len / width, width }
    }

    /// Writes the loop over whole batches of the nodes of `level` from `at_<index>` on.
    pub(super) fn emit(&self, c: &mut Writer, level: usize) {
        let (nodes, level_index) = (self.nodes, c.program.levels()[level].index);
        c.open(&format!(
            "for (; at_{level_index} + {nodes} <= end_{level_index}; at_{level_index} += {nodes}) {{"
        ));
        self.declare(c);
        for node in 0..nodes {
            c.open("{");
            self.fetch(c, level, node);
            c.close();
        }
        self.products(c, nodes, (self.outer.target, Update::Add));
        c.close();
    }

    /// Declares what is held for the nodes of a batch.
    fn declare(&self, c: &mut Writer) {
        let Batch { outer, nodes, name, count, width } = self;
        for node in 0..*nodes {
            let names: Vec<String> = (0..*count).map(|v| format!("{name}_{v}_of_{node}")).collect();
            c.line(&format!("vec{width} {};", names.join(", ")));
        }
        for scale in 0..outer.scales.len() {
            c.line(&format!("const value *scale_{scale}[{nodes}];"));
        }
    }

    /// Writes what comes before the product, for a node of the batch.
    fn fetch(&self, c: &mut Writer, level: usize, node: u64) {
        let Batch { outer, name, count, .. } = self;
        let level_index = c.program.levels()[level].index;
        c.line(&format!("const uint64_t first_{level_index} = at_{level_index};"));
        c.line(&format!("const uint64_t at_{level_index} = first_{level_index} + {node};"));
        c.bind_node(level);
        c.prefetches(level);
        c.stmts(outer.before);
        for v in 0..*count {
            c.line(&format!("{name}_{v}_of_{node} = {name}_{v};"));
        }
        for (at, &scale) in outer.scales.iter().enumerate() {
            let element = element_at_zero(c, scale, outer.index);
            c.line(&format!("scale_{at}[{node}] = &{element};"));
        }
    }

    /// Sets `target` to the products of the first `nodes` nodes, or adds them to it.
    fn products(&self, c: &mut Writer, nodes: u64, (target, update): (Place, Update)) {
        let Batch { outer, name, count, width, .. } = self;
        let index = outer.index;
        c.open(&format!("for (uint64_t {index} = 0; {index} < {}; ++{index}) {{", outer.extent));
        for node in 0..nodes {
            let scales = outer.scales.iter().enumerate().map(|(at, &scale)| {
                let stride = stride_of(c, scale, index);
                format!("scale_{at}[{node}][{index} * {stride}]")
            });
            let scales: Vec<String> = scales.collect();
            c.line(&format!("const value scale_of_{node} = {};", scales.join(" * ")));
        }
        if let Some(array) = c.program.array(target) {
            let offset = c.offset(target, array, Some(outer.lanes));
            let place = format!("{} + {offset}", c.base(target));
            c.line(&format!("vec{width} *const result = (vec{width} *)({place});"));
        }
        for v in 0..*count {
            let products = (0..nodes).map(|n| format!("scale_of_{n} * {name}_{v}_of_{n}"));
            // From left to right each product is added by one fused instruction.
            let before = (update == Update::Add).then(|| format!("result[{v}]"));
            let sum: Vec<String> = before.into_iter().chain(products).collect();
            c.line(&format!("result[{v}] = {};", sum.join(" + ")));
        }
        c.close();
    }

    /// Writes the products of all `count` nodes of a short loop, of `level` from `at_<index>` on, into
    /// the row of the output.
    fn set_row(&self, c: &mut Writer, level: usize) {
        self.declare(c);
        c.line("switch (count) {");
        for node in (0..self.nodes).rev() {
            c.open(&format!("case {}: {{ // and all below", node + 1));
            self.fetch(c, level, node);
            c.close();
        }
        c.line("}");
        c.line("switch (count) {");
        for nodes in 1..=self.nodes {
            c.open(&format!("case {nodes}: {{"));
            self.products(c, nodes, (Place::Output, Update::Assign));
            c.line("break;");
            c.close();
        }
        c.line("}");
    }
}

/// Writes the body of the root's loop with a way of its own for rows that are sums of at most `nodes` outer products.
pub(super) fn row_of_few(c: &mut Writer, nodes: u64, body: &[Stmt]) {
    let [_, Stmt::LevelLoop { lead: Visited::Level(lead), body: inner, .. }, _] = body else {
        unreachable!("short rows of {body:?}");
    };
    let level = lead.level;
    let batch = Batch::of(c, level, nodes, inner);
    let (index, (begin, end)) = (c.program.levels()[level].index, c.bounds(level));
    c.line(&format!("const uint64_t at_{index} = {begin};"));
    c.line(&format!("const uint64_t count = {end} - at_{index};"));
    c.open(&format!("if (0 < count && count <= {nodes}) {{"));
    batch.set_row(c, level);
    c.close();
    c.open("else {");
    c.stmts(body);
    c.close();
}

/// The element of `place` at the current indices and 0 for `index`.
fn element_at_zero(c: &Writer, place: Place, index: Index) -> String {
    let array = c.program.array(place).expect("a place with elements");
    format!("{}[{}]", c.base(place), c.offset(place, array, Some(index)))
}

/// The distance between elements of `place` along `index`; 0 if it lacks it.
fn stride_of(c: &Writer, place: Place, index: Index) -> u64 {
    let array = c.program.array(place);
    let at = array.and_then(|array| Some((array, array.indices.iter().position(|i| *i == index)?)));
    at.map_or(0, |(array, at)| array.strides[at])
}
