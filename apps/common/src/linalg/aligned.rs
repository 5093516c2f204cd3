//! Memory that begins with a cache line, used again: fresh pages are slow to touch.
//!
//! A pass over a factor sums `8 R^2` bytes for each of its groups of rows, 25 kB at rank 50. An allocator hands so much back to
//! the system when it is freed, and the next pass would have every page cleared anew.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use decompose_formats::dense::LINE_BYTES;

/// Values of a cache line.
const LINE: usize = LINE_BYTES / size_of::<f64>();

/// What was freed: as much as passes had at a time, so it is never cleared.
static SPARE: Mutex<Vec<Vec<f64>>> = Mutex::new(Vec::new());

/// Values that begin with a cache line, so that no vector lies in two.
pub(super) struct Lines {
    values: Vec<f64>,
    start: usize,
    len: usize,
}

impl Lines {
    /// Returns `len` zeros.
    pub(super) fn zeros(len: usize) -> Lines {
        let mut values = take(len + LINE - 1);
        values.clear();
        values.resize(len + LINE - 1, 0.0);
        // Where an address cannot be aligned, any will do.
        let start = values.as_ptr().align_offset(LINE_BYTES).min(LINE - 1);
        Lines { values, start, len }
    }
}

/// Returns the smallest spare vector that holds `len` values; if there is none the largest, to be grown, so that no more
/// of them are spare than were in use at a time.
fn take(len: usize) -> Vec<f64> {
    let mut spare = spare();
    let key = |&at: &usize| match spare[at].capacity() {
        enough if enough >= len => (0, enough),
        less => (1, usize::MAX - less),
    };
    let best = (0..spare.len()).min_by_key(key);
    best.map_or_else(Vec::new, |at| spare.swap_remove(at))
}

fn spare() -> MutexGuard<'static, Vec<Vec<f64>>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Lines {
    fn drop(&mut self) {
        spare().push(std::mem::take(&mut self.values));
    }
}

impl Deref for Lines {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.values[self.start..][..self.len]
    }
}

impl DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.values[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES, Lines};

    #[test]
    fn memory_used_again_is_zero_and_begins_with_a_line() {
        for len in [1, 7, 64, 1000, 8, 3000, 999] {
            let mut lines = Lines::zeros(len);
            assert_eq!((lines.len(), lines.as_ptr() as usize % LINE_BYTES), (len, 0));
            assert!(lines.iter().all(|&x| x == 0.0), "{len}");
            lines.fill(1.0);
        }
    }
}
