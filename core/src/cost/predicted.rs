//! What a schedule is predicted to cost.

use std::fmt;

/// What a schedule is predicted to cost; the same columns whoever made it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Seconds on one core.
    pub seconds: f64,
    /// The part of them for terms in dense loops only, which every task computes anew.
    pub repeated_seconds: f64,
    /// Multiplications and additions.
    pub flops: f64,
    /// Bytes of operands and output fetched anew, from whatever cache.
    pub gathered_bytes: f64,
    /// Bytes of the sparse operand streamed.
    pub streamed_bytes: f64,
    /// Elements of all buffers together.
    pub buffer_elements: u64,
    /// Elements that all tasks together append to an assembled output.
    pub appended_elements: u64,
    /// Stored indices of the largest buffer.
    pub buffer_dims: usize,
}

impl Cost {
    /// Returns the cost of this and then `other`, each with its own buffers.
    pub(crate) fn then(self, other: Cost) -> Cost {
        Cost {
            seconds: self.seconds + other.seconds,
            repeated_seconds: self.repeated_seconds + other.repeated_seconds,
            flops: self.flops + other.flops,
            gathered_bytes: self.gathered_bytes + other.gathered_bytes,
            streamed_bytes: self.streamed_bytes + other.streamed_bytes,
            buffer_elements: self.buffer_elements.max(other.buffer_elements),
            appended_elements: self.appended_elements.max(other.appended_elements),
            buffer_dims: self.buffer_dims.max(other.buffer_dims),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.3e} s on one core, {:.3e} flops, {:.3e} B gathered, {:.3e} B streamed, \
             buffers of {} elements in up to {} dimensions",
            self.seconds,
            self.flops,
            self.gathered_bytes,
            self.streamed_bytes,
            self.buffer_elements,
            self.buffer_dims
        )
    }
}
