//! What the caller decides about reading, and what it can watch.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::io::source::Format;

/// The number that the first index of every mode bears in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Base {
    /// Indices count from 0.
    Zero,
    /// Indices count from 1.
    One,
}

/// Options of [`read`](crate::io::read).
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format; `None` takes it from the name (standard input: from the first bytes).
    pub format: Option<Format>,
    /// From where the indices of a text file count; `None` decides by header and content.
    pub base: Option<Base>,
    /// The extents, where the file's header has none.
    pub extents: Option<Vec<u64>>,
    /// Bytes of text per parsing task, at least 1.  Small windows cost speed, large ones memory.
    pub window: usize,
    /// Whether to hash a file as it is read: plain text in windows of a power of two, at least 1 KiB, of which it
    /// has several.  [`file_hash`](crate::io::file_hash) takes the same of any file.
    pub hash: bool,
}

impl Default for ReadOptions {
    /// Everything decided by the file; windows of 512 KiB, which stay in a second-level cache with the rows.
    fn default() -> ReadOptions {
        let window = 512 << 10;
        ReadOptions { format: None, base: None, extents: None, window, hash: false }
    }
}

/// How far a reader is, for a display that polls it from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Makes a counter at 0 of an unknown total.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Returns the bytes of the file that are read.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns the size of the file in bytes; 0 while it is unknown.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(super) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Starts over: a second attempt, or a new file of `total` bytes.
    pub(super) fn restart(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }
}
