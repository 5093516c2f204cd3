//! No vector code for this kind of processor.

use crate::io::text::row::Coordinate;
use crate::io::text::row::Rows;
use crate::value::Value;

/// Tells whether the processor has what [`rows`] needs: never.
pub(in crate::io::text) fn available() -> bool {
    false
}

/// Parses no rows.
pub(in crate::io::text) fn rows<I: Coordinate, V: Value>(
    _text: &[u8],
    at: usize,
    _row: usize,
    _out: &mut Rows<'_, I, V>,
) -> (usize, usize) {
    (at, 0)
}
