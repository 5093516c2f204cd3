//! Hashes that identify input files.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use blake3::Hasher;
use blake3::hazmat::{self, ChainingValue, HasherExt, Mode};

use crate::error::FormatError;
use crate::io::map::Bytes;
use crate::io::open::{self, Opened};

/// Bytes that a thread reads at a time: they stay in its second-level cache until they are hashed.
const WINDOW: u64 = 1 << 18;

/// Returns the BLAKE3 hash of the file at `path` in hexadecimal, computed by all threads.
///
/// # Errors
///
/// [`FormatError::Missing`], [`FormatError::IsAFolder`] or [`FormatError::Io`] if the file cannot be read.
pub fn file_hash(path: &Path) -> Result<String, FormatError> {
    let refused = |source| FormatError::Io { action: "read", path: path.to_owned(), source };
    let hash = match open::open(path)? {
        Opened::File(file, len) => root(Bytes::File { file: &file, len }).map_err(refused)?,
        Opened::Pipe(pipe) => Hasher::new().update_reader(pipe).map_err(refused)?.finalize(),
    };
    Ok(hash.to_hex().to_string())
}

/// Hashes all of `bytes`.
fn root(bytes: Bytes<'_>) -> io::Result<blake3::Hash> {
    if bytes.len() <= WINDOW {
        return Ok(blake3::hash(&bytes.window(0..bytes.len())?));
    }
    let hash =
        |range: Range<u64>| -> io::Result<_> { Ok(subtree(range.start, &bytes.window(range)?)) };
    let (left, right) = halves(0..bytes.len(), WINDOW, &hash)?;
    Ok(hazmat::merge_subtrees_root(&left, &right, Mode::Hash))
}

/// Hashes `bytes` from `start` on, as far as they say nothing about what is around them.
fn subtree(start: u64, bytes: &[u8]) -> ChainingValue {
    let mut hasher = Hasher::new();
    hasher.set_input_offset(start).update(bytes);
    hasher.finalize_non_root()
}

/// Returns what the two halves of `range` hash to, of whose subtrees of up to `window` bytes `hash` tells it.
fn halves<E: Send>(
    range: Range<u64>,
    window: u64,
    hash: &(impl Fn(Range<u64>) -> Result<ChainingValue, E> + Sync),
) -> Result<(ChainingValue, ChainingValue), E> {
    let half = range.start + hazmat::left_subtree_len(range.end - range.start);
    let part = |part: Range<u64>| {
        if part.end - part.start <= window {
            return hash(part);
        }
        let (left, right) = halves(part, window, hash)?;
        Ok(hazmat::merge_subtrees_non_root(&left, &right, Mode::Hash))
    };
    let (left, right) = rayon::join(|| part(range.start..half), || part(half..range.end));
    Ok((left?, right?))
}

/// The hash of bytes that are read in windows, each hashed by who reads it.
pub(super) struct Windows {
    len: u64,
    window: u64,
    /// What the windows hash to.
    found: Vec<OnceLock<ChainingValue>>,
}

impl Windows {
    /// Prepares for `len` bytes in windows of `window`; `None` if these are no subtrees of more.
    pub(super) fn new(len: u64, window: u64) -> Option<Windows> {
        let subtrees = window.is_power_of_two() && window >= blake3::CHUNK_LEN as u64;
        let found = || (0..len.div_ceil(window)).map(|_| OnceLock::new()).collect();
        (subtrees && window < len).then(|| Windows { len, window, found: found() })
    }

    /// Hashes window `number`, which has these bytes.
    pub(super) fn add(&self, number: usize, bytes: &[u8]) {
        self.found[number].get_or_init(|| subtree(number as u64 * self.window, bytes));
    }

    /// Returns the hash of all bytes in hexadecimal; `None` if a window is missing.
    pub(super) fn root(&self) -> Option<String> {
        let found = |range: Range<u64>| {
            self.found[(range.start / self.window) as usize].get().copied().ok_or(())
        };
        let (left, right) = halves(0..self.len, self.window, &found).ok()?;
        Some(hazmat::merge_subtrees_root(&left, &right, Mode::Hash).to_hex().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, WINDOW, Windows, file_hash, root};

    #[test]
    fn halves_make_the_hash_of_all() {
        let window = WINDOW as usize;
        let bytes: Vec<u8> = (0..5 * window).map(|at| (at * at / 7) as u8).collect();
        for len in [0, 1, 1000, window, window + 1, 2 * window, 3 * window - 5, 4 * window + 1024] {
            let bytes = &bytes[..len];
            assert_eq!(root(Bytes::Memory(bytes)).unwrap(), blake3::hash(bytes), "{len} bytes");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!(file_hash(file.path()).unwrap(), blake3::hash(&bytes).to_hex().as_str());
    }

    #[test]
    fn windows_in_any_order_make_the_hash_of_all() {
        let bytes: Vec<u8> = (0..10_000).map(|at| (at * at / 7) as u8).collect();
        for len in [1025, 2048, 5000, 8192, 10_000] {
            let windows = Windows::new(len as u64, 1024).unwrap();
            let parts: Vec<_> = bytes[..len].chunks(1024).enumerate().collect();
            let (last, others) = parts.split_last().unwrap();
            others.iter().rev().for_each(|&(number, part)| windows.add(number, part));
            assert_eq!(windows.root(), None);
            windows.add(last.0, last.1);
            assert_eq!(windows.root().unwrap(), blake3::hash(&bytes[..len]).to_hex().as_str());
        }
        for (len, window) in [(1024, 1024), (5000, 512), (5000, 3000), (5000, 1)] {
            assert!(Windows::new(len, window).is_none(), "{window} of {len}");
        }
    }
}
