//! Loops that add a scaled row to the same vectors in every iteration: a vector times a matrix.
//!
//! ```text
//! for c in 0..8:                            for c in 0, 2, 4, 6:
//!     T2(b) += T1(c) * G(c,b)      ->           part_0(b) += T1(c) * G(c,b)
//!                                               part_1(b) += T1(c + 1) * G(c + 1,b)
//!                                           T2(b) += part_0(b) + part_1(b)
//! ```
//!
//! A multiply-add waits for the one before on the same vector, some four cycles where two could start in
//! each; so short rows are added to several partial sums, and long ones to tiles that stay in registers.

use crate::codegen::vector::prepare;
use crate::codegen::writer::Writer;
use crate::einsum::Index;
use crate::lower::{Place, Stmt, common_row, lanes};

/// Vectors that are added to side by side: the latency of a multiply-add in cycles, times two units.
const IN_FLIGHT: u64 = 8;

/// Writes the loop of `index` over `body`, which adds a row over lanes to a place that lacks the index, tile by tile.
pub(super) fn summed_rows(
    c: &mut Writer,
    (index, extent): (Index, u64),
    tiles: u64,
    body: &[Stmt],
) {
    let [Stmt::Product { target, factors, lanes: Some(over), .. }] = body else {
        unreachable!("tiles of {body:?}");
    };
    let row = common_row(c.program, *target, factors, *over);
    let width = lanes(c.program, row);
    let vectors = row / width;
    let rows = Rows { index, extent, target: *target, factors, over: *over, width };
    for tile in 0..tiles {
        rows.tile(c, tile * vectors / tiles..(tile + 1) * vectors / tiles);
    }
}

/// The loop of `index` around a product over the lanes of `over`.
struct Rows<'a> {
    index: Index,
    extent: u64,
    target: Place,
    factors: &'a [Place],
    over: Index,
    /// Values of a vector.
    width: u64,
}

impl Rows<'_> {
    /// Writes the loop for the vectors `tile` of the row.
    fn tile(&self, c: &mut Writer, tile: std::ops::Range<u64>) {
        let (index, extent) = (self.index, self.extent);
        let parts = (IN_FLIGHT / (tile.end - tile.start)).clamp(1, extent.max(1));
        let whole = extent - extent % parts;
        c.open("{");
        let width = self.width;
        for part in 0..parts {
            let names: Vec<String> =
                tile.clone().map(|v| format!("part_{part}_{v} = {{0}}")).collect();
            c.line(&format!("vec{width} {};", names.join(", ")));
        }
        c.open(&format!(
            "for (uint64_t from_{index} = 0; from_{index} < {whole}; from_{index} += {parts}) {{"
        ));
        (0..parts).for_each(|part| self.row(c, (part, &format!("from_{index} + {part}")), &tile));
        c.close();
        (whole..extent).for_each(|at| self.row(c, (at - whole, &at.to_string()), &tile));
        let shape = prepare(c, self.target, &[], self.over);
        shape.bind_target(c);
        debug_assert_eq!(shape.width, self.width);
        for v in tile {
            let sum: Vec<String> = (0..parts).map(|part| format!("part_{part}_{v}")).collect();
            let target = shape.target_at(c, &v.to_string());
            c.line(&format!("{target} += {};", in_pairs(sum)));
        }
        c.close();
    }

    /// Writes the iteration `at`, which adds to the partial sum `part`.
    fn row(&self, c: &mut Writer, (part, at): (u64, &str), tile: &std::ops::Range<u64>) {
        c.open("{");
        c.line(&format!("const uint64_t {} = {at};", self.index));
        let shape = prepare(c, self.target, self.factors, self.over);
        for v in tile.clone() {
            let text = shape.expression(c, &v.to_string());
            c.line(&format!("part_{part}_{v} += {text};"));
        }
        c.close();
    }
}

/// Adds up `terms` as a balanced tree.
pub(super) fn in_pairs(mut terms: Vec<String>) -> String {
    while terms.len() > 1 {
        let pair = |pair: &[String]| match pair {
            [a, b] => format!("({a} + {b})"),
            _ => pair.concat(),
        };
        terms = terms.chunks(2).map(pair).collect();
    }
    terms.concat()
}
