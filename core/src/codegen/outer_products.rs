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

use crate::codegen::registers::lanes;
use crate::codegen::writer::Writer;
use crate::einsum::Index;
use crate::lower::{Addressing, Place, Stmt, Update};
use crate::schedule::{TreeLevel, Visited};

/// The most vectors that the batch keeps in registers for its nodes; of the 32 of AVX-512 the rest
/// is for the target and the scales.
const BATCH_VECTORS: u64 = 16;

/// The most nodes of a batch.
const MOST_NODES: u64 = 4;

/// A level loop that ends in an outer product, and how many nodes it takes at a time.
pub(super) struct Batch<'a> {
    outer: Outer<'a>,
    nodes: u64,
    /// Name, number and width of the vectors.
    name: String,
    count: u64,
    width: u64,
}

/// An outer product at the end of a level loop.
struct Outer<'a> {
    /// The loop around the product.
    index: Index,
    extent: u64,
    target: Place,
    /// The vectors: a buffer in registers.
    vectors: usize,
    /// The factors without lanes.
    scales: Vec<Place>,
    lanes: Index,
    /// What comes before it in the loop.
    before: &'a [Stmt],
}

impl<'a> Batch<'a> {
    /// Returns how to batch the loop of `level` over `body`, if it ends in an outer product of
    /// vectors so short that those of several nodes fit the registers.
    pub(super) fn of(c: &Writer, level: usize, body: &'a [Stmt]) -> Option<Batch<'a>> {
        let owns_rows = level == 0 && c.program.root_row().is_some();
        let pieces = c.program.levels()[level].pieces.is_some();
        if owns_rows || pieces || c.fused_above(level).is_some() {
            return None;
        }
        let outer = outer_product(c, c.program.levels()[level].index, body)?;
        let array = &c.program.buffers[outer.vectors];
        let width = lanes(c.program, array.len);
        let count = array.len / width;
        let nodes = (BATCH_VECTORS / count).min(MOST_NODES);
        (nodes > 1).then(|| Batch { outer, nodes, name: array.name.clone(), count, width })
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

/// Writes the body of the root's loop with a way of its own for rows of few nodes, if
///
/// 1. it clears a buffer, sums into it by one level loop in batches, and sets the row to it;
/// 2. the buffer is laid out as the row.
///
/// Returns whether it was of that form.
pub(super) fn row_of_few(c: &mut Writer, body: &[Stmt]) -> bool {
    let [Stmt::Clear { buffer }, Stmt::LevelLoop { lead, located, body: inner }, store] = body
    else {
        return false;
    };
    let Visited::Level(TreeLevel { tree: 0, level }) = lead else { return false };
    if !located.is_empty() {
        return false;
    }
    let Some(batch) = Batch::of(c, *level, inner) else { return false };
    let summed = batch.outer.target == Place::Buffer(*buffer) && sets_row(store, *buffer);
    if !(summed && laid_out_as_row(c, *buffer)) {
        return false;
    }
    let (index, (begin, end)) = (c.program.levels()[*level].index, c.bounds(*level));
    c.line(&format!("const uint64_t at_{index} = {begin};"));
    c.line(&format!("const uint64_t count = {end} - at_{index};"));
    c.open(&format!("if (0 < count && count <= {}) {{", batch.nodes));
    batch.set_row(c, *level);
    c.close();
    c.open("else {");
    c.stmts(body);
    c.close();
    true
}

/// Tells whether a buffer has the output's indices but the root's, in the same places.
fn laid_out_as_row(c: &Writer, buffer: usize) -> bool {
    let (sum, row) = (&c.program.buffers[buffer], &c.program.output);
    let root = c.program.root_row().map(|(root, _)| root);
    let rest = row.indices.get(1..).zip(row.strides.get(1..));
    root.is_some()
        && root == row.indices.first().copied()
        && rest.is_some_and(|rest| rest == (&sum.indices[..], &sum.strides[..]))
}

/// Tells whether a statement sets the output to `buffer`.
fn sets_row(stmt: &Stmt, buffer: usize) -> bool {
    match stmt {
        Stmt::DenseLoop { body, .. } => matches!(body.as_slice(), [one] if sets_row(one, buffer)),
        Stmt::Product { target: Place::Output, factors, update: Update::Assign, .. } => {
            factors == &[Place::Buffer(buffer)]
        }
        _ => false,
    }
}

/// Recognises a body that ends in a loop over vectors that are added, scaled, to a target which the
/// loop does not index.
fn outer_product<'a>(c: &Writer, level_index: Index, body: &'a [Stmt]) -> Option<Outer<'a>> {
    let (last, before) = body.split_last()?;
    let Stmt::DenseLoop { index, extent, body: inner } = last else { return None };
    let [Stmt::Product { target, factors, update: Update::Add, lanes: Some(lanes) }] =
        inner.as_slice()
    else {
        return None;
    };
    let in_registers = |place: &Place| match place {
        Place::Buffer(buffer) => c.registers.contains(buffer).then_some(*buffer),
        _ => None,
    };
    let has_lanes =
        |place: &Place| c.program.array(*place).is_some_and(|array| array.indices.contains(lanes));
    let (long, scales): (Vec<Place>, Vec<Place>) = factors.iter().copied().partition(has_lanes);
    let [vectors] = long.as_slice() else { return None };
    let vectors = in_registers(vectors)?;
    let array = c.program.array(*target)?;
    // A block at the position of a node belongs to that node alone.
    let shared = *target != Place::Output || c.program.addressing == Addressing::Coordinates;
    let free = array.indices.contains(index) && !array.indices.contains(&level_index) && shared;
    let readable = scales.iter().all(|scale| matches!(scale, Place::Dense(_)));
    let own = before.iter().all(|stmt| stays_inside(c, stmt));
    let fits = array.indices.last() == Some(lanes) && has_lanes(target);
    (free && readable && own && fits && in_registers(target).is_none() && !scales.is_empty())
        .then_some(Outer {
            index: *index,
            extent: *extent,
            target: *target,
            vectors,
            scales,
            lanes: *lanes,
            before,
        })
}

/// Tells whether a statement writes only buffers that are variables.
fn stays_inside(c: &Writer, stmt: &Stmt) -> bool {
    let variable = |buffer: &usize| {
        c.registers.contains(buffer) || c.program.buffers[*buffer].indices.is_empty()
    };
    match stmt {
        Stmt::LevelLoop { body, .. }
        | Stmt::Union { body, .. }
        | Stmt::Within { body, .. }
        | Stmt::DenseLoop { body, .. } => body.iter().all(|stmt| stays_inside(c, stmt)),
        Stmt::Clear { buffer } => variable(buffer),
        Stmt::Mark { .. } | Stmt::Append { .. } => false,
        Stmt::Product { target: Place::Buffer(buffer), .. } => variable(buffer),
        Stmt::Product { .. } => false,
    }
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
