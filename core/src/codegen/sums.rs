//! Loops over a level that add one value per node to a scalar: several partial sums side by side.
//!
//! ```text
//! for j in level 2 of X:                 for j0, j1, j2, j3 in level 2 of X:
//!     sum += X(i,j) * v(j)         ->        part_0 += X(i,j0) * v(j0)
//!                                            ...
//!                                        sum += (part_0 + part_1) + (part_2 + part_3)
//!                                        the nodes that are left, one by one
//! ```
//!
//! An addition waits for the one before on the same scalar, some four cycles where two could start in each.

use crate::codegen::vector_matrix::in_pairs;
use crate::codegen::writer::Writer;
use crate::lower::{Place, Stmt, Update};

/// Partial sums: the latency of an addition in cycles.
const PARTS: u64 = 4;

/// Writes the loop over `level` around `body`, if it adds single values to a scalar buffer.
/// Returns whether it did.
pub(super) fn summed_values(c: &mut Writer, level: usize, body: &[Stmt]) -> bool {
    let [
        Stmt::Product { target: Place::Buffer(buffer), factors, update: Update::Add, lanes: None },
    ] = body
    else {
        return false;
    };
    let scalar = c.program.buffers[*buffer].indices.is_empty();
    let reads_it = factors.contains(&Place::Buffer(*buffer));
    if !scalar || reads_it || !c.program.optimisations.keeps_registers() {
        return false;
    }
    let own = c.program.levels()[level].index;
    if level == 0 || c.fused_above(level).is_some() || !c.program.vectors.allow(own) {
        return false;
    }
    let (index, (begin, end)) = (c.program.levels()[level].index, c.bounds(level));
    let sum = c.program.buffers[*buffer].name.clone();
    c.open("{");
    c.line(&format!("uint64_t at_{index} = {begin};"));
    c.line(&format!("const uint64_t end_{index} = {end};"));
    c.open(&format!("if (at_{index} + {PARTS} <= end_{index}) {{"));
    let parts: Vec<String> = (0..PARTS).map(|part| format!("part_{part}")).collect();
    c.line(&format!("value {} = 0;", parts.join(" = 0, ")));
    c.open(&format!("for (; at_{index} + {PARTS} <= end_{index}; at_{index} += {PARTS}) {{"));
    for (node, part) in parts.iter().enumerate() {
        c.open("{");
        c.line(&format!("const uint64_t first_{index} = at_{index};"));
        c.line(&format!("const uint64_t at_{index} = first_{index} + {node};"));
        add(c, level, part, factors);
        c.close();
    }
    c.close();
    c.line(&format!("{sum} += {};", in_pairs(parts)));
    c.close();
    c.open(&format!("for (; at_{index} < end_{index}; ++at_{index}) {{"));
    add(c, level, &sum, factors);
    c.close();
    c.close();
    true
}

/// Adds the product of `factors` at the current node of `level` to `sum`.
fn add(c: &mut Writer, level: usize, sum: &str, factors: &[Place]) {
    c.bind_node(level);
    c.prefetches(level);
    let values: Vec<String> = factors.iter().map(|&place| c.element(place)).collect();
    c.line(&format!("{sum} += {};", values.join(" * ")));
}
