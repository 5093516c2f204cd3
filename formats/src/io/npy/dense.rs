//! Dense arrays, from a stream whose claims are checked before memory is taken for them.

use std::io;
use std::io::Read;

use ndarray::{ArrayD, IxDyn, ShapeBuilder};

use crate::dense::DenseTensor;
use crate::error::FormatError;
use crate::io::claimed_sizes;
use crate::io::npy::header;
use crate::io::npy::header::AxisOrder;
use crate::io::npy::header::NpyHeader;
use crate::value::Value;

/// Bytes read at a time.
const PIECE: usize = 1 << 18;

/// Reads a `.npy` file of real elements of any type from `reader` to its end.
///
/// `file` names it in messages.  Memory grows with what is read, never with what is claimed.
///
/// # Errors
///
/// [`FormatError::TooLarge`] for an array of more than `max_bytes` bytes, and what
/// [`NpyHeader::read`] returns.
pub fn read_dense<V: Value>(
    reader: &mut impl Read,
    file: &str,
    max_bytes: u64,
) -> Result<DenseTensor<V>, FormatError> {
    let header = NpyHeader::read(reader, file)?;
    let count = header.admit(V::BYTES, max_bytes, file)?;
    let size = header.element.bytes();
    let mut values: Vec<V> = Vec::new();
    let mut piece = vec![0; PIECE];
    while values.len() < count {
        let bytes = PIECE.min((count - values.len()) * size);
        reader.read_exact(&mut piece[..bytes]).map_err(|error| header::unreadable(error, file))?;
        claimed_sizes::grow(&mut values, bytes / size, file)?;
        let elements = piece[..bytes].chunks_exact(size);
        values.extend(elements.map(|bytes| V::from_f64(header.element.number(bytes))));
    }
    match reader.read(&mut piece[..1]) {
        Ok(0) => {}
        Ok(_) => return Err(header::damaged(file, "there is more behind its last element")),
        Err(error) => return Err(header::unreadable(error, file)),
    }
    let shape = IxDyn(&header.shape);
    let array = match header.order {
        AxisOrder::LastFastest => ArrayD::from_shape_vec(shape, values),
        AxisOrder::FirstFastest => ArrayD::from_shape_vec(shape.f(), values),
    };
    array.map_err(|error| header::unreadable(io::Error::other(error), file))
}
