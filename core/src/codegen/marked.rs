//! Sparse buffers: cells are marked where they are met first, and loops visit those that are marked.
//!
//! ```c
//! if (!(words_T1[k >> 12] >> (k >> 6 & 63) & 1)) { words_T1[k >> 12] |= ...; met_T1[k >> 6] = 0; }
//! if (!(met_T1[k >> 6] >> (k & 63) & 1)) { met_T1[k >> 6] |= ...; T1[k] = 0; }
//! ...
//! for (uint64_t above_k = 0; above_k < 25; ++above_k) {
//!     for (uint64_t words_k = words_T1[above_k]; words_k; words_k &= words_k - 1) {
//!         const uint64_t word_k = above_k * 64 + __builtin_ctzll(words_k);
//!         for (uint64_t met_k = met_T1[word_k]; met_k; met_k &= met_k - 1) {
//!             const size_t k = word_k * 64 + __builtin_ctzll(met_k);
//! ```
//!
//! What is met first is emptied then: a word of the lower bitmap, and the row of a cell.  So the buffer is cleared by
//! emptying the upper bitmap alone, and whatever else its memory holds is of no meaning.

use crate::codegen::writer::Writer;
use crate::einsum::Index;
use crate::lower::{Bitmaps, Place};

/// Declares a buffer and its bitmaps, which stand in scratch memory from `start` on.
pub(super) fn declare(c: &mut Writer, buffer: usize, start: &str) {
    let (name, bitmaps) = named(c, buffer);
    let (upper, len) = (c.upper(buffer, bitmaps), c.bitmaps_len(buffer, bitmaps));
    c.line(&format!("uint64_t *const words_{name} = (uint64_t *)(scratch + {start});"));
    c.line(&format!("uint64_t *const met_{name} = words_{name} + {upper};"));
    c.line(&format!("value *restrict const {name} = scratch + {start} + {len};"));
}

/// Marks no cell.
pub(super) fn clear(c: &mut Writer, buffer: usize) {
    let (name, bitmaps) = named(c, buffer);
    let upper = c.upper(buffer, bitmaps);
    c.line(&format!("for (size_t q = 0; q < {upper}; ++q) words_{name}[q] = 0;"));
}

/// Marks the current cell.
pub(super) fn mark(c: &mut Writer, buffer: usize) {
    let (name, _) = named(c, buffer);
    let array = &c.program.buffers[buffer];
    let (at, row) = (array.indices[0], c.stride(Place::Buffer(buffer), 0));
    c.open(&format!("if (!(words_{name}[{at} >> 12] >> ({at} >> 6 & 63) & 1)) {{"));
    c.line(&format!("words_{name}[{at} >> 12] |= (uint64_t)1 << ({at} >> 6 & 63);"));
    c.line(&format!("met_{name}[{at} >> 6] = 0;"));
    c.close();
    c.open(&format!("if (!(met_{name}[{at} >> 6] >> ({at} & 63) & 1)) {{"));
    c.line(&format!("met_{name}[{at} >> 6] |= (uint64_t)1 << ({at} & 63);"));
    if row == "1" {
        c.line(&format!("{name}[{at}] = 0;"));
    } else {
        c.line(&format!("for (size_t of = 0; of < {row}; ++of) {name}[{at} * {row} + of] = 0;"));
    }
    c.close();
}

/// Passes over a coordinate of `index` that is not marked.
pub(super) fn locate(c: &mut Writer, buffer: usize, index: Index) {
    let (name, _) = named(c, buffer);
    let word = format!("words_{name}[{index} >> 12] >> ({index} >> 6 & 63)");
    let cell = format!("met_{name}[{index} >> 6] >> ({index} & 63)");
    c.line(&format!("if (!({word} & {cell} & 1)) continue;"));
}

/// Opens the loop over the marked cells: three blocks.
pub(super) fn open(c: &mut Writer, buffer: usize) {
    let (name, bitmaps) = named(c, buffer);
    let (at, upper) = (c.program.buffers[buffer].indices[0], c.upper(buffer, bitmaps));
    c.open(&format!("for (uint64_t above_{at} = 0; above_{at} < {upper}; ++above_{at}) {{"));
    let bits = |bits: &str, of: &str| {
        format!("for (uint64_t {bits} = {of}; {bits}; {bits} &= {bits} - 1) {{")
    };
    c.open(&bits(&format!("words_{at}"), &format!("words_{name}[above_{at}]")));
    c.line(&format!("const uint64_t word_{at} = above_{at} * 64 + __builtin_ctzll(words_{at});"));
    c.open(&bits(&format!("met_{at}"), &format!("met_{name}[word_{at}]")));
    c.line(&format!("const size_t {at} = word_{at} * 64 + __builtin_ctzll(met_{at});"));
}

fn named(c: &Writer, buffer: usize) -> (String, Bitmaps) {
    let bitmaps = c.program.bitmaps(buffer).expect("a buffer whose cells are marked");
    (c.program.buffers[buffer].name.clone(), bitmaps)
}
