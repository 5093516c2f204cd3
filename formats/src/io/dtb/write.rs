//! Writing a `.dtb` file.

use std::io;
use std::io::Write;

use crate::coo::Coo;
use crate::io::dtb::header::Header;
use crate::narrow_ints::{Ints, Width, each_width};
use crate::value::Value;

/// Writes `coo` with its coordinate widths, at least four bytes, and the order in which it is known to be sorted.
///
/// Time `O(bytes)`, of which the hash takes all threads.
pub(in crate::io) fn write<V: Value>(coo: &Coo<V>, out: &mut dyn Write) -> io::Result<()> {
    let widths = (0..coo.order()).map(|mode| listed_width(coo.coords(mode)));
    let header = Header {
        value_bytes: V::BYTES as u32,
        sorted_by: coo.sorted_by().cloned(),
        entries: coo.nnz() as u64,
        modes: coo.extents().iter().copied().zip(widths).collect(),
    };
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, "more than 2^63 bytes");
    let places = header.places().ok_or_else(too_large)?;
    let mut sink = Hashed { out, hasher: blake3::Hasher::new(), at: 0 };
    sink.put(&header.encode(&places))?;
    for (mode, &start) in places.coords.iter().enumerate() {
        sink.pad(start)?;
        let coords = coo.coords(mode);
        match listed_width(coords) {
            width if width == coords.width() => sink.put(bytes(coords))?,
            wider => sink.put(bytes(&coords.copy_as(wider)))?,
        }
    }
    sink.pad(places.values)?;
    sink.put(bytemuck::cast_slice(coo.values()))?;
    sink.pad(places.hash)?;
    let Hashed { out, hasher, .. } = sink;
    out.write_all(hasher.finalize().as_bytes())
}

/// The width of a column in a file.
fn listed_width(coords: &Ints) -> Width {
    coords.width().max(Width::W32)
}

fn bytes(coords: &Ints) -> &[u8] {
    each_width!(Ints, coords, array => bytemuck::cast_slice(array))
}

/// Hashes what it passes on.
struct Hashed<'a> {
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
    at: u64,
}

impl Hashed<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update_rayon(bytes);
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Fills with zeros up to byte `place`, less than a line away.
    fn pad(&mut self, place: u64) -> io::Result<()> {
        let zeros = [0; 64];
        self.put(&zeros[..(place - self.at) as usize])
    }
}
