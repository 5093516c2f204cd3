//! What the caller decides about reading, and what it can watch.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::error::FormatError;
use crate::io::source::Format;
use crate::modes::ModeSet;

/// The number that the first index of every mode bears in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Base {
    /// Indices count from 0.
    Zero,
    /// Indices count from 1.
    One,
}

impl Base {
    /// Returns the number that the first index bears.
    pub fn first(self) -> u64 {
        match self {
            Base::Zero => 0,
            Base::One => 1,
        }
    }
}

/// What stands for a value that is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Nothing: a NaN is refused, and the zeros of a dense array are cells without an entry.
    #[default]
    None,
    /// A NaN: its entry is left out, and every other cell of a dense array is an entry, also where
    /// it is zero.
    Nan,
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
    /// What stands for an unknown value.
    pub missing: Missing,
    /// The most modes: a file of more is refused as soon as its order is known.
    pub max_order: usize,
    /// The most bytes that the tensor may take, checked while a compressed file is unpacked and before
    /// memory is taken for what a header claims.  `None` leaves it to the system.
    pub max_bytes: Option<u64>,
}

impl ReadOptions {
    /// Refuses a tensor of too many modes.
    pub(super) fn check_order(&self, order: usize, file: &str) -> Result<(), FormatError> {
        match order <= self.max_order {
            true => Ok(()),
            false => Err(FormatError::Order { file: file.to_owned(), order, most: self.max_order }),
        }
    }
}

impl Default for ReadOptions {
    /// Everything decided by the file; windows of 512 KiB, which stay in a second-level cache with the rows.
    fn default() -> ReadOptions {
        let window = 512 << 10;
        ReadOptions {
            format: None,
            base: None,
            extents: None,
            window,
            hash: false,
            missing: Missing::None,
            max_order: ModeSet::MODES,
            max_bytes: None,
        }
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
