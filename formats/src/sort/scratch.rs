//! Memory of sorts, used again: fresh pages are slow to touch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::MmapMut;

use crate::error::FormatError;
use crate::huge_pages;
use crate::narrow_ints::{Ints, Width};

/// Memory that nobody needs now.
///
/// Clones are the same memory; while one sort has it, another takes memory of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<Mutex<Spare>>);

#[derive(Debug, Default)]
struct Spare {
    /// Room for pairs.
    pairs: Option<MmapMut>,
    columns: Vec<Ints>,
}

impl Room {
    /// Calls `work` with `bytes` of memory for pairs, with anything in it.
    pub(super) fn with<R>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, FormatError> {
        let enough = self.spare().pairs.take().filter(|memory| memory.len() >= bytes);
        let mut memory = match enough {
            Some(memory) => memory,
            None => fresh(bytes)?,
        };
        let result = work(&mut memory[..bytes]);
        self.spare().pairs = Some(memory);
        Ok(result)
    }

    /// Returns a column of `len` coordinates with anything in it.
    pub(crate) fn column(&self, len: usize, width: Width) -> Ints {
        let columns = &mut self.spare().columns;
        let fits = |column: &Ints| column.len() == len && column.width() == width;
        match columns.iter().position(fits) {
            Some(found) => columns.swap_remove(found),
            None => Ints::to_fill(len, width),
        }
    }

    /// Keeps columns for others to use, those that nothing else has.
    pub(crate) fn put(&self, columns: Vec<Ints>) {
        self.spare().columns.extend(columns.into_iter().filter(Ints::is_own));
    }

    fn spare(&self) -> MutexGuard<'_, Spare> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fresh(bytes: usize) -> Result<MmapMut, FormatError> {
    let Ok(memory) = MmapMut::map_anon(bytes.max(1)) else {
        return Err(FormatError::NotATensor(format!("no memory to sort it: {bytes} bytes")));
    };
    huge_pages::ask_in_order(&memory);
    huge_pages::take(&memory);
    Ok(memory)
}
