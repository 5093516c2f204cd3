//! `.dtb`: the binary form of a coordinate list, opened by mapping.
//!
//! All numbers are little endian.  With `N` modes:
//!
//! | byte | size | what |
//! |---|---|---|
//! | 0 | 8 | magic, `89 44 54 42 0D 0A 1A 0A`: a transfer as text damages it visibly |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | order `N` |
//! | 16 | 4 | bytes of a value, 4 or 8 |
//! | 20 | 4 | 1 if the entries are sorted, else 0 |
//! | 24 | 8 | entries |
//! | 32 | 8 | bytes of the file |
//! | 40 | 16 a mode | extent (8), bytes of a coordinate (4), mode at this sorting level (4) |
//!
//! then the coordinates of each mode and the values, each array at the next multiple of 64 bytes
//! with zeros between, and at the end the 32 bytes of the BLAKE3 hash of all before.
//!
//! Opening checks everything: the hash by all threads, the layout, that each coordinate is below
//! its extent, and the sorting.  A `.dtb` of the asked value type is then used in place.

mod header;
mod read;
mod write;

pub(super) use crate::io::dtb::header::MAGIC;
pub(super) use crate::io::dtb::read::from_bytes;
pub(super) use crate::io::dtb::read::open;
pub(super) use crate::io::dtb::write::write;

const _: () = assert!(cfg!(target_endian = "little"), "arrays are used as they lie in the file");
