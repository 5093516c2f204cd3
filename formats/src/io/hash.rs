//! Hashes that identify input files.

use std::io;
use std::ops::Range;
use std::path::Path;

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
    let (left, right) = halves(bytes, 0..bytes.len())?;
    Ok(hazmat::merge_subtrees_root(&left, &right, Mode::Hash))
}

/// Hashes the two halves of `range` as far as they say nothing about what is around them.
fn halves(bytes: Bytes<'_>, range: Range<u64>) -> io::Result<(ChainingValue, ChainingValue)> {
    let half = range.start + hazmat::left_subtree_len(range.end - range.start);
    let (left, right) =
        rayon::join(|| subtree(bytes, range.start..half), || subtree(bytes, half..range.end));
    Ok((left?, right?))
}

fn subtree(bytes: Bytes<'_>, range: Range<u64>) -> io::Result<ChainingValue> {
    if range.end - range.start <= WINDOW {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(range.start).update(&bytes.window(range)?);
        return Ok(hasher.finalize_non_root());
    }
    let (left, right) = halves(bytes, range)?;
    Ok(hazmat::merge_subtrees_non_root(&left, &right, Mode::Hash))
}

#[cfg(test)]
mod tests {
    use super::{Bytes, WINDOW, file_hash, root};

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
}
