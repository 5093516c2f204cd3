//! Mapping files into memory: the only `unsafe` of this crate.
#![expect(unsafe_code, reason = "mapping a file is unsafe: others may change it meanwhile")]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ops::Range;

use memmap2::Mmap;
use memmap2::MmapOptions;

/// Bytes that can be looked at piece by piece: memory, or a file mapped window by window.
///
/// Windows keep the resident memory low: a file mapped as a whole would stay resident and count
/// as ours until the end.
#[derive(Clone, Copy)]
pub(super) enum Bytes<'a> {
    Memory(&'a [u8]),
    File { file: &'a File, len: u64 },
}

/// A piece of [`Bytes`].
pub(super) enum Window<'a> {
    Memory(&'a [u8]),
    Mapped(Mmap),
}

impl<'a> Bytes<'a> {
    pub(super) fn len(self) -> u64 {
        match self {
            Bytes::Memory(bytes) => bytes.len() as u64,
            Bytes::File { len, .. } => len,
        }
    }

    /// Views the bytes of `range`, which must lie inside.
    pub(super) fn window(self, range: Range<u64>) -> io::Result<Window<'a>> {
        match self {
            _ if range.is_empty() => Ok(Window::Memory(&[])),
            Bytes::Memory(bytes) => {
                Ok(Window::Memory(&bytes[range.start as usize..range.end as usize]))
            }
            Bytes::File { file, .. } => {
                let len = (range.end - range.start) as usize;
                let mut options = MmapOptions::new();
                // Populating fetches the whole window at once instead of a fault every 16 pages.
                options.offset(range.start).len(len).populate();
                // SAFETY: the map is read-only and private to one parsing task, which treats its
                // content as arbitrary bytes.  If another process rewrites the file meanwhile, we
                // read other bytes; if one truncates it, the system ends us with SIGBUS.  Nothing
                // in this process writes a file that it reads.
                Ok(Window::Mapped(unsafe { options.map(file)? }))
            }
        }
    }
}

impl Deref for Window<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Window::Memory(bytes) => bytes,
            Window::Mapped(map) => map,
        }
    }
}

/// Maps a whole, non-empty file for reading.
pub(super) fn whole(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only; its content is checked (checksum, extents) before it is used
    // and never trusted for memory safety.  Our writers replace files by renaming, which leaves a
    // mapped file intact; another program that truncates it in place ends us with SIGBUS.
    unsafe { Mmap::map(file) }
}
