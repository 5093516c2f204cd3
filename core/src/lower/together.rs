//! The pass that decides which iterations of a loop are taken together.
//!
//! A multiply-add waits some four cycles for the one before on the same value.  Two could start in every cycle.  A sum in
//! memory is loaded and stored for each multiply-add.  So iterations that add to the same place are taken together, where
//! the loop has one of these forms:
//!
//! | form | taken together |
//! |---|---|
//! | a level loop adds single values to a scalar | iterations add to partial sums in turn |
//! | a level loop or a dense one adds rows to one row | all iterations add to a tile of the row in registers, then to the next |
//! | a level loop ends in an outer product of a short row in registers | batches of nodes share each load and store |
//! | the root's loop clears a row, sums it up in batches and stores it | a row of one batch is set without the buffer |
//!
//! A level loop qualifies only over neighbouring nodes of the leader, without a join.

use crate::einsum::Index;
use crate::lower::ir::{Addressing, Place, Program, Stmt, Together, Update};
use crate::lower::vectors::{common_row, lanes};
use crate::schedule::{TreeLevel, Visited};

/// The most vectors of a row that are written out.
pub(crate) const UNROLLED: u64 = 32;

/// The most vectors of a tile held in registers by a loop that adds to an array.
const TILE: u64 = 12;

/// Partial sums: the latency of an addition in cycles.
const PARTS: u64 = 4;

/// The most vectors that a batch keeps in registers for its nodes; of the 32 of AVX-512 the rest
/// is for the target and the scales.
const BATCH_VECTORS: u64 = 16;

/// The most nodes of a batch.
const MOST_NODES: u64 = 4;

/// An outer product at the end of a level loop.
pub(crate) struct Outer<'a> {
    /// The loop around the product.
    pub(crate) index: Index,
    /// Its extent.
    pub(crate) extent: u64,
    /// What is added to.
    pub(crate) target: Place,
    /// The row: a buffer in registers.
    pub(crate) row: usize,
    /// The factors without lanes.
    pub(crate) scales: Vec<Place>,
    /// The index of the row.
    pub(crate) lanes: Index,
    /// What comes before it in the loop.
    pub(crate) before: &'a [Stmt],
}

/// Decides for every loop of `program` which iterations are taken together.
pub(super) fn together(program: &mut Program) {
    let mut body = std::mem::take(&mut program.body);
    decide(program, &mut body);
    program.body = body;
}

fn decide(program: &Program, stmts: &mut [Stmt]) {
    for stmt in stmts {
        let own = of_loop(program, stmt);
        match stmt {
            Stmt::LevelLoop { together, body, .. } | Stmt::DenseLoop { together, body, .. } => {
                *together = own;
                decide(program, body);
            }
            Stmt::Union { body, .. } | Stmt::Within { body, .. } => decide(program, body),
            Stmt::Clear { .. } | Stmt::Mark { .. } | Stmt::Append { .. } | Stmt::Product { .. } => {
            }
        }
    }
}

/// Returns which iterations of a loop can be taken together.
pub(super) fn of_loop(program: &Program, stmt: &Stmt) -> Together {
    let form = match stmt {
        Stmt::LevelLoop {
            lead: Visited::Level(TreeLevel { tree: 0, level }),
            located,
            body,
            ..
        } if located.is_empty() && has_neighbours(program, *level) => {
            let sums =
                summed_values(program, *level, body).then_some(Together::Sums { parts: PARTS });
            sums.or_else(|| tiled_rows(program, *level, body))
                .or_else(|| Some(Together::Batch { nodes: batch(program, *level, body)? }))
                .or_else(|| Some(Together::ShortRows { nodes: short_rows(program, *level, body)? }))
        }
        Stmt::DenseLoop { index, body, .. } => summed_rows(program, *index, body),
        _ => None,
    };
    form.unwrap_or_default()
}

/// Tells whether the loop over `level` visits nodes one behind the other, not pieces, nor every n-th node.
fn has_neighbours(program: &Program, level: usize) -> bool {
    program.levels()[level].pieces.is_none() && !program.is_strided(level)
}

/// Tells whether a loop over `level` around `body` adds single values to a scalar buffer.
fn summed_values(program: &Program, level: usize, body: &[Stmt]) -> bool {
    let [
        Stmt::Product { target: Place::Buffer(buffer), factors, update: Update::Add, lanes: None },
    ] = body
    else {
        return false;
    };
    let scalar = program.buffers[*buffer].indices.is_empty();
    let reads_it = factors.contains(&Place::Buffer(*buffer));
    let own = program.levels()[level].index;
    scalar
        && !reads_it
        && program.optimisations.keeps_registers()
        && level > 0
        && program.fused_above(level).is_none()
        && program.vectors.allow(own)
}

/// Returns the tiles of a row in memory that a loop over `level` around `body` adds to.
fn tiled_rows(program: &Program, level: usize, body: &[Stmt]) -> Option<Together> {
    let [
        Stmt::Product {
            target: Place::Buffer(buffer),
            update: Update::Add,
            lanes: Some(index),
            ..
        },
    ] = body
    else {
        return None;
    };
    let array = &program.buffers[*buffer];
    let row = array.indices.last() == Some(index)
        && !array.indices.contains(&program.levels()[level].index)
        && !program.kept.registers.contains(buffer)
        && program.optimisations.keeps_registers();
    let vectors = array.row() / lanes(program, array.row());
    row.then(|| Together::Tiles { tiles: vectors.div_ceil(TILE) })
}

