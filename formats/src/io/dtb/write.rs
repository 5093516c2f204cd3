//! Writing a `.dtb` file.

use std::io;
use std::io::Write;

use crate::coo::Coo;
use crate::ints::Ints;
use crate::io::dtb::header::Header;
use crate::value::Value;

/// Writes `coo` with its coordinate widths, and the order in which it is known to be sorted.
///
/// Time `O(bytes)`, of which the hash takes all threads.
pub(in crate::io) fn write<V: Value>(coo: &Coo<V>, out: &mut dyn Write) -> io::Result<()> {
    let widths = (0..coo.order()).map(|mode| coo.coords(mode).width());
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
        match coo.coords(mode) {
            Ints::U32(array) => sink.put(bytemuck::cast_slice(array))?,
            Ints::U64(array) => sink.put(bytemuck::cast_slice(array))?,
        }
    }
    sink.pad(places.values)?;
    sink.put(bytemuck::cast_slice(coo.values()))?;
    sink.pad(places.hash)?;
    let Hashed { out, hasher, .. } = sink;
    out.write_all(hasher.finalize().as_bytes())
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
