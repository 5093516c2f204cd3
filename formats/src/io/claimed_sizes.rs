//! What a file claims, checked against the memory there is before any is taken.

use std::cell::Cell;
use std::io::Read;
use std::path::PathBuf;

use crate::error::FormatError;

/// Bytes read at a time.
const PIECE: usize = 1 << 18;

/// Checks that `needs` bytes are within `limit`.
pub(super) fn check(needs: u64, limit: u64, file: &str) -> Result<(), FormatError> {
    if needs <= limit {
        return Ok(());
    }
    Err(FormatError::TooLarge { file: file.to_owned(), needs, limit })
}

thread_local! {
    static MEETS_REFUSAL: Cell<bool> = const { Cell::new(false) };
}

/// Tells whether a refusal of what this thread asks for now is met, and told with the file.
pub fn meets_refusal() -> bool {
    MEETS_REFUSAL.try_with(Cell::get).unwrap_or(false)
}

/// Makes room for `more` numbers, at least doubling what there is.
pub(super) fn grow<T>(numbers: &mut Vec<T>, more: usize, file: &str) -> Result<(), FormatError> {
    MEETS_REFUSAL.set(true);
    let reserved = numbers.try_reserve(more);
    MEETS_REFUSAL.set(false);
    reserved.map_err(|_| {
        let elements = numbers.len().saturating_add(more) as u64;
        let needs = elements.saturating_mul(size_of::<T>() as u64);
        FormatError::NoMemory { file: file.to_owned(), needs }
    })
}

/// Reads `reader` to its end, up to `limit` bytes.
pub(super) fn read_all(
    reader: &mut impl Read,
    limit: Option<u64>,
    file: &str,
) -> Result<Vec<u8>, FormatError> {
    let limit = limit.unwrap_or(u64::MAX);
    let refused = |source| FormatError::Io { action: "read", path: PathBuf::from(file), source };
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let got = match reader.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(got) => got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(refused(error)),
        };
        check((bytes.len() + got) as u64, limit, file)?;
        grow(&mut bytes, got, file)?;
        bytes.extend_from_slice(&piece[..got]);
    }
}