/// Returns the tiles of a row that the loop of `index` around `body` adds to.
fn summed_rows(program: &Program, index: Index, body: &[Stmt]) -> Option<Together> {
    let [Stmt::Product { target, factors, update: Update::Add, lanes: Some(over) }] = body else {
        return None;
    };
    // Rows of a workspace are marked as they are met.
    let marked = *target == Place::Output && program.is_assembled();
    if marked || !program.optimisations.keeps_registers() {
        return None;
    }
    let array = program.array(*target)?;
    if array.indices.contains(&index) || array.indices.last() != Some(over) {
        return None;
    }
    let row = common_row(program, *target, factors, *over);
    let vectors = row / lanes(program, row);
    (vectors <= UNROLLED).then(|| Together::Tiles { tiles: vectors.div_ceil(TILE) })
}

/// Returns how many nodes of `level` are taken together, if its loop around `body` ends in an outer product of
/// rows so short that those of several nodes fit the registers.
fn batch(program: &Program, level: usize, body: &[Stmt]) -> Option<u64> {
    let owns_rows = level == 0 && program.root_row().is_some();
    if owns_rows || program.fused_above(level).is_some() {
        return None;
    }
    let outer = outer_product(program, level, body)?;
    let row = program.buffers[outer.row].len;
    let nodes = (BATCH_VECTORS / (row / lanes(program, row))).min(MOST_NODES);
    (nodes > 1).then_some(nodes)
}

/// Returns the most outer products that the body of the root's loop sets a row to at once, if
///
/// 1. it clears a buffer, sums into it by one level loop in batches, and sets the row to it;
/// 2. the buffer is laid out as the row.
fn short_rows(program: &Program, level: usize, body: &[Stmt]) -> Option<u64> {
    let [Stmt::Clear { buffer }, Stmt::LevelLoop { lead, located, body: inner, .. }, store] = body
    else {
        return None;
    };
    let Visited::Level(TreeLevel { tree: 0, level: below }) = lead else { return None };
    if level > 0 || !located.is_empty() || !has_neighbours(program, *below) {
        return None;
    }
    let nodes = batch(program, *below, inner)?;
    let target = outer_product(program, *below, inner)?.target;
    let summed = target == Place::Buffer(*buffer) && sets_row(store, *buffer);
    (summed && laid_out_as_row(program, *buffer)).then_some(nodes)
}

/// Tells whether a buffer has the output's indices but the root's, in the same places.
fn laid_out_as_row(program: &Program, buffer: usize) -> bool {
    let (sum, row) = (&program.buffers[buffer], &program.output);
    let root = program.root_row().map(|(root, _)| root);
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

/// Recognises a body of the loop over `level` that ends in a loop over rows that are added, scaled, to a target which the
/// level does not index.
pub(crate) fn outer_product<'a>(
    program: &Program,
    level: usize,
    body: &'a [Stmt],
) -> Option<Outer<'a>> {
    let (last, before) = body.split_last()?;
    let Stmt::DenseLoop { index, extent, body: inner, .. } = last else { return None };
    let [Stmt::Product { target, factors, update: Update::Add, lanes: Some(lanes) }] =
        inner.as_slice()
    else {
        return None;
    };
    let in_registers = |place: &Place| match place {
        Place::Buffer(buffer) => program.kept.registers.contains(buffer).then_some(*buffer),
        _ => None,
    };
    let has_lanes =
        |place: &Place| program.array(*place).is_some_and(|array| array.indices.contains(lanes));
    let (long, scales): (Vec<Place>, Vec<Place>) = factors.iter().copied().partition(has_lanes);
    let [row] = long.as_slice() else { return None };
    let row = in_registers(row)?;
    let array = program.array(*target)?;
    // A block at the position of a node belongs to that node alone.
    let shared = *target != Place::Output || program.addressing == Addressing::Coordinates;
    let level_index = program.levels()[level].index;
    let free = array.indices.contains(index) && !array.indices.contains(&level_index) && shared;
    let readable = scales.iter().all(|scale| matches!(scale, Place::Dense(_)));
    let own = before.iter().all(|stmt| stays_inside(program, stmt));
    let fits = array.indices.last() == Some(lanes) && has_lanes(target);
    (free && readable && own && fits && in_registers(target).is_none() && !scales.is_empty())
        .then_some(Outer {
            index: *index,
            extent: *extent,
            target: *target,
            row,
            scales,
            lanes: *lanes,
            before,
        })
}

/// Tells whether a statement writes only buffers that are variables.
fn stays_inside(program: &Program, stmt: &Stmt) -> bool {
    let variable = |buffer: &usize| {
        program.kept.registers.contains(buffer) || program.buffers[*buffer].indices.is_empty()
    };
    match stmt {
        Stmt::LevelLoop { body, .. }
        | Stmt::Union { body, .. }
        | Stmt::Within { body, .. }
        | Stmt::DenseLoop { body, .. } => body.iter().all(|stmt| stays_inside(program, stmt)),
        Stmt::Clear { buffer } => variable(buffer),
        Stmt::Mark { .. } | Stmt::Append { .. } => false,
        Stmt::Product { target: Place::Buffer(buffer), .. } => variable(buffer),
        Stmt::Product { .. } => false,
    }
}
