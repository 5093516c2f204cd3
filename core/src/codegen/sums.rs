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
//!
//! Where the schedule wants vectors of the loop's index, and the processor can gather, vectors of nodes come first:
//!
//! ```text
//! all += X(i, 8 nodes j) * v(their j)
//! ```
//!
//! Nodes of a dense level are neighbours in the operand too, so that nothing is gathered.
//!
//! Vectors pay on rows of more than a vector.  Values and coordinates are asked for some lines ahead.

use crate::codegen::vector_matrix::in_pairs;
use crate::codegen::writer::{Writer, int_type};
use crate::lower::{Place, Stmt, VECTOR_BYTES};
use crate::schedule::{LevelKind, TreeLevel, Vectors};

/// Writes the loop over `level` around `body`, which adds single values to a scalar buffer, in `parts` partial sums.
pub(super) fn summed_values(c: &mut Writer, level: usize, parts: u64, body: &[Stmt]) {
    let [Stmt::Product { target: Place::Buffer(buffer), factors, .. }] = body else {
        unreachable!("partial sums of {body:?}");
    };
    let (index, (begin, end)) = (c.program.levels()[level].index, c.bounds(level));
    let sum = c.program.buffers[*buffer].name.clone();
    c.open("{");
    c.line(&format!("uint64_t at_{index} = {begin};"));
    c.line(&format!("const uint64_t end_{index} = {end};"));
    gathered_values(c, level, &sum, factors);
    c.open(&format!("if (at_{index} + {parts} <= end_{index}) {{"));
    let names: Vec<String> = (0..parts).map(|part| format!("part_{part}")).collect();
    c.line(&format!("value {} = 0;", names.join(" = 0, ")));
    c.open(&format!("for (; at_{index} + {parts} <= end_{index}; at_{index} += {parts}) {{"));
    for (node, part) in names.iter().enumerate() {
        c.open("{");
        c.line(&format!("const uint64_t first_{index} = at_{index};"));
        c.line(&format!("const uint64_t at_{index} = first_{index} + {node};"));
        add(c, level, part, factors);
        c.close();
    }
    c.close();
    c.line(&format!("{sum} += {};", in_pairs(names)));
    c.close();
    c.open(&format!("for (; at_{index} < end_{index}; ++at_{index}) {{"));
    add(c, level, &sum, factors);
    c.close();
    c.close();
}

/// How many nodes ahead values and coordinates are asked for.
const AHEAD: u64 = 256;

/// Writes a loop over whole vectors of nodes of `level`, if the schedule wants one and all factors are there in vectors.
fn gathered_values(c: &mut Writer, level: usize, sum: &str, factors: &[Place]) {
    let param = c.program.levels()[level];
    let index = param.index;
    if c.program.vectors != Vectors::Over(index) || param.extent > i32::MAX as u64 {
        return;
    }
    let vectors = factors.iter().map(|&place| vector_of(c, level, place));
    let Some(vectors) = vectors.collect::<Option<Vec<String>>>() else { return };
    let width = (VECTOR_BYTES / c.program.value_bytes) as u64;
    let coord = int_type(param.storage.coords);
    let dense = param.kind == LevelKind::Dense;
    let unaligned = |kind: &str, name: &str, bytes: String| {
        format!(
            "typedef {kind} {name} __attribute__((vector_size({bytes}), aligned(sizeof({kind})), may_alias));"
        )
    };
    if !dense {
        c.line("#ifdef __AVX512F__");
    }
    c.open(&format!("if (at_{index} + {width} <= end_{index}) {{"));
    c.line(&unaligned("value", "lanes", VECTOR_BYTES.to_string()));
    if !dense {
        c.line(&unaligned(coord, "coords", format!("{width} * sizeof({coord})")));
        c.line(&format!("typedef int32_t places __attribute__((vector_size(4 * {width})));"));
    }
    c.line("lanes all = {0};");
    c.open(&format!("for (; at_{index} + {width} <= end_{index}; at_{index} += {width}) {{"));
    if !dense {
        c.line(&format!("__builtin_prefetch(coord_{index} + at_{index} + {AHEAD});"));
    }
    if factors.contains(&Place::Value(0)) {
        c.line(&format!("__builtin_prefetch(nonzero + at_{index} + {AHEAD});"));
    }
    if !dense {
        c.line(&format!(
            "const places those = __builtin_convertvector(*(const coords *)(coord_{index} + at_{index}), places);"
        ));
    }
    c.line(&format!("all += {};", vectors.join(" * ")));
    c.close();
    let values = (0..width).map(|lane| format!("all[{lane}]")).collect();
    c.line(&format!("{sum} += {};", in_pairs(values)));
    c.close();
    if !dense {
        c.line("#endif");
    }
}

/// Returns a factor for a vector of nodes of `level`: neighbouring values, gathered elements or neighbours, or one
/// for all.
fn vector_of(c: &Writer, level: usize, place: Place) -> Option<String> {
    let index = c.program.levels()[level].index;
    let Some(array) = c.program.array(place) else {
        let own = place == Place::Value(0) && level + 1 == c.program.levels().len();
        return own.then(|| format!("*(const lanes *)(nonzero + at_{index})"));
    };
    match array.indices.iter().position(|&one| one == index) {
        None => Some(format!("({} - (lanes){{0}})", c.element(place))),
        Some(at) if at + 1 == array.indices.len() => {
            let gather = if c.program.value_bytes == 8 { "gathersiv8df" } else { "gathersiv16sf" };
            let (base, offset) = (c.base(place), c.offset(place, array, Some(index)));
            let at = TreeLevel { tree: 0, level };
            if c.program.level(at).kind == LevelKind::Dense {
                let neighbours = format!("{base} + {offset} + ({})", c.coord_of(at));
                return Some(format!("*(const lanes *)({neighbours})"));
            }
            let bytes = c.program.value_bytes;
            Some(format!(
                "__builtin_ia32_{gather}((lanes){{0}}, {base} + {offset}, those, -1, {bytes})"
            ))
        }
        Some(_) => None,
    }
}

/// Adds the product of `factors` at the current node of `level` to `sum`.
fn add(c: &mut Writer, level: usize, sum: &str, factors: &[Place]) {
    c.bind_node(level);
    c.prefetches(level);
    let values: Vec<String> = factors.iter().map(|&place| c.element(place)).collect();
    c.line(&format!("{sum} += {};", values.join(" * ")));
}
