//! Files as bytes: read window by window, or mapped.
#![expect(unsafe_code, reason = "mapping a file is unsafe: others may change it meanwhile")]

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use memmap2::Mmap;

/// Bytes that can be looked at piece by piece: memory, or a file read window by window.
///
/// Windows are read into a buffer that each thread keeps, not mapped: to unmap a window interrupts
/// all other threads, and two threads then parse a text hardly faster than one.  Resident memory
/// stays at a window a thread, and a file that shrinks meanwhile is an error, not a signal.
#[derive(Clone, Copy)]
pub(super) enum Bytes<'a> {
    Memory(&'a [u8]),
    File { file: &'a File, len: u64 },
}

/// A piece of [`Bytes`].
pub(super) enum Window<'a> {
    Memory(&'a [u8]),
    Read(Vec<u8>),
}

thread_local! {
    /// The buffer of this thread, while no window holds it.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
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
            Bytes::Memory(bytes) => {
                Ok(Window::Memory(&bytes[range.start as usize..range.end as usize]))
            }
            Bytes::File { file, .. } => {
                let mut buffer = BUFFER.take();
                let len = (range.end - range.start) as usize;
                // Bytes of an earlier window are overwritten; only growth is cleared.
                buffer.resize(len, 0);
                file.read_exact_at(&mut buffer, range.start)?;
                Ok(Window::Read(buffer))
            }
        }
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        if let Window::Read(buffer) = self {
            BUFFER.set(std::mem::take(buffer));
        }
    }
}

impl Deref for Window<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Window::Memory(bytes) => bytes,
            Window::Read(buffer) => buffer,
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
