//! Hashes that identify input files.

use std::path::Path;

use crate::error::FormatError;

/// Returns the BLAKE3 hash of the file at `path` in hexadecimal, computed by all threads.
///
/// # Errors
///
/// [`FormatError::Io`] if the file cannot be read.
pub fn file_hash(path: &Path) -> Result<String, FormatError> {
    let mut hasher = blake3::Hasher::new();
    match hasher.update_mmap_rayon(path) {
        Ok(_) => Ok(hasher.finalize().to_hex().to_string()),
        Err(source) => Err(FormatError::Io { action: "read", path: path.to_owned(), source }),
    }
}
